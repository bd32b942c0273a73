"""Agents register here, say that they are alive, and say when they go."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, patch, post
from litestar.params import FromPath
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controlplane.domain import nodes as rules
from controlplane.domain.addresses import base_address
from controlplane.domain.errors import FieldFault, NodeNotFound
from controlplane.domain.ids import INSTANCE_PREFIX, check_name
from controlplane.domain.nodes import Beat, Reasoner, Registration, Resume
from controlplane.edge import bodies
from controlplane.edge.deps import agent, principal_of, runtime_of, transaction
from controlplane.http import fields
from controlplane.services import nodes as service
from controlplane.services.access import acts_for, own
from controlplane.storage.instances import Present

REGISTRATION_LIMIT = 8 * bodies.MIB
MOST_REASONERS = 1000
SCHEMA_LIMIT = 16 * 1024
SCHEMAS_LIMIT = 256 * 1024
MAX_LEASE_SECONDS = 3600
MAX_TIMEOUT_SECONDS = 365 * 86_400
RESERVED = "executions"


class ReasonerIn(Struct, kw_only=True):
    """A function that a node serves, by its `id` or its `name`."""

    id: fields.Name | None = None
    name: str | None = None
    timeout_seconds: Annotated[float, Meta(gt=0, le=MAX_TIMEOUT_SECONDS)] | None = None
    resume: Resume | None = None
    input_schema: Raw | UnsetType = UNSET


class FeaturesIn(Struct, kw_only=True):
    """What an agent understands: runs that are started again, and fences. Whatever else stands here is not ours."""

    replay: bool | None = None
    fence: bool | None = None


Reasoners = Annotated[
    list[ReasonerIn],
    Meta(
        max_length=MOST_REASONERS,
        extra={
            "rule": f"a list of at most {MOST_REASONERS} objects, each with an id or name of A-Z a-z 0-9 . _ ~ : -,"
            " timeout_seconds above 0 and at most a year, and resume when_decided or at_start"
        },
    ),
]
Features = Annotated[FeaturesIn, Meta(extra={"rule": "an object, replay and fence in it true or false"})]


class RegisterIn(Struct, kw_only=True):
    """A process of an agent program; further fields are taken and not used."""

    id: fields.Name | None = None
    node_id: fields.Name | None = None
    base_url: fields.Url
    version: fields.Label | None = None
    instance_id: fields.Label | None = None
    reasoners: Reasoners | None = None
    skills: Reasoners | None = None
    features: Features | None = None
    lease_seconds: (
        Annotated[
            float,
            Meta(ge=1, le=MAX_LEASE_SECONDS, extra={"rule": f"a number from 1 to {MAX_LEASE_SECONDS}"}),
        ]
        | None
    ) = None
    max_concurrent: Annotated[int, Meta(ge=1, le=2**31 - 1)] | None = None


class BeatIn(Struct, kw_only=True):
    """A sign of life; `draining` (in `status`, or in `phase`) asks for nothing new."""

    instance_id: fields.Label | None = None
    status: fields.Label | None = None
    phase: fields.Label | None = None


class GoingIn(Struct, kw_only=True):
    """Which process goes."""

    instance_id: fields.Label | None = None


class RegisteredOut(Struct):
    """How long the process counts as alive without a sign, and how often to give one."""

    success: bool
    message: str
    node_id: str
    instance_id: str
    lease_seconds: int
    heartbeat_seconds: float


class BeatOut(Struct):
    """The sign of life was taken."""

    success: bool
    message: str
    timestamp: datetime
    lease_seconds: int


class LeaseOut(Struct):
    """The lease, and from when on the next sign of life renews it."""

    success: bool
    message: str
    lease_seconds: int
    next_lease_renewal: datetime


class GoingOut(Struct):
    """The process is gone."""

    success: bool
    message: str


@post("/nodes/register", status_code=201, opt={"takes": RegisterIn})
async def register_node(request: Request[Any, Any, Any]) -> RegisteredOut:
    """Register a process of an agent, or renew it; another one at its address is gone from then on."""
    runtime = runtime_of(request)
    body = await bodies.take(request, RegisterIn, limit=REGISTRATION_LIMIT)
    wanted = _registration(body, runtime.new_id(INSTANCE_PREFIX))
    await runtime.egress.check(wanted.base_url, principal_of(request).allowance, field="base_url")
    async with transaction(request) as conn:
        await own(conn, principal_of(request), wanted.node_id, agent(request, wanted.node_id))
        instance = await service.register(conn, wanted, actor=agent(request, wanted.node_id), new_id=runtime.new_id)
    return RegisteredOut(
        success=True,
        message="registered",
        node_id=instance.node_id,
        instance_id=instance.instance_id,
        lease_seconds=int(instance.lease_seconds),
        heartbeat_seconds=rules.beat_every(instance.lease_seconds),
    )


@post("/nodes/{node_id:str}/heartbeat", status_code=200, opt={"takes": BeatIn, "body_optional": True})
async def heartbeat(request: Request[Any, Any, Any], node_id: FromPath[str]) -> BeatOut:
    """Say that a process is alive; 404 when it is unknown or gone: it registers again."""
    body = await bodies.take_if_sent(request, BeatIn)
    found = await _beat(request, node_id, body, None)
    return BeatOut(success=True, message="alive", timestamp=found.now, lease_seconds=int(found.lease_seconds))


@patch("/nodes/{node_id:str}/status", status_code=200, opt={"takes": BeatIn, "body_optional": True})
async def renew_lease(request: Request[Any, Any, Any], node_id: FromPath[str]) -> LeaseOut:
    """Say that a process is alive, for those who say so every few minutes: a lease of 300 s."""
    body = await bodies.take_if_sent(request, BeatIn)
    found = await _beat(request, node_id, body, rules.RENEWED_LEASE_SECONDS)
    return LeaseOut(
        success=True,
        message="renewed",
        lease_seconds=int(found.lease_seconds),
        next_lease_renewal=rules.renew_by(found),
    )


@post("/nodes/{node_id:str}/shutdown", status_code=202, opt={"takes": GoingIn, "body_optional": True})
async def shut_down_node(request: Request[Any, Any, Any], node_id: FromPath[str]) -> GoingOut:
    """Say that a process stops: it is gone at once. Without an instance_id it is the node's oldest."""
    name = path_node(node_id)
    body = await bodies.take_if_sent(request, GoingIn)
    async with transaction(request) as conn:
        await acts_for(conn, principal_of(request), name)
        await service.shut_down(conn, name, body.instance_id or None, agent(request, name))
    return GoingOut(success=True, message="gone")


