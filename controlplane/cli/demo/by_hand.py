"""The demo for people: says what to open or type, shows what happens, and starts again what somebody kills."""

import json
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import httpx

from controlplane.cli.demo.report import Screen
from controlplane.cli.demo.stage import CONTRACT, REASONER, Stage

RUN_HOURS = 48
LONG_SECONDS = 20
SILENCE_SECONDS = 60.0
LOOK_SECONDS = 0.2
TRY_AGAIN_SECONDS = 0.2

Event = dict[str, Any]


def play_by_hand(stage: Stage, screen: Screen) -> NoReturn:
    """Start a run and show what happens to it and to others, until a signal ends the demo."""
    events = _followed(f"{stage.urls.control_plane}/api/v1/events?from=now")
    _say_what_runs(stage, screen)
    run: str | None = stage.execute("by-hand", document=CONTRACT, hours=RUN_HOURS, questions=True).execution_id
    said = 0
    while True:
        for event in _next(events):
            _show(stage, screen, event)
        said = _show_what_the_agent_says(stage, screen, said)
        if run is not None and _say_result(stage, screen, run):
            run = None
        _start_again_what_ended(stage, screen)


def _say_what_runs(stage: Stage, screen: Screen) -> None:
    for program, url in zip(stage.programs, stage.urls[: len(stage.programs)], strict=True):
        screen.say(f"{program.name:<20} {url}  (process {program.pid})")
    screen.say(
        "Kill any of them (kill -9 PID) whenever you like: it is started again, and every run goes on by itself."
    )
    screen.say("Ctrl-C ends the demo.")
    screen.heading("The inbox, where people decide; leave it open, it shows everything that comes:")
    screen.say(f"  {stage.urls.control_plane}/inbox")


def _show(stage: Stage, screen: Screen, event: Event) -> None:
    about = " ".join(str(event[name]) for name in ("execution_id", "approval_request_id") if event.get(name))
    reason = next((event["data"][name] for name in ("feedback", "reason", "name") if event["data"].get(name)), "")
    screen.say(f"{event['at'][11:19]}  {event['type']:<26} {about}  {reason}".rstrip())
    if event["type"] == "approval.requested":
        _say_how_to_decide(stage, screen, event["approval_id"])
    elif event["type"] == "feedback.asked":
        _say_how_to_answer(stage, screen, event["data"]["unique_id"])


def _show_what_the_agent_says(stage: Stage, screen: Screen, said: int) -> int:
    """Show what the agent wrote of its work since, each line with its process; how much it wrote so far."""
    lines = stage.agent.written(r"^\[\d+\] ", 0)
    for line in lines[said:]:
        screen.say(f"{'':8}  {line.text}")
    return len(lines)


def _say_how_to_decide(stage: Stage, screen: Screen, approval_id: str) -> None:
    if _is_question(stage, approval_id):
        screen.heading("The agent has a question, which keeps. Open this page and answer it, and once more to confirm:")
        screen.say(f"  {stage.urls.control_plane}/inbox/{approval_id}")
        return
    review = f"curl -X POST {stage.urls.reviews}/reviews/{approval_id}"
    screen.heading("The agent waits for you. Open this page and click Approve, and once more to confirm:")
    screen.say(f"  {stage.urls.control_plane}/inbox/{approval_id}")
    screen.say("Or be a review service that sends a signed webhook, in another terminal:")
    screen.say(f"  {review}/approve")
    screen.say(f"  {review}/reject -d 'not with us'")
    screen.say(f"  {review}/request-changes -d 'name the clause'")


def _is_question(stage: Stage, approval_id: str) -> bool:
    """Whether an approval is answered with more than a verdict; no, while the control plane is away."""
    with suppress(httpx.HTTPError, ValueError):
        found = stage.http.get(f"{stage.urls.control_plane}/api/v1/approvals/{approval_id}").json()
        return found.get("form") is not None
    return False


def _say_how_to_answer(stage: Stage, screen: Screen, unique_id: str) -> None:
    screen.heading("The agent waits for a code from you, which is kept nowhere. Type it into the inbox, or:")
    screen.say(f"  holdshort feedback answer {unique_id} --url {stage.urls.control_plane}")


def _say_result(stage: Stage, screen: Screen, run: str) -> bool:
    """Say what a run returned; False while it has not ended, or the control plane is away."""
    try:
        found = stage.http.get(f"{stage.urls.control_plane}/api/v1/executions/{run}").json()
    except (httpx.HTTPError, ValueError):
        return False
    if found.get("ended_at") is None or found["outcome_pending"]:
        return False
    if found["result"] is None:
        screen.heading(f"The run has ended: {found['status']} ({found['error'] or found['status_reason']})")
    else:
        screen.heading(f"The run has ended; the agent returned {json.dumps(found['result'])}")
    _say_how_to_go_on(stage, screen)
    return True


def _say_how_to_go_on(stage: Stage, screen: Screen) -> None:
    execute = f"curl {stage.urls.control_plane}/api/v1/execute/async/{stage.node}.{REASONER}"
    body = json.dumps({"input": {"document": "The supplier indemnifies the customer.", "seconds": LONG_SECONDS}})
    screen.say(f"Start another, whose analysis takes {LONG_SECONDS} s, and kill the agent between its steps:")
    screen.say(f"  {execute} -H 'content-type: application/json' -d '{body}'")
    screen.say(f"  kill -9 {stage.agent.pid}")


def _start_again_what_ended(stage: Stage, screen: Screen) -> None:
    for program in (each for each in stage.programs if not each.running):
        screen.say(f"{program.name} ended; starting it again")
        program.start()
        program.wait_until_ready()
        screen.say(f"{program.name} is back (process {program.pid})")


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
