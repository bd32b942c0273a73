import time

import pytest

from controlplane.domain.throttle import MOST_IN_A_MINUTE, Failures, source_of
from tests.figures import Figures


def fail(failures: Failures, address: str | None, times: int, now: float = 0) -> list[int]:
    return [failures.count(address, now) for _ in range(times)]


def test_sixty_in_a_minute_pass_and_the_next_waits_for_the_minute_to_end():
    failures = Failures()
    assert fail(failures, "a", 59, 100) == [0] * 59
    assert not failures.passed("a", 130)
    assert failures.count("a", 130) == 0
    assert failures.passed("a", 130)
    assert failures.count("a", 130.5) == 30
    assert failures.count("a", 159.9) == 1
    assert not failures.passed("a", 160)
    assert failures.count("a", 160) == 0
    assert fail(failures, "a", 59, 160) == [0] * 59
    assert failures.count("a", 160) == 60


def test_nobody_waits_for_what_others_did():
    failures = Failures()
    fail(failures, "192.0.2.1", 100)
    assert failures.count("192.0.2.2", 0) == 0
    assert failures.count(None, 0) == 0


@pytest.mark.parametrize(("shares", "most"), [(1, 60), (2, 30), (7, 8), (60, 1), (64, 1)])
def test_processes_on_one_socket_divide_the_limit(shares: int, most: int):
    failures = Failures(shares)
    assert [waits > 0 for waits in fail(failures, "a", most + 1)] == [False] * most + [True]


@pytest.mark.parametrize(
    ("one", "another", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("no address: at all", "no address: at all", True),
        (None, "", True),
    ],
)
def test_an_ipv6_address_counts_as_its_64(one: str | None, another: str | None, same: bool):
    assert (source_of(one) == source_of(another)) is same


def test_memory_is_bounded_and_being_forgotten_costs_more_than_it_gives():
    failures = Failures(remembered=1000)
    fail(failures, "attacker", 61, 0)
    for number in range(999):
        failures.count(f"other-{number}", 1)
    assert failures.passed("attacker", 2)  # 999 failures elsewhere bought nothing
    failures.count("one-more", 2)
    assert len(failures) == 1000
    assert not failures.passed("attacker", 2)


def test_a_minute_that_is_over_is_forgotten_before_one_that_lasts():
    failures = Failures(remembered=3)
    for address in ("a", "b", "c"):
        fail(failures, address, 61, 0)
    fail(failures, "a", 61, 60)  # a new minute, behind the others
    fail(failures, "d", 1, 61)
    fail(failures, "e", 1, 61)
    assert failures.passed("a", 61)
    assert len(failures) == 3


def test_counting_costs_microseconds(figures: Figures):
    failures = Failures()
    begun = time.perf_counter()
    for number in range(20_000):
        failures.count(f"2001:db8:{number:x}::1", number / 1000)
    figures("a failure", counted_in_microseconds=(time.perf_counter() - begun) / 20_000 * 1e6)
    assert len(failures) == 20_000
    assert failures.passed("2001:db8:0::1", 1.0) is (MOST_IN_A_MINUTE <= 1)
