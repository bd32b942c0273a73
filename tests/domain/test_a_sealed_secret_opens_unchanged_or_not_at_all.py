"""What stands in the database may have been changed: it opens as it was sealed, for its owner, or not at all."""

import pytest

from controlplane.domain.vault import MasterKey, SecretUnreadable, Vault, parse_master_keys

OWN, OTHER = MasterKey("own", b"1" * 32), MasterKey("other", b"2" * 32)
SEALED = Vault([OWN]).seal("a-secret", "apr_1", b"n" * 12)
BODY = SEALED.rpartition(".")[2]


def test_it_opens_for_its_owner_under_any_key_that_is_there() -> None:
    assert Vault([OTHER, OWN]).open(SEALED, "apr_1") == "a-secret"


@pytest.mark.parametrize(
    "text",
    [
        "hsv1.",
        "hsv1.own",
        "hsv1.own.",
        f"hsv1.other.{BODY}",
        f"hsv1.nobody.{BODY}",
        f"hsv1.own.{BODY[:-4]}",
        f"hsv1.own.{BODY[4:]}",
        f"hsv1.own.{BODY}é",
        f"hsv1.own.é{BODY}",
        f"hsv1.own.{BODY}\udc80",
        f"hsv1.own.{BODY}\n",
        f"hsv1.own.{BODY[:16]}",
        "hsv1.own.AAAA",
    ],
)
def test_what_was_changed_does_not_open(text: str) -> None:
    with pytest.raises(SecretUnreadable):
        Vault([OTHER, OWN]).open(text, "apr_1")


@pytest.mark.parametrize("owner", ["apr_2", "", "APR_1"])
def test_it_opens_for_nobody_else(owner: str) -> None:
    with pytest.raises(SecretUnreadable):
        Vault([OWN]).open(SEALED, owner)


@pytest.mark.parametrize("raw", ["", "é", "x", "AAAA", "\udc80", "AAAA,", "key"])
def test_a_master_key_that_is_none_says_what_one_is(raw: str) -> None:
    with pytest.raises(ValueError, match="must be base64 of 32 random bytes"):
        parse_master_keys(raw)
