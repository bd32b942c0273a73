"""Whatever is asked of the API, by whomever: no answer is a 5xx, and every one is as sdk/openapi.json describes it."""

import json
from typing import Any

import pytest

from controlplane.http import node_lists
from tests.app import served
from tests.figures import Figures
from tests.fuzz.surveying import COMMITTED, Survey, survey
from tests.postgres import Database

SEED = 20_261_001
EXAMPLES = 1


async def looked_at(database: Database, **options: Any) -> Survey:
    async with served(database, workers=False, open_mode=False) as api:
        return await survey(api, Survey(), at=SEED, **options)


@pytest.mark.timeout(300)
async def test_requests_made_from_the_description(database: Database, figures: Figures) -> None:
    seen = await looked_at(database, examples=EXAMPLES)
    figures(
        "requests made from the description",
        cases=seen.cases,
        answers_of_500_and_more=seen.server_errors,
        undocumented_answers=seen.undocumented,
        operations_that_succeeded=len(seen.succeeded),
    )
    assert (seen.server_errors, seen.undocumented) == (0, 0), seen.told()
    assert len(seen.succeeded) > 30


async def test_a_status_that_is_not_described_is_found(database: Database) -> None:
    document = json.loads(COMMITTED.read_bytes())
    document["paths"]["/api/v1/nodes/{node_id}"]["get"]["responses"].pop("404")
    seen = await looked_at(database, document=document, only=frozenset({"get_node"}), examples=1)
    assert [fault for fault in seen.faults if "get_node answered 404" in fault], seen.told()


@pytest.mark.proof
async def test_a_member_that_is_not_described_is_found(database: Database) -> None:
    document = json.loads(COMMITTED.read_bytes())
    shape = document["components"]["schemas"]["NodeDetailOut"]
    shape["properties"]["node_id"] = {"type": "integer"}
    seen = await looked_at(database, document=document, only=frozenset({"get_node"}), examples=1)
    assert [fault for fault in seen.faults if "get_node answered 200" in fault], seen.told()


async def test_a_route_that_fails_is_found(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_lists, "_shared", None)
    seen = await looked_at(database, only=frozenset({"get_node"}), examples=1)
    assert seen.server_errors
    assert seen.undocumented
