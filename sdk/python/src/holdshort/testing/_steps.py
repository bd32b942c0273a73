"""The rules of steps in memory: each is kept once, at its place in the run."""

from typing import Annotated, Any

import msgspec

from holdshort._wire import FINAL_EXECUTION, Step
from holdshort.testing._book import Book, Ran, Refusal

_LARGEST = 1024 * 1024
_PAGE_BYTES = 4 * 1024 * 1024
_MOST = 200
_Name = Annotated[
    str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*(?![\s\S])", min_length=1, max_length=200)
]


class Told(msgspec.Struct, kw_only=True):
    """The body of a step."""

    name: _Name
    occurrence: Annotated[int, msgspec.Meta(ge=1)]
    result: Any
    previous: Annotated[str, msgspec.Meta(max_length=256)] | None = None


def keep(book: Book, run: Ran, told: Told) -> Step:
    """Keep a step, or find the one that is kept."""
    if _size(told.result) > _LARGEST:
        raise Refusal("step_too_large", "a step's result is larger than 1 MiB", limit_bytes=_LARGEST)
    if run.status in FINAL_EXECUTION:
        more = {"execution_status": run.status, "status_reason": run.status_reason}
        raise Refusal("invalid_state", f"the execution is {run.status}, so no step can be kept", **more)
    for kept in run.steps:
        if (kept.name, kept.occurrence) == (told.name, told.occurrence):
            if kept.previous == told.previous:
                return kept
            raise Refusal("step_mismatch", "this step stands at another place in the run", previous=kept.previous)
    step = Step(**msgspec.structs.asdict(told), position=len(run.steps) + 1, at=book.now)
    run.steps.append(step)
    book.progressed(run)
    return step


def page(run: Ran, after: int, limit: int) -> dict[str, Any]:
    """The steps behind a position, about 4 MiB of them."""
    found: list[Step] = []
    size = 0
    for step in run.steps[after : after + min(limit, _MOST)]:
        size += _size(step.result)
        if found and size > _PAGE_BYTES:
            break
        found.append(step)
    end = after + len(found)
    return {"steps": found, "next_after": end if end < len(run.steps) else None}


def _size(result: Any) -> int:
    return len(msgspec.json.encode(result))
