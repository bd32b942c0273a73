"""One good and fresh signature proves the sender; everything else is refused in one of four ways."""

import base64
import hashlib
import hmac
import time

import pytest

from controlplane.domain.errors import (
    HoldshortError,
    SignatureInvalid,
    SignatureMissing,
    SignatureStale,
    WebhookNotConfigured,
)
from controlplane.domain.signatures import Verified, sign_hex, sign_standard, sign_timestamped, verify
from controlplane.domain.webhook_secrets import WebhookSecret

NOW = 1_790_000_000
BODY = b'{"requestId":"r1","decision":"approved"}'
TEXT = "a-secret-of-21-letters"
WHSEC = "whsec_" + base64.b64encode(bytes(range(32))).decode()
LEGAL = WebhookSecret("legal", TEXT)
REVIEW = WebhookSecret("review", WHSEC)
WRONG_HEX = b"0" * 64
WRONG_BASE64 = b"v1," + base64.b64encode(bytes(32))

Headers = list[tuple[bytes, bytes]]


def plain(value: str, name: str = "X-Webhook-Signature") -> tuple[bytes, bytes]:
    return name.encode(), value.encode()


def standard(secret: str = WHSEC, *, webhook_id: str = "msg_1", timestamp: int = NOW, body: bytes = BODY) -> Headers:
    value = sign_standard(secret, body, webhook_id=webhook_id, timestamp=timestamp)
    return [
        (b"webhook-id", webhook_id.encode()),
        (b"webhook-timestamp", str(timestamp).encode()),
        (b"webhook-signature", value.encode()),
    ]


def outcome(headers: Headers, *secrets: WebhookSecret, body: bytes = BODY) -> Verified | type[HoldshortError]:
    try:
        return verify(headers, body, secrets=secrets or (LEGAL, REVIEW), now=NOW)
    except HoldshortError as error:
        return type(error)


def test_each_scheme_names_the_sender_and_only_standard_webhooks_an_id() -> None:
    assert outcome([plain(sign_hex(TEXT, BODY))]) == Verified("legal", "body", None)
    assert outcome([plain(sign_timestamped(TEXT, BODY, timestamp=NOW))]) == Verified("legal", "timestamped", None)
    assert outcome(standard()) == Verified("review", "standard", "msg_1")
    assert outcome(standard(TEXT)) == Verified("legal", "standard", "msg_1")


def test_an_id_that_nobody_signed_is_not_reported() -> None:
    headers = [plain(sign_hex(TEXT, BODY)), (b"webhook-id", b"msg_1"), (b"webhook-timestamp", b"%d" % NOW)]
    assert outcome(headers) == Verified("legal", "body", None)
    assert outcome([*headers, (b"webhook-signature", WRONG_BASE64)]) == Verified("legal", "body", None)


def test_no_secret_is_told_before_anything_else() -> None:
    for headers in ([], [plain("")], [plain(sign_hex("", BODY))]):
        with pytest.raises(WebhookNotConfigured):
            verify(headers, BODY, secrets=(), now=NOW)


@pytest.mark.parametrize("headers", [[], [plain("")], [plain(" \t ")], [(b"webhook-signature", b"")], standard()[:2]])
def test_no_signature_is_missing(headers: Headers) -> None:
    assert outcome(headers) is SignatureMissing


def test_an_empty_header_beside_a_good_one_does_not_matter() -> None:
    assert outcome([plain(""), plain(sign_hex(TEXT, BODY), "x-hub-signature-256")]) == Verified("legal", "body", None)


@pytest.mark.parametrize(("age", "expected"), [(-301, None), (-300, 1), (0, 1), (300, 1), (301, None)])
def test_the_boundary_is_exact_on_both_sides(age: int, expected: int | None) -> None:
    for headers in ([plain(sign_timestamped(TEXT, BODY, timestamp=NOW - age))], standard(timestamp=NOW - age)):
        found = outcome(headers)
        assert isinstance(found, Verified) if expected else found is SignatureStale


def test_a_fresh_signature_beside_a_stale_one_is_proof_in_either_order() -> None:
    stale, fresh = (plain(sign_timestamped(TEXT, BODY, timestamp=at)) for at in (NOW - 301, NOW))
    assert outcome([stale, fresh]) == outcome([fresh, stale]) == Verified("legal", "timestamped", None)
    assert outcome([stale, plain(WRONG_HEX.decode())]) is SignatureStale


@pytest.mark.parametrize(
    "time_text",
    ["", "-1", "+1", "1e9", "0x6a", "1790000000.0", "1790000000000000", "1 790000000", "\u0661", "inf", str(10**20)],
)
def test_odd_times_are_invalid_even_when_signed(time_text: str) -> None:
    mac = hmac.new(TEXT.encode(), time_text.encode() + b"." + BODY, hashlib.sha256).hexdigest()
    assert outcome([plain(f"t={time_text},v1={mac}")]) is SignatureInvalid
    given = sign_standard(TEXT, time_text.encode() + b"." + BODY, webhook_id="m", timestamp=1)
    headers = [
        (b"webhook-id", b"m"),
        (b"webhook-timestamp", time_text.encode()),
        (b"webhook-signature", given.encode()),
    ]
    assert outcome(headers) is SignatureInvalid


