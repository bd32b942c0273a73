"""Answers by signed webhook: which approval is meant, once each, and parked when nobody has asked yet."""

from datetime import timedelta

from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer, Case, settle
from controlplane.domain.decisions import DecisionReceived
from controlplane.domain.errors import (
    AmbiguousRequestId,
    ApprovalNotFound,
    InvalidBody,
    InvalidState,
    RoundNotOpen,
    SenderNotAllowed,
    TooManyParked,
)
from controlplane.domain.events import SWEEPER, Actor, ActorKind, Fact, FactType
from controlplane.domain.executions import FINAL_EXECUTION
from controlplane.domain.form_answers import of_sender
from controlplane.domain.ids import PARKED_PREFIX
from controlplane.domain.outcomes import Outcome, outcome_of
from controlplane.domain.parking import MAX_PARKED_BYTES, MAX_PARKED_PER_SENDER, MAX_REPEATS, Parked, rival_keys
from controlplane.services import approvals as service
from controlplane.storage import approvals, cases, clock, executions, history, parked
from controlplane.storage.approvals import Candidate
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection


class Incoming(Struct, frozen=True, kw_only=True):
    """A webhook whose signature held: who signed it, what it says, and what recognises it when it comes again."""

    sender: str
    received: DecisionReceived
    keys: tuple[str, ...]
    size: int
    address: str | None = None

    @property
    def request_id(self) -> str:
        """The caller's id that it names; an answer by approval_id alone has none."""
        return self.received.request_id or ""

    def actor(self, via: str = "webhook") -> Actor:
        """Who answers."""
        return Actor(ActorKind.SENDER, self.sender, via, self.address)


class Policy(Struct, frozen=True, kw_only=True):
    """What the settings say of webhooks: may an unnamed one take the newest, and how long is an early one kept."""

    newest_wins: bool
    parked_for: timedelta


class Applied(Struct, frozen=True):
    """The webhook decided, or met what stands."""

    outcome: Outcome


class Replayed(Struct, frozen=True):
    """The webhook had been answered before, and had no effect now."""

    outcome: Outcome


class KeptForLater(Struct, frozen=True):
    """Nobody has asked yet; `fresh` False: this sender's earlier, different answer is the one that is kept."""

    parked: Parked
    fresh: bool


async def receive(
    conn: Connection, incoming: Incoming, policy: Policy, new_id: NewId
) -> Applied | Replayed | KeptForLater:
    """Apply a signed answer to the approval that it means, once, or park it.

    Raises:
        ApprovalNotFound: it names an approval_id that does not exist.
        InvalidBody: its approval_id and its other ids mean different approvals.
        AmbiguousRequestId: more than one approval could be meant.
        RoundNotOpen: it names a round that was not asked yet.
        InvalidState: it names an execution that ended without asking.
        SenderNotAllowed: the approval takes its answer from another sender.
        InvalidAnswer: the approval has a form, and the answer no values that fit it.
        TooManyParked: it would have to be parked, and there are too many or it is too large for that.
    """
    replayed = await _replayed(conn, incoming)
    if replayed is not None:
        return replayed
    approval_id = await _meant(conn, incoming.received, policy)
    if approval_id is None:
        await parked.lock_parking(conn, incoming.request_id, incoming.sender)
        approval_id = await _meant(conn, incoming.received, policy)
    if approval_id is None:
        return await _park(conn, incoming, policy, new_id)
    case = await service.lock_approval(conn, approval_id, new_id)
    return await _answer(conn, case, approval_id, incoming, new_id)


async def _answer(
    conn: Connection, case: Case, approval_id: str, incoming: Incoming, new_id: NewId
) -> Applied | Replayed:
    decided_by = case.approval(approval_id).decided_by
    if decided_by not in (None, incoming.sender):
        raise SenderNotAllowed
    received = incoming.received
    answer = Answer(
        status=ApprovalStatus(received.decision.value),
        actor=incoming.actor(),
        feedback=received.feedback,
        response=received.response,
    )
    if case.approval(approval_id).form is not None:
        answer = await service.fitted(conn, case.approval(approval_id), of_sender(answer))
    after = settle(case, approval_id, answer)
    outcome = outcome_of(after, approval_id, applied=not case.approval(approval_id).final)
    added = await parked.remember(conn, incoming.sender, incoming.keys, outcome)
    if len(added) < len(incoming.keys):
        # A copy was answered since we looked, for this approval or for another: that answer stands.
        await parked.forget(conn, incoming.sender, added)
        return await _repeat(conn, incoming)
    await cases.save(conn, [(case, after)], new_id)
    return Applied(outcome)


async def _repeat(conn: Connection, incoming: Incoming) -> Replayed:
    replayed = await _replayed(conn, incoming)
    if replayed is None:
        raise RuntimeError("what kept a webhook from being remembered is not there")
    return replayed


