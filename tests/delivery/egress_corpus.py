"""URLs and answers of name servers that lead, or try to lead, where nothing may be called; each with what must be."""

from ipaddress import ip_address, ip_network
from typing import NamedTuple

from controlplane.domain import allow_list
from controlplane.domain.egress import Endpoint, Policy

PUBLIC = "93.184.215.14"
PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"
METADATA = "169.254.169.254"
OWN_PORT = 8080
LISTED = (
    "10.1.0.0/16:8001,10.9.9.9,agent.internal:8001,[fd12:3456::/48]:*,localhost:8002,127.0.0.1:8003,100.64.0.0/10"
    ",168.0.0.0/8,fd00::/16,0.0.0.0/0:9000,::/0:9000"
)

POLICIES = {
    "closed": Policy(),
    "open": Policy(open_mode=True, own=(Endpoint("127.0.0.1", OWN_PORT),)),
    "everywhere": Policy(open_mode=True, own=(Endpoint("0.0.0.0", OWN_PORT),)),
    "listed": Policy(allow=allow_list.parse(LISTED, dangerous=True), own=(Endpoint("10.1.0.1", 8001),)),
}


class Case(NamedTuple):
    """A URL, and what must come of it.

    `rule` is what refuses it when it is first judged, None when nothing does. `answers` are those of the name, one
    look-up after another, the last of them for ever. `dialled` is what sending to it connects to. `location` is where
    its receiver sends the request on to.
    """

    url: str
    rule: str | None = None
    answers: tuple[tuple[str, ...], ...] = ()
    dialled: tuple[str, ...] = ()
    policy: str = "closed"
    location: str | None = None


