"""Headers of requests that carry a number or a label: a fence is a number that the database holds, or a refusal."""

from litestar import Request

from controlplane.domain.errors import FieldFault
from controlplane.edge.deps import FENCE_HEADER, fence_of, label_of
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept

_FENCES = (
    *(b"1", b"0", b"7", b"9223372036854775807", b"9223372036854775808", b"-1", b"+1", b"01", b"1_0", b" 1", b""),
    *(b"1.0", "\u0661".encode(), b"\xb2", b"1e3", b"99999999999999999999"),
)
_LABELS = (b"run-1", b"", b" ", b"\xe9", b"a\tb", b"a" * 255, b"a" * 256)


def try_headers(data: bytes) -> str:
    """A request's headers for the fence and the run's name."""
    draw = Draw(data)
    number = draw.choice((1, 1, 1, 0, 2))
    fences = [draw.mutated(draw.choice(_FENCES), 1 if draw.once_in(3) else 0) for _ in range(number)]
    label = draw.mutated(draw.choice(_LABELS), 1)
    lines = [(FENCE_HEADER.lower().encode(), each) for each in fences]
    return judge_headers([*lines, (b"x-run-id", label)])


def judge_headers(lines: list[tuple[bytes, bytes]]) -> str:
    request: Request[object, object, object] = Request(
        {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": lines}  # type: ignore[arg-type]
    )
    fences = [value for name, value in lines if name != b"x-run-id"]
    label = lines[-1][1].strip()
    _judge_label(request, label.decode("latin-1").strip())
    right = len(fences) == 1 and fences[0].isdigit() and len(fences[0]) <= 19 and int(fences[0]) < 2**63
    try:
        fence = fence_of(request)
    except FieldFault as refusal:
        if right or not fences:
            raise Disagreement(f"{fences} was refused") from None
        return refusal.code
    if fence is None:
        if fences:
            raise FalseAccept(f"{fences} counts as none: nothing is fenced")
        return "no fence"
    if not right or fence != int(fences[0]):
        raise FalseAccept(f"{fences} is read as {fence}")
    return "a fence"


def _judge_label(request: Request[object, object, object], sent: str) -> None:
    printable = all(32 <= ord(char) < 127 for char in sent) and len(sent) <= 255
    try:
        label = label_of(request, "x-run-id")
    except FieldFault:
        if printable:
            raise Disagreement(f"{sent!r} was refused") from None
        return
    if not printable or label != (sent or None):
        raise FalseAccept(f"{sent!r} is kept as {label!r}")
