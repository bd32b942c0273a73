"""The routes of nodes and of the runs that are given to them, over the book."""

from typing import Any

import msgspec

from holdshort._wire import FINAL_EXECUTION
from holdshort.testing import _nodes
from holdshort.testing._book import Ran
from holdshort.testing._visits import Handler, Hold, Visit, invalid


def _register(visit: Visit) -> Any:
    try:
        told = msgspec.convert(visit.body, _nodes.Told)
    except msgspec.ValidationError as error:
        raise invalid("body", str(error)) from error
    return _nodes.register(visit.book, told)


def _heartbeat(visit: Visit) -> Any:
    return _nodes.beat(visit.book, visit.names["node"], visit.body.get("instance_id"), visit.body.get("status"))


def _shutdown(visit: Visit) -> Any:
    return _nodes.shut_down(visit.book, visit.names["node"], visit.body.get("instance_id"))


def _hand_back(visit: Visit) -> Any:
    fences = {each["execution_id"]: each["fence"] for each in visit.required("executions")}
    return _nodes.hand_back(visit.book, visit.required("instance_id"), fences)


def _list(visit: Visit) -> Any:
    return {"nodes": [_nodes.shown(visit.book, name) for name in _nodes.names(visit.book)], "next_cursor": None}


def _node(visit: Visit) -> Any:
    return _nodes.shown(visit.book, visit.names["node"])


def _execute(visit: Visit) -> Any:
    wait = float(visit.query.get("wait", 60))
    if not 0 <= wait <= 600:
        raise invalid("wait", "0-600 seconds")
    run = _started(visit)

    def show() -> Any:
        return {"execution_id": run.execution_id, "run_id": run.run_id, "status": run.status, "result": run.result}

    return Hold(lambda: run.status in FINAL_EXECUTION, show, wait)


def _execute_async(visit: Visit) -> Any:
    run = _started(visit)
    known = {"execution_id": run.execution_id, "run_id": run.run_id, "status": run.status}
    return {**known, "target": visit.names["target"], "created_at": run.created_at}


def _started(visit: Visit) -> Ran:
    key = visit.headers.get("idempotency-key")
    return _nodes.execute(visit.book, visit.names["target"], visit.body.get("input"), key)


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "/nodes/register", _register),
    ("POST", "/nodes/{node}/heartbeat", _heartbeat),
    ("POST", "/nodes/{node}/shutdown", _shutdown),
    ("POST", "/nodes/{node}/hand-back", _hand_back),
    ("GET", "/nodes", _list),
    ("GET", "/nodes/{node}", _node),
    ("POST", "/execute/{target}", _execute),
    ("POST", "/execute/async/{target}", _execute_async),
)
