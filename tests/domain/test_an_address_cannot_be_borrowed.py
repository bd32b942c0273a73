import pytest

from controlplane.domain.proxies import client_of, parse

TRUSTED = parse("10.0.0.0/8, 192.0.2.7, fd12::/64")


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.5", [], "203.0.113.5"),
        ("203.0.113.5", ["198.51.100.1"], "203.0.113.5"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1, 198.51.100.1, 192.0.2.7"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1", "198.51.100.1 ,\t10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["2001:DB8:0::1"], "2001:db8::1"),
        ("10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1" * 5000], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, " + ", ".join(["10.0.0.2"] * 4000)], "10.0.0.2"),
        ("fd12::1", ["198.51.100.1"], "198.51.100.1"),
        ("fd13::1", ["198.51.100.1"], "fd13::1"),
        ("::ffff:10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::ffff:203.0.113.5", [], "203.0.113.5"),
        ("fe80::1%eth0", [], "fe80::1"),
        ("", ["198.51.100.1"], ""),
        ("socket", ["198.51.100.1"], "socket"),
        (None, ["198.51.100.1"], None),
    ],
)
def test_the_address_is_the_last_that_no_trusted_proxy_has(peer: str | None, forwarded: list[str], address: str | None):
    assert client_of(peer, forwarded, TRUSTED) == address


def test_without_trusted_proxies_nothing_forwarded_counts():
    assert client_of("10.0.0.1", ["198.51.100.1"], ()) == "10.0.0.1"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("", "entry 1 is empty"),
        ("10.0.0.1,", "entry 2 is empty"),
        ("proxy", "entry 1 is neither an IP address nor a network"),
        ("10.0.0.1:80", "entry 1 is neither"),
        ("10.0.0.0/33", "entry 1 is neither"),
        ("10.0.0.0/255.0.0.0", "entry 1 is neither"),
        ("fe80::1%eth0", "entry 1 is neither"),
        ("10.0.0.1/8", "entry 1 has bits beyond its prefix; write 10.0.0.0/8"),
        ("::ffff:10.0.0.1", "entry 1 is an IPv4-mapped network"),
        ("0.0.0.0/0", "entry 1 would believe everybody"),
        ("x, ::/0", "entry 1 is neither .*; entry 2 would believe everybody"),
    ],
)
def test_a_wrong_entry_is_named_by_its_place(value: str, fault: str):
    with pytest.raises(ValueError, match=fault):
        parse(value)
