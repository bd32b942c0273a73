"""Who fails too often is told to wait: asked only with a refusal in hand, so that what is right is never refused."""

from controlplane.domain.errors import HoldshortError, TooManyFailures
from controlplane.edge.deps import Anybody, address_of, runtime_of


def counted(asked: Anybody, refusal: HoldshortError) -> HoldshortError:
    """What a wrong key or signature is answered with: its own refusal, or past the limit `TooManyFailures`.

    Whether there is such a key makes no difference to it: every wrong one counts, as does one that is none of ours.
    """
    runtime = runtime_of(asked)
    seconds = runtime.failures.count(address_of(asked), runtime.monotonic())
    return TooManyFailures(retry_after_seconds=seconds) if seconds else refusal


def is_suspect(asked: Anybody) -> bool:
    """Whether so many failures came from the caller's address that its unknown keys are looked up one at a time."""
    runtime = runtime_of(asked)
    return runtime.failures.passed(address_of(asked), runtime.monotonic())
