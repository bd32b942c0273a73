"""Programs ask here for short-lived input, and get the answer that a person gave: sealed for them, and kept nowhere."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Any, Literal

from litestar import Request, Response, delete, get, post
from litestar.params import FromPath
from msgspec import Meta, Struct

from controlplane.domain import feedback as rules
from controlplane.domain.answers import MAX_OPTION, MAX_OPTIONS, Choices, Kind
from controlplane.domain.errors import FieldFault
from controlplane.domain.events import Actor
from controlplane.domain.feedback import Asking, FeedbackStatus, Question
from controlplane.domain.sealing import Sealed
from controlplane.edge import bodies
from controlplane.edge.deps import agent, principal_of, runtime_of, transaction
from controlplane.http import feedback_waiting as waiting
from controlplane.http import fields
from controlplane.http.waiting import Seconds, check
from controlplane.services import feedback as service

_RANGE = {"minimum": rules.LEAST_SECONDS, "maximum": rules.MOST_SECONDS}

Label = Annotated[str, Meta(min_length=1, max_length=MAX_OPTION)]
PublicKey = Annotated[str, Meta(max_length=64, extra_json_schema={"contentEncoding": "base64"})]


class FeedbackIn(Struct, kw_only=True):
    """A question for a person to answer within minutes; with `wait` the call is held until its end."""

    unique_id: fields.Name
    message_for_user: Annotated[str, Meta(min_length=1, max_length=rules.MAX_MESSAGE)]
    kind: Kind | None = None
    options: Annotated[list[Label], Meta(max_length=MAX_OPTIONS)] | None = None
    yes_label: Label | None = None
    no_label: Label | None = None
    timeout_seconds: Annotated[float, Meta(extra_json_schema=_RANGE)] = rules.DEFAULT_SECONDS
    session_id: fields.Label | None = None
    execution_id: fields.Name | None = None
    public_key: PublicKey | None = None
    wait: bool = False

    def __repr__(self) -> str:
        """Without its words."""
        return f"FeedbackIn(unique_id={self.unique_id!r})"


class FeedbackOut(Struct):
    """The question that was asked, or that is pending already."""

    unique_id: str
    created_at: datetime
    expires_at: datetime


class SealedOut(Struct):
    """An answer sealed to the public key of its question, in base64."""

    enc: str
    ct: str


class FeedbackAnswerOut(Struct, omit_defaults=True):
    """Where a question stands; `sealed` is there once it was answered."""

    outcome: Literal["answered", "pending"]
    sealed: SealedOut | None = None


class FeedbackAnsweredOut(Struct):
    """What a call that was held is answered with: the person's answer."""

    unique_id: str
    outcome: Literal["answered"]
    response: str

    def __repr__(self) -> str:
        """Without the answer."""
        return f"FeedbackAnsweredOut(unique_id={self.unique_id!r})"


class FeedbackEndOut(Struct):
    """How a question ended that was let go of."""

    unique_id: str
    outcome: FeedbackStatus


@post("/human-feedback", status_code=201, opt={"takes": FeedbackIn, "also": [200], "refuses": [410]})
async def ask_feedback(request: Request[Any, Any, Any]) -> Response[FeedbackOut | FeedbackAnsweredOut]:
    """Ask a person for short-lived input. The same call with the same key joins the wait; with `wait` it is 200."""
    body = await bodies.take(request, FeedbackIn)
    if not body.wait:
        question = await _ask(request, _asking(body, _public_key(body.public_key)))
        return Response(FeedbackOut(question.unique_id, question.created_at, question.expires_at), status_code=201)
    if body.public_key is not None:
        raise FieldFault("public_key", "goes without wait: a call that is held gets the answer itself")
    opener = runtime_of(request).new_opener()
    asking = rules.check(_asking(body, opener.public_key))
    answer = await waiting.held_answer(request, asking, opener, lambda: _ask(request, asking), _actor(request))
    return Response(FeedbackAnsweredOut(asking.unique_id, "answered", answer), status_code=200)


@get("/human-feedback/{unique_id:str}/answer", opt={"refuses": [410]})
async def feedback_answer(
    request: Request[Any, Any, Any], unique_id: FromPath[str], wait: Seconds = 0
) -> FeedbackAnswerOut:
    """The sealed answer to a question that this key asked; with `wait`, once it is there or the time has passed."""
    sealed = await waiting.sealed_answer(request, waiting.path_id(unique_id), check(wait))
    return FeedbackAnswerOut("pending") if sealed is None else FeedbackAnswerOut("answered", _sealed_out(sealed))


@delete("/human-feedback/{unique_id:str}", status_code=200)
async def end_feedback(request: Request[Any, Any, Any], unique_id: FromPath[str]) -> FeedbackEndOut:
    """Say that the answer was read, which is let go of then; or withdraw a question that is pending."""
    named = waiting.path_id(unique_id)
    async with transaction(request) as conn:
        owner = principal_of(request).key_id
        outcome = await service.withdraw(conn, named, owner=owner, actor=_actor(request))
    return FeedbackEndOut(named, outcome)


def _actor(request: Request[Any, Any, Any]) -> Actor:
    """A program that asks, under its key's name."""
    principal = principal_of(request)
    return agent(request, "agent" if principal.key_id is None else principal.name)


async def _ask(request: Request[Any, Any, Any], asking: Asking) -> Question:
    async with transaction(request) as conn:
        return await service.ask(conn, asking, owner=principal_of(request).key_id, actor=_actor(request))


def _asking(body: FeedbackIn, public_key: bytes) -> Asking:
    kind = body.kind or (Kind.TEXT if body.options is None else Kind.MULTIPLE_CHOICE)
    return Asking(
        unique_id=body.unique_id,
        message=body.message_for_user,
        choices=Choices(
            kind=kind,
            options=None if body.options is None else tuple(body.options),
            yes_label=body.yes_label,
            no_label=body.no_label,
        ),
        public_key=public_key,
        timeout_seconds=body.timeout_seconds,
        session_id=body.session_id,
        execution_id=body.execution_id,
    )


def _public_key(text: str | None) -> bytes:
    if text is None:
        raise FieldFault("public_key", "is required without wait")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""  # which is refused as every other that is none


def _sealed_out(sealed: Sealed) -> SealedOut:
    return SealedOut(base64.b64encode(sealed.enc).decode(), base64.b64encode(sealed.ct).decode())
