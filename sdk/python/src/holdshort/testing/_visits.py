"""One call of a route over the book, taken apart, and an answer that waits."""

from collections.abc import Callable
from typing import Any

import msgspec

from holdshort.testing._book import Book, Refusal


class Hold(msgspec.Struct):
    """An answer that waits until something is `over`, or the call's time is up."""

    over: Callable[[], bool]
    show: Callable[[], Any]
    seconds: float


class Visit(msgspec.Struct):
    """One call, taken apart."""

    book: Book
    names: dict[str, str]
    query: dict[str, str]
    body: Any
    headers: dict[str, str]

    def required(self, member: str) -> Any:
        """A member of the body that must be there."""
        if member not in self.body:
            raise invalid(member, "required")
        return self.body[member]


Handler = Callable[[Visit], Any]


def invalid(field: str, rule: str) -> Refusal:
    """A field and the rule that it breaks."""
    return Refusal("invalid_field", f"{field}: {rule}", errors=[{"field": field, "rule": rule}])


def check_fence(visit: Visit) -> None:
    """Refuse what somebody says of a run that was given to another one since."""
    approval = visit.book.approvals.get(visit.names.get("approval", ""))
    run = visit.book.executions.get(approval.execution_id if approval else visit.names.get("execution", ""))
    if run is not None and run.dispatched and visit.headers.get("x-holdshort-fence") != str(run.fence):
        raise Refusal("stale_instance", "another instance took this run over", fence=run.fence)


def seconds(wait: Any) -> float:
    """For how long a call may be held."""
    longest = float(wait)
    if not 0 <= longest <= 60:
        raise invalid("wait", "0 to 60 s")
    return longest
