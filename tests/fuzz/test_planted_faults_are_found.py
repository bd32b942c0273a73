"""An oracle that finds nothing proves nothing: each of these faults, put in, is found by what a short run tries."""

import hmac
import json
import re
from collections.abc import Callable
from itertools import islice
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from holdshort import _callbacks, _webhooks

from controlplane import settings
from controlplane.domain import egress, egress_ranges, hosts, json_text, keys, signatures, vault
from controlplane.domain.decisions import Decision
from controlplane.domain.egress_ranges import CALLABLE, Kind
from controlplane.edge import deps
from controlplane.http import inbound
from tests.fuzz.draw import made
from tests.fuzz.outcomes import Tally
from tests.fuzz.targets import BY_NAME
from tests.fuzz.test_hostile_bytes_are_refused import QUICK, SEED

FALSE_ACCEPT, DISAGREEMENT, UNCAUGHT = "false accept", "disagreement", "uncaught"


class Planted(NamedTuple):
    """A fault: in which module what stands instead of which name, and which target finds it as what."""

    target: str
    module: Any
    name: str
    instead: Any
    found_as: str = FALSE_ACCEPT


class _ForAnybody:
    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def decrypt(self, nonce: bytes, data: bytes, _: bytes) -> bytes:
        return self._cipher.decrypt(nonce, data, b"apr_1")


def _any_letter(word: object) -> Decision:
    return inbound.known(word.strip().casefold() if isinstance(word, str) else word) or Decision.REJECTED


def _same_start(one: bytes, other: bytes) -> bool:
    return one[:1] == other[:1]


def _signed_without(key: bytes, _: bytes, body: bytes) -> bytes:
    return hmac.digest(key, body, "sha256")


def _decoded_only(secret: str) -> bytes:
    return b"" if secret.endswith("====") else signatures._standard_key(secret)


def _first_answer(called: egress.Target, answers: Any) -> list[Any]:
    return [egress.read(each) for each in islice(answers, 1)] if called.literal is None else [called.literal]


def _without_checksum(text: str) -> keys.Presented | None:
    found = re.fullmatch(r"hs_([0-9a-z]{12})_([0-9a-z]{26})[0-9a-z]{6}", text)
    return keys.Presented(found[1], keys._digest(found[2])) if found else None


def _lenient(_: Any) -> json_text._Decoders:
    return json_text._Decoders(near=json.JSONDecoder(), far=json.JSONDecoder())


HMAC = SimpleNamespace(new=hmac.new, compare_digest=_same_start)
DOTS = re.compile(rb"[A-Za-z0-9_.-]{1,128}")
EVERYTHING: Callable[..., bool] = lambda *_, **__: True  # noqa: E731
NOTHING: Callable[..., None] = lambda *_, **__: None  # noqa: E731

FAULTS = {
    "a signature counts by its first byte": Planted("signatures", signatures, "hmac", HMAC),
    "a stale signature is as good": Planted("signatures", signatures._Candidate, "fresh", EVERYTHING),
    "the time is not signed": Planted("signatures", signatures, "_mac", _signed_without),
    "a time may have a sign": Planted("signatures", signatures, "_SECONDS", re.compile(rb"[0-9+ _.-]{1,13}")),
    "an id may have a dot": Planted("signatures", signatures, "_WEBHOOK_ID", DOTS),
    "base64 in two spellings": Planted("signatures", signatures, "_STANDARD", re.compile(rb"v1,([A-Za-z0-9+/]{43}=)")),
    "a signature that is far off is stale": Planted(
        "signatures", signatures, "SignatureInvalid", signatures.SignatureStale
    ),
    "a key of no bytes": Planted("signatures-sdk", _webhooks, "standard_key", _decoded_only, DISAGREEMENT),
    "the SDK takes other spaces": Planted("signatures-sdk", _webhooks, "_SPACE", None, DISAGREEMENT),
    "every word approves": Planted("decisions", inbound, "canonical", lambda _: Decision.APPROVED),
    "letters beyond ASCII approve": Planted("decisions", inbound, "canonical", _any_letter),
    "the last of two names wins": Planted("json", json_text, "_PLAIN", _lenient(None)),
    "any depth": Planted("json", json_text, "_check_depth", NOTHING),
    "half a character": Planted("json", json_text, "_check_escapes", NOTHING),
    "a round is compared with a text": Planted("decisions", inbound, "MAX_ROUND", "1", UNCAUGHT),
    "numbers count as names": Planted("urls", hosts, "_NUMBER", re.compile("(?!)")),
    "anything beside brackets": Planted("urls", egress, "_AUTHORITY", re.compile(".*", re.DOTALL), DISAGREEMENT),
    "the first answer speaks for all": Planted("addresses", egress, "_addresses", _first_answer),
    "a list lets everything through": Planted("addresses", egress, "_BY_LIST", frozenset(Kind)),
    "a key without its checksum": Planted("keys", keys, "read", _without_checksum),
    "a key without its secret": Planted("keys", keys, "holds", EVERYTHING),
    "a secret opens for anybody": Planted("sealed", vault, "AESGCM", _ForAnybody),
    "settings are told as they are": Planted("settings", settings, "_masked", lambda _, value: repr(value)),
    "a callback needs no signature": Planted("callbacks-sdk", _callbacks._webhooks, "standard_holds", EVERYTHING),
    "a fence of any size": Planted("request-headers", deps, "_LARGEST_FENCE", 2**64),
}


def found_by(target: str, kind: str) -> Tally:
    """A short run, to its first fault of a kind."""
    tally = Tally(BY_NAME[target])
    for data in made(SEED, QUICK):
        tally.take(data)
        if tally.count(kind):
            break
    return tally


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    monkeypatch.setattr(fault.module, fault.name, fault.instead)
    tally = found_by(fault.target, fault.found_as)
    assert tally.count(fault.found_as), tally.words


def missed(version: int, network: str) -> Any:
    """The table of addresses with one row left out."""
    rows = {4: egress_ranges._V4, 6: egress_ranges._V6}[version]
    return egress_ranges._Table(tuple(row for row in rows if row[0] != network))


def opening_rows() -> list[tuple[int, str]]:
    """Rows without which something could be called that never is, or only by permission."""
    rows = [(4, *row) for row in egress_ranges._V4] + [(6, *row) for row in egress_ranges._V6]
    found = []
    for version, network, kind in rows[: len(egress_ranges._V4) - 1] + rows[len(egress_ranges._V4) : -1]:
        first = int(egress_ranges.ip_network(network).network_address)
        if kind is not Kind.PUBLIC and missed(version, network).kind(first) in CALLABLE - {kind}:
            found.append((version, network))
    return found


@pytest.mark.parametrize("row", opening_rows(), ids=lambda row: row[1])
def test_a_missing_range_is_found(row: tuple[int, str], monkeypatch: pytest.MonkeyPatch) -> None:
    version, network = row
    monkeypatch.setitem(egress_ranges._TABLES, version, missed(version, network))
    tally = found_by("addresses", FALSE_ACCEPT)
    assert tally.count(FALSE_ACCEPT), tally.words
