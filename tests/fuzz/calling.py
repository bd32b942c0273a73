"""Where we are sent: no URL, name or list leads to an address that a second table of the rule refuses.

The table here is written with `ipaddress` networks, and whom a URL means is asked of what would connect: httpx for the
host, and the system's own reading of numbers (`getaddrinfo` without a look-up, which knows every old form of IPv4).
"""

import socket
import unicodedata
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from controlplane.domain import allow_list, egress, urls
from controlplane.domain.egress import Policy, Refusal, Target
from controlplane.domain.errors import FieldFault
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept

LOOPBACK = ("127.0.0.0/8", "::1/128")
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
METADATA = (
    *("168.63.129.16/32", "100.100.100.200/32", "169.254.0.0/16", "192.0.0.192/32", "fd00:ec2::/32"),
    *("fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128", "fd00:42::42/128"),
)
NEVER = (
    *("0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"),
    *("203.0.113.0/24", "224.0.0.0/3", "::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2"),
    "8000::/1",
)
INSIDE = ("64:ff9b::/96", "64:ff9b:1::/48", "2001::/32", "fe80::/10", "ff00::/8", "::ffff:0:0/96", "240.0.0.0/4")
_Network = IPv4Network | IPv6Network
_Address = IPv4Address | IPv6Address
_LOOPBACK = [ip_network(text) for text in LOOPBACK]
_PRIVATE = [ip_network(text) for text in PRIVATE]
_METADATA = [ip_network(text) for text in METADATA]
_NEVER = [ip_network(text) for text in NEVER]
_PUBLIC = [ip_network("93.184.215.14/32"), ip_network("2606:2800::/32")]
EDGES = [
    edge
    for network in (*_LOOPBACK, *_PRIVATE, *_METADATA, *_NEVER, *_PUBLIC, *map(ip_network, INSIDE))
    for edge in (network.network_address, network.broadcast_address)
]

ALLOWED = "10.1.0.0/16:8001,agent.internal:8001,[fd12:3456::/48]:*,localhost:8002,127.0.0.1:8003,100.64.0.0/10"
LISTED = (
    (ip_network("10.1.0.0/16"), 8001),
    (ip_network("fd12:3456::/48"), None),
    (ip_network("127.0.0.1/32"), 8003),
    (ip_network("100.64.0.0/10"), None),
)
POLICIES = {
    "closed": Policy(),
    "open": Policy(open_mode=True),
    "listed": Policy(allow=allow_list.parse(ALLOWED)),
}
JUDGED_PORTS = (80, 8001, 8002, 8003)

HOSTS = (
    *("127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1."),
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "10.1.2.3", "0"),
    *("[::1]", "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[fe80::1%25eth0]", "[64:ff9b::7f00:1]", "[::]"),
    *("[2002:7f00:1::]", "[fd00:ec2::254]", "[::127.0.0.1]", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]"),
    *("93.184.215.14", "localhost", "agent.internal", "agent.example", "a_b.example", "xn--bcher-kva.example"),
    *("127。0。0。1", "１２７.0.0.1", "①②⑦.0.0.1", "ⓛocalhost", "bücher.example", "loc\u00adalhost"),  # noqa: RUF001
    *("127%2e0.0.1", "127.0.0.1%00.example", "example.0x7f", "a.b.c.256", "1.2.3.4.5", "0x.example", "::1"),
)
SCHEMES = (
    "http://",
    "https://",
    "HTTP://",
    "http:",
    "http:/",
    "http:///",
    "ftp://",
    "//",
    "",
    "http:\\\\",
    "ht\ntp://",
)
USERS = ("", "", "", "", "93.184.215.14@", "user:pw@", "@", "agent.example\\@", "agent.example#@", "a%40")
PORTS = ("", "", ":80", ":8001", ":", ":0", ":65536", ":-1", ":８０", ":80:80", ":0x50")  # noqa: RUF001
TAILS = ("/", "", "/a?b=c#d", "?@93.184.215.14", "#@93.184.215.14", "\\@93.184.215.14/", "/\t", "/é", "/%zz", "/a b")
ENTRIES = (
    *("10.0.0.0/8", "agent:8001", "10.1.0.0/16:8001", "[fd12::/48]:8001", "127.0.0.1", "::1", "[::1]:80", "0.0.0.0/0"),
    *("169.254.0.0/16", "169.254.169.254", "fe80::/10", "::ffff:127.0.0.1", "fd00:ec2::/32", "224.0.0.1:*", "::/0"),
    *("localhost", "*", "*:80", "a:b:c", "http://agent", "127.1", "0x7f.1", "168.0.0.0/8", "fd00::/16", "", "a:0"),
)


