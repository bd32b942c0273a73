"""What the tools return, as their output schemas say it."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from controlplane.cli.mcp.gateway import Document

Status = Literal["pending", "approved", "rejected", "request_changes", "expired", "withdrawn"]

NEXT: dict[str, str] = {
    "pending": "Nobody has decided yet. Call wait_for_approval with this approval_id, as often as it takes; you may do "
    "other work in between, but not what was asked about.",
    "approved": "Approved: go on with exactly what was asked about.",
    "rejected": "Rejected: do not do it. `feedback` may say why. To propose something else, ask with a new "
    "approval_request_id.",
    "request_changes": "Changes are wanted: do as `feedback` says, then ask again with this approval_request_id and "
    "execution_id.",
    "expired": "Nobody answered in time. That is not an approval: do not do it.",
    "withdrawn": "The question was withdrawn. That is not an approval: do not do it.",
}
ANSWERED = "Answered: the answer is in `values`."
CHANGED = "Approved with changes: do what `values` says, and not what you asked about."


class Standing(BaseModel):
    """Where an approval or a durable question stands."""

    status: Status
    approved: bool = Field(description="true only when a person approved; never on expiry, and not for an answer")
    answered: bool = Field(description="true when a person answered a question: read `values`")
    approval_id: str = Field(description="continue with it: wait_for_approval")
    approval_request_id: str = Field(description="asking again under it, with execution_id, finds what stands")
    execution_id: str
    round: int
    url: str | None = Field(description="the page where a person decides")
    expires_at: str
    feedback: str = Field(description="the person's own words to you, possibly empty")
    values: Any = Field(default=None, description="what the person answered or filled in")
    data: Any = Field(default=None, description="the decision's own data, where its sender gave some")
    next_step: str


def standing(document: Document, execution_id: str) -> Standing:
    """A status of the API as a tool's result.

    Args:
        document: of an ask, a status or a wait.
        execution_id: of the run that asked; the answer to an ask does not name it.
    """
    status, response = document["status"], document["response"] or {}
    data = response.get("data")
    filled = data if status == "approved" and isinstance(data, dict) and "values" in data else {}
    # With what was asked beside it, it is an approval with changes; alone it is an answer, which may be a no.
    answered = bool(filled) and "original" not in filled
    return Standing(
        status=status,
        approved=status == "approved" and not answered,
        answered=answered,
        approval_id=document["approval_id"],
        approval_request_id=document["approval_request_id"],
        execution_id=execution_id,
        round=document["round"],
        url=document.get("request_url") or document.get("approval_request_url"),
        expires_at=document["expires_at"],
        feedback=response.get("feedback", ""),
        values=filled.get("values"),
        data=data,
        next_step=ANSWERED if answered else CHANGED if _changed(filled) else NEXT[status],
    )


def _changed(filled: Mapping[str, Any]) -> bool:
    return bool(filled) and filled["values"] != filled["original"]
