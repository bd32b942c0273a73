"""The command itself: set the stage, play it, and leave nothing behind."""

from collections.abc import Callable
from functools import partial

import click

from controlplane.cli.demo.by_hand import play_by_hand
from controlplane.cli.demo.faults import DemoFault
from controlplane.cli.demo.inbox import decided_in_the_inbox
from controlplane.cli.demo.report import Report, Screen, say_tails
from controlplane.cli.demo.restarts import agent_killed, killed_between_steps, killed_in_a_pause, rolling_restart
from controlplane.cli.demo.stage import Stage, set_up
from controlplane.cli.demo.steps import Tell, control_plane_killed, duplicate, expiry, signed_webhook, tampered
from controlplane.cli.environment import ended_by_signals, prepare
from controlplane.cli.faults import WrongUsage
from controlplane.settings import Settings

STEPS: tuple[tuple[str, Callable[[Stage, Tell], None]], ...] = (
    ("signed webhook", signed_webhook),
    ("decided in the inbox", decided_in_the_inbox),
    ("tampered webhook", tampered),
    ("duplicate webhook", duplicate),
    ("expiry", expiry),
    ("control plane killed", control_plane_killed),
    ("agent killed", agent_killed),
    ("killed between steps", killed_between_steps),
    ("killed in a pause", killed_in_a_pause),
    ("rolling restart", rolling_restart),
)


@click.command()
@click.option("--auto", is_flag=True, help="Decide by itself, and see that everything happens.")
@click.option("--json", "as_json", is_flag=True, help="With --auto: print JSON, for programs.")
def demo(*, auto: bool, as_json: bool) -> None:
    """Run the whole road with real processes: PostgreSQL, control plane, agent, review service.

    Without --auto it says what to open or type to decide, and shows what happens then, until Ctrl-C. With --auto it
    decides by itself, kills and restarts what it runs, and ends with 0 only if everything was seen.
    """
    if as_json and not auto:
        raise WrongUsage("--json goes with --auto")
    settings = prepare()
    screen = Screen(quiet=as_json)
    report = Report(screen)
    with ended_by_signals():
        screen.heading("Starting PostgreSQL, the control plane, an agent and a review service.")
        screen.say("Open mode on loopback: only programs of this machine reach them, and none needs an API key.")
        try:
            _play_all(settings, screen, report, auto=auto)
        except DemoFault as fault:
            if as_json:
                report.document(fault.message)
            raise
    if as_json:
        report.document(None)
    else:
        report.table()


def _play_all(settings: Settings, screen: Screen, report: Report, *, auto: bool) -> None:
    with set_up(settings) as stage:
        if not auto:
            play_by_hand(stage, screen)
        _play(stage, screen, report)


def _play(stage: Stage, screen: Screen, report: Report) -> None:
    for step, act in STEPS:
        screen.heading(f"{step}: {act.__doc__}")
        try:
            act(stage, partial(report.add, step))
        except Exception as fault:
            say_tails(stage.everything)
            raise DemoFault(f"{step}: {fault.message if isinstance(fault, DemoFault) else repr(fault)}") from fault