def url_of(draw: Draw) -> str:
    """A URL put together from parts that parsers disagree about, with changes; or text as it comes."""
    if draw.once_in(16):
        return draw.rest().decode("utf-8", "replace")
    host = draw.choice(HOSTS) if draw.below(3) else _number_of(draw)
    odd = draw.below(6)
    scheme = draw.choice(SCHEMES if odd == 0 else SCHEMES[:2])
    user = draw.choice(USERS) if odd == 1 else ""
    port = draw.choice(PORTS if odd == 2 else PORTS[:4])
    url = "".join((scheme, user, host, port, draw.choice(TAILS if odd == 3 else TAILS[:3])))
    return draw.mutated(url.encode(), 2 if odd == 4 else 0).decode("utf-8", "replace")


def try_url(data: bytes) -> str:
    """One URL: nothing that it could mean is called, unless the rule lets it be."""
    draw = Draw(data)
    policy = draw.choice(tuple(POLICIES))
    return judge_url(url_of(draw), policy)


def try_answers(data: bytes) -> str:
    """What a name server answers: one answer that may not be called refuses them all."""
    draw = Draw(data)
    answers = [str(address_of(draw)) for _ in range(1 + draw.below(3))]
    if draw.once_in(4):
        answers.append(f"fe80::{draw.below(9):x}%eth0")
    if draw.below(2):  # where the list lets most through
        return judge_answers("agent.internal", 8001, answers, "listed")
    name = draw.choice(("agent.example", "agent.internal", "localhost"))
    return judge_answers(name, draw.choice(JUDGED_PORTS), answers, draw.choice(tuple(POLICIES)))


def try_allow_list(data: bytes) -> str:
    """One setting: whatever it says, what is never called is not called by it."""
    draw = Draw(data)
    texts = [draw.mutated(draw.choice(ENTRIES).encode(), 2) for _ in range(1 + draw.below(3))]
    parts = [text.decode("utf-8", "replace") for text in texts]
    probes = [address_of(draw) for _ in range(4)]
    return judge_allow_list(draw.choice((",", " , ")).join(parts), draw.choice((False, True)), probes)


def address_of(draw: Draw) -> _Address:
    """An address at or near an edge of some range, anywhere, or one address inside another."""
    kind = draw.below(4)
    if kind == 0:
        return ip_address(draw.number(4)) if draw.below(2) else IPv6Address(draw.number(16))
    edge = draw.choice(EDGES)
    if kind == 1 and isinstance(edge, IPv4Address):
        return _inside(draw, int(edge))
    most = 2**edge.max_prefixlen - 1
    return type(edge)(min(most, max(0, int(edge) + draw.choice((0, 0, 0, 1, -1)))))


def judge_url(url: str, policy: str) -> str:
    """Judge a URL, and ask what would connect whom it means."""
    try:
        urls.check_http_url("callback_url", url, userinfo=False)
    except FieldFault:
        return "no URL"
    called = egress.target_of(url)
    if isinstance(called, Refusal):
        return "no host"
    meant = _meant_by_the_client(url)
    if meant is None:
        if "xn--" not in called.name:  # whether a name in another script is one is for the client to say
            raise Disagreement(f"the client cannot call {url!r}")
        return "no name to the client"
    if meant != (called.name, called.port):
        raise FalseAccept(f"judged as {called.name}:{called.port}, but the client goes to {meant[0]}:{meant[1]}")
    return _judge_meant(called, _numbered(called.name), policy)


def _judge_meant(called: Target, number: _Address | None, policy: str) -> str:
    """Hold what was made of a host against the address that the system makes of it."""
    if called.literal is None:
        if number is not None:
            raise FalseAccept(f"judged as a name, but {called.name} is {number}")
        return "a name"
    if number is None or number != _plain(called.literal):
        raise FalseAccept(f"judged as {called.literal}, but it is {number}")
    return _check(egress.judge(POLICIES[policy], called), called, [number], policy)


def judge_answers(name: str, port: int, answers: list[str], policy: str) -> str:
    """Judge what a name resolves to, and hold it against the other table."""
    called = egress.target(name, port)
    if not isinstance(called, Target):
        raise Disagreement(f"{name} is no target")
    addresses = [_plain(ip_address(each.partition("%")[0])) for each in answers]
    return _check(egress.judge(POLICIES[policy], called, answers), called, addresses, policy)


