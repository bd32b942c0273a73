"""Refusals as an agent can act on them."""

from controlplane.cli.mcp.gateway import Refused, Unreachable
from controlplane.domain.errors import HoldshortError

NO_ANSWER = "No answer is not a yes: do not act as if it were."
ADVICE: dict[str, str] = {
    "request_expired": f"Nobody answered in time. {NO_ANSWER} Ask under another unique_id, or go on without.",
    "request_cancelled": f"The question was withdrawn. {NO_ANSWER} Ask under another unique_id, or go on without.",
    "duplicate_request": "Another call waits under this unique_id. Let that one end, or ask under another.",
    "request_id_used": "This unique_id was used before. Ask under another one, or leave it out.",
    "too_many_questions": "Many questions wait already. Wait until some are answered.",
    "approval_request_conflict": "Something else was asked under this approval_request_id. Ask under another one.",
    "invalid_state": "The execution has ended. Leave execution_id out, and ask under another approval_request_id.",
    "approval_not_found": "Check the approval_id: it begins with apr_, as request_approval and ask return it.",
    "not_authenticated": "The person who set this server up must set HOLDSHORT_API_KEY; tell them.",
    "invalid_key": "The person who set this server up must correct HOLDSHORT_API_KEY; tell them.",
    "not_allowed": "This server's API key may not do that: it needs the scope `agent`. Tell the person who set it up.",
}


def told(fault: Refused | Unreachable | HoldshortError, again: str) -> str:
    """What an agent reads.

    Args:
        fault: what happened.
        again: how the same call is safely repeated, for a control plane that is away.
    """
    if isinstance(fault, Unreachable):
        return f"unreachable: {fault.message}. {again}"
    return " ".join(filter(None, (f"{fault.code}: {fault.message}", ADVICE.get(fault.code, ""))))
