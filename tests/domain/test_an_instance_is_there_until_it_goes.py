"""What a registration and a sign of life make of an instance."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from controlplane.domain import nodes
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.nodes import (
    Arrival,
    Beat,
    GoneReason,
    Instance,
    InstanceStatus,
    Reasoner,
    Registration,
    arrive,
    drained,
    gone,
    renewed,
)
from tests.factories import NOW

LIVE, DRAINING, GONE = InstanceStatus.LIVE, InstanceStatus.DRAINING, InstanceStatus.GONE
WHO = Actor(ActorKind.AGENT, "node-1", "api")
LEASE = 15.0


def registration(instance_id: str = "i1", **changes: Any) -> Registration:
    fields: dict[str, Any] = {
        "node_id": "node-1",
        "instance_id": instance_id,
        "base_url": "http://h:1",
        "version": "1",
        "reasoners": (Reasoner(name="work"),),
        "replay": True,
        "fenced": True,
        "lease_seconds": LEASE,
        "max_concurrent": None,
    }
    return Registration(**(fields | changes))


def came(instance_id: str = "i1", *, there: tuple[Instance, ...] = (), **changes: Any) -> Arrival:
    return arrive(registration(instance_id, **changes), there, now=NOW, left_id="inst_left", actor=WHO)


def instance(instance_id: str = "i1", **changes: Any) -> Instance:
    return replace(came(instance_id).instance, **changes)


def types(arrival: Arrival) -> list[str]:
    return [fact.type for fact in arrival.facts]


def test_a_new_one_is_live_for_its_lease():
    arrival = came()
    assert arrival.instance.status is LIVE
    assert arrival.instance.reasoners == ("work",)
    assert arrival.instance.lease_until == NOW + timedelta(seconds=LEASE)
    assert (arrival.replaced, arrival.left, types(arrival)) == ((), None, ["node.registered"])


def test_the_same_again_is_no_news():
    arrival = came(there=(instance(),))
    assert arrival.instance == instance()
    assert (arrival.replaced, arrival.left, arrival.facts) == ((), None, ())


@pytest.mark.parametrize(
    "changes", [{"version": "2"}, {"reasoners": ()}, {"replay": False}, {"fenced": False}, {"base_url": "http://h:2"}]
)
def test_what_it_says_of_itself_anew_is_news(changes: dict[str, Any]):
    assert types(came(there=(instance(),), **changes)) == ["node.registered"]


def test_one_that_was_gone_is_there_again():
    arrival = came(there=(gone(instance(), GoneReason.LEASE, NOW),))
    assert (arrival.instance.status, arrival.instance.gone_at, arrival.instance.gone_reason) == (LIVE, None, None)
    assert (arrival.left, types(arrival)) == (None, ["node.registered"])


def test_one_that_was_draining_takes_new_runs_again():
    assert types(came(there=(instance(status=DRAINING),))) == ["node.registered"]


def test_another_at_its_address_is_replaced():
    arrival = came("i2", there=(instance(),))
    (replaced,) = arrival.replaced
    assert (replaced.instance_id, replaced.status) == ("i1", GONE)
    assert (replaced.gone_at, replaced.gone_reason) == (NOW, GoneReason.REPLACED)
    assert types(arrival) == ["node.gone", "node.registered"]


def test_another_elsewhere_stays():
    assert came("i2", there=(instance(base_url="http://h:2"),)).replaced == ()


def test_the_address_that_it_left_is_kept_as_gone():
    arrival = came(there=(instance(),), base_url="http://h:2")
    assert arrival.left is not None
    assert (arrival.left.instance_id, arrival.left.base_url, arrival.left.status) == ("inst_left", "http://h:1", GONE)
    assert arrival.instance.base_url == "http://h:2"


@pytest.mark.parametrize(("left", "written"), [(15.0, False), (10.0, False), (9.999, True), (0.0, True), (-9.0, True)])
def test_a_sign_is_written_when_less_than_two_thirds_of_the_lease_are_left(left: float, written: bool):
    before = instance(lease_until=NOW + timedelta(seconds=left))
    after = renewed(before, Beat("ready"), NOW)
    assert (after is not None) is written
    if after is not None:
        assert (after.lease_until, after.seen_at) == (NOW + timedelta(seconds=LEASE), NOW)


def test_a_longer_lease_is_written_at_once():
    after = renewed(instance(), Beat(lease_seconds=300.0), NOW)
    assert after is not None
    assert (after.lease_seconds, after.lease_until) == (300.0, NOW + timedelta(seconds=300))
    assert renewed(after, Beat(lease_seconds=300.0), NOW + timedelta(seconds=100)) is None
    assert nodes.renew_by(after) == NOW + timedelta(seconds=100)


@pytest.mark.parametrize(
    ("was", "word", "becomes"),
    [
        (LIVE, "draining", DRAINING),
        (LIVE, "ready", None),
        (LIVE, "starting", None),
        (LIVE, "offline", None),
        (LIVE, None, None),
        (LIVE, "", None),
        (DRAINING, "draining", None),
        (DRAINING, None, None),
        (DRAINING, "ready", LIVE),
    ],
)
def test_only_another_state_is_written_early(was: InstanceStatus, word: str | None, becomes: InstanceStatus | None):
    before = instance(status=was)
    after = renewed(before, Beat(word), NOW)
    assert (after.status if after else None) is becomes
    news = drained(before, after, WHO) if after else ()
    assert [fact.type for fact in news] == (["node.draining"] if becomes is DRAINING else [])


def test_a_draining_one_that_renews_its_lease_is_no_news():
    before = instance(status=DRAINING, lease_until=NOW)
    after = renewed(before, Beat("draining"), NOW)
    assert after is not None
    assert drained(before, after, WHO) == ()


def test_those_whose_runs_are_started_again_have_a_short_lease():
    assert (nodes.lease_of(replay=True), nodes.lease_of(replay=False)) == (15.0, 90.0)
    assert nodes.beat_every(15.0) == 5.0
