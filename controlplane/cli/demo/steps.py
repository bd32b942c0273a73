"""What `holdshort demo --auto` does and sees, step by step; what is not seen ends it."""

import json
import time
from collections.abc import Callable
from typing import NamedTuple

from controlplane.cli.demo.faults import check
from controlplane.cli.demo.readback import Read
from controlplane.cli.demo.stage import CONTRACT, Call, Stage
from controlplane.domain import signatures

SHORT_HOURS = 1.5 / 3600
OPEN_HOURS = 1.0

Tell = Callable[[str, float], None]


class Asked(NamedTuple):
    """A run that waits for its first answer."""

    call: Call
    read: Read

    @property
    def run(self) -> str:
        """Its execution id."""
        return self.call.execution_id

    @property
    def approval_id(self) -> str:
        """Of its first question."""
        return self.read.approval.approval_id


def signed_webhook(stage: Stage, tell: Tell) -> None:
    """Asked, waiting in PostgreSQL, decided by signed webhooks in two rounds and a sign-off, resumed each time."""
    asked = _ask(stage, "signed")
    tell("asked: PostgreSQL has the approval pending, the execution waiting", asked.read.at - asked.call.begun)
    took = _decide(stage, asked.approval_id, "request-changes", "Name the clause.", "analysis: request_changes Name")
    tell("webhook: changes wanted; the agent resumed with the feedback", took)
    second = stage.database.approval(asked.run, "analysis", "pending", round_=2)
    took = _decide(stage, second.approval.approval_id, "approve", "", "analysis: approved")
    tell("webhook: round 2 approved; the agent resumed", took)
    tell("webhook: signed off; the agent finished, PostgreSQL has its result", _sign_off(stage, asked))


def tampered(stage: Stage, tell: Tell) -> None:
    """A webhook whose body was changed on its way is refused, and nothing changes."""
    asked = _ask(stage, "tampered")
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
    check(asked.call.result()["status"] == "rejected", "the agent's result `rejected`", asked.call.result())
    stage.database.execution(asked.run, "cancelled")
    tell("the bytes that were signed: rejected; the execution is cancelled", time.monotonic() - begun)


def duplicate(stage: Stage, tell: Tell) -> None:
    """The same webhook again, and a rival one, are answered and have no effect."""
    asked = _ask(stage, "duplicate")
    _decide(stage, asked.approval_id, "approve", "", "analysis: approved")
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
    tell("PostgreSQL has one row that decided it; the run goes on to its end", _sign_off(stage, asked))


def expiry(stage: Stage, tell: Tell) -> None:
    """An approval that nobody answers expires to the moment, by the system, and the agent sees it."""
    asked = _ask(stage, "expiry", hours=SHORT_HOURS)
    result = asked.call.result()
    took = time.monotonic() - asked.call.begun
    check(result["status"] == "expired", "the agent's result `expired`", result)
    expired = stage.database.approval(asked.run, "analysis", "expired").approval
    stage.database.execution(asked.run, "cancelled")
    (by,) = (entry.actor_kind for entry in stage.database.history(asked.approval_id) if entry.settles)
    check(by == "system", "the system as the one that expired it", by)
    tell("nobody answered: the agent resumed with `expired`, which is neither yes nor no", took)
    late = ((expired.decided_at or expired.expires_at) - expired.expires_at).total_seconds()
    check(0 <= late < 1, "expiry within a second after the deadline", f"{late} s")
    tell("PostgreSQL: expired by the system, so long after its deadline", late)


