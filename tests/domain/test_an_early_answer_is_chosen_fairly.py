"""Of the answers that came before their question, which one is used, and what recognises each again."""

from datetime import timedelta

from msgspec.structs import replace

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.parking import Parked, choose, keys_of, rival_keys
from tests.factories import HOUR, NOW


def parked(name: str, *, sender: str = "desk", names_run: bool = False, after: int = 0) -> Parked:
    return Parked(
        parked_id=f"prk_{name}",
        sender=sender,
        approval_request_id="a",
        execution_id="run-1" if names_run else None,
        decision=ApprovalStatus.APPROVED,
        feedback="",
        response=None,
        keys=(name,),
        received_at=NOW + timedelta(seconds=after),
        expires_at=NOW + HOUR,
    )


def test_nothing_parked_is_nothing_used():
    assert choose((), None).used is None


def test_one_that_names_the_execution_goes_before_an_older_one():
    unnamed, named = parked("u"), parked("n", names_run=True, after=5)
    choice = choose((unnamed, named), None)
    assert choice.used is named
    assert choice.dropped == (unnamed,)


def test_the_oldest_goes_first_among_equals():
    late, early = parked("late", after=2), parked("early", sender="other", after=1)
    assert choose((late, early), None).used is early


def test_the_same_instant_is_decided_by_id():
    one, two = parked("1"), parked("2", sender="other")
    assert choose((two, one), None).used is one


def test_another_sender_than_the_one_that_may_decide_is_dropped():
    wrong, right = parked("w", sender="other", names_run=True), parked("r", after=5)
    choice = choose((wrong, right), "desk")
    assert choice.used is right
    assert choice.dropped == (wrong,)
    assert choose((wrong,), "desk").used is None
    assert choose((wrong,), "desk").dropped == (wrong,)


def test_a_webhook_is_recognised_by_its_bytes_and_by_a_signed_id():
    (digest,) = keys_of(None, b"body")
    assert keys_of("msg_1", b"body") == ("id:msg_1", digest)
    assert keys_of(None, b"body ") != (digest,)


def test_an_answer_and_its_rivals_are_told_apart():
    own, rivals = keys_of("one", b"1"), keys_of("two", b"2")
    kept = replace(parked("x"), keys=own)
    both = replace(kept, keys=own + rival_keys(rivals))
    assert (kept.own_keys(), kept.keys_of_rivals()) == (own, ())
    assert (both.own_keys(), both.keys_of_rivals()) == (own, rivals)
