"""The routes of nodes and of the runs that are given to them, one function each, as in `_routes`."""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec

from holdshort import _wire
from holdshort._core import Call, body, path, query
from holdshort._errors import InvalidField

_LONGEST_KEY = 255


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What a process says of itself when it comes.

    Args:
        node_id: the agent that it is an instance of.
        base_url: where it is reached.
        instance_id: new for each process.
        version: of the agent.
        reasoners: each with `name`, `timeout_seconds`, `resume` and, where there is one, `input_schema`.
        features: `replay` (its runs may be started again), `fence` (it sends the fence with every call).
        lease_seconds: after so long without a sign of life it counts as gone.
        max_concurrent: how many runs it is given at a time; the control plane's own limit when None.
    """

    node_id: str
    base_url: str
    instance_id: str
    version: str
    reasoners: list[dict[str, Any]]
    features: dict[str, bool]
    lease_seconds: float | None = None
    max_concurrent: int | None = None


def register_node(registration: Registration) -> Call[_wire.Registered]:
    """Register an instance of a node; the same instance again renews it.

    Raises:
        InvalidField: a field breaks a rule.
    """
    members = body(**msgspec.structs.asdict(registration))
    return Call(method="POST", path=path("nodes", "register"), body=members, reads=_wire.Registered)


def heartbeat(node_id: str, instance_id: str, *, status: str = "ready") -> Call[_wire.Beaten]:
    """Say that an instance is alive; "draining" says that it takes nothing new.

    Raises:
        NotFound: it is unknown or counts as gone, and should register again.
    """
    members = body(instance_id=instance_id, status=status)
    return Call(method="POST", path=path("nodes", node_id, "heartbeat"), body=members, reads=_wire.Beaten)


def hand_back(node_id: str, instance_id: str, runs: Sequence[tuple[str, int]]) -> Call[_wire.HandedBackRuns]:
    """Give up runs without an end, each named with its fence, at most 1000; those of others are left out."""
    named = [{"execution_id": execution_id, "fence": fence} for execution_id, fence in runs]
    members = body(instance_id=instance_id, executions=named)
    return Call(method="POST", path=path("nodes", node_id, "hand-back"), body=members, reads=_wire.HandedBackRuns)


def shutdown_node(node_id: str, instance_id: str) -> Call[dict[str, Any]]:
    """Say that an instance is gone; the runs that it has are given to others.

    Raises:
        NotFound: it is unknown.
    """
    members = body(instance_id=instance_id)
    return Call(method="POST", path=path("nodes", node_id, "shutdown"), body=members, reads=dict[str, Any])


def list_nodes(*, limit: int | None = None, cursor: str | None = None) -> Call[_wire.NodePage]:
    """A page of the nodes that registered, each with its instances that are there."""
    return Call(method="GET", path=path("nodes"), query=query(limit=limit, cursor=cursor), reads=_wire.NodePage)


def get_node(node_id: str) -> Call[_wire.Node]:
    """One node with its instances, those that are gone too.

    Raises:
        NotFound: no node of this name registered.
    """
    return Call(method="GET", path=path("nodes", node_id), reads=_wire.Node)


def execute_async(
    node_id: str,
    reasoner: str,
    input: Any = None,  # noqa: A002  # the wire's own word
    *,
    idempotency_key: str | None = None,
) -> Call[_wire.Queued]:
    """Let a node run a reasoner, and do not wait for it.

    Args:
        node_id: the agent.
        reasoner: its function's name.
        input: JSON, an object with the function's arguments.
        idempotency_key: the same again joins the run that it started before. Retries of one call always do.

    Raises:
        NotFound: no such node registered, or it has no such reasoner; `details["registered"]` lists what there is.
        IdempotencyConflict: the key stands for another call.
        Unavailable: too many runs wait for this node already.
    """
    return Call(
        method="POST",
        path=path("execute", "async", f"{node_id}.{reasoner}"),
        body=body(input=input),
        headers=_keyed(idempotency_key or new_key()),
        reads=_wire.Queued,
    )


def held_execute(
    node_id: str,
    reasoner: str,
    input: Any,  # noqa: A002  # the wire's own word
    *,
    key: str,
    wait: float,
) -> Call[_wire.Executed]:
    """As `execute_async`, held until the run is over, `wait` seconds at most; `execute` of the clients repeats it."""
    return Call(
        method="POST",
        path=path("execute", f"{node_id}.{reasoner}"),
        query=query(wait=f"{wait:g}"),
        body=body(input=input),
        headers=_keyed(key),
        hold=wait,
        reads=_wire.Executed,
    )


def _keyed(key: str) -> dict[str, str]:
    if not (key.isascii() and key.isprintable() and len(key) <= _LONGEST_KEY):
        rule = f"at most {_LONGEST_KEY} printable ASCII characters"
        raise InvalidField(f"idempotency_key: {rule}", details={"errors": [{"field": "idempotency_key", "rule": rule}]})
    return {"idempotency-key": key}


def new_key() -> str:
    """An idempotency key of a call that was given none."""
    return f"call_{uuid4().hex}"
