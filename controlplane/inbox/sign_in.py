"""Signing in with a key, and out: the key is sent once in a form's body and is kept nowhere."""

from http import HTTPStatus
from typing import Any

from litestar import Request, Response, get, post
from litestar.response import Redirect

from controlplane.domain import keys, sessions
from controlplane.domain.access import Principal
from controlplane.domain.door_errors import HttpsNeeded
from controlplane.domain.errors import HoldshortError, InvalidKey, NotAllowed
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import Presented, Scope
from controlplane.edge.deps import address_of, runtime_of
from controlplane.edge.errors import problem
from controlplane.edge.throttle import counted, is_suspect
from controlplane.inbox import links, session
from controlplane.inbox.deps import actor_of, transaction, viewer_of
from controlplane.inbox.forms import form_of, unbound_form
from controlplane.inbox.https import is_private
from controlplane.inbox.rendering import link, page
from controlplane.services import sessions as service

LIMIT = 16 * 1024
NO_KEY = "Paste the key that you were given; `holdshort keys create NAME --scope review` makes one."
WRONG_KEY = "This is no key of ours, or it was revoked or is past its time. Use another, or ask who manages the keys."
AGENTS_KEY = "This is an agent's key, which asks and never decides. Sign in with a key of scope review (or admin)."


@get("/", include_in_schema=False)
async def root(request: Request[Any, Any, Any]) -> Redirect:
    """People who type the address only mean the inbox."""
    return Redirect(link(request, links.HOME), status_code=303)


@get(links.SIGN_IN, include_in_schema=False)
async def show_sign_in(request: Request[Any, Any, Any]) -> Response[Any]:
    """The form to sign in with; whoever is signed in, or needs not be, goes on.

    Raises:
        HttpsNeeded: others could read what is sent.
    """
    wanted = links.way_back(request.query_params.get("next"))
    if await session.signed_in(request, used=True) is not None:
        return _on(request, wanted)
    _check_private(request)
    return _form(request, wanted)


@post(links.SIGN_IN, include_in_schema=False, status_code=303)
async def sign_in(request: Request[Any, Any, Any]) -> Response[Any]:
    """Open a session for a key that decides or administers; the one that the browser had before is ended.

    Raises:
        HttpsNeeded: others could read what is sent.
        CrossOrigin: no page of ours sent it: whoever visits another page is not signed in by that.
    """
    _check_private(request)
    runtime = runtime_of(request)
    sent = await unbound_form(request, limit=LIMIT)
    wanted = links.way_back(next(iter(sent.get("next", ())), None))
    if runtime.open:
        return _on(request, wanted)
    text = next(iter(sent.get("key", ())), "").strip()
    if not text:
        return _form(request, wanted, NO_KEY, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    presented, principal = await _recognised(request, text)
    if presented is None or principal is None:
        return _refusal(request, wanted, counted(request, InvalidKey(WRONG_KEY)))
    if not principal.scopes & {Scope.REVIEW, Scope.ADMIN}:
        return _refusal(request, wanted, NotAllowed(AGENTS_KEY))
    secret = runtime.entropy(sessions.ENTROPY_BYTES)
    before = session.secret_of(request)
    opening = service.Opening(
        digest=sessions.digest_of(secret),
        session_id=runtime.new_id("ses_"),
        presented=presented,
        before=None if before is None else sessions.digest_of(before),
    )
    async with runtime.transaction() as conn:
        await service.open_session(conn, opening, _actor(request, principal))
    if opening.before is not None:
        runtime.sessions.forget(opening.before)
    reply = _on(request, wanted)
    reply.set_cookie(session.cookie(secret))
    return reply


@post("/inbox/sign-out", include_in_schema=False, status_code=303)
async def sign_out(request: Request[Any, Any, Any]) -> Response[Any]:
    """End the session that this was sent with; its cookie is worth nothing from now on, wherever it is kept."""
    await form_of(request, limit=LIMIT)
    signed = viewer_of(request).signed
    if signed is not None:
        digest = signed.session.digest
        async with transaction(request) as conn:
            await service.end(conn, digest, sessions.Why.SIGNED_OUT, actor_of(request))
        runtime_of(request).sessions.forget(digest)
    reply = Redirect(link(request, links.SIGN_IN), status_code=303)
    reply.set_cookie(session.no_cookie())
    return reply


def _check_private(request: Request[Any, Any, Any]) -> None:
    if not is_private(request):
        raise HttpsNeeded


async def _recognised(request: Request[Any, Any, Any], text: str) -> tuple[Presented | None, Principal | None]:
    presented = keys.read(text)
    if presented is None:
        return None, None
    return presented, await runtime_of(request).keys.recognise(presented, suspect=is_suspect(request))


def _actor(request: Request[Any, Any, Any], principal: Principal) -> Actor:
    return Actor(ActorKind.PERSON, principal.name, "inbox", address_of(request), principal.key_id)


def _on(request: Request[Any, Any, Any], wanted: str) -> Redirect:
    return Redirect(link(request, wanted), status_code=303)


def _refusal(request: Request[Any, Any, Any], wanted: str, refusal: HoldshortError) -> Response[Any]:
    status, headers, _ = problem(refusal)
    reply = _form(request, wanted, refusal.message, status=status)
    reply.headers.update(headers)
    return reply


def _form(
    request: Request[Any, Any, Any], wanted: str, fault: str | None = None, *, status: int = HTTPStatus.OK
) -> Response[Any]:
    return page(request, "sign-in.html", status=status, wanted=wanted, fault=fault)
