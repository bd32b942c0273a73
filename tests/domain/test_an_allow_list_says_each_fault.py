"""An allow list is taken whole or refused with a reason for each of its faults, and covers no more than it says."""

import pytest

from controlplane.domain.allow_list import parse
from controlplane.domain.egress_ranges import kind_of, read

NEVER = "never called"
NEITHER = "neither a host name, an IP address nor a network"
PORT = "needs a port from 1 to 65535"
WIDE = "is wider than"
FAULTS = [
    ("", "is empty"),
    (" ", "is empty"),
    ("*", NEITHER),
    ("*.internal", NEITHER),
    ("http://agent:8001", "not a URL"),
    ("user@agent", "not a URL"),
    ("agent/8", NEITHER),
    ("agent:", PORT),
    ("agent:0", PORT),
    ("agent:65536", PORT),
    ("agent:80-90", PORT),
    ("agent:+80", PORT),
    ("agent:\u0668\u0660", PORT),
    ("127.1", NEITHER),
    ("010.0.0.1", NEITHER),
    ("0x7f000001", NEITHER),
    ("2130706433", NEITHER),
    ("10.0.0.0/33", NEITHER),
    ("10.0.0.0/255.0.0.0", NEITHER),
    ("10.0.0.0/0.255.255.255", NEITHER),
    ("10.0.0.1/8", "write 10.0.0.0/8"),
    ("fd12::1/48", "write fd12::/48"),
    ("fe80::1%1", PORT),
    ("[fe80::1%1]", NEITHER),
    ("fd12:::1", NEITHER),
    ("[fd12::1", PORT),
    ("::ffff:10.0.0.1", "write its IPv4 form"),
    ("[::ffff:10.0.0.0/104]", "write its IPv4 form"),
    ("169.254.169.254", NEVER),
    ("192.0.0.0/24", NEVER),
    ("0.0.0.0", NEVER),
    ("[fe80::1]:80", NEVER),
    ("2002::/16", NEVER),
    ("11.0.0.0/7", "write 10.0.0.0/7"),
    ("0.0.0.0/7", WIDE),
    ("0.0.0.0/0", WIDE),
    ("fc00::/7", WIDE),
    ("::/0", WIDE),
    ("b\u00fccher.example", NEITHER),
    ("a b", NEITHER),
    ("a..b", NEITHER),
]
COVERED = [
    ("agent", "agent", 8001, "10.1.2.3"),
    ("AGENT.internal.", "agent.internal", 8001, "10.1.2.3"),
    ("my_agent_1:8001", "my_agent_1", 8001, "fd12::1"),
    ("agent:*", "agent", 1, "10.1.2.3"),
    ("10.1.0.0/16", "10.1.2.3", 1, "10.1.2.3"),
    ("10.1.0.0/16:8001", "whatever", 8001, "10.1.2.3"),
    ("10.0.0.0/8", "whatever", 8001, "10.1.2.3"),
    ("127.0.0.1:*", "localhost", 8001, "127.0.0.1"),
    ("localhost:8001", "localhost", 8001, "127.0.0.1"),
    ("localhost:8001", "localhost", 8001, "::1"),
    ("agent.localhost", "agent.localhost", 8001, "127.0.0.1"),
    ("fd12::/48", "whatever", 8001, "fd12::1"),
    ("fd12::/48:8001", "whatever", 8001, "fd12::1"),
    ("[fd12::/48]:8001", "whatever", 8001, "fd12::1"),
    ("[fd12::]/48:8001", "whatever", 8001, "fd12::1"),
    ("fd12::1", "whatever", 8001, "fd12::1"),
    ("[fd12::1]:8001", "whatever", 8001, "fd12::1"),
    ("::1", "whatever", 8001, "::1"),
]
NOT_COVERED = [
    ("agent", "agent2", 8001, "10.1.2.3"),
    ("agent", "agent.internal", 8001, "10.1.2.3"),
    ("agent:8001", "agent", 8002, "10.1.2.3"),
    ("agent", "agent", 8001, "127.0.0.1"),
    ("notlocalhost", "notlocalhost", 8001, "::1"),
    ("10.1.0.0/16", "agent", 8001, "10.2.0.0"),
    ("10.1.0.0/16:8001", "agent", 8002, "10.1.2.3"),
    ("10.1.2.3", "agent", 8001, "10.1.2.4"),
    ("10.0.0.0/8", "agent", 8001, "fd12::1"),
    ("fd12::/48", "agent", 8001, "10.1.2.3"),
    ("127.0.0.1", "localhost", 8001, "::1"),
]


@pytest.mark.parametrize(("text", "reason"), FAULTS)
def test_a_wrong_entry_is_refused_with_its_reason(text: str, reason: str):
    with pytest.raises(ValueError, match="entry 2 ") as caught:
        parse(f"agent,{text}")
    assert reason in str(caught.value)


def test_every_fault_is_said_at_once_and_none_is_repeated_back():
    with pytest.raises(ValueError, match="entry 1 ") as caught:
        parse("http://u:hunter22@h,10.0.0.0/8,x:0,,fc00::/7")
    said = str(caught.value).split("; ")
    assert [each.split()[1] for each in said] == ["1", "3", "4", "5"]
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0:8001", "fc00::/7"])
def test_wide_networks_are_taken_where_the_operator_says_so(text: str):
    assert len(parse(text, dangerous=True)) == 1


@pytest.mark.parametrize(("text", "host", "port", "address"), COVERED)
def test_an_entry_covers_what_it_names(text: str, host: str, port: int, address: str):
    (entry,) = parse(text)
    assert entry.covers(host, port, read(address), kind_of(read(address)))


@pytest.mark.parametrize(("text", "host", "port", "address"), NOT_COVERED)
def test_an_entry_covers_nothing_else(text: str, host: str, port: int, address: str):
    (entry,) = parse(text)
    assert not entry.covers(host, port, read(address), kind_of(read(address)))
