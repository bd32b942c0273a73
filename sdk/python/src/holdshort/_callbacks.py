"""A callback from bytes to the pause it is for; the signature is proven with the secret of that one request."""

from collections.abc import Mapping
from typing import Any

import msgspec

from holdshort import _webhooks
from holdshort._pauses import Key, Registry
from holdshort._wire import ApprovalResult, Decision


class _Told(msgspec.Struct):
    """What a callback says."""

    execution_id: str
    approval_request_id: str
    approval_id: str
    round: int
    decision: Decision
    feedback: str = ""
    data: Any = None


def receive(registry: Registry, headers: Mapping[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
    """Take one callback.

    The timestamp is not compared with a clock: the secret lives for one request, and an agent whose clock is wrong
    must resume all the same.

    Args:
        registry: who waits.
        headers: names in lower case.
        body: the bytes as received.

    Returns:
        Status and JSON: 200 with whether a pause waits or waited for it, 401 for a wrong signature, 400 for a body
        that is none.
    """
    try:
        told = msgspec.json.decode(body, type=_Told)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return 400, {"error": "invalid_body", "message": "this is no approval callback"}
    secret = registry.secret(Key(told.execution_id, told.approval_request_id, told.round))
    if secret is None:
        return 200, {"resolved": False}
    if not _webhooks.standard_holds(headers, body, secret):
        return 401, {"error": "invalid_signature", "message": "the signature does not match this request's secret"}
    return 200, {"resolved": registry.resolve(_result(told))}


def _result(told: _Told) -> ApprovalResult:
    return ApprovalResult(**{name: getattr(told, name) for name in _Told.__struct_fields__})