def path_node(node_id: str) -> str:
    """A node's id from the path: one that cannot be one is not found."""
    try:
        return check_name("node_id", node_id)
    except FieldFault:
        raise NodeNotFound from None


async def _beat(request: Request[Any, Any, Any], node_id: str, body: BeatIn, lease_seconds: float | None) -> Present:
    name = path_node(node_id)
    told = Beat(word=body.status or body.phase, lease_seconds=lease_seconds)
    async with transaction(request) as conn:
        await acts_for(conn, principal_of(request), name)
        return await service.beat(conn, name, body.instance_id or None, told, agent(request, name))


def _registration(body: RegisterIn, new_id: str) -> Registration:
    """What a body says, whichever product sent it: ids under two names, skills beside reasoners, null for nothing."""
    features = body.features or FeaturesIn()
    replay = bool(features.replay)
    named = {each.id or each.name for each in body.reasoners or ()}
    skills = [each.id or each.name or "" for each in body.skills or ()]
    return Registration(
        node_id=_node_id(body),
        instance_id=body.instance_id or new_id,
        base_url=base_address("base_url", body.base_url),
        version=body.version or "",
        reasoners=_reasoners(body),
        skills=tuple(name for name in skills if name not in named),
        replay=replay,
        fenced=bool(features.fence),
        lease_seconds=body.lease_seconds or rules.lease_of(replay=replay),
        max_concurrent=body.max_concurrent,
    )


def _node_id(body: RegisterIn) -> str:
    node_id = body.node_id or body.id
    if node_id is None:
        raise FieldFault("node_id", "is required")
    if body.id not in {None, node_id}:
        raise FieldFault("id", "must be the node_id where both are given")
    if node_id == RESERVED:
        raise FieldFault("node_id", "must not be `executions`, which is a path of this API")
    return node_id


def _reasoners(body: RegisterIn) -> tuple[Reasoner, ...]:
    """Reasoners and skills by their names, each once; what they accept, as long as that is short."""
    found: dict[str, Reasoner] = {}
    room = SCHEMAS_LIMIT
    named = [*(("reasoners", each) for each in body.reasoners or ()), *(("skills", each) for each in body.skills or ())]
    for field, each in named:
        name = each.id or check_name(field, each.name or "")
        schema = b"" if each.input_schema is UNSET else bytes(each.input_schema)
        kept = _schema(schema) if len(schema) <= min(room, SCHEMA_LIMIT) else None
        room -= len(schema) if kept is not None else 0
        reasoner = Reasoner(
            name=name,
            timeout_seconds=each.timeout_seconds,
            resume=each.resume or Resume.WHEN_DECIDED,
            input_schema=kept,
        )
        found.setdefault(name, reasoner)
    return tuple(found.values())


def _schema(raw: bytes) -> dict[str, Any] | None:
    schema = bodies.plain(raw) if raw else None
    return schema if isinstance(schema, dict) else None
