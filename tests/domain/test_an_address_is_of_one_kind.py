"""Every address is of one kind, from the first to the last of its range; only three kinds can ever be called."""

from ipaddress import ip_address, ip_network
from itertools import pairwise

import pytest

from controlplane.domain.egress_ranges import CALLABLE, Kind, kind_of, never_called, read

RANGES = [
    ("0.0.0.0", "0.255.255.255", Kind.UNSPECIFIED),
    ("1.0.0.0", "9.255.255.255", Kind.PUBLIC),
    ("10.0.0.0", "10.255.255.255", Kind.PRIVATE),
    ("11.0.0.0", "100.63.255.255", Kind.PUBLIC),
    ("100.64.0.0", "100.100.100.199", Kind.PRIVATE),
    ("100.100.100.200", "100.100.100.200", Kind.METADATA),
    ("100.100.100.201", "100.127.255.255", Kind.PRIVATE),
    ("100.128.0.0", "126.255.255.255", Kind.PUBLIC),
    ("127.0.0.0", "127.255.255.255", Kind.LOOPBACK),
    ("128.0.0.0", "168.63.129.15", Kind.PUBLIC),
    ("168.63.129.16", "168.63.129.16", Kind.METADATA),
    ("168.63.129.17", "169.253.255.255", Kind.PUBLIC),
    ("169.254.0.0", "169.254.169.253", Kind.LINK_LOCAL),
    ("169.254.169.254", "169.254.169.254", Kind.METADATA),
    ("169.254.169.255", "169.254.255.255", Kind.LINK_LOCAL),
    ("169.255.0.0", "172.15.255.255", Kind.PUBLIC),
    ("172.16.0.0", "172.31.255.255", Kind.PRIVATE),
    ("172.32.0.0", "191.255.255.255", Kind.PUBLIC),
    ("192.0.0.0", "192.0.0.191", Kind.RESERVED),
    ("192.0.0.192", "192.0.0.192", Kind.METADATA),
    ("192.0.0.193", "192.0.0.255", Kind.RESERVED),
    ("192.0.1.0", "192.0.1.255", Kind.PUBLIC),
    ("192.0.2.0", "192.0.2.255", Kind.DOCUMENTATION),
    ("192.0.3.0", "192.88.98.255", Kind.PUBLIC),
    ("192.88.99.0", "192.88.99.255", Kind.SIX_TO_FOUR),
    ("192.88.100.0", "192.167.255.255", Kind.PUBLIC),
    ("192.168.0.0", "192.168.255.255", Kind.PRIVATE),
    ("192.169.0.0", "198.17.255.255", Kind.PUBLIC),
    ("198.18.0.0", "198.19.255.255", Kind.BENCHMARK),
    ("198.20.0.0", "198.51.99.255", Kind.PUBLIC),
    ("198.51.100.0", "198.51.100.255", Kind.DOCUMENTATION),
    ("198.51.101.0", "203.0.112.255", Kind.PUBLIC),
    ("203.0.113.0", "203.0.113.255", Kind.DOCUMENTATION),
    ("203.0.114.0", "223.255.255.255", Kind.PUBLIC),
    ("224.0.0.0", "239.255.255.255", Kind.MULTICAST),
    ("240.0.0.0", "255.255.255.254", Kind.RESERVED),
    ("255.255.255.255", "255.255.255.255", Kind.BROADCAST),
    ("::", "::", Kind.UNSPECIFIED),
    ("::1", "::1", Kind.LOOPBACK),
    ("::2", "::ffff:ffff", Kind.EMBEDDED),
    ("::1:0:0", "::fffe:ffff:ffff", Kind.RESERVED),
    ("::ffff:0:0:0", "::ffff:0:ffff:ffff", Kind.EMBEDDED),
    ("::ffff:1:0:0", "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("64:ff9b::", "64:ff9b::ffff:ffff", Kind.NAT64),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", Kind.NAT64),
    ("64:ff9b:2::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PUBLIC),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff", Kind.TEREDO),
    ("2001:1::", "2001:1:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff", Kind.BENCHMARK),
    ("2001:2:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PUBLIC),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", Kind.DOCUMENTATION),
    ("2001:db9::", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PUBLIC),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.SIX_TO_FOUR),
    ("2003::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PUBLIC),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.DOCUMENTATION),
    ("3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PUBLIC),
    ("4000::", "fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("fc00::", "fd00:42::41", Kind.PRIVATE),
    ("fd00:42::42", "fd00:42::42", Kind.METADATA),
    ("fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe", Kind.METADATA),
    ("fd00:ec2::", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff", Kind.METADATA),
    ("fd20:ce::254", "fd20:ce::254", Kind.METADATA),
    ("fd20:ce::255", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.PRIVATE),
    ("fe00::", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.LINK_LOCAL),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.RESERVED),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Kind.MULTICAST),
]


@pytest.mark.parametrize(("first", "last", "kind"), RANGES)
def test_a_range_is_of_one_kind_from_its_first_to_its_last_address(first: str, last: str, kind: Kind):
    low, high = ip_address(first), ip_address(last)
    middle = type(low)((int(low) + int(high)) // 2)
    assert {kind_of(low), kind_of(middle), kind_of(high)} == {kind}


def test_the_ranges_of_ipv4_leave_no_gap():
    parts = [(int(ip_address(first)), int(ip_address(last))) for first, last, _ in RANGES if ":" not in first]
    assert (parts[0][0], parts[-1][1]) == (0, 2**32 - 1)
    assert all(before[1] + 1 == after[0] for before, after in pairwise(parts))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("::ffff:169.254.169.254", Kind.METADATA),
        ("::ffff:7f00:1", Kind.LOOPBACK),
        ("::ffff:10.0.0.1", Kind.PRIVATE),
        ("::ffff:0.0.0.0", Kind.UNSPECIFIED),
        ("::ffff:255.255.255.255", Kind.BROADCAST),
        ("::ffff:8.8.8.8", Kind.PUBLIC),
        ("fe80::1%eth0", Kind.LINK_LOCAL),
        ("::1%lo", Kind.LOOPBACK),
        ("2600::5efe:a9fe:a9fe", Kind.EMBEDDED),
        ("2600::200:5efe:8.8.8.8", Kind.EMBEDDED),
        ("fd12::5efe:127.0.0.1", Kind.EMBEDDED),
        ("2600::5eff:127.0.0.1", Kind.PUBLIC),
    ],
)
def test_an_address_inside_of_another_is_seen(text: str, kind: Kind):
    assert kind_of(read(text)) is kind


@pytest.mark.parametrize(
    "network", ["169.254.0.0/16", "192.0.0.0/24", "240.0.0.0/4", "224.0.0.0/3", "fe80::/9", "4000::/3"]
)
def test_a_network_without_one_callable_address_is_named(network: str):
    found = never_called(ip_network(network))
    assert found is not None
    assert found not in CALLABLE


@pytest.mark.parametrize("network", ["0.0.0.0/0", "10.0.0.0/8", "127.0.0.1/32", "100.64.0.0/10", "::/0", "::1/128"])
def test_a_network_with_callable_addresses_is_not(network: str):
    assert never_called(ip_network(network)) is None
