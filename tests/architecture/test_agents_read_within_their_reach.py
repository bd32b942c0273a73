"""Whatever a route that agents may call can read is read within their reach, or stands here with the reason why not."""

import ast
from collections.abc import Iterable

from controlplane.domain.access import Access, Principal, check
from controlplane.domain.errors import NotAllowed
from controlplane.domain.keys import Scope
from controlplane.http.routes import TABLE
from tests.architecture.calls import Calls, names_in

SCOPED_BY = {"within", "in_reach", "limits"}

# Reads without a scope that agents' routes come to, by why each shows nothing of another's.
UNSCOPED = {
    "the run was locked or seen within reach before, in the same transaction": {
        "approvals.payload_of",
        "cases.save",
        "deliveries.any_pending",
        "deliveries.make_obsolete",
        "executions.add_note",
        "history.of_approval",
        "outbox.told",
        "peers.ends_by_event",
        "steps.add",
        "steps.get",
        "steps.page",
    },
    "the node was claimed or checked to be the caller's before, or seen within reach": {
        "instances.end",
        "instances.known",
        "instances.lock_met",
        "instances.present",
        "nodes.instances_of",
        "nodes.instances_there",
    },
    "an agent may start a run of any node, so it may know of a reasoner by name, and that its queue is full": {
        "dispatches.is_full",
        "nodes.reasoner",
    },
    "it asks by the caller's own key": {"executions.id_of_key", "feedback.count_pending"},
    "a short-lived question is its own key's, which the service compares while it holds the row": {
        "feedback.add",
        "feedback.lock",
    },
    "it says whether a clock goes on, of runs that were locked within reach": {"feedback.clocks_stopped"},
    "an early answer is meant for whoever asks first under its request id, unless it names a run": {
        "parked.take_waiting",
        "parked.remember",
    },
    "it tells who is let in, or whose a node is, and is shown to nobody": {
        "keys.any_there",
        "keys.find",
        "keys.owner_of",
        "senders.standing",
        "sessions.find",
    },
    "it tells of time and places in the stream, and of no row": {"clock.now", "history.end", "pruning.pruned_to"},
}


def unscoped(calls: Calls, roots: Iterable[str]) -> set[str]:
    """The functions of storage that read without a scope, as far as these roots come to them."""
    storage = [name for name in calls.reached(roots) if name.startswith("controlplane.storage.")]
    return {
        name.removeprefix("controlplane.storage.")
        for name in storage
        if not name.split(".")[-1].startswith("_")
        and reads(calls.functions[name])
        and not names_in(calls.functions[name]) & SCOPED_BY
    } - {"reach.within"}


def reads(function: ast.AST) -> bool:
    called = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return any(isinstance(each, ast.Attribute) and each.attr in {"row", "rows"} for each in called)


def roots(calls: Calls) -> list[str]:
    """The handlers that agents may call, and all of the runtime, which handlers call by way of its objects."""
    handlers = [handler for purpose, found in TABLE.items() if is_for_agents(purpose) for handler in found]
    named = [f"{handler.fn.__module__}.{handler.fn.__name__}" for handler in handlers]
    return named + [name for name in calls.functions if name.startswith("controlplane.runtime.")]


def is_for_agents(purpose: Access) -> bool:
    try:
        check(Principal(key_id="k", name="k", scopes=frozenset({Scope.AGENT})), purpose)
    except NotAllowed:
        return False
    return True


def test_every_read_that_agents_come_to_has_a_scope_or_a_reason():
    calls = Calls("controlplane")
    found = unscoped(calls, roots(calls))
    excused = set[str]().union(*UNSCOPED.values())
    assert found - excused == set(), "read within reach (storage.reach), or say here why nothing of another's is shown"
    assert excused - found == set(), "these are scoped or gone; take them out"
    assert sum(map(len, UNSCOPED.values())) == len(excused)


def test_what_is_scoped_is_reached_and_what_is_planted_is_found():
    calls = Calls("controlplane")
    reached = calls.reached(roots(calls))
    for name in ("approvals.get", "approvals.page", "approvals.final_among", "cases.lock", "executions.get"):
        assert f"controlplane.storage.{name}" in reached, name
    # A further read behind a handler, through a service: found by its name.
    planted = ast.parse("async def leak(conn):\n    return await conn.row(1)").body[0]
    assert isinstance(planted, ast.AsyncFunctionDef)
    calls.functions["controlplane.storage.approvals.leak"] = planted
    calls.add_call("controlplane.services.steps.page", "controlplane.storage.approvals.leak")
    assert "approvals.leak" in unscoped(calls, roots(calls))
