"""The same judgements on inputs that hypothesis puts together, and makes small when one of them fails."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from controlplane.domain.signatures import sign_hex, sign_standard, sign_timestamped
from tests.fuzz import calling, reading, signing
from tests.fuzz.outcomes import Tally
from tests.fuzz.signing import NOW, POOL, Case


class Property(NamedTuple):
    """What hypothesis makes, and how it is judged."""

    inputs: st.SearchStrategy[Any]
    judge: Callable[[Any], str]


_NAMES = st.sampled_from([*signing.PLAIN, b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"x-other"])
_TIMES = st.integers(NOW - 302, NOW + 302) | st.integers(0, 10**13)
_IDS = st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True)
_NOISE = st.binary(max_size=12)


@st.composite
def webhooks(draw: st.DrawFn) -> Case:
    """Signed headers in one of the schemes, between others, over this body or another."""
    body, secret = draw(st.binary(max_size=24)), draw(st.sampled_from(POOL)).secret
    signed = draw(st.just(body) | st.binary(max_size=24))
    at, webhook_id = draw(_TIMES), draw(_IDS)
    lines = {
        "body": [(b"X-Hub-Signature-256", sign_hex(secret, signed).encode())],
        "timestamped": [(b"X-Hax-Signature", sign_timestamped(secret, signed, timestamp=at).encode())],
        "standard": [
            (b"webhook-id", webhook_id.encode()),
            (b"webhook-timestamp", b"%d" % at),
            (b"webhook-signature", sign_standard(secret, signed, webhook_id=webhook_id, timestamp=at).encode()),
        ],
    }[draw(st.sampled_from(["body", "timestamped", "standard"]))]
    spoilt = [(name, _cut(draw, value)) for name, value in lines] if draw(st.booleans()) else lines
    others = draw(st.lists(st.tuples(_NAMES, _NOISE), max_size=2))
    secrets = draw(st.lists(st.sampled_from(POOL), min_size=1, max_size=4))
    return Case(draw(st.permutations([*spoilt, *others])), body, tuple(secrets))


def _cut(draw: st.DrawFn, value: bytes) -> bytes:
    at = draw(st.integers(0, len(value)))
    return value[:at] + draw(_NOISE) + value[at + draw(st.integers(0, 3)) :]


_TEXT = st.text(max_size=6) | st.sampled_from([*reading.MEANINGS, "r1", "e1", "apr_1", "completed", "request.expired"])
_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | _TEXT
_MEMBERS = st.sampled_from(reading.NAMES) | st.text(max_size=3)


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(_MEMBERS, inner).map(lambda each: f"{_json(each[0])}:{each[1]}")
    return st.lists(inner, max_size=3).map(lambda each: f"[{','.join(each)}]") | _braced(pair)


def _braced(pair: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(pair, max_size=6).map(lambda each: f"{{{','.join(each)}}}")


def _json(value: object) -> str:
    return json.dumps(value)


_DOCUMENTS = st.recursive(_LEAVES.map(_json), _containers, max_leaves=12)
_WORD = _TEXT.map(_json) | _LEAVES.map(_json)
_FLAT = st.tuples(_WORD, _WORD).map(lambda each: f'{{"requestId":{each[0]},"decision":{each[1]}}}')
_ENVELOPE = st.tuples(_WORD, _WORD, _WORD, _DOCUMENTS).map(
    lambda each: '{"type":%s,"data":{"id":%s,"response":{"decision":%s}},"response":%s}' % each  # noqa: UP031
)
_ADDRESSES = st.ip_addresses() | st.sampled_from(calling.EDGES)
_HOSTS = (
    st.sampled_from(calling.HOSTS)
    | _ADDRESSES.map(lambda each: f"[{each}]" if each.version == 6 else str(each))
    | st.from_regex(r"(?:0x)?[0-9a-f]{1,10}(?:\.(?:0x)?[0-9a-f]{1,4}){0,4}\.?", fullmatch=True)
    | st.text(max_size=12)
)
_URLS = st.tuples(
    st.sampled_from(calling.SCHEMES[:2]) | st.sampled_from(calling.SCHEMES),
    st.just("") | st.sampled_from(calling.USERS),
    _HOSTS,
    st.sampled_from(calling.PORTS),
    st.sampled_from(calling.TAILS) | st.text(max_size=6),
).map("".join)
_POLICIES = st.sampled_from(sorted(calling.POLICIES))
_ANSWERS = st.lists(_ADDRESSES.map(str), min_size=1, max_size=3)
_PORTS = st.sampled_from(calling.JUDGED_PORTS)
_CALLED = st.sampled_from(["agent.example", "agent.internal", "localhost"])

PROPERTIES = {
    "signatures": Property(webhooks(), signing.judge),
    "signatures-sdk": Property(webhooks(), signing.compare),
    "decisions": Property(
        (_FLAT | _ENVELOPE | _DOCUMENTS).map(lambda text: text.encode(errors="surrogatepass")), reading.judge_decision
    ),
    "json": Property(_DOCUMENTS.map(str.encode), reading.judge_json),
    "urls": Property(st.tuples(_URLS, _POLICIES), lambda each: calling.judge_url(*each)),
    "addresses": Property(st.tuples(_CALLED, _PORTS, _ANSWERS, _POLICIES), lambda each: calling.judge_answers(*each)),
}


def holds(name: str, examples: int) -> None:
    """Try a property on the same examples each time; what fails is made small and raised."""

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(PROPERTIES[name].inputs)
    def judged(value: Any) -> None:
        PROPERTIES[name].judge(value)

    judged()


def examples_of(name: str, number: int, at: int, tally: Tally) -> None:
    """Try a property on many examples from a seed, and count."""
    judge = PROPERTIES[name].judge

    @seed(at)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(PROPERTIES[name].inputs)
    def judged(value: Any) -> None:
        tally.judge(judge, value)

    judged()