def test_milliseconds_are_stale_not_fresh() -> None:
    assert outcome([plain(sign_timestamped(TEXT, BODY, timestamp=999_999_999_999))]) is SignatureStale
    assert outcome([plain(sign_timestamped(TEXT, BODY, timestamp=NOW * 1000))]) is SignatureInvalid


def test_the_time_is_signed_as_it_was_sent() -> None:
    text = f"00{NOW}"
    mac = hmac.new(TEXT.encode(), text.encode() + b"." + BODY, hashlib.sha256).hexdigest()
    assert outcome([plain(f"t={text},v1={mac}")]) == Verified("legal", "timestamped", None)
    assert outcome([plain(f"t={NOW},v1={mac}")]) is SignatureInvalid


def test_two_times_in_one_header_are_refused() -> None:
    good = sign_timestamped(TEXT, BODY, timestamp=NOW)
    assert outcome([plain(f"{good},t={NOW}")]) is SignatureInvalid
    assert outcome([plain(f"{good}, v1={'0' * 64}")]) == Verified("legal", "timestamped", None)


def test_repeated_header_lines_are_each_a_candidate() -> None:
    good = sign_hex(TEXT, BODY)
    assert outcome([plain(WRONG_HEX.decode()), plain(good)]) == Verified("legal", "body", None)
    lines = standard()
    for extra in ((b"webhook-id", b"msg_0"), (b"webhook-timestamp", b"1"), (b"webhook-signature", WRONG_BASE64)):
        assert outcome([extra, *lines]) == outcome([*lines, extra]) == Verified("review", "standard", "msg_1")


def test_ten_signatures_are_tried_and_no_eleventh() -> None:
    good = sign_timestamped(TEXT, BODY, timestamp=NOW)
    wrong = [f"v1={index:064x}" for index in range(10)]
    time_field, mac_field = good.split(",")
    assert outcome([plain(",".join([time_field, *wrong[:9], mac_field]))]) == Verified("legal", "timestamped", None)
    assert outcome([plain(",".join([time_field, *wrong, mac_field]))]) is SignatureInvalid
    assert outcome([*[plain(WRONG_HEX.decode())] * 10, plain(sign_hex(TEXT, BODY))]) is SignatureInvalid


def of_one(count: int, sender: str = "legal") -> list[WebhookSecret]:
    return [WebhookSecret(sender, f"{sender}-secret-{index}") for index in range(count)]


def of_each(count: int) -> list[WebhookSecret]:
    return [WebhookSecret(f"s{index}", f"secret-{index}") for index in range(count)]


def test_five_secrets_of_a_sender_are_tried_and_no_sixth() -> None:
    headers = [plain(sign_hex(TEXT, BODY))]
    assert outcome(headers, *of_one(4), LEGAL) == Verified("legal", "body", None)
    assert outcome(headers, *of_one(5), LEGAL) is SignatureInvalid
    assert outcome(headers, *of_one(4), *of_one(5, "other"), LEGAL) == Verified("legal", "body", None)
    assert outcome(headers, *of_one(5, ""), LEGAL) == Verified("legal", "body", None)
    assert outcome(headers, *of_one(5, ""), WebhookSecret("", TEXT)) is SignatureInvalid


def test_fifty_senders_are_tried_and_no_more() -> None:
    headers = [plain(sign_hex(TEXT, BODY))]
    assert outcome(headers, *of_each(49), LEGAL) == Verified("legal", "body", None)
    assert outcome(headers, *of_each(50), LEGAL) is SignatureInvalid


def test_the_newest_of_every_sender_is_tried_before_any_older_one() -> None:
    new = [WebhookSecret(each.sender, each.secret.replace("secret", "new")) for each in of_each(30)]
    rotating = [each for pair in zip(new, of_each(30), strict=True) for each in pair]
    seen = [outcome([plain(sign_hex(each.secret, BODY))], *rotating) for each in rotating]
    held = [isinstance(each, Verified) for each in seen]
    assert held == [True] * 40 + [True, False] * 10
    assert {each.sender for each in seen if isinstance(each, Verified)} == {each.sender for each in new}


def hmacs(signatures: int, secrets: int, good: tuple[int, int]) -> bool:
    """Whether the signature `good[0]` is found that the secret `good[1]` made, among so many of another time each."""
    keys = of_each(secrets)
    headers = [plain(f"t={NOW + index},v1={'0' * 64}") for index in range(signatures)]
    number, key = good
    headers[number] = plain(sign_timestamped(keys[key].secret, BODY, timestamp=NOW + number))
    return isinstance(outcome(headers, *keys), Verified)


