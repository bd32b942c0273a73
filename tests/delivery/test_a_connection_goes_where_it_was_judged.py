"""A connection is made to the judged address, names the host in TLS, and is judged again after its time."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpcore
import httpx
import pytest

from controlplane.delivery.backend import JudgedBackend, Refused
from controlplane.delivery.pool import JudgedPool
from controlplane.delivery.resolver import Resolver
from controlplane.domain.egress import Policy
from tests.delivery.wire import Names, Wire
from tests.receiver import Receiver

PUBLIC, OTHER = "93.184.215.14", "93.184.215.15"
METADATA = "169.254.169.254"
TLS = ssl.create_default_context()


@asynccontextmanager
async def client(names: Names, wire: Wire, *, serves_seconds: float = 30) -> AsyncIterator[httpx.AsyncClient]:
    """A client whose names and connections are the test's."""
    backend = JudgedBackend(Policy(), Resolver(names.look_up), dial=wire.dial, serves_seconds=serves_seconds)
    async with httpx.AsyncClient(transport=JudgedPool(backend, kept_alive=9, tls=TLS), trust_env=False) as made:
        yield made


async def test_a_connection_is_used_again_for_as_long_as_its_judgement_holds(told: Receiver):
    names, wire = Names([[PUBLIC], [METADATA]]), Wire(told.port)
    async with client(names, wire) as calling:
        for _ in range(3):
            assert (await calling.post("http://agent.example/", content=b"{}")).status_code == 200
    assert (wire.dialled, names.asked) == ([(PUBLIC, 80)], ["agent.example"])


async def test_after_its_time_even_a_busy_connection_is_judged_again(told: Receiver):
    names, wire = Names([[PUBLIC], [OTHER], [METADATA]]), Wire(told.port)
    async with client(names, wire, serves_seconds=0) as calling:
        for _ in range(2):
            assert (await calling.post("http://agent.example/", content=b"{}")).status_code == 200
        with pytest.raises(Refused, match="metadata"):
            await calling.post("http://agent.example/", content=b"{}")
    assert wire.dialled == [(PUBLIC, 80), (OTHER, 80)]


async def test_each_port_and_scheme_is_judged_by_itself(told: Receiver):
    names, wire = Names([[PUBLIC]]), Wire(told.port)
    async with client(names, wire) as calling:
        for url in ("http://agent.example/", "http://agent.example:81/", "http://other.example/"):
            await calling.post(url, content=b"{}")
    assert wire.dialled == [(PUBLIC, 80), (PUBLIC, 81), (PUBLIC, 80)]
    assert names.asked == ["agent.example", "agent.example", "other.example"]


async def test_the_next_address_is_tried_when_one_does_not_answer(told: Receiver):
    wire = Wire(told.port, dead=[PUBLIC])
    async with client(Names([[PUBLIC, OTHER]]), wire) as calling:
        assert (await calling.post("http://agent.example/", content=b"{}")).status_code == 200
    assert wire.dialled == [(PUBLIC, 80), (OTHER, 80)]


async def test_a_connection_that_fails_says_why_without_the_address(told: Receiver):
    wire = Wire(told.port, dead=[PUBLIC, OTHER])
    async with client(Names([[PUBLIC, OTHER]]), wire) as calling:
        with pytest.raises(httpcore.ConnectError) as caught:
            await calling.post("http://agent.example/", content=b"{}")
    assert str(caught.value) == "connection refused"


async def test_of_a_hundred_addresses_only_a_few_are_tried(told: Receiver):
    addresses = [f"93.184.215.{number}" for number in range(100)]
    wire = Wire(told.port, dead=addresses)
    async with client(Names([addresses]), wire) as calling:
        with pytest.raises(httpcore.ConnectError):
            await calling.post("http://agent.example/", content=b"{}")
    assert [address for address, _ in wire.dialled] == addresses[:4]


async def test_an_address_that_swallows_everything_leaves_time_for_the_next(told: Receiver):
    wire, hanging = Wire(told.port), asyncio.Event()

    async def dial(address: str, port: int) -> httpcore.AsyncNetworkStream:
        if address == PUBLIC:
            await hanging.wait()
        return await wire.dial(address, port)

    backend = JudgedBackend(Policy(), Resolver(Names([[PUBLIC, OTHER]]).look_up), dial=dial)
    await (await backend.connect_tcp("agent.example", 80, timeout=2)).aclose()
    assert wire.dialled == [(OTHER, 80)]


async def test_tls_names_the_host_and_not_the_address():
    hello: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.set_result(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    wire = Wire(server.sockets[0].getsockname()[1])
    async with server, client(Names([[PUBLIC]]), wire) as calling:
        with pytest.raises(httpcore.ConnectError):
            await calling.post("https://agent.example/", content=b"{}")
        assert b"agent.example" in await hello
    assert wire.dialled == [(PUBLIC, 443)]


async def test_nothing_but_tcp_is_called(told: Receiver):
    backend = JudgedBackend(Policy(), Resolver())
    with pytest.raises(Refused):
        await backend.connect_unix_socket("/var/run/docker.sock")
