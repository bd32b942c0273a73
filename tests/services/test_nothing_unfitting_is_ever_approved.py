"""Whatever a form and an answer are, and whichever way the answer comes: what was approved fits what was asked."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from tests.app import Api, in_process
from tests.postgres import Database

WORDS = st.sampled_from(["yes", "no", "Go", "a", "b", "", " ", "maybe", "true"])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0]), WORDS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
)
TYPES = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
PARTS = st.one_of(
    st.builds(lambda kind: {"type": kind}, TYPES),
    st.just({"enum": ["a", 1, None]}),
    st.just({"type": "string", "minLength": 1, "pattern": "^[a-z]+$"}),
    st.builds(lambda kind: {"anyOf": [{"type": kind}, {"type": "null"}]}, TYPES),
)
SCHEMAS = st.builds(
    lambda properties, required, more: {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": more,
    },
    st.dictionaries(st.sampled_from("ab"), PARTS, max_size=2),
    st.lists(st.sampled_from("ab"), max_size=2, unique=True),
    st.booleans(),
)
FORMS = st.one_of(
    st.sampled_from(
        [
            {"kind": "text"},
            {"kind": "yes_no", "yes_label": "Go"},
            {"kind": "multiple_choice", "options": ["a", "b"]},
        ]
    ),
    st.builds(lambda schema: {"kind": "form", "schema": schema}, SCHEMAS),
)
LIKELY = st.dictionaries(st.sampled_from("ab"), SCALARS, max_size=2)


def bodies(form: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """What is sent with an approval: nothing, anything, or more often something of about the right kind."""
    likely = LIKELY if form["kind"] == "form" else st.sampled_from(["yes", "GO", "a", "B", "n", "maybe", True])
    values = likely | likely | VALUES
    return st.one_of(
        st.just({}),
        st.builds(lambda each: {"values": each}, values),
        st.builds(lambda each: {"values": each}, values),
        st.builds(lambda each: {"response": {"values": each}}, values),
        st.builds(lambda each: {"response": each}, VALUES),
    )


WAYS = st.sampled_from(["decision", "webhook", "parked"])


def fits(form: dict[str, Any], values: Any) -> bool:
    """A second opinion, by another library and by the words of the specification."""
    if form["kind"] == "form":
        checker = Draft202012Validator(form["schema"], format_checker=FormatChecker())
        return isinstance(values, dict) and checker.is_valid(values)
    if form["kind"] == "text":
        return isinstance(values, str) and bool(values.strip())
    return values in (["yes", "no"] if form["kind"] == "yes_no" else form["options"])


async def answered(api: Api, way: str, name: str, form: dict[str, Any], body: dict[str, Any]) -> str:
    """Ask and answer in this way, whichever comes first; the approval's id."""
    webhook = {"requestId": name, "decision": "approved", **body}
    if way == "parked":
        assert (await api.webhook(webhook)).status_code in {202, 400}
    approval = await api.asked(name, f"run-{name}", form=form)
    if way == "webhook":
        assert (await api.webhook(webhook)).status_code in {200, 400, 422}
    if way == "decision":
        assert (await api.decide(approval, **body)).status_code in {200, 422}
    return approval


async def test_nothing_unfitting_is_ever_approved(database: Database, figures: Any):
    counts = {"approved": 0, "pending": 0}
    async with in_process(database) as api:

        async def one(way: str, form: dict[str, Any], body: dict[str, Any]) -> None:
            number = sum(counts.values())
            approval = await answered(api, way, f"q-{number}", form, body)
            shown = (await api.get(f"/approvals/{approval}")).json()
            counts[shown["status"]] += 1
            if shown["status"] == "approved":
                assert list(shown["response"]["data"]) == ["values"]
                assert fits(form, shown["response"]["data"]["values"]), (way, form, body)

        drawn = draw(60)
        for way, form, body in drawn:
            await one(way, form, body)
    figures("answers to forms", **counts)
    assert min(counts.values()) >= 5


def draw(count: int) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """So many questions with an answer each, drawn alike in every run."""
    found: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    @settings(max_examples=count, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(WAYS, FORMS.flatmap(lambda form: st.tuples(st.just(form), bodies(form))))
    def collect(way: str, asked: tuple[dict[str, Any], dict[str, Any]]) -> None:
        form, body = asked
        found.append((way, json.loads(json.dumps(form)), body))

    collect()
    return found
