"""The routes of short-lived questions, over the book."""

from typing import Any

import msgspec

from holdshort.testing import _questions
from holdshort.testing._book import Refusal
from holdshort.testing._visits import Handler, Hold, Visit, invalid, seconds

_LARGEST = 16 * 1024


def _ask(visit: Visit) -> Any:
    try:
        told = msgspec.convert(visit.body, _questions.Told)
    except msgspec.ValidationError as error:
        raise invalid("body", str(error)) from error
    asked = _questions.ask(visit.book, told)
    return {"unique_id": told.unique_id, "created_at": asked.created_at, "expires_at": asked.expires_at}


def _answer(visit: Visit) -> Any:
    longest = seconds(visit.query.get("wait", 0))
    asked = _questions.named(visit.book, visit.names["question"])
    return Hold(lambda: not asked.pending, lambda: _questions.read(visit.book, asked), longest)


def _end(visit: Visit) -> Any:
    asked = _questions.end(visit.book, visit.names["question"])
    return {"unique_id": asked.told.unique_id, "outcome": asked.status}


def _submit(visit: Visit) -> Any:
    if len(msgspec.json.encode(visit.body)) > _LARGEST:
        raise Refusal("body_too_large", f"an answer is at most {_LARGEST} bytes")
    unique_id, response = visit.required("unique_id"), visit.required("response")
    _questions.submit(visit.book, unique_id, response, visit.body.get("submission_id"))
    return {"unique_id": unique_id, "status": "success", "message": "Response submitted"}


def _pending(visit: Visit) -> Any:
    return {"requests": [_questions.shown(asked) for asked in _questions.pending(visit.book)]}


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", "/human-feedback", _ask),
    ("GET", "/human-feedback/{question}/answer", _answer),
    ("DELETE", "/human-feedback/{question}", _end),
    ("POST", "/api/human-feedback/submit", _submit),
    ("GET", "/api/human-feedback/pending", _pending),
)