def control_plane_killed(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the control plane while an agent waits: the question stays, the agent never notices."""
    asked = _ask(stage, "server-killed")
    agent = stage.agent.pid
    begun = time.monotonic()
    stage.control_plane.kill()
    stage.database.approval(asked.run, "analysis", "pending")
    stage.database.execution(asked.run, "waiting")
    tell("kill -9; nobody serves, PostgreSQL has the approval pending", time.monotonic() - begun)
    stage.control_plane.start()
    stage.control_plane.wait_until_ready()
    tell("started again, ready for decisions", time.monotonic() - begun)
    took = _decide(stage, asked.approval_id, "approve", "", "analysis: approved")
    tell("webhook: approved; the agent, which never stopped, resumed", took)
    took = _sign_off(stage, asked)
    check(stage.agent.running and stage.agent.pid == agent, "the agent's own process all the time", stage.agent.pid)
    tell("the call made before the kill got its result", took)


def agent_killed(stage: Stage, tell: Tell) -> None:
    """A kill -9 of the agent while it waits, decided meanwhile: wait_for_resume returns it, the run goes on."""
    asked = _ask(stage, "agent-killed")
    begun = time.monotonic()
    stage.agent.kill()
    answer = stage.review(asked.approval_id, "approve", "While you were away.").json()
    check(answer.get("status") == "processed", "the decision to be taken while the agent is dead", answer)
    stage.database.approval(asked.run, "analysis", "approved")
    tell("kill -9; approved meanwhile, PostgreSQL has the decision", time.monotonic() - begun)
    stage.agent.start()
    stage.agent.wait_until_ready()
    found = stage.call("look_up", f"{asked.run}-look-up", {"execution_id": asked.run, "question": "analysis"})
    result = found.result()
    took = time.monotonic() - found.begun
    wanted = {"status": "approved", "feedback": "While you were away.", "round": 1}
    check(result == wanted, f"wait_for_resume to return {wanted}", result)
    tell("started again: wait_for_resume returned the decision", took)
    again = Asked(stage.call("review_contract", asked.run, {"document": CONTRACT, "hours": OPEN_HOURS}), asked.read)
    stage.agent.wrote("analysis: approved While you were away", again.call.begun)
    took = _sign_off(stage, again)
    rounds = stage.database.approval(asked.run, "analysis", "approved").approval.round
    check(rounds == 1, "the analysis to be asked once", f"{rounds} rounds")
    tell("the run went on where it was, and asked nothing twice", took)


STEPS: tuple[tuple[str, Callable[[Stage, Tell], None]], ...] = (
    ("signed webhook", signed_webhook),
    ("tampered webhook", tampered),
    ("duplicate webhook", duplicate),
    ("expiry", expiry),
    ("control plane killed", control_plane_killed),
    ("agent killed", agent_killed),
)


def _ask(stage: Stage, word: str, hours: float = OPEN_HOURS) -> Asked:
    """Start a run and wait until PostgreSQL says that it waits."""
    call = stage.call("review_contract", f"{stage.name}-{word}", {"document": CONTRACT, "hours": hours})
    stage.database.execution(call.execution_id, "waiting")
    return Asked(call, stage.database.approval(call.execution_id, "analysis", "pending"))


def _decide(stage: Stage, approval_id: str, action: str, feedback: str, then: str) -> float:
    """Have the review service decide; the seconds from its click until the agent wrote `then`."""
    begun = time.monotonic()
    answer = stage.review(approval_id, action, feedback)
    check(
        answer.json().get("status") == "processed", f"`processed` for {action}", f"{answer.status_code} {answer.text}"
    )
    return stage.agent.wrote(then, begun).at - begun


def _sign_off(stage: Stage, asked: Asked) -> float:
    """Approve a run's second question; the seconds from the click until its result is there and stored."""
    question = stage.database.approval(asked.run, "sign-off", "pending").approval
    begun = time.monotonic()
    _decide(stage, question.approval_id, "approve", "", "sign-off: approved")
    result = asked.call.result()
    check(result["status"] == "approved", "the agent's result `approved`", result)
    stored = stage.database.execution(asked.run, "succeeded").result
    check(stored is not None and json.loads(stored) == result, "the agent's result in PostgreSQL", stored)
    return time.monotonic() - begun


def _body(asked: Asked, decision: str) -> bytes:
    """A webhook's bytes."""
    return json.dumps({"requestId": "analysis", "executionId": asked.run, "decision": decision}).encode()
