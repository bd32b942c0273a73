"""What `holdshort demo --auto` does and sees while its agent lives; what is not seen ends it."""

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from controlplane.cli.demo.faults import check
from controlplane.cli.demo.readback import Read
from controlplane.cli.demo.stage import CONTRACT, Stage, Started
from controlplane.domain import signatures

SHORT_HOURS = 1.5 / 3600
OPEN_HOURS = 1.0

Tell = Callable[[str, float], None]


class Asked(NamedTuple):
    """A run that waits for its first answer, and when it was begun (`time.monotonic`)."""

    run: str
    begun: float
    read: Read

    @property
    def approval_id(self) -> str:
        """Of its first question."""
        return self.read.approval.approval_id


def signed_webhook(stage: Stage, tell: Tell) -> None:
    """Asked, waiting in PostgreSQL, decided by signed webhooks in two rounds and a sign-off, resumed each time."""
    asked = ask(stage, "signed")
    tell("asked: PostgreSQL has the approval pending, the execution waiting", asked.read.at - asked.begun)
    took = decide(stage, asked.approval_id, "request-changes", "Name the clause.", "analysis: request_changes Name")
    tell("webhook: changes wanted; the agent resumed with the feedback", took)
    second = stage.database.approval(asked.run, "analysis", "pending", round_=2)
    took = decide(stage, second.approval.approval_id, "approve", "", "analysis: approved")
    tell("webhook: round 2 approved; the agent resumed", took)
    tell("webhook: signed off; the agent finished, PostgreSQL has its result", sign_off(stage, asked.run))


def tampered(stage: Stage, tell: Tell) -> None:
    """A webhook whose body was changed on its way is refused, and nothing changes."""
    asked = ask(stage, "tampered")
    rejected = _body(asked, "rejected")
    signature = signatures.sign_hex(stage.secret, rejected)
    begun = time.monotonic()
    answer = stage.webhook(_body(asked, "approved"), signature)
    took = time.monotonic() - begun
    check(answer.status_code == 401, "401 for the tampered webhook", f"{answer.status_code} {answer.text}")
    stage.database.approval(asked.run, "analysis", "pending")
    facts = [entry.type for entry in stage.database.history(asked.approval_id)]
    check(facts == ["approval.requested"], "nothing but the question in the history", facts)
    tell(f"401 {answer.json()['error']}; PostgreSQL still has the approval pending", took)
    answer = stage.webhook(rejected, signature)
    check(answer.status_code == 200, "200 for the bytes that were signed", f"{answer.status_code} {answer.text}")
    check_outcome(stage, asked.run, "cancelled", "rejected")
    tell("the bytes that were signed: rejected; the execution is cancelled", time.monotonic() - begun)


def duplicate(stage: Stage, tell: Tell) -> None:
    """The same webhook again, and a rival one, are answered and have no effect."""
    asked = ask(stage, "duplicate")
    decide(stage, asked.approval_id, "approve", "", "analysis: approved")
    begun = time.monotonic()
    again = stage.review(asked.approval_id, "resend").json()
    took = time.monotonic() - begun
    check(again.get("replayed") is True, "the first answer, marked as replayed", again)
    tell("the same webhook again: the first answer, `replayed`", took)
    begun = time.monotonic()
    rival = stage.review(asked.approval_id, "reject").json()
    took = time.monotonic() - begun
    stands = (rival.get("status"), rival.get("approval_status"))
    check(stands == ("already_processed", "approved"), "already_processed, approved stands", rival)
    tell("a rival webhook: `already_processed`, approved stands", took)
    settling = [entry.type for entry in stage.database.history(asked.approval_id) if entry.settles]
    check(settling == ["approval.approved"], "one row that decided it", settling)
    tell("PostgreSQL has one row that decided it; the run goes on to its end", sign_off(stage, asked.run))


