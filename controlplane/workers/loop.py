"""The loop that every worker runs in: look, sleep until woken or due, go on after any fault."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from controlplane import telemetry
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.runtime import Pulse

POLL_SECONDS = 1.0
WATCHDOG_SECONDS = 15.0

Step = Callable[[], Awaitable[float]]
_log = structlog.get_logger()


async def repeat(name: str, step: Step, wake: Pulse) -> None:
    """Call `step` for ever; it returns how many seconds may pass until the next call, if nothing wakes it before.

    A step that does not end within 15 s is cancelled and begun anew. A fault is logged and the step is tried
    again after the poll bound; nothing ends the loop but cancelling it.
    """
    while True:
        mark = wake.mark
        pause = await _guarded(name, step)
        if pause > 0:
            await wake.after(mark, min(pause, POLL_SECONDS))
        else:
            await asyncio.sleep(0)


async def _guarded(name: str, step: Step) -> float:
    try:
        async with asyncio.timeout(WATCHDOG_SECONDS):
            return await step()
    except DatabaseUnavailable as error:
        _log.warning("worker_waits_for_database", worker=name, cause=telemetry.said(error.__cause__))
    except TimeoutError:
        _log.error("worker_stalled", worker=name, seconds=WATCHDOG_SECONDS)
    except Exception:
        _log.exception("worker_failed", worker=name)
    return POLL_SECONDS
