"""No connection is made to a refused address, whatever a URL, a name server or a receiver says (invariant I14)."""

import socket
import sys
import timeit
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, NamedTuple

import httpcore
import pytest

from controlplane.delivery.backend import JudgedBackend, judged_addresses
from controlplane.delivery.resolver import Resolver, Unresolved
from controlplane.delivery.transport import Transport
from controlplane.domain import egress
from controlplane.domain.egress import Policy, Refusal
from tests.delivery.egress_corpus import CORPUS, POLICIES, Case, forbidden
from tests.delivery.wire import Names, Wire
from tests.figures import Figures
from tests.receiver import Receiver, reply

CLOSING = reply(200, b"{}", "Connection: close")
_watched: list[tuple[str, Any]] = []
_watching = False


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname"}:
        _watched.append((event, arguments[1] if event == "socket.connect" else arguments[0]))


sys.addaudithook(_audit)


@pytest.fixture
def sockets() -> Iterator[list[tuple[str, Any]]]:
    """What Python's sockets connect to and look up in this process meanwhile, as the interpreter itself says it."""
    global _watching  # noqa: PLW0603 - an audit hook cannot be taken away again
    _watched.clear()
    _watching = True
    yield _watched
    _watching = False


class Credulous(httpcore.AsyncNetworkBackend):
    """What this would be without the rule: it connects to whatever a host turns out to be."""

    def __init__(self, names: Names, wire: Wire) -> None:
        self.names = names
        self.wire = wire

    async def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        try:
            address = str(ip_address(host if ":" in host else socket.inet_aton(host)))
        except (OSError, ValueError):
            address = self.names.look_up(host)[0]
        return await self.wire.dial(address.partition("%")[0], port)


def judged_once(case: Case) -> object:
    """One judgement of a URL, and of what its name is first answered with."""
    called = egress.target_of(case.url)
    answers = case.answers[0] if case.answers else ()
    return called if isinstance(called, Refusal) else egress.judge(POLICIES[case.policy], called, answers)


async def judged(policy: Policy, resolver: Resolver, url: str) -> str | None:
    """The rule that refuses a URL when it is first looked at, as a caller is told."""
    try:
        found = await judged_addresses(policy, resolver.resolve, egress.target_of(url))
    except Unresolved:
        return "unresolved"
    return found.rule if isinstance(found, Refusal) else None


async def send(backend: httpcore.AsyncNetworkBackend, url: str) -> int | str:
    """Post to a URL as callbacks and runs are posted; the reply's status, or why there was none."""
    transport = Transport(backend, kept_alive=0)
    attempt = await transport.post(url, b"{}", {})
    await transport.close()
    return attempt.error or attempt.status or ""


class Outcome(NamedTuple):
    """What a case came to."""

    rule: str | None
    said: int | str
    dialled: list[tuple[str, int]]
    names: list[str]


async def run(case: Case, told: Receiver) -> Outcome:
    """First judge a case's URL, as when it is asked, then send to it."""
    names, wire = Names(case.answers), Wire(told.port)
    resolver, policy = Resolver(names.look_up), POLICIES[case.policy]
    told.answers = [reply(302, b"", f"Location: {case.location}", "Connection: close")] if case.location else [CLOSING]
    rule = await judged(policy, resolver, case.url)
    said = await send(JudgedBackend(policy, resolver, dial=wire.dial), case.url)
    return Outcome(rule, said, wire.dialled, names.asked)


def _reply_of(case: Case) -> int:
    return 302 if case.location else 200


def wrong(case: Case, seen: Outcome) -> list[str]:
    """What did not end as it must."""
    expected = {
        "rule": (seen.rule, case.rule),
        "dialled": (tuple(address for address, _ in seen.dialled), case.dialled),
        "reply": (seen.said if case.dialled else type(seen.said), _reply_of(case) if case.dialled else str),
    }
    return [f"{case.url} {name}: {was!r}, not {must!r}" for name, (was, must) in expected.items() if was != must]


async def test_the_corpus_leads_nowhere_that_is_refused(
    told: Receiver, sockets: list[tuple[str, Any]], figures: Figures
):
    seen = [(case, await run(case, told)) for case in CORPUS]
    dialled = [(*each, case.policy) for case, outcome in seen for each in outcome.dialled]
    took = min(timeit.repeat(lambda: [judged_once(case) for case in CORPUS], number=1, repeat=5)) / len(CORPUS)
    bad = [each for each in dialled if forbidden(*each)]
    figures(
        "egress corpus",
        urls=len(CORPUS),
        refused_when_asked=sum(outcome.rule is not None for _, outcome in seen),
        connections=len(dialled),
        connections_to_refused_addresses=len(bad),
        microseconds_a_judgement=took * 1e6,
    )
    assert [line for case, outcome in seen for line in wrong(case, outcome)] == []
    assert bad == []
    assert len(CORPUS) >= 150
    assert sockets == [("socket.connect", ("127.0.0.1", told.port))] * len(dialled)


async def test_what_is_refused_is_said_without_an_address(told: Receiver):
    for case in CORPUS:
        outcome = await run(case, told)
        addresses = {address for each in case.answers for address in each}
        assert not [each for each in addresses if each in str(outcome.said)], outcome.said


async def test_the_corpus_finds_a_backend_that_does_not_judge(told: Receiver):
    """Names, addresses and redirects of the corpus would be connected to, so that what holds above is the rule's."""
    led: list[Case] = []
    for case in (each for each in CORPUS if each.url.startswith("http://")):
        names, wire = Names(case.answers), Wire(told.port)
        await send(Credulous(names, wire), case.url)
        led += [case for host, port in wire.dialled if forbidden(host, port, case.policy)]
    assert len(led) >= 100
