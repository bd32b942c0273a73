"""What an answer came to: applied, or what stands; kept with a webhook, so that its repeats get the first answer."""

from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Case
from controlplane.domain.executions import ExecutionStatus


class Outcome(Struct, frozen=True, kw_only=True):
    """An answer's effect on the approval that it meant; `new_status` is the execution's at the decision that stands."""

    applied: bool
    approval_id: str
    execution_id: str
    approval_request_id: str
    round: int
    approval_status: ApprovalStatus
    new_status: ExecutionStatus
    execution_status: ExecutionStatus


def outcome_of(case: Case, approval_id: str, *, applied: bool) -> Outcome:
    """The outcome for an approval that is final in this case."""
    approval = case.approval(approval_id)
    return Outcome(
        applied=applied,
        approval_id=approval_id,
        execution_id=approval.execution_id,
        approval_request_id=approval.approval_request_id,
        round=approval.round,
        approval_status=approval.status,
        new_status=approval.new_status or case.execution.status,
        execution_status=case.execution.status,
    )
