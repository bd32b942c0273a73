"""An answer to a question with a form: what is kept of it, or why it is none."""

from msgspec.structs import replace

from controlplane.domain import json_text
from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer
from controlplane.domain.digests import canonical
from controlplane.domain.form_kinds import Form
from controlplane.domain.form_schemas import WHOLE, unfit
from controlplane.domain.form_values import response_of, values_of


def answered(form: Form | None, answer: Answer, payload: bytes | None) -> Answer:
    """The answer with its values judged, and put into its response.

    Args:
        form: what was asked for; None when nothing was.
        answer: as it came; of an approval of a form its own response counts for nothing.
        payload: what was asked about, where the form is editable.

    Raises:
        InvalidAnswer: an approval whose values do not fit, or values that nobody asked for.
    """
    if form is None or answer.status is not ApprovalStatus.APPROVED:
        if answer.values is not None:
            raise unfit([(WHOLE, "goes with the decision approved of a question that has a form")])
        return answer
    values = values_of(form, answer.values, payload)
    original = canonical(payload) if form.editable and payload is not None else None
    return replace(answer, response=response_of(values, original), fits=True)


def of_sender(answer: Answer) -> Answer:
    """A webhook's answer to a question with a form: its values are the member `values` of its response."""
    values = None if answer.response is None else json_text.member(answer.response, "values")
    return replace(answer, values=None if values == b"null" else values)
