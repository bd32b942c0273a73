"""The inbox's own files: stylesheet, script and icon; read once, and named with the digest of what they hold."""

from hashlib import sha256
from importlib.resources import files
from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath
from msgspec import Struct

from controlplane.domain.errors import NotFound

_TYPES = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_FOR_EVER = "public, max-age=31536000, immutable"


class StaticFile(Struct, frozen=True):
    """A file as it is sent; `version` changes with its content."""

    content: bytes
    media_type: str
    version: str


def _read() -> dict[str, StaticFile]:
    folder = files("controlplane.inbox") / "static"
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in _TYPES}
    return {
        name: StaticFile(content, _TYPES[name.rpartition(".")[2]], sha256(content).hexdigest()[:16])
        for name, content in found.items()
    }


FILES = _read()


@get("/inbox/static/{name:str}", include_in_schema=False)
async def static_file(request: Request[Any, Any, Any], name: FromPath[str]) -> Response[bytes]:
    """One of our own files; under its version it never changes, otherwise a browser asks whether it did.

    Raises:
        NotFound: there is no such file.
    """
    found = FILES.get(name)
    if found is None:
        raise NotFound
    tag = f'"{found.version}"'
    kept = request.query_params.get("v") == found.version
    headers = {"ETag": tag, "Cache-Control": _FOR_EVER if kept else "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(b"", status_code=304, headers=headers, media_type=found.media_type)
    return Response(found.content, headers=headers, media_type=found.media_type)