def expiry(stage: Stage, tell: Tell) -> None:
    """An approval that nobody answers expires to the moment, by the system, and the agent sees it."""
    asked = ask(stage, "expiry", hours=SHORT_HOURS)
    check_outcome(stage, asked.run, "cancelled", "expired")
    took = time.monotonic() - asked.begun
    expired = stage.database.approval(asked.run, "analysis", "expired").approval
    (by,) = (entry.actor_kind for entry in stage.database.history(asked.approval_id) if entry.settles)
    check(by == "system", "the system as the one that expired it", by)
    tell("nobody answered: the agent resumed with `expired`, which is neither yes nor no", took)
    late = ((expired.decided_at or expired.expires_at) - expired.expires_at).total_seconds()
    check(0 <= late < 1, "expiry within a second after the deadline", f"{late} s")
    tell("PostgreSQL: expired by the system, so long after its deadline", late)


def control_plane_killed(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the control plane while an agent waits: the question stays, the agent never notices."""
    started = stage.execute("server-killed", document=CONTRACT, hours=OPEN_HOURS)
    caller = stage.hold(started)
    asked = _asked(stage, started)
    agent = stage.agent.pid
    begun = time.monotonic()
    stage.control_plane.kill()
    stage.database.approval(asked.run, "analysis", "pending")
    stage.database.execution(asked.run, "waiting")
    tell("kill -9; nobody serves, PostgreSQL has the approval pending", time.monotonic() - begun)
    stage.control_plane.start()
    stage.control_plane.wait_until_ready()
    tell("started again, ready for decisions", time.monotonic() - begun)
    took = decide(stage, asked.approval_id, "approve", "", "analysis: approved")
    tell("webhook: approved; the agent, which never stopped, resumed", took)
    begun = time.monotonic()
    sign_off(stage, asked.run)
    result = caller.result()
    check(result["status"] == "approved", "the caller's result `approved`", result)
    check(stage.agent.running and stage.agent.pid == agent, "the agent's own process all the time", stage.agent.pid)
    tell("signed off; whoever called before the kill, and asked on, got the result", time.monotonic() - begun)


def ask(stage: Stage, word: str, hours: float = OPEN_HOURS, **more: Any) -> Asked:
    """Start a run and wait until PostgreSQL says that it waits."""
    return _asked(stage, stage.execute(word, document=CONTRACT, hours=hours, **more))


def _asked(stage: Stage, started: Started) -> Asked:
    stage.database.execution(started.execution_id, "waiting")
    read = stage.database.approval(started.execution_id, "analysis", "pending")
    return Asked(started.execution_id, started.begun, read)


def decide(stage: Stage, approval_id: str, action: str, feedback: str, then: str) -> float:
    """Have the review service decide; the seconds from its click until the agent wrote `then`."""
    begun = time.monotonic()
    answer = stage.review(approval_id, action, feedback)
    check(
        answer.json().get("status") == "processed", f"`processed` for {action}", f"{answer.status_code} {answer.text}"
    )
    return stage.agent.wrote(then, begun).at - begun


def sign_off(stage: Stage, run: str) -> float:
    """Approve a run's second question; the seconds from the click until PostgreSQL has its result."""
    question = stage.database.approval(run, "sign-off", "pending").approval
    begun = time.monotonic()
    decide(stage, question.approval_id, "approve", "", "sign-off: approved")
    check_outcome(stage, run, "succeeded", "approved")
    return time.monotonic() - begun


def check_outcome(stage: Stage, run: str, status: str, result: str) -> None:
    """Go on only if PostgreSQL has the run over with this status, and the agent's result says this.

    Raises:
        NotSeen: it has not.
    """
    found = stage.database.outcome(run)
    check(found.status == status, f"{run} {status}", f"{found.status} ({found.error or found.status_reason})")
    returned = json.loads(found.result or b"{}").get("status")
    check(returned == result, f"the agent's result `{result}` in PostgreSQL", found.result)


def _body(asked: Asked, decision: str) -> bytes:
    """A webhook's bytes."""
    return json.dumps({"requestId": "analysis", "executionId": asked.run, "decision": decision}).encode()
