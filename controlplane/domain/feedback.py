"""Short-lived questions: seconds to half an hour, whose answer goes to the one call that waits and is nowhere else."""

from enum import StrEnum


class FeedbackStatus(StrEnum):
    """The states of a short-lived question; all but `pending` are final and never change."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