_REFUSED = {
    "loopback": "127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1 0:0:0:0:0:0:0:1"
    " 0:0:0:0:0:ffff:7f00:0001 ::0001",
    "private": "10.0.0.0 10.1.2.3 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 100.64.0.1"
    " 100.127.255.255 fc00::1 fd12:3456:789a::1 fdff:ffff::1 ::ffff:10.0.0.1 ::ffff:c0a8:1",
    "metadata": "169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254"
    " fd00:c1::a9fe:a9fe fd00:42::42 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::ffff:168.63.129.16"
    " ::ffff:100.100.100.200 FD00:EC2::254 fd00:0ec2:0000::0254",
    "link_local": "169.254.0.0 169.254.0.23 169.254.1.1 169.254.170.2 169.254.255.255 fe80::1 fe80::a9fe:a9fe febf::1"
    " ::ffff:169.254.170.2",
    "unspecified": "0.0.0.0 0.0.0.1 0.1.2.3 0.255.255.255 :: ::ffff:0.0.0.0 0:0:0:0:0:0:0:0",
    "multicast": "224.0.0.1 239.255.255.250 ff02::1 ff05::1:3 ::ffff:224.0.0.1",
    "broadcast": "255.255.255.255 ::ffff:255.255.255.255",
    "reserved": "192.0.0.0 192.0.0.8 192.0.0.170 240.0.0.1 254.1.2.3 255.255.255.254 fec0::1 feff::1 100::1 5f00::1"
    " 4000::1 2001:1::1 2001:20::1 ::ffff:192.0.0.170 ::1:0:0",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1 ::ffff:192.0.2.1",
    "benchmark": "198.18.0.1 198.19.255.255 2001:2::1",
    "6to4": "192.88.99.1 2002:7f00:1:: 2002:a9fe:a9fe::1 2002:808:808::1",
    "nat64": "64:ff9b::127.0.0.1 64:ff9b::a9fe:a9fe 64:ff9b::808:808 64:ff9b:1::10.0.0.1 64:ff9b:1:ffff::1",
    "teredo": "2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:0:a9fe:a9fe::",
    "embedded": "::127.0.0.1 ::a9fe:a9fe ::8.8.8.8 ::ffff:0:127.0.0.1 ::ffff:0:a9fe:a9fe 2606::5efe:127.0.0.1"
    " 2606::200:5efe:a9fe:a9fe fd12:3456::5efe:10.0.0.1",
}
# What other programs take for 127.0.0.1, 169.254.169.254 or localhost, and what their parsers disagree about.
_SPELLINGS = (
    "127.1 127.0.1 127 0 0x7f.1 0x7f.0.0.1 0X7F.0.0.1 0x7f000001 0x7F000001 2130706433 017700000001 0177.0.0.1"
    " 0177.0.0.01 127.0.0.01 127.00.0.1 127.0.0.1. 127.0.0.1.. 127.0.0 127.0.0.256 127.0.0.1.1 4294967295 0x 0x0 00"
    " 2852039166 0xa9fea9fe 0xa9.0xfe.0xa9.0xfe 0251.0376.0251.0376 169.254.43518 169.16689662 025177524776"
    " 169.254.169.254. 4294967296 18446744073709551617 999.1.1.1 1.2.3.4.5.6.7.8 metadata.0x7f example.1 a.0"
    " 127%2e0%2e0%2e1 127.0.0.1%00 127.0.0.1%00.example.com %31%32%37.0.0.1 loc%61lhost %6cocalhost"
    " a..example -a.example a-.example .example example.com.. a|b.example a*b.example $host ~host host!"
    f" {'a' * 64}.example {'a.' * 127}example"
    " [fe80::1%25eth0] [fe80::1%eth0] [::1%25lo] [::1%lo] [::ffff:127.0.0.1%25lo] [v1.fe80] [127.0.0.1] [localhost]"
    " [::127.1] [::ffff:0x7f.1] ::1 [:::1] [::ffff:127.0.0.01]"
).split()
_BEYOND_ASCII = (
    "127。0。0。1 127．0．0．1 127｡0｡0｡1 １２７.0.0.1 ①②⑦.⓪.⓪.① 169。254。169。254 ¼27.0.0.1"  # noqa: RUF001
    " ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhost。 ｌocalhost loc\u00adalhost local\u200bhost bücher.example ехample.com"  # noqa: RUF001
)
_AUTHORITIES = {
    f"http://{PUBLIC}:80@127.0.0.1/": "host",
    f"http://{PUBLIC}@{METADATA}/": "host",
    f"http://user:{PUBLIC}@{METADATA}/": "host",
    f"http://{METADATA}@{PUBLIC}/": "host",
    f"http://@{METADATA}/": "host",
    f"http://{PUBLIC}&@{METADATA}#@{PUBLIC}/": "host",
    f"http://{PUBLIC}\\@{METADATA}/": "host",
    f"http://{METADATA}\\@agent.example/": "host",
    f"http://{METADATA}/latest#@{PUBLIC}/": "metadata",
    f"http://{METADATA}?@{PUBLIC}/": "metadata",
    f"http://{METADATA}:80?@{PUBLIC}:80/": "metadata",
    f"http://{METADATA}:80:{PUBLIC}/": "host",
    f"http://{PUBLIC}[::1]/": "host",
    "http://agent.example[::1]:80/": "host",
    f"http://[::1]{PUBLIC}/": "host",
    "http://[::1].agent.example/": "host",
    f"http://[{PUBLIC_6}][::1]/": "host",
    f"http://[{PUBLIC_6}": "host",
    "http:///127.0.0.1/": "host",
    "http:127.0.0.1/": "host",
    "http:/127.0.0.1/": "host",
    "http://:80/": "host",
    "http://127.0.0.1:65536/": "host",
    "http://127.0.0.1:-1/": "host",
    "http://127.0.0.1:\uff180/": "host",
    "HTTP://127.0.0.1/": "loopback",
    "hTTps://[::1]/": "loopback",
    "https://[0:0:0:0:0:ffff:a9fe:a9fe]/": "metadata",
    "ftp://127.0.0.1/": "host",
    "gopher://127.0.0.1:6379/_x": "host",
    "file:///etc/passwd": "host",
    "unix:///var/run/docker.sock": "host",
    "//127.0.0.1/": "host",
    "": "host",
}
# What a name may be answered with; `rule` is that of the first answer that is not allowed.
_ANSWERED = (
    Case("http://a.example/", "loopback", (("127.0.0.1",),)),
    Case("http://a.example/", "loopback", (("::1",),)),
    Case("http://localhost/", "loopback", (("::1", "127.0.0.1"),)),
    Case("http://LOCALHOST/", "loopback", (("127.0.0.1",),)),
    Case("http://localhost./", "loopback", (("127.0.0.1",),)),
    Case("http://localhost.localdomain/", "loopback", (("127.0.0.1",),)),
    Case("http://ip6-localhost/", "loopback", (("::1",),)),
    Case("http://localtest.me/", "loopback", (("127.0.0.1",),)),
    Case("http://127-0-0-1.nip.io/", "loopback", (("127.0.0.1",),)),
    Case("http://metadata.google.internal/", "metadata", ((METADATA,),)),
    Case("http://metadata/", "metadata", ((METADATA,),)),
    Case("http://instance-data.ec2.internal/", "metadata", (("fd00:ec2::254",),)),
    Case("http://xn--bcher-kva.example/", "private", (("192.168.1.1",),)),
    Case("http://a_b.example/", "private", (("100.64.0.1",),)),
    Case("http://mixed.example/", "loopback", ((PUBLIC, "127.0.0.1"),)),
    Case("http://mixed.example/", "metadata", ((METADATA, PUBLIC),)),
    Case("http://mixed.example/", "metadata", ((PUBLIC, PUBLIC_6, "::ffff:169.254.169.254"),)),
    Case("http://mixed.example/", "nat64", ((PUBLIC_6, "64:ff9b::a9fe:a9fe"),)),
    Case("http://mixed.example/", "private", ((*(f"93.184.215.{n}" for n in range(50)), "10.0.0.1"),)),
    Case("http://zone.example/", "link_local", (("fe80::1%2",),)),
    Case("http://mapped.example/", "private", (("::ffff:192.168.0.1",),)),
    Case("http://agent.internal:8001/", "metadata", ((METADATA,),), policy="listed"),
    Case("http://agent.internal:8001/", "loopback", (("127.0.0.1",),), policy="listed"),
    Case("http://agent.internal:8002/", "private", (("10.2.0.1",),), policy="listed"),
    Case("http://other.internal:8001/", "private", (("10.2.0.1",),), policy="listed"),
    Case("http://agent.internal.example:8001/", "private", (("10.2.0.1",),), policy="listed"),
    Case("http://localhost:8002/", "link_local", (("127.0.0.1", "fe80::1%1"),), policy="listed"),
    Case("http://localhost/", "private", (("127.0.0.1", "192.168.0.1"),), policy="open"),
)
_REBOUND = (
    Case("http://r.example/", None, ((PUBLIC,), ("127.0.0.1",))),
    Case("http://r.example/", None, ((PUBLIC,), (METADATA,))),
    Case("http://r.example/", None, ((PUBLIC_6,), ("fd00:ec2::254",))),
    Case("http://r.example/", None, ((PUBLIC,), (PUBLIC, "10.0.0.1"))),
    Case("http://r.example/", None, ((PUBLIC,), ("::ffff:127.0.0.1",))),
    Case("http://r.example/", None, ((PUBLIC,), (PUBLIC_6,), ("127.0.0.1",)), (PUBLIC_6,)),
    Case("http://r.example/", "loopback", (("127.0.0.1",), (PUBLIC,)), (PUBLIC,)),
    Case("http://agent.internal:8001/", None, (("10.2.0.1",), (METADATA,)), policy="listed"),
    Case("http://agent.internal:8001/", None, (("10.2.0.1",), ("127.0.0.1",)), policy="listed"),
    Case("http://localhost:7000/", None, (("127.0.0.1",), ("10.0.0.1",)), policy="open"),
)
_REDIRECTED = tuple(
    Case(f"http://{PUBLIC}/", dialled=(PUBLIC,), location=location)
    for location in (
        "http://127.0.0.1/",
        f"http://{METADATA}/latest/meta-data/",
        "http://[::1]:6379/",
        "//10.0.0.1/",
        "http://localhost/",
        "https://[fd00:ec2::254]/",
        "gopher://127.0.0.1:6379/_x",
        "file:///etc/passwd",
    )
)
_BY_POLICY = (
    Case("http://127.0.0.1:8000/", dialled=("127.0.0.1",), policy="open"),
    Case("http://127.8.9.10:8000/", dialled=("127.8.9.10",), policy="open"),
    Case("http://[::1]:8000/", dialled=("::1",), policy="open"),
    Case("http://[::ffff:127.0.0.1]:8000/", dialled=("127.0.0.1",), policy="open"),
    Case("http://127.0.0.1:8080/", "own", policy="open"),
    Case("http://[::ffff:127.0.0.1]:8080/", "own", policy="open"),
    Case("http://localhost:8080/", "own", (("127.0.0.1",),), policy="open"),
    Case("http://127.0.0.1:8080/", "own", policy="everywhere"),
    Case("http://127.9.9.9:8080/", "own", policy="everywhere"),
    Case("http://localhost:8080/", "own", (("127.0.0.1",),), policy="everywhere"),
    Case("http://a.example:8080/", "own", ((PUBLIC, "127.0.0.1"),), policy="everywhere"),
    Case(f"http://{PUBLIC}:8080/", dialled=(PUBLIC,), policy="everywhere"),
    Case("http://0.0.0.0:8000/", "unspecified", policy="open"),
    Case("http://[::]:8000/", "unspecified", policy="open"),
    Case("http://10.0.0.1/", "private", policy="open"),
    Case(f"http://{METADATA}/", "metadata", policy="open"),
    Case("http://10.1.2.3:8001/", dialled=("10.1.2.3",), policy="listed"),
    Case("http://[::ffff:10.1.2.3]:8001/", dialled=("10.1.2.3",), policy="listed"),
    Case("http://10.1.2.3:8002/", "private", policy="listed"),
    Case("http://10.1.2.3/", "private", policy="listed"),
    Case("http://10.2.0.0:8001/", "private", policy="listed"),
    Case("http://10.1.0.1:8001/", "own", policy="listed"),
    Case("http://10.9.9.9:1/", dialled=("10.9.9.9",), policy="listed"),
    Case("http://agent.internal:8001/", answers=(("10.2.0.1",),), dialled=("10.2.0.1",), policy="listed"),
    Case("http://AGENT.Internal.:8001/", answers=(("10.2.0.1",),), dialled=("10.2.0.1",), policy="listed"),
    Case("http://localhost:8002/", answers=(("::1", "127.0.0.1"),), dialled=("::1",), policy="listed"),
    Case("http://127.0.0.1:8003/", dialled=("127.0.0.1",), policy="listed"),
    Case("http://127.0.0.2:8003/", "loopback", policy="listed"),
    Case("http://agent.internal:8003/", answers=(("127.0.0.1",),), dialled=("127.0.0.1",), policy="listed"),
    Case("http://[fd12:3456::7]:1/", dialled=("fd12:3456::7",), policy="listed"),
    Case("http://[fd12:3457::7]:1/", "private", policy="listed"),
    Case("http://172.16.0.1:9000/", dialled=("172.16.0.1",), policy="listed"),
    Case("http://127.0.0.1:9000/", dialled=("127.0.0.1",), policy="listed"),
    Case("http://168.63.129.16/", "metadata", policy="listed"),
    Case("http://100.100.100.200/", "metadata", policy="listed"),
    Case("http://[fd00:ec2::254]/", "metadata", policy="listed"),
    Case(f"http://{METADATA}:9000/", "metadata", policy="listed"),
    Case("http://[fe80::1]:9000/", "link_local", policy="listed"),
    Case("http://[2002:a01:203::]:9000/", "6to4", policy="listed"),
    Case("http://0.0.0.0:9000/", "unspecified", policy="listed"),
)
_PUBLIC = (
    Case(f"http://{PUBLIC}/", dialled=(PUBLIC,)),
    Case(f"http://{PUBLIC}:8443/", dialled=(PUBLIC,)),
    Case(f"http://[{PUBLIC_6}]/", dialled=(PUBLIC_6,)),
    # The client reads a port that Python does not see; what it connects to is judged all the same.
    Case(f"http://[{PUBLIC_6}]8001/", "host", dialled=(PUBLIC_6,)),
    Case(f"http://[::ffff:{PUBLIC}]/", dialled=(PUBLIC,)),
    Case("http://agent.example/", answers=((PUBLIC, PUBLIC_6),), dialled=(PUBLIC,)),
    Case("http://Agent.Example./", answers=((PUBLIC_6,),), dialled=(PUBLIC_6,)),
    Case("http://1e100.net/", answers=((PUBLIC,),), dialled=(PUBLIC,)),
    Case("http://0x7f.example/", answers=((PUBLIC,),), dialled=(PUBLIC,)),
    Case("http://a_b.xn--bcher-kva.example/", answers=((PUBLIC,),), dialled=(PUBLIC,)),
)


