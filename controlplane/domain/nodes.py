"""Nodes: an agent program, its instances, and which of them is alive."""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain.events import Actor, Fact, FactType

OWN_LEASE_SECONDS = 15.0
OTHER_LEASE_SECONDS = 90.0
# Of clients that renew every two minutes and send no heartbeat.
RENEWED_LEASE_SECONDS = 300.0
# So long a process must have watched without a break before it takes a silence for the instance's own.
GRACE_SECONDS = 15.0
KEPT_AFTER = timedelta(days=7)
DRAINING_WORD = "draining"
_BEATS_A_LEASE = 3
_WRITTEN_BELOW = 2 / 3


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


class Resume(StrEnum):
    """When a waiting run whose instance is gone is given to another one."""

    WHEN_DECIDED = "when_decided"
    AT_START = "at_start"


class Reasoner(Struct, frozen=True, kw_only=True):
    """A function that a node serves; `timeout_seconds` limits the time that a run of it works."""

    name: str
    timeout_seconds: float | None = None
    resume: Resume = Resume.WHEN_DECIDED
    input_schema: dict[str, Any] | None = None


class Node(Struct, frozen=True, kw_only=True):
    """An agent program as it registered last; `owner` is the key that it belongs to."""

    node_id: str
    version: str
    reasoners: tuple[Reasoner, ...]
    max_concurrent: int | None
    registered_at: datetime
    updated_at: datetime
    owner: str | None = None


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

    @property
    def there(self) -> bool:
        """True unless it is gone."""
        return self.status is not InstanceStatus.GONE


InstanceType = TypeVar("InstanceType", bound=Instance)


class Registration(Struct, frozen=True, kw_only=True):
    """What a process says of itself when it comes; `base_url` in its plain form.

    `skills` are the names of those of its reasoners that are plain functions: they lie under a path of their own, and
    the agent answers a dispatch with what they return.
    """

    node_id: str
    instance_id: str
    base_url: str
    version: str
    reasoners: tuple[Reasoner, ...]
    replay: bool
    fenced: bool
    lease_seconds: float
    max_concurrent: int | None
    skills: tuple[str, ...] = ()


class Beat(Struct, frozen=True):
    """A sign of life: what the process says of its state, and the lease that it is used to (None: as it has)."""

    word: str | None = None
    lease_seconds: float | None = None


class Arrival(Struct, frozen=True, kw_only=True):
    """What a registration comes to.

    `replaced` are others at its address, which are gone; `left` is the address that this process had before, kept as
    an instance that is gone, so that what points there can follow.
    """

    instance: Instance
    replaced: tuple[Instance, ...] = ()
    left: Instance | None = None
    facts: tuple[Fact, ...] = ()


def lease_of(*, replay: bool) -> float:
    """The lease of an instance that names none: short for those whose runs another one takes over."""
    return OWN_LEASE_SECONDS if replay else OTHER_LEASE_SECONDS


def beat_every(lease_seconds: float) -> float:
    """How often an instance with this lease should give a sign."""
    return lease_seconds / _BEATS_A_LEASE


def renew_by(instance: Instance) -> datetime:
    """From when on a sign of life renews the lease; before that it has nearly all of it."""
    return instance.lease_until - timedelta(seconds=instance.lease_seconds * _WRITTEN_BELOW)


def arrive(wanted: Registration, there: tuple[Instance, ...], *, now: datetime, left_id: str, actor: Actor) -> Arrival:
    """Decide what a registration makes of a node's instances.

    Args:
        wanted: what the process said.
        there: the instance of its id, gone or not, and those at its address that are there; locked.
        now: the database's clock.
        left_id: what the address that it left is kept under, if it left one.
        actor: who registers.
    """
    mine = next((each for each in there if each.instance_id == wanted.instance_id), None)
    instance = _instance(wanted, now)
    replaced = tuple(
        gone(each, GoneReason.REPLACED, now)
        for each in there
        if each is not mine and each.there and each.base_url == wanted.base_url
    )
    left = None
    if mine is not None and mine.base_url != wanted.base_url:
        left = replace(gone(mine, GoneReason.REPLACED, now), instance_id=left_id)
    facts = [gone_fact(each, actor) for each in replaced]
    if mine is None or not mine.there or replaced or _looks(mine) != _looks(instance):
        facts.append(_fact(FactType.NODE_REGISTERED, instance, actor, {"version": instance.version}))
    return Arrival(instance=instance, replaced=replaced, left=left, facts=tuple(facts))


def renewed(instance: InstanceType, beat: Beat, now: datetime) -> InstanceType | None:
    """The instance as it must be written after a sign of life; None while nearly all of its lease is left."""
    seconds = beat.lease_seconds or instance.lease_seconds
    after = replace(
        instance,
        status=_status_after(instance, beat.word),
        lease_seconds=seconds,
        lease_until=now + timedelta(seconds=seconds),
        seen_at=now,
    )
    fresh = instance.lease_until - now >= timedelta(seconds=seconds * _WRITTEN_BELOW)
    return None if fresh and after.status is instance.status else after


def drained(before: Instance, after: Instance, actor: Actor) -> tuple[Fact, ...]:
    """What history says of a sign of life: that the instance takes nothing new from here on, if it begins to."""
    if after.status is not InstanceStatus.DRAINING or before.status is after.status:
        return ()
    return (_fact(FactType.NODE_DRAINING, after, actor, {}),)


def gone(instance: Instance, reason: GoneReason, now: datetime) -> Instance:
    """An instance that is there no more."""
    return replace(instance, status=InstanceStatus.GONE, gone_at=now, gone_reason=reason)


def gone_fact(instance: Instance, actor: Actor) -> Fact:
    """What history says of an instance that is gone."""
    return _fact(FactType.NODE_GONE, instance, actor, {"reason": instance.gone_reason})


def _status_after(instance: Instance, word: str | None) -> InstanceStatus:
    if not word:
        return instance.status
    return InstanceStatus.DRAINING if word == DRAINING_WORD else InstanceStatus.LIVE


def _instance(wanted: Registration, now: datetime) -> Instance:
    return Instance(
        node_id=wanted.node_id,
        instance_id=wanted.instance_id,
        base_url=wanted.base_url,
        version=wanted.version,
        reasoners=tuple(reasoner.name for reasoner in wanted.reasoners),
        replay=wanted.replay,
        fenced=wanted.fenced,
        status=InstanceStatus.LIVE,
        lease_seconds=wanted.lease_seconds,
        lease_until=now + timedelta(seconds=wanted.lease_seconds),
        registered_at=now,
        seen_at=now,
    )


def _looks(instance: Instance) -> tuple[object, ...]:
    return instance.base_url, instance.version, instance.reasoners, instance.replay, instance.fenced, instance.status


def _fact(type_: FactType, instance: Instance, actor: Actor, data: dict[str, Any]) -> Fact:
    where = {"instance_id": instance.instance_id, "base_url": instance.base_url}
    return Fact(type=type_, actor=actor, node_id=instance.node_id, data=where | data)