def judge_allow_list(text: str, dangerous: bool, probes: list[_Address]) -> str:
    """Read a list, and see whom it lets through."""
    try:
        entries = allow_list.parse(text, dangerous=dangerous)
    except ValueError:
        return "refused"
    policy = Policy(allow=entries)
    inside = [address for entry in entries if entry.network for address in (entry.network[0], entry.network[-1])]
    for address in (*probes, *inside):
        for port in (80, 8001):
            for called in (Target(str(address), port, address), egress.target("agent", port)):
                allowed = isinstance(called, Target) and not isinstance(
                    egress.judge(policy, called, [str(address)]), Refusal
                )
                if allowed and _forbidden(address):
                    raise FalseAccept(f"{text!r} lets {address} be called")
    networks = [entry.network for entry in entries if entry.network]
    if not dangerous and any(network.prefixlen < {4: 8, 6: 16}[network.version] for network in networks):
        raise FalseAccept(f"{text!r} is too wide")
    return "taken"


def _check(judged: tuple[str, ...] | Refusal, called: Target, addresses: list[_Address], policy: str) -> str:
    bad = [each for each in addresses if not _permitted(each, called, policy)]
    if isinstance(judged, Refusal):
        if not bad:
            raise Disagreement(f"refused by {judged.rule}, but {addresses} may be called ({policy})")
        return "refused"
    if bad:
        raise FalseAccept(f"{bad} may be called under the policy {policy}")
    if set(judged) != {str(each) for each in addresses}:
        raise FalseAccept(f"{judged} is to be called, but {addresses} was judged")
    return "allowed"


def _permitted(address: _Address, called: Target, policy: str) -> bool:
    """The rule once more: what is never called, what a policy lets through, and all the rest."""
    if _forbidden(address):
        return False
    loopback = _in(address, _LOOPBACK)
    if not loopback and not _in(address, _PRIVATE):
        return True
    if policy == "open":
        return loopback
    if policy == "closed":
        return False
    named = (called.name, called.port) == ("agent.internal", 8001) and not loopback
    at_home = (called.name, called.port) == ("localhost", 8002)
    listed = any(_in(address, [network]) and port in {None, called.port} for network, port in LISTED)
    return named or at_home or listed


def _forbidden(address: _Address) -> bool:
    address = _plain(address)
    if _in(address, _METADATA):
        return True
    if (address.version == 4 and _in(address, [*_LOOPBACK, *_PRIVATE])) or _in(address, _LOOPBACK):
        return False
    isatap = isinstance(address, IPv6Address) and (int(address) >> 32) & 0xFDFF_FFFF == 0x5EFE
    return isatap or (_in(address, _NEVER) and not _in(address, _PRIVATE))


def _in(address: _Address, networks: list[_Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


def _plain(address: _Address) -> _Address:
    number = int(address)
    mapped = address.version == 6 and number >> 32 == 0xFFFF
    return IPv4Address(number & 0xFFFF_FFFF) if mapped else address


def _meant_by_the_client(url: str) -> tuple[str, int] | None:
    """The host and port that httpx would connect to; None where it makes nothing of the URL."""
    try:
        parsed = httpx.Request("POST", url).url
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return None
    host = parsed.raw_host.decode("ascii")
    address = ip_address(host) if ":" in host and "%" not in host else host
    return str(address).lower().removesuffix("."), parsed.port or (443 if parsed.scheme == "https" else 80)


def _numbered(host: str) -> _Address | None:
    """The address that the system takes a host for without asking anybody, in whatever old form it is written."""
    for text in (host, unicodedata.normalize("NFKC", host)):
        try:
            found = socket.getaddrinfo(text, 80, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            continue
        return _plain(ip_address(str(found[0][4][0]).partition("%")[0]))
    return None


def _inside(draw: Draw, number: int) -> IPv6Address:
    """An IPv6 address that holds an IPv4 one: mapped, compatible, translated, ISATAP, 6to4."""
    public = 0x2606 << 112
    isatap = (public | 0x5EFE << 32 | number, public | 0x0200_5EFE << 32 | number)
    others = (
        0xFFFF << 32 | number,
        number,
        0x64FF9B << 96 | number,
        0xFFFF << 48 | number,
        0x2002 << 112 | number << 80,
    )
    return IPv6Address(draw.choice((*others, *isatap)))


def _number_of(draw: Draw) -> str:
    """An address in one of the forms that `inet_aton` knows."""
    address = address_of(draw)
    if isinstance(address, IPv6Address):
        return f"[{address.exploded if draw.below(2) else address.compressed}]"
    number, octets = int(address), address.packed
    forms = (
        str(address),
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(f"0{octet:o}" for octet in octets),
        ".".join(hex(octet) for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        f"{address}.",
        str(address).replace(".", "。"),
        str(address).translate(str.maketrans("0123456789", "０１２３４５６７８９")),  # noqa: RUF001
    )
    return draw.choice(forms)