async def _replayed(conn: Connection, incoming: Incoming) -> Replayed | None:
    outcome = await parked.seen(conn, incoming.sender, incoming.keys)
    if outcome is None:
        return None
    received = incoming.received
    exact = received.approval_id is not None
    if not exact and await approvals.other_pending(
        conn,
        outcome.approval_request_id,
        but=outcome.approval_id,
        execution_id=received.execution_id,
        round_=received.round,
    ):
        raise AmbiguousRequestId(
            "This webhook was answered before for another approval, and one under the same id is pending now; "
            "name executionId and round to say which is meant.",
            approval_id=outcome.approval_id,
        )
    return Replayed(outcome)


async def _meant(conn: Connection, received: DecisionReceived, policy: Policy) -> str | None:
    """The approval that a body means, or None when nobody has asked for it yet."""
    if received.approval_id is not None:
        return await _known(conn, received.approval_id, received)
    request_id = received.request_id or ""
    if received.execution_id is not None:
        return await _in_execution(conn, received.execution_id, request_id, received.round)
    asked = await approvals.asked_under(conn, request_id)
    if asked.several:
        return await _among_several(conn, request_id, received.round, policy)
    return _among_rounds(asked.rounds, received.round)


async def _known(conn: Connection, approval_id: str, received: DecisionReceived) -> str:
    """The approval with our own id; whatever else the body names must mean the same one."""
    found = await approvals.get(conn, approval_id)
    if found is None:
        raise ApprovalNotFound
    named = (received.request_id, received.execution_id, received.round)
    stands = (found.approval_request_id, found.execution_id, found.round)
    if any(word not in (None, own) for word, own in zip(named, stands, strict=True)):
        raise InvalidBody("The body's approval_id and its other ids mean different approvals; name one.")
    return approval_id


async def _in_execution(conn: Connection, execution_id: str, request_id: str, round_: int | None) -> str | None:
    found = _among_rounds(await approvals.rounds(conn, execution_id, request_id), round_)
    if found is not None:
        return found
    execution = await executions.status_of(conn, execution_id)
    if execution is not None and execution[0] in FINAL_EXECUTION:
        raise InvalidState(execution_status=execution[0], status_reason=execution[1])
    return None


async def _among_several(conn: Connection, request_id: str, round_: int | None, policy: Policy) -> str | None:
    if not policy.newest_wins:
        raise AmbiguousRequestId
    newest = await approvals.newest_anywhere(conn, request_id)
    return None if newest is None else await _in_execution(conn, newest.execution_id, request_id, round_)


def _among_rounds(rounds: list[Candidate], round_: int | None) -> str | None:
    """The round that is named, or the newest; None when the first was not asked yet."""
    newest = rounds[0].round if rounds else 0
    if round_ is not None and round_ > max(newest, 1):
        raise RoundNotOpen(newest_round=newest)
    return next((c.approval_id for c in rounds if round_ in (None, c.round)), None)


async def _park(conn: Connection, incoming: Incoming, policy: Policy, new_id: NewId) -> KeptForLater:
    received = incoming.received
    kept = await parked.find(conn, incoming.sender, incoming.request_id, received.execution_id)
    decision = ApprovalStatus(received.decision.value)
    if kept is not None:
        keys = incoming.keys if kept.decision is decision else rival_keys(incoming.keys)
        await _add_repeat(conn, kept, keys)
        return KeptForLater(kept, fresh=kept.decision is decision)
    if incoming.size > MAX_PARKED_BYTES:
        raise TooManyParked(
            "An answer that comes before its question may have 64 KiB; send it once the agent has asked."
        )
    if await parked.count(conn, incoming.sender) >= MAX_PARKED_PER_SENDER:
        raise TooManyParked
    now = await clock.now(conn)
    entry = Parked(
        parked_id=new_id(PARKED_PREFIX),
        sender=incoming.sender,
        approval_request_id=incoming.request_id,
        execution_id=received.execution_id,
        decision=decision,
        feedback=received.feedback,
        response=received.response,
        keys=incoming.keys,
        received_at=now,
        expires_at=now + policy.parked_for,
    )
    over = await parked.park(conn, entry)
    dropped = [parked_fact(old, FactType.WEBHOOK_DROPPED, SWEEPER) for old in over]
    await history.record(conn, *dropped, parked_fact(entry, FactType.WEBHOOK_PARKED, incoming.actor()))
    return KeptForLater(entry, fresh=True)


async def _add_repeat(conn: Connection, kept: Parked, keys: tuple[str, ...]) -> None:
    """Let the kept answer stand for this copy too, so that it has no second effect later."""
    new = tuple(key for key in keys if key not in kept.keys)
    if len(kept.keys) + len(new) > MAX_REPEATS:
        raise TooManyParked("This answer was repeated too often before its question; wait until the agent has asked.")
    if new:
        await parked.add_keys(conn, kept.parked_id, kept.keys + new)


def parked_fact(entry: Parked, type_: FactType, actor: Actor) -> Fact:
    """What happened to an early answer that has no approval."""
    return Fact(
        type=type_,
        actor=actor,
        execution_id=entry.execution_id,
        approval_request_id=entry.approval_request_id,
        data={"parked_id": entry.parked_id, "decision": entry.decision, "expires_at": entry.expires_at},
    )
