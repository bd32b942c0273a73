"""Bodies that nobody honest sends: changed at random, or made of known names in odd places."""

import random
from typing import Any

NOISE = b"\x00\t\r\n \"'(),-./0123456789:;=ABFVZ[\\]_abcdeftuvz{|}\x7f\x80\xc3\xff"


def mutated(source: random.Random, raw: bytes) -> bytes:
    """A few random bytes changed, put in, cut out, doubled or put in another place."""
    text = bytearray(raw)
    for _ in range(source.randrange(1, 4)):
        at, end = sorted((source.randrange(len(text) + 1), source.randrange(len(text) + 1)))
        piece = bytes(text[at:end])
        match source.randrange(5):
            case 0 if text:
                text[at % len(text)] = source.choice(NOISE)
            case 1:
                text[at:at] = bytes(source.choices(NOISE, k=source.randrange(1, 4)))
            case 2:
                del text[at : min(end, at + 4)]
            case 3:
                text[at:at] = piece[:40]
            case _:
                text[at:end] = piece[::-1] if source.random() < 0.1 else piece.swapcase()
    return bytes(text)


IDS: list[object] = ["r1", "r1", "r1", "r2", "apr_1", "", None, 7]
RUNS: list[object] = ["e1", "e1", "e2", "a/b", "", None]
WORDS: list[object] = [
    "approved",
    "Approve",
    "reject",
    "expired",
    "request_changes",
    "later",
    "",
    None,
    True,
    ["approved"],
]
LEAVES: dict[str, list[object]] = {
    **dict.fromkeys(["requestId", "approval_request_id", "approval_id", "id"], IDS),
    **dict.fromkeys(["executionId", "execution_id"], RUNS),
    **dict.fromkeys(["decision", "action"], WORDS),
    "type": ["completed", "request.completed", "expired", "request.expired", "request.sent", "ping", "", 1, None],
    "round": [1, 1, 2, 0, True, 1.5, 10**300, None],
    "feedback": ["", "fine", "fine", None, 1],
}
NESTED = ["data", "response", "metadata"]


def a_body(source: random.Random, depth: int = 0) -> dict[str, Any]:
    """Known names with likely and unlikely values, in any place."""
    body: dict[str, Any] = {}
    for name in source.sample([*LEAVES, *NESTED], source.randrange(2, 10)):
        if name not in NESTED:
            body[name] = source.choice(LEAVES[name])
        elif depth < 3:
            body[name] = a_body(source, depth + 1) if source.random() < 0.9 else source.choice(WORDS)
    return body
