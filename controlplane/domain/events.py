"""Facts: what happened, to what, through whom. Each becomes one history row and one event of the live stream."""

from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class ActorKind(StrEnum):
    """Who can make something happen."""

    AGENT = "agent"
    SENDER = "sender"
    PERSON = "person"
    SYSTEM = "system"


class Actor(Struct, frozen=True):
    """Who did it: what kind, under which name, by which way, from which address, with which key (None: no such)."""

    kind: ActorKind
    name: str
    via: str
    address: str | None = None
    id: str | None = None


def acting_for(actor: Actor, node_id: str) -> Actor:
    """Who acts on a run: an agent goes by the name of the node that the run belongs to, anyone else by their own."""
    return replace(actor, name=node_id) if actor.kind is ActorKind.AGENT else actor


SWEEPER = Actor(ActorKind.SYSTEM, "holdshort", "expiry")
RECOVERY = Actor(ActorKind.SYSTEM, "holdshort", "recovery")
DISPATCHER = Actor(ActorKind.SYSTEM, "holdshort", "dispatcher")


class FactType(StrEnum):
    """The types of history rows that are no final status of an approval and no status of an execution."""

    APPROVAL_REQUESTED = "approval.requested"
    CALLBACK_CHANGED = "approval.callback_changed"
    EXECUTION_CREATED = "execution.created"
    EXECUTION_DISPATCHED = "execution.dispatched"
    EXECUTION_RELEASED = "execution.released"
    EXECUTION_RESULT = "execution.result"
    EXECUTION_NOTE = "execution.note"
    STEP_DONE = "execution.step"
    WEBHOOK_PARKED = "webhook.parked"
    WEBHOOK_USED = "webhook.parked_used"
    WEBHOOK_DROPPED = "webhook.parked_dropped"
    KEY_CREATED = "key.created"
    KEY_ROTATED = "key.rotated"
    KEY_REVOKED = "key.revoked"
    SENDER_CREATED = "sender.created"
    SENDER_ROTATED = "sender.rotated"
    SENDER_REVOKED = "sender.revoked"
    SENDER_SECRET_REVOKED = "sender.secret_revoked"  # noqa: S105 - what happened to one
    SECRETS_RESEALED = "secrets.resealed"
    HISTORY_PRUNED = "history.pruned"
    SESSION_OPENED = "session.opened"
    SESSION_ENDED = "session.ended"
    FEEDBACK_ASKED = "feedback.asked"
    FEEDBACK_ANSWERED = "feedback.answered"
    FEEDBACK_EXPIRED = "feedback.expired"
    FEEDBACK_CANCELLED = "feedback.cancelled"
    NODE_OWNED = "node.owned"
    NODE_MOVED = "node.moved"
    DELIVERY_DELIVERED = "delivery.delivered"
    DELIVERY_DEAD = "delivery.dead"
    DELIVERY_OBSOLETE = "delivery.obsolete"
    DELIVERY_REDRIVEN = "delivery.redriven"
    DELIVERY_TOLD_AGAIN = "delivery.told_again"
    DELIVERY_MOVED = "delivery.moved"
    NODE_REGISTERED = "node.registered"
    NODE_DRAINING = "node.draining"
    NODE_GONE = "node.gone"


class Fact(Struct, frozen=True, kw_only=True):
    """One thing that happened.

    `settles` marks the one row that made an approval final: there is exactly one for each final approval.
    `data` holds what changed, JSON-ready, with the state before and after where there is one.
    """

    type: str
    actor: Actor
    execution_id: str | None = None
    approval_id: str | None = None
    approval_request_id: str | None = None
    node_id: str | None = None
    settles: bool = False
    data: dict[str, Any] = {}
