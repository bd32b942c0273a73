"""What is allowed to one caller beside the operator's list is reached by that caller's requests and by no others."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controlplane.delivery.backend import JudgedBackend
from controlplane.delivery.gate import Gate
from controlplane.delivery.resolver import Resolver
from controlplane.delivery.transport import Transport
from controlplane.domain import allow_list
from controlplane.domain.egress import Policy
from controlplane.domain.errors import CallbackUrlRefused
from tests.delivery.wire import Names, Wire
from tests.receiver import Receiver

ALLOWANCE = allow_list.parse("10.1.0.0/16:8001")
URL = "http://agent.internal:8001/"
REFUSED = "callback_url_refused: its host leads to a private address, which HOLDSHORT_CALLBACK_ALLOW must allow"


@pytest.fixture
def wire(told: Receiver) -> Wire:
    return Wire(told.port)


@pytest.fixture
async def transport(wire: Wire) -> AsyncIterator[Transport]:
    made = Transport(JudgedBackend(Policy(), Resolver(Names([["10.1.2.3"]]).look_up), dial=wire.dial))
    yield made
    await made.close()


async def test_whoever_may_is_followed_by_whoever_may_not(transport: Transport, wire: Wire):
    for _ in range(2):
        assert (await transport.post(URL, b"{}", {}, allowance=ALLOWANCE)).status == 200
        refused = await transport.post(URL, b"{}", {})
        assert (refused.status, refused.error, refused.written) == (None, REFUSED, False)
    assert wire.dialled == [("10.1.2.3", 8001)] * 2


async def test_whoever_may_and_whoever_may_not_at_the_same_moment(transport: Transport, wire: Wire):
    both = [transport.post(URL, b"{}", {}, allowance=ALLOWANCE if number % 2 else ()) for number in range(40)]
    assert [each.status for each in await asyncio.gather(*both)] == [None, 200] * 20
    assert len(wire.dialled) == 20


async def test_an_allowance_allows_no_more_than_the_list_could(transport: Transport, wire: Wire):
    everything = allow_list.parse("0.0.0.0/0,::/0", dangerous=True)
    attempt = await transport.post("http://169.254.169.254:8001/", b"{}", {}, allowance=everything)
    assert (
        attempt.error
        == "callback_url_refused: its host leads to the metadata service of a cloud, which is never called"
    )
    assert wire.dialled == []


async def test_the_gate_judges_with_an_allowance_too():
    gate = Gate(Policy(), Resolver(Names([["10.1.2.3"]]).look_up))
    await gate.check(URL, ALLOWANCE)
    with pytest.raises(CallbackUrlRefused):
        await gate.check(URL)


async def test_asking_often_costs_one_look_up_and_a_name_that_does_not_resolve_is_let_through():
    names = Names([["93.184.215.14"]])
    gate = Gate(Policy(), Resolver(names.look_up))
    for _ in range(5):
        await gate.check("https://agent.example/cb")
    assert names.asked == ["agent.example"]
    absent = Names([])
    gate = Gate(Policy(), Resolver(absent.look_up))
    for _ in range(5):
        await gate.check("https://agent.example/cb")
    assert absent.asked == ["agent.example"]
