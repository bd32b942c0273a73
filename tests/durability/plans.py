"""What a crowd of runs asks and is told, drawn from a seed; and what must come of each, by reasoning alone."""

import random
from typing import Any, NamedTuple

from tests.durability.plane import Webhook

SHORT_HOURS = 1.5 / 3600
KINDS = {
    "approved": (34, [("one", ["approved"]), ("two", ["approved"])]),
    "changed first": (12, [("one", ["request_changes", "approved"]), ("two", ["approved"])]),
    "changed twice later": (8, [("one", ["approved"]), ("two", ["request_changes", "request_changes", "approved"])]),
    "rejected": (10, [("one", ["rejected"])]),
    "rejected later": (10, [("one", ["approved"]), ("two", ["rejected"])]),
    "expired": (10, [("one", ["expired"])]),
    "expired later": (6, [("one", ["approved"]), ("two", ["expired"])]),
    "expired and went on": (6, [("one", ["expired"]), ("two", ["approved"])]),
    "asked nothing": (4, []),
}
ENDS_IT = {"rejected", "expired"}


class Answer(NamedTuple):
    """What one round of a question is answered, and how.

    `after` so many kills since it was asked, `early` before it was asked at all, and `copies` of it are sent.
    """

    request: str
    round: int
    decision: str
    after: int
    early: bool
    copies: int

    def webhook(self, execution_id: str) -> Webhook:
        named: dict[str, Any] = {} if self.early else {"round": self.round}
        return Webhook(execution_id, self.request, self.decision, feedback=feedback_of(self.decision), **named)


class Plan(NamedTuple):
    """One run: its kind, its answers in the order in which they are asked for, and how long its steps take."""

    number: int
    kind: str
    answers: list[Answer]
    seconds: float | None = None

    @property
    def input(self) -> dict[str, Any]:
        """What the program is called with: its questions; one that nobody answers has a short deadline."""
        questions: dict[str, dict[str, Any]] = {}
        for each in self.answers:
            question = questions.setdefault(each.request, {"id": each.request})
            if each.decision == "expired":
                on_expiry = "resume" if self.goes_on else "cancel"
                question |= {"hours": SHORT_HOURS, "on_expiry": on_expiry}
        return {"number": self.number, "questions": list(questions.values()), "seconds": self.seconds}

    @property
    def goes_on(self) -> bool:
        return self.kind == "expired and went on"

    @property
    def status(self) -> str:
        ended = bool(self.answers) and self.answers[-1].decision in ENDS_IT
        return "cancelled" if ended else "succeeded"

    @property
    def decisions(self) -> list[list[Any]]:
        """What the program must have been told, in order."""
        return [[each.request, each.round, each.decision, feedback_of(each.decision)] for each in self.answers]

    @property
    def steps(self) -> list[str]:
        """What the program must have done, in order."""
        done = ["prepare", "analyse"]
        for each in self.answers:
            if each.decision == "request_changes":
                done.append(f"revise {each.request}")
            elif each.decision in ENDS_IT and not self.goes_on:
                done.append("clean up")
            else:
                done.append(f"after {each.request}")
        return done


def feedback_of(decision: str) -> str:
    return "" if decision == "expired" else f"{decision}, with reasons"


def draw(count: int, seed: int) -> list[Plan]:
    """As many plans as wanted, the same ones for the same seed."""
    drawn = random.Random(seed)
    kinds = list(KINDS)
    chosen = drawn.choices(kinds, [KINDS[kind][0] for kind in kinds], k=count)
    return [Plan(number, kind, _answers(kind, drawn)) for number, kind in enumerate(chosen)]


def _answers(kind: str, drawn: random.Random) -> list[Answer]:
    answers: list[Answer] = []
    for request, decisions in KINDS[kind][1]:
        for number, decision in enumerate(decisions, 1):
            early = number == 1 and decision != "expired" and drawn.random() < 0.1
            copies = 2 if drawn.random() < 0.2 else 1
            answers.append(Answer(request, number, decision, drawn.choice((0, 0, 0, 1, 1, 2, 3)), early, copies))
    return answers
