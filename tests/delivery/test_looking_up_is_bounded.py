"""A name server that hangs, lies or comes and goes holds up neither the event loop nor other names for long."""

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import pytest

from controlplane.delivery import resolver as module
from controlplane.delivery.resolver import Resolver, Unresolved

PUBLIC = "93.184.215.14"


class Server:
    """A name server of which some names hang until they are released."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []
        self.left: list[list[str] | Exception] = []

    def look_up(self, name: str) -> list[str]:
        self.asked.append(name)
        if name.startswith("hanging"):
            assert self.released.wait(30)
        answer = self.left.pop(0) if self.left else [PUBLIC]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.released.set()


async def test_a_name_that_hangs_ends_in_time_and_the_loop_goes_on(server: Server):
    resolver, loop = Resolver(server.look_up, seconds=0.2), asyncio.get_running_loop()
    begun, longest = loop.time(), 0.0
    asking = asyncio.ensure_future(resolver.resolve("hanging"))
    while not asking.done():
        before = loop.time()
        await asyncio.sleep(0)
        longest = max(longest, loop.time() - before)
    with pytest.raises(Unresolved, match=r"within 0\.2 s"):
        await asking
    assert loop.time() - begun < 5
    assert longest < 5


async def test_hanging_names_hold_a_place_each_until_they_end(server: Server):
    resolver = Resolver(server.look_up, most_running=2, seconds=1)
    for name in ("hanging-1", "hanging-2"):
        with pytest.raises(Unresolved):
            await resolver.resolve(name)
    with pytest.raises(Unresolved):
        await resolver.resolve("quick")
    assert server.asked == ["hanging-1", "hanging-2"]
    server.released.set()
    async with asyncio.timeout(5):
        while "quick" not in server.asked:
            try:
                assert await resolver.resolve("quick") == [PUBLIC]
            except Unresolved:
                continue


async def test_one_name_that_hangs_holds_one_place_however_many_ask(server: Server):
    resolver = Resolver(server.look_up, most_running=2, seconds=1)
    ended = await asyncio.gather(*(resolver.resolve("hanging") for _ in range(50)), return_exceptions=True)
    assert {type(each) for each in ended} == {Unresolved}
    assert await resolver.resolve("quick") == [PUBLIC]
    assert server.asked == ["hanging", "quick"]


async def test_whoever_asks_meanwhile_gets_the_same_answer(server: Server):
    resolver = Resolver(server.look_up, seconds=5)
    asking = [asyncio.ensure_future(resolver.resolve("hanging")) for _ in range(50)]
    while not server.asked:
        await asyncio.sleep(0)
    asking[0].cancel()
    server.released.set()
    assert await asyncio.gather(*asking[1:]) == [[PUBLIC]] * 49
    assert server.asked == ["hanging"]
    assert await resolver.resolve("hanging") == [PUBLIC]
    assert server.asked == ["hanging"] * 2


async def test_more_than_may_wait_are_refused_at_once(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MOST_WAITING", 3)
    resolver = Resolver(server.look_up, most_running=1, seconds=5)
    asking = [asyncio.ensure_future(resolver.resolve(f"hanging-{number}")) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(Unresolved, match="too many"):
        await resolver.resolve("quick")
    server.released.set()
    await asyncio.gather(*asking)
    assert await resolver.resolve("quick") == [PUBLIC]


async def test_a_name_server_that_comes_and_goes_is_asked_again_each_time(server: Server):
    resolver = Resolver(server.look_up)
    server.left = [OSError("gone"), [PUBLIC], [], UnicodeError("label too long"), ["10.0.0.1"]]
    answers = [await resolve(resolver, "flapping") for _ in range(5)]
    assert answers == [None, [PUBLIC], None, None, ["10.0.0.1"]]


async def resolve(resolver: Resolver, name: str) -> list[str] | None:
    try:
        return await resolver.resolve(name)
    except Unresolved:
        return None


async def test_the_system_s_resolver_is_asked():
    assert "127.0.0.1" in await Resolver().resolve("localhost")
    with pytest.raises(Unresolved, match="does not resolve"):
        await Resolver(seconds=30).resolve("no-such-name.invalid")


def test_a_process_ends_while_a_name_hangs():
    program = """
        import asyncio, threading
        from controlplane.delivery.resolver import Resolver, Unresolved

        async def main():
            try:
                await Resolver(lambda name: threading.Event().wait(), seconds=0.1).resolve("hanging")
            except Unresolved:
                print("ended")

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=20
    )
    assert (done.stdout, done.stderr) == ("ended\n", "")
