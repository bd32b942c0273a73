"""Ids from paths: one that cannot be one of ours names nothing, so it is not found."""

from controlplane.domain.errors import ApprovalNotFound, ExecutionNotFound, FieldFault
from controlplane.domain.ids import check_name, names_approval


def path_name(execution_id: str) -> str:
    """An execution's id from the path.

    Raises:
        ExecutionNotFound: it cannot be one.
    """
    try:
        return check_name("execution_id", execution_id)
    except FieldFault:
        raise ExecutionNotFound from None


def path_approval(approval_id: str) -> str:
    """An approval's id from the path.

    Raises:
        ApprovalNotFound: it cannot be one.
    """
    if not names_approval(approval_id) or not approval_id.isascii() or not approval_id.isprintable():
        raise ApprovalNotFound
    return approval_id
