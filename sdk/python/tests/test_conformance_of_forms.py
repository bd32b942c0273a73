"""The testing control plane, and the agent's own check, take of forms and words what the real one takes."""

import json
from typing import Any

import msgspec
import pytest
from holdshort import (
    ApprovalResult,
    BadRequest,
    Client,
    Form,
    InvalidAnswer,
    InvalidField,
    Question,
    ValuesInvalid,
    Verdict,
    _routes,
)
from holdshort._forms import Sought
from holdshort.testing import ControlPlane
from msgspec.structs import replace

from sdk.python.tests.vectors import Ledger, load

QUESTION = Question(approval_request_id="q")


def test_every_form_takes_what_answers_it(ledger: Ledger) -> None:
    cases = load("forms")["cases"]
    expected = {case["name"]: {"code": case["code"]} if "code" in case else case["accepted"] for case in cases}
    ledger.settle("forms", {case["name"]: (form_outcome(case), expected[case["name"]]) for case in cases})


def form_outcome(case: dict[str, Any]) -> Any:
    """The values that are kept, or the code of the refusal, where the agent's check says the same."""
    plane = ControlPlane()
    with Client(transport=plane.blocking_transport) as client:
        client.create_execution("n", "run-1")
        sent = {"approval_request_id": "q", **{name: case[name] for name in ("form", "payload") if name in case}}
        try:
            asked = client.send(replace(_routes.request_approval("run-1", QUESTION), body=json.dumps(sent).encode()))
        except InvalidField as refused:
            return {"code": refused.code}
        try:
            client.decide(asked.approval_id, Verdict(decision="approved", values=case.get("values")))
        except InvalidAnswer as refused:
            assert not fits(case, {"values": case["values"]} if "values" in case else None)
            return {"code": refused.code}
        response = client.get_approval_status("run-1").response
        assert response is not None
        assert response.data.get("original") == (case["payload"] if case["form"].get("editable") else None)
        assert fits(case, response.data)
        return response.data["values"]


def fits(case: dict[str, Any], data: Any) -> bool:
    """Whether the agent hands these data over."""
    sought = Sought(msgspec.convert(case["form"], Form))
    names = {"execution_id": "run-1", "approval_request_id": "q", "approval_id": "apr_1", "round": 1}
    result = ApprovalResult(decision="approved", feedback="", data=data, **names)
    try:
        handed_over = sought.fitting(result)
    except ValuesInvalid:
        return False
    assert handed_over.values == case["accepted"]
    return True


def test_what_a_person_says_to_the_testing_control_plane_means_what_it_means_to_the_real_one(
    plane: ControlPlane,
) -> None:
    """`expired` is no person's word."""
    words = load("decisions")
    refused = [*words["refused"], *(w for w, means in words["accepted"].items() if means == "expired")]
    accepted = {word: means for word, means in words["accepted"].items() if means != "expired"}
    with Client(transport=plane.blocking_transport) as client:
        for number, (word, means) in enumerate([*accepted.items(), *((word, None) for word in refused)]):
            client.create_execution("n", f"run-{number}")
            asked = client.request_approval(f"run-{number}", Question(approval_request_id="x"))
            if means is None:
                with pytest.raises((BadRequest, TypeError)):
                    client.decide(asked.approval_id, Verdict(decision=word))
                assert client.get_approval_status(f"run-{number}").status == "pending"
            else:
                assert client.decide(asked.approval_id, Verdict(decision=word)).decision == means
