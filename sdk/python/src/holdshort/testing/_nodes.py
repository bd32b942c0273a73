"""Nodes in memory: which instances are there, which runs they have, and which wait to be given away."""

from datetime import datetime
from typing import Any

import msgspec

from holdshort._wire import FINAL_EXECUTION
from holdshort.testing._book import Book, Ran, Refusal


class Told(msgspec.Struct, kw_only=True):
    """The body of a registration."""

    node_id: str
    base_url: str
    instance_id: str
    version: str = ""
    reasoners: list[dict[str, Any]] = []
    features: dict[str, bool] = {}
    lease_seconds: float | None = None
    max_concurrent: int | None = None


class Present(msgspec.Struct, kw_only=True):
    """An instance as it is remembered."""

    told: Told
    registered_at: datetime
    seen_at: datetime
    status: str = "live"


def register(book: Book, told: Told) -> dict[str, Any]:
    """Take up an instance; another one at its address is gone."""
    for other in present(book, told.node_id):
        if other.told.base_url == told.base_url and other.told.instance_id != told.instance_id:
            leave(book, other)
    book.instances[told.instance_id] = Present(told=told, registered_at=book.now, seen_at=book.now)
    return {"node_id": told.node_id, "instance_id": told.instance_id, **_lease(book)}


def beat(book: Book, node_id: str, instance_id: str | None, status: str | None) -> dict[str, Any]:
    """Take a sign of life."""
    instance = _there(book, node_id, instance_id)
    instance.seen_at = book.now
    instance.status = "draining" if status == "draining" else "live"
    return _lease(book)


def shut_down(book: Book, node_id: str, instance_id: str | None) -> dict[str, Any]:
    """Let an instance go that says that it stops, once more if it said so before."""
    instance = book.instances.get(instance_id or "") or _there(book, node_id, instance_id)
    if instance.status != "gone":
        leave(book, instance)
    return {"success": True}


def leave(book: Book, instance: Present) -> None:
    """An instance is gone: its runs are nobody's now."""
    instance.status = "gone"
    for run in book.executions.values():
        if run.instance_id == instance.told.instance_id:
            release(book, run)


def hand_back(book: Book, instance_id: str, fences: dict[str, int]) -> dict[str, Any]:
    """Take back those runs that are the instance's own."""
    mine = [
        run
        for run in (book.executions.get(execution_id) for execution_id in fences)
        if run is not None and run.instance_id == instance_id and run.fence == fences[run.execution_id]
    ]
    for run in mine:
        release(book, run)
    return {"handed_back": [run.execution_id for run in mine]}


def release(book: Book, run: Ran) -> None:
    """A waiting run rests; one that ran waits to be given to another instance."""
    run.instance_id = None
    if run.status == "running":
        book.queue(run)


def execute(book: Book, target: str, given: Any, key: str | None) -> Ran:
    """A run that waits to be given to an instance, or the one that this key made before."""
    for run in book.executions.values() if key else ():
        if run.idempotency_key == key:
            if (f"{run.node_id}.{run.reasoner}", run.input) != (target, given):
                raise Refusal("idempotency_conflict", "this key was used for another call")
            return run
    node_id, reasoner = _resolve(book, target)
    number = len(book.executions) + 1
    known = {"reasoner": reasoner, "input": given, "run_id": f"run_{number:08}", "idempotency_key": key}
    run, _ = book.create(node_id, f"exec_{number:08}", dispatched=True, status="queued", **known)
    return run


def due(book: Book) -> list[Ran]:
    """Runs that no instance has, and that one should have now."""
    return [
        run
        for run in book.executions.values()
        if run.dispatched and run.instance_id is None and run.status != "waiting" and wants_an_agent(run)
    ]


def wants_an_agent(run: Ran) -> bool:
    """True when its code has something to do or to see."""
    return run.outcome_pending or run.status not in FINAL_EXECUTION


def claim(book: Book, run: Ran) -> Present | None:
    """Give a run to an instance that takes new ones, under the next fence; None where there is none."""
    there = live(book, run.node_id)
    if not there:
        return None
    run.fence += 1
    run.instance_id = there[-1].told.instance_id
    if run.status == "queued":
        run.status, run.status_reason = "running", None
    return there[-1]


def live(book: Book, node_id: str) -> list[Present]:
    """The instances of a node that take new runs."""
    return [each for each in present(book, node_id) if each.status == "live"]


def present(book: Book, node_id: str) -> list[Present]:
    """The instances of a node that are there."""
    return [each for each in book.instances.values() if each.told.node_id == node_id and each.status != "gone"]


def shown(book: Book, node_id: str) -> dict[str, Any]:
    """A node with its instances."""
    known = [each for each in book.instances.values() if each.told.node_id == node_id]
    if not known:
        raise _unknown(book)
    told = known[-1].told
    return {
        "node_id": node_id,
        "version": told.version,
        "reasoners": told.reasoners,
        "max_concurrent": told.max_concurrent,
        "registered_at": known[0].registered_at,
        "instances": [_instance(each) for each in known],
    }


def names(book: Book) -> list[str]:
    """Every node that registered, the newest first."""
    return list(dict.fromkeys(each.told.node_id for each in reversed(book.instances.values())))


def _instance(instance: Present) -> dict[str, Any]:
    told = instance.told
    return {
        "instance_id": told.instance_id,
        "base_url": told.base_url,
        "version": told.version,
        "status": instance.status,
        "reasoners": [each["name"] for each in told.reasoners],
        "registered_at": instance.registered_at,
        "seen_at": instance.seen_at,
    }


def _there(book: Book, node_id: str, instance_id: str | None) -> Present:
    for instance in present(book, node_id):
        if instance_id in {None, instance.told.instance_id}:
            return instance
    raise Refusal("node_not_found", "no such instance is there; register it again")


def _resolve(book: Book, target: str) -> tuple[str, str]:
    node_id, _, reasoner = target.rpartition(".")
    if node_id not in names(book):
        raise _unknown(book)
    known = [each["name"] for each in shown(book, node_id)["reasoners"]]
    if reasoner not in known:
        raise Refusal("reasoner_not_found", "the node has no such reasoner", registered=known)
    return node_id, reasoner


def _unknown(book: Book) -> Refusal:
    return Refusal("node_not_found", "no such node is registered", registered=sorted(names(book)))


def _lease(book: Book) -> dict[str, Any]:
    return {"success": True, "lease_seconds": book.lease_seconds, "heartbeat_seconds": book.lease_seconds / 3}
