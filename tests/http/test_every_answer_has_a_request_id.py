import re

import structlog
from structlog.testing import capture_logs

from controlplane import telemetry
from controlplane.runtime import Runtime
from tests.app import Api

MADE = re.compile(r"req_[0-9a-z]{26}")


async def test_a_sane_one_is_kept_and_any_other_replaced(api: Api):
    for given in ("abc", "A-1_2.3:4", "x" * 128):
        reply = await api.client.get("/health/live", headers={"X-Request-ID": given})
        assert reply.headers.get_list("x-request-id") == [given]
    for given in ("", "a b", "x" * 129, "a\tb", "<script>", "a,b"):
        reply = await api.client.get("/health/live", headers={"X-Request-ID": given})
        assert MADE.fullmatch(reply.headers["x-request-id"]), given
    twice = await api.client.get("/health/live", headers=[("X-Request-ID", "a"), ("X-Request-ID", "b")])
    assert MADE.fullmatch(twice.headers["x-request-id"])


async def test_each_kind_of_answer_carries_it_and_problems_name_it(api: Api):
    good = await api.get("/approvals")
    assert MADE.fullmatch(good.headers["x-request-id"])
    for reply in (
        await api.client.get("/nowhere"),
        await api.client.put("/api/v1/approvals"),
        await api.get("/approvals", limit="x"),
        await api.get("/approvals/apr_1"),
        await api.post("/executions", {}),
        await api.webhook(b"{}", **{"X-Webhook-Signature": "no"}),
    ):
        assert reply.json()["request_id"] == reply.headers["x-request-id"]


async def test_a_fault_of_ours_is_logged_under_it_and_shown_to_nobody(api: Api, monkeypatch):
    def broken(_: Runtime):
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr(Runtime, "transaction", broken)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        reply = await api.client.get("/api/v1/approvals", headers={"X-Request-ID": "mine"})
    assert reply.status_code == 500
    assert reply.json()["error"] == "internal_error"
    assert "secret" not in reply.text
    assert [(line["event"], line["request_id"]) for line in lines] == [("request_failed", "mine")]
    assert telemetry.request_id() is None
