"""Bytes on real connections: the server lives on, refuses with 4xx or hangs up, and reads what another parser reads."""

from itertools import islice
from typing import Any

import pytest

from controlplane.cli.serving.protocol import BoundedProtocol
from tests.fuzz import talking
from tests.fuzz.draw import made
from tests.fuzz.outcomes import Tally

SEED = 20_261_001
QUICK = 1000
ECHO = talking.echo


async def talked(inputs: int) -> Tally:
    tally, source = Tally(talking.TARGET), made(SEED, inputs)
    async with talking.serving() as endpoint:
        while some := list(islice(source, talking.AT_ONCE)):
            await talking.talk(endpoint, tally, some)
    return tally


async def test_bytes_from_a_seed() -> None:
    tally = await talked(QUICK)
    assert not tally.faults, tally.told()
    assert talking.TARGET.meets <= set(tally.words), tally.words


def _raising(*_: Any) -> None:
    raise ValueError("planted")


def _answered_500(self: BoundedProtocol, _: object) -> None:
    self.transport.write(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n")
    self.transport.close()


async def _without_the_body(scope: Any, _: Any, send: Any) -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    await ECHO(scope, receive, send)


@pytest.mark.parametrize(
    ("place", "name", "instead", "found_as"),
    [
        (BoundedProtocol, "_count_framing", _raising, "uncaught"),
        (BoundedProtocol, "_refuse", _answered_500, "disagreement"),
        (talking, "echo", _without_the_body, "false accept"),
    ],
    ids=["a callback raises", "a refusal is a 500", "a body is not read"],
)
async def test_a_planted_fault_is_found(
    place: Any, name: str, instead: Any, found_as: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, instead)
    tally = await talked(2 * talking.AT_ONCE)
    assert tally.count(found_as), tally.words
