"""Pages: templates to replies, with the links and the headers that every page of the inbox has.

Every value is escaped, links lead below the path of `HOLDSHORT_PUBLIC_URL` on whatever host was asked, and nothing is
ever loaded from elsewhere.
"""

from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Request, Response

from controlplane.edge.deps import Anybody, runtime_of
from controlplane.inbox import present, present_text
from controlplane.inbox.static_files import FILES

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
}
MEDIA_TYPE = "text/html"

_templates = Environment(
    loader=PackageLoader("controlplane.inbox", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
)
_templates.globals |= {name: getattr(present, name) for name in present.FOR_TEMPLATES}
_templates.globals |= {"pieces": present_text.pieces, "prose": present_text.prose}


def link(request: Anybody, path: str, **query: str | None) -> str:
    """The address of a page of ours, as a path on the host that was asked.

    Args:
        request: what is answered.
        path: `/inbox/...`, its parts quoted where they are not our own words (`part`).
        query: parameters; those that are None or empty are left out.
    """
    public = runtime_of(request).settings.public_url
    below = urlsplit(public).path.rstrip("/") if public else ""
    given = urlencode({name: value for name, value in query.items() if value})
    return f"{below}{path}" + (f"?{given}" if given else "")


def part(value: str) -> str:
    """A text as one part of a path."""
    return quote(value, safe="~:")


def page(request: Request[Any, Any, Any], name: str, *, status: int = 200, **values: Any) -> Response[str]:
    """A whole page.

    Args:
        request: what is answered.
        name: the template's file name.
        status: the reply's status.
        values: what the template shows besides `viewer`, `url`, `static` and the functions of `present`.
    """
    return Response(fragment(request, name, **values), status_code=status, headers=HEADERS, media_type=MEDIA_TYPE)


def fragment(request: Request[Any, Any, Any], name: str, **values: Any) -> str:
    """A template's text, without a reply around it: a row or a card for the live stream."""

    def url(path: str, **query: str | None) -> str:
        return link(request, path, **query)

    def static(file: str) -> str:
        return url(f"/inbox/static/{file}", v=FILES[file].version)

    shared = {"viewer": request.state.get("viewer"), "url": url, "static": static, "part": part, "files": FILES}
    return _templates.get_template(name).render(**(shared | values))
