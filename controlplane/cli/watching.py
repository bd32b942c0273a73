"""Waiting for the end of a run from the shell: looks again and again, through restarts, and says what changes."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from controlplane.cli.api import Api, ApiFault, Document
from controlplane.cli.output import literal

POLL_SECONDS = 0.5
SILENT_SECONDS = 30.0
LONGEST_SILENCE = 600.0
OUTCOME_SECONDS = 5.0
STANDING = ("status", "status_reason", "last_error", "pending_approvals")

Say = Callable[[str], None]


def watch(api: Api, execution_id: str, seconds: float | None, say: Say) -> Document:
    """The run once it is over, or as it stands when the time is up.

    Args:
        api: of the control plane, which may be away meanwhile.
        execution_id: of the run.
        seconds: how long to wait; None for as long as it takes.
        say: takes each line about what changes.

    Raises:
        ApiFault: there is no such run, or the control plane is away at the end.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    progress = Progress(api, say)
    while True:
        run = _look(api, execution_id, deadline, progress)
        if is_over(run):
            return _with_outcome(api, run, progress)
        progress.stands(run)
        if not _paused(deadline):
            return run


def is_over(run: Document) -> bool:
    """Whether a run has ended."""
    return run["ended_at"] is not None


def _look(api: Api, execution_id: str, deadline: float | None, progress: "Progress") -> Document:
    while True:
        try:
            return api.get(f"/executions/{execution_id}")
        except ApiFault as fault:
            if not fault.passing or not _paused(deadline):
                raise
            progress.away(fault)


def _with_outcome(api: Api, run: Document, progress: "Progress") -> Document:
    """A run that a person or a deadline ended: its code may still clean up, and return something."""
    patience = time.monotonic() + OUTCOME_SECONDS
    with suppress(ApiFault):
        while run["outcome_pending"] and _paused(patience):
            run = _look(api, run["execution_id"], patience, progress)
    return run


def _paused(deadline: float | None) -> bool:
    """Pause before the next look; False when the time is up."""
    left = POLL_SECONDS if deadline is None else min(POLL_SECONDS, deadline - time.monotonic())
    time.sleep(max(0.0, left))
    return left > 0


class Progress:
    """Says what changes while a run goes on, and now and then, ever more rarely, that nothing does.

    Args:
        api: asked for what the run waits for.
        say: takes a line.
    """

    def __init__(self, api: Api, say: Say) -> None:
        self._api = api
        self._say = say
        self._begun = self._said_at = time.monotonic()
        self._silence = SILENT_SECONDS
        self._before: tuple[Any, ...] = ()
        self._asked: set[str] = set()

    def stands(self, run: Document) -> None:
        """Say how it stands, if that is news or nothing was said for long."""
        standing = tuple(run[name] for name in STANDING)
        if not self._is_news(standing):
            return
        why = ": ".join(literal(run[name]) for name in ("status_reason", "last_error") if run[name])
        after = f"{time.monotonic() - self._begun:.0f} s"
        self._say(f"{run['execution_id']} {after:>6}  {run['status']}{f' ({why})' if why else ''}")
        if run["pending_approvals"]:
            self._say_what_is_asked(run["execution_id"])

    def away(self, fault: ApiFault) -> None:
        """Say that the control plane is not there; the run does not depend on it."""
        if self._is_news(("away",)):
            self._say(f"{fault.message}; the run goes on, and so does this command")

    def _is_news(self, standing: tuple[Any, ...]) -> bool:
        now = time.monotonic()
        changed, long_ago = standing != self._before, now - self._said_at >= self._silence
        if changed or long_ago:
            self._silence = SILENT_SECONDS if changed else min(2 * self._silence, LONGEST_SILENCE)
            self._before, self._said_at = standing, now
        return changed or long_ago

    def _say_what_is_asked(self, execution_id: str) -> None:
        try:
            page = self._api.page("/approvals", "approvals", execution_id=execution_id, status="pending")
        except ApiFault:
            self._before = ()  # said the next time
            return
        for approval in page["approvals"]:
            if approval["approval_id"] not in self._asked:
                self._asked.add(approval["approval_id"])
                title = literal(approval["title"] or approval["approval_request_id"])
                self._say(f"  {title}: holdshort approvals decide {approval['approval_id']} approved")
                if approval.get("request_url"):
                    self._say(f"  or on its page: {literal(approval['request_url'])}")