def test_a_post_costs_fifty_hmacs_and_no_more() -> None:
    assert hmacs(10, 5, (9, 4))
    assert hmacs(9, 6, (8, 1))
    assert not hmacs(9, 6, (8, 2))
    assert hmacs(5, 12, (4, 1))
    assert not hmacs(5, 12, (4, 2))
    assert hmacs(2, 50, (0, 49))
    assert not hmacs(2, 50, (1, 0))


def test_signatures_of_the_same_bytes_cost_once() -> None:
    good = sign_timestamped(of_each(50)[49].secret, BODY, timestamp=NOW)
    time_field, mac_field = good.split(",")
    wrong = [f"v1={index:064x}" for index in range(9)]
    found = outcome([plain(",".join([time_field, *wrong, mac_field]))], *of_each(50))
    assert found == Verified("s49", "timestamped", None)
    # Where all are spent on one time, a later signature of that time is still compared, and one of another is not.
    spent = plain(f"{time_field},v1={'0' * 64}")
    other = plain(sign_timestamped(of_each(50)[0].secret, BODY, timestamp=NOW + 1))
    assert outcome([spent, other, plain(good)], *of_each(50)) == Verified("s49", "timestamped", None)
    assert outcome([spent, other], *of_each(50)) is SignatureInvalid


def test_the_first_of_two_equal_secrets_is_named() -> None:
    twin = WebhookSecret("twin", TEXT)
    assert outcome([plain(sign_hex(TEXT, BODY))], twin, LEGAL) == Verified("twin", "body", None)
    assert outcome([plain(sign_hex(TEXT, BODY))], LEGAL, twin) == Verified("legal", "body", None)


def test_standard_webhooks_is_named_where_several_schemes_hold() -> None:
    assert outcome([plain(sign_hex(TEXT, BODY)), *standard()]) == Verified("review", "standard", "msg_1")


@pytest.mark.parametrize("text", ["whsec_test_secret", "whsec_abc", "whsec_\u00e9", "whsec_"])
def test_a_whsec_secret_that_is_no_base64_is_its_own_bytes(text: str) -> None:
    mac = hmac.new(text.encode(), b"msg_1.%d." % NOW + BODY, hashlib.sha256).digest()
    headers = standard(text)
    assert headers[2][1] == b"v1," + base64.b64encode(mac)
    assert outcome(headers, WebhookSecret("odd", text)) == Verified("odd", "standard", "msg_1")


def test_each_signature_has_one_text() -> None:
    lines = standard()
    value = lines[2][1]
    for other in (value[:-2] + b"==", value.rstrip(b"="), value + b"=", value.replace(b"v1,", b"V1,")):
        if other != value:
            assert outcome([*lines[:2], (b"webhook-signature", other)]) is SignatureInvalid
    last = value[-2:-1]
    for digit in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/":
        if bytes([digit]) != last:
            changed = value[:-2] + bytes([digit]) + b"="
            assert outcome([*lines[:2], (b"webhook-signature", changed)]) is SignatureInvalid


HOSTILE = [
    b"\x00",
    b"\xff" * 64,
    b"sha256=",
    b"sha256=sha256=" + WRONG_HEX,
    b"SHA256=" + WRONG_HEX,
    b"t=,v1=",
    b"t",
    b",",
    b"=" * 30000,
    b"," * 30000,
    b"v1," * 10000,
    b"t=1," * 8000,
    WRONG_HEX + b"\n",
    "\u0660".encode() * 32,
    b"0x" + b"0" * 62,
    b" ".join([WRONG_HEX[:32]] * 2),
    b"v1," + b"A" * 43,
    b"v1," + b"A" * 44,
    b"v1," + b"A" * 30000,
    b"v1a," + b"A" * 43 + b"=",
]


@pytest.mark.parametrize("value", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_header_is_invalid_and_never_another_exception(value: bytes) -> None:
    for name in (b"X-Webhook-Signature", b"X-HUB-SIGNATURE-256", b"x-hax-signature"):
        assert outcome([(name, value)]) is SignatureInvalid
    lines = standard()
    for index, (name, _) in enumerate(lines):
        assert outcome([*lines[:index], (name, value), *lines[index + 1 :]]) is SignatureInvalid


@pytest.mark.parametrize("webhook_id", ["", "a.b", "a b", "a\u00e9", "a" * 129])
def test_ids_that_could_split_in_two_ways_are_refused(webhook_id: str) -> None:
    assert outcome(standard(webhook_id=webhook_id)) is SignatureInvalid


def test_the_dearest_forgery_is_judged_within_a_second() -> None:
    body = b"x" * (1 << 20)
    headers = [plain(f"t={NOW + index},v1={'0' * 64}") for index in range(40)]
    secrets = [WebhookSecret(str(index), f"secret-{index}") for index in range(9)]
    before = time.perf_counter()
    assert outcome(headers, *secrets, body=body) is SignatureInvalid
    assert time.perf_counter() - before < 1
