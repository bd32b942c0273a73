"""The demo for people: says what to open or type, shows what happens, and starts again what somebody kills."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import httpx

from controlplane.cli.demo.faults import DemoFault
from controlplane.cli.demo.report import Screen
from controlplane.cli.demo.stage import CONTRACT, Call, Stage

RUN_HOURS = 48
SILENCE_SECONDS = 60.0
LOOK_SECONDS = 0.2
TRY_AGAIN_SECONDS = 0.2

Event = dict[str, Any]


def play_by_hand(stage: Stage, screen: Screen) -> NoReturn:
    """Start a run and show what happens to it and to others, until a signal ends the demo."""
    events = _followed(f"{stage.urls.control_plane}/api/v1/events?from=now")
    _say_what_runs(stage, screen)
    call: Call | None = _start(stage)
    while True:
        for event in _next(events):
            _show(stage, screen, event)
        if call is not None and call.answered and not call.broken:
            _say_result(stage, screen, call)
            call = None
        call = _start_again_what_ended(stage, screen, call)


def _start(stage: Stage) -> Call:
    return stage.call("review_contract", f"{stage.name}-1", {"document": CONTRACT, "hours": RUN_HOURS})


def _say_what_runs(stage: Stage, screen: Screen) -> None:
    for program, url in zip(stage.programs, stage.urls, strict=True):
        screen.say(f"{program.name:<20} {url}  (process {program.pid})")
    screen.say("Kill any of them (kill -9 PID) while a run waits: it is started again, and nothing is lost.")
    screen.say("Ctrl-C ends the demo.")


def _show(stage: Stage, screen: Screen, event: Event) -> None:
    about = " ".join(str(event[name]) for name in ("execution_id", "approval_request_id") if event.get(name))
    reason = event["data"].get("feedback") or event["data"].get("reason") or ""
    screen.say(f"{event['at'][11:19]}  {event['type']:<26} {about}  {reason}".rstrip())
    if event["type"] == "approval.requested":
        _say_how_to_decide(stage, screen, event["approval_id"])


def _say_how_to_decide(stage: Stage, screen: Screen, approval_id: str) -> None:
    review = f"curl -X POST {stage.urls.reviews}/reviews/{approval_id}"
    screen.heading("The agent waits for you. Open this page, or type one of these in another terminal:")
    screen.say(f"  {stage.urls.reviews}/")
    screen.say(f"  {review}/approve")
    screen.say(f"  {review}/reject -d 'not with us'")
    screen.say(f"  {review}/request-changes -d 'name the clause'")


def _say_result(stage: Stage, screen: Screen, call: Call) -> None:
    try:
        screen.heading(f"The run has ended; the agent returned {json.dumps(call.result())}")
    except DemoFault as fault:
        screen.heading(f"The run has ended; {fault.message}")
    body = json.dumps({"document": "The supplier indemnifies the customer."})
    screen.say("Start another:")
    screen.say(f"  curl {stage.urls.agent}/reasoners/review_contract -H 'content-type: application/json' -d '{body}'")


def _start_again_what_ended(stage: Stage, screen: Screen, call: Call | None) -> Call | None:
    """Start what is not there any more; the demo's own run is called again when it was the agent."""
    for program in (each for each in stage.programs if not each.running):
        screen.say(f"{program.name} ended; starting it again")
        program.start()
        program.wait_until_ready()
        screen.say(f"{program.name} is back (process {program.pid})")
        if program is stage.agent and call is not None:
            call = _start(stage)
    return call


def _next(events: "queue.Queue[Event]") -> Iterator[Event]:
    try:
        yield events.get(timeout=LOOK_SECONDS)
        while True:
            yield events.get_nowait()
    except queue.Empty:
        return


def _followed(url: str) -> "queue.Queue[Event]":
    """What happens from now on, as it happens, through every restart of the control plane."""
    events: queue.Queue[Event] = queue.Queue()
    connected = threading.Event()
    threading.Thread(target=_follow, args=(url, events, connected), daemon=True).start()
    connected.wait(SILENCE_SECONDS)
    return events


def _follow(url: str, events: "queue.Queue[Event]", connected: threading.Event) -> None:
    last: dict[str, str] = {}
    with httpx.Client(timeout=SILENCE_SECONDS, trust_env=False) as client:
        while True:
            with suppress(httpx.HTTPError), client.stream("GET", url, headers=last) as stream:
                connected.set()
                _read(stream.iter_lines(), events, last)
            time.sleep(TRY_AGAIN_SECONDS)


def _read(lines: Iterator[str], events: "queue.Queue[Event]", last: dict[str, str]) -> None:
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "id":
            last["last-event-id"] = value
        elif name == "data":
            events.put(json.loads(value))
