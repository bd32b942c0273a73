"""Nodes: an agent program, its instances, and which of them is alive."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

OWN_LEASE_SECONDS = 15.0
OTHER_LEASE_SECONDS = 90.0


class InstanceStatus(StrEnum):
    """The states of an instance; a draining one finishes what it has and is given nothing new."""

    LIVE = "live"
    DRAINING = "draining"
    GONE = "gone"


class GoneReason(StrEnum):
    """How an instance came to be gone."""

    SHUTDOWN = "shutdown"
    LEASE = "lease"
    REPLACED = "replaced"


class Instance(Struct, frozen=True, kw_only=True):
    """One process of a node: where it is reached, what it serves and understands, and until when it is alive."""

    node_id: str
    instance_id: str
    base_url: str
    version: str
    reasoners: tuple[str, ...]
    replay: bool
    fenced: bool
    status: InstanceStatus
    lease_seconds: float
    lease_until: datetime
    registered_at: datetime
    seen_at: datetime
    gone_at: datetime | None = None
    gone_reason: GoneReason | None = None
