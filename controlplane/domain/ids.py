"""Prefixed ids that sort by the time they were made, and the rules for ids that callers choose."""

import re
from datetime import datetime

from controlplane.domain.errors import FieldFault

APPROVAL_PREFIX = "apr_"
DELIVERY_PREFIX = "dlv_"
EXECUTION_PREFIX = "exec_"
INSTANCE_PREFIX = "inst_"
NOTE_PREFIX = "note_"
PARKED_PREFIX = "prk_"
RUN_PREFIX = "run_"

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,128}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def time_ordered(prefix: str, at: datetime, entropy: bytes) -> str:
    """An id of 48 bits of milliseconds and 80 bits of entropy in Crockford's base 32, after its prefix.

    Args:
        prefix: what kind of thing is named, such as `apr_`.
        at: the moment the thing is made, time zone aware.
        entropy: ten random bytes.
    """
    number = (int(at.timestamp() * 1000) << 80) | int.from_bytes(entropy[:10], "big")
    digits = [_ALPHABET[(number >> shift) & 31] for shift in range(125, -5, -5)]
    return prefix + "".join(digits)


def check_name(field: str, value: str) -> str:
    """Return an execution's, node's or short-lived question's id unchanged, or raise `FieldFault`."""
    if not _NAME.fullmatch(value):
        raise FieldFault(field, "must be 1-128 characters of A-Z a-z 0-9 . _ ~ : -")
    if not value.strip("."):
        raise FieldFault(field, "must not be of dots only, which paths lose on their way")
    return value


def check_request_id(field: str, value: str) -> str:
    """Return a caller's approval_request_id unchanged, or raise `FieldFault`."""
    if not 1 <= len(value) <= 256:
        raise FieldFault(field, "must be 1-256 characters")
    if _CONTROL.search(value):
        raise FieldFault(field, "must not contain control characters")
    if not value.strip():
        raise FieldFault(field, "must not be blank")
    if value.startswith(APPROVAL_PREFIX):
        raise FieldFault(field, "must not begin with apr_, which marks the control plane's own ids")
    return value


def names_approval(value: str) -> bool:
    """True when an id in a request id's place is the control plane's own approval_id."""
    return value.startswith(APPROVAL_PREFIX)