def _in_url(address: str) -> str:
    return f"http://[{address}]/x" if ":" in address else f"http://{address}/x"


CORPUS = (
    *(Case(_in_url(address), rule) for rule, addresses in _REFUSED.items() for address in addresses.split()),
    *(Case(f"http://{host}/", "host") for host in (*_SPELLINGS, *_BEYOND_ASCII.split())),
    *(Case(url, rule) for url, rule in _AUTHORITIES.items()),
    *_ANSWERED,
    *_REBOUND,
    *_REDIRECTED,
    *_BY_POLICY,
    *_PUBLIC,
)

# Written down once more and in another way than the rule has it: what no connection may go to, but for these.
_PERMITTED = {
    ("127.0.0.1", 8000, "open"),
    ("127.8.9.10", 8000, "open"),
    ("::1", 8000, "open"),
    ("10.1.2.3", 8001, "listed"),
    ("10.9.9.9", 1, "listed"),
    ("10.2.0.1", 8001, "listed"),
    ("::1", 8002, "listed"),
    ("127.0.0.1", 8003, "listed"),
    ("fd12:3456::7", 1, "listed"),
    ("172.16.0.1", 9000, "listed"),
    ("127.0.0.1", 9000, "listed"),
}
_NEVER = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24"
    " 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3"
    " ::/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20 4000::/2 8000::/1"
)
_NETWORKS = [ip_network(text) for text in _NEVER.split()]


def forbidden(address: str, port: int, policy: str) -> bool:
    """True for a connection that must not be made."""
    called = ip_address(address)
    return (address, port, policy) not in _PERMITTED and any(called in each for each in _NETWORKS)
