"""Secrets are read from one setting, faults are named, and no repr or message shows a secret."""

import pytest

from controlplane.domain.errors import FieldFault
from controlplane.domain.webhook_secrets import WebhookSecret, parse, tried, untried, weak


def test_repr_and_faults_show_no_secret() -> None:
    assert "canary" not in repr(parse("legal:canary-canary-canary"))
    assert "legal" in repr(parse("legal:canary-canary-canary"))
    with pytest.raises(FieldFault) as caught:
        parse("canary-canary-canary,")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (" ", "empty entry"),
        ("a,,b", "empty entry"),
        ("legal: ", "empty secret"),
        ("legal:whsec_", "empty secret"),
        ("whsec_", "empty secret"),
        ("legal:abc\udc80", "a secret is not UTF-8 text"),
    ],
)
def test_a_fault_stops_the_start(value: str, rule: str) -> None:
    with pytest.raises(FieldFault) as caught:
        parse(value)
    assert (caught.value.field, caught.value.rule) == ("HOLDSHORT_WEBHOOK_SECRETS", rule)


@pytest.mark.parametrize(
    ("value", "sender", "secret"),
    [
        ("a-1:b:c", "a-1", "b:c"),
        ("1a:secret", "", "1a:secret"),
        (":secret", "", ":secret"),
        (f"{'n' * 33}:secret", "", f"{'n' * 33}:secret"),
        (f"{'n' * 32}:secret", "n" * 32, "secret"),
        ("a_b:secret", "", "a_b:secret"),
        ("s\u00e9cret", "", "s\u00e9cret"),
    ],
)
def test_only_a_plain_lower_case_name_is_split_off(value: str, sender: str, secret: str) -> None:
    assert parse(value) == (WebhookSecret(sender, secret),)


def test_short_secrets_are_named() -> None:
    assert weak(parse("a:123456789012345,b:1234567890123456,short")) == ["a", "(unnamed)"]


def test_secrets_past_the_fifth_of_a_sender_are_named() -> None:
    assert untried(parse("a,b,c,d,e,late:f,x:g")) == []
    assert untried(parse("a,b,c,d,e,late:f,g")) == ["(unnamed)"]
    assert untried(parse(f"{','.join(f'late:{number}' for number in range(7))},a,x:b")) == ["late", "late"]


def test_secrets_past_the_fiftieth_of_all_are_named_the_oldest_first_to_go() -> None:
    each_two = ",".join(f"s{number}:{age}-{number}" for number in range(26) for age in ("new", "old"))
    assert untried(parse(each_two)) == ["s24", "s25"]
    assert [secret.secret for secret in tried(parse("a:1,a:2,b:3,b:4"))] == ["1", "3", "2", "4"]
