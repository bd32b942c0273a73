"""The parts of a long run that need a server: raw bytes on its connections, and requests from its description."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import islice

from tests.app import served
from tests.fuzz import talking
from tests.fuzz.draw import made
from tests.fuzz.outcomes import Fault, Tally, Target
from tests.fuzz.surveying import Survey, survey
from tests.fuzz.worker import Report
from tests.postgres import Database

# Each kind of request to each operation is made so often for each that is asked for.
CASES_OF_ONE_EXAMPLE = 550


async def connections(_: Database | None, inputs: int, seed: int, report: Report) -> None:
    tally, source = Tally(talking.TARGET), made(seed, inputs)
    async with talking.serving() as endpoint:
        while not report.over and (some := list(islice(source, talking.AT_ONCE))):
            await talking.talk(endpoint, tally, some)
            report.say(tally)
    report.end(tally)


async def api(database: Database, inputs: int, seed: int, report: Report) -> None:
    seen = Survey()
    tally = Tally(Target("api", str, share=0, meets=frozenset()))
    async with served(database, workers=False, open_mode=False) as made_app:
        examples = max(2, round(inputs / CASES_OF_ONE_EXAMPLE))
        work = asyncio.create_task(survey(made_app, seen, examples=examples, at=seed))
        while not work.done():
            await asyncio.wait([work], timeout=1.0)
            tally.inputs = seen.cases
            report.say(tally)
        await work
    _told(seen, tally)
    report.end(tally)


def _told(seen: Survey, tally: Tally) -> None:
    """What the survey saw as a tally: an answer of 500 and more is what nobody caught, the rest disagrees."""
    tally.inputs = seen.cases
    for (_, status), count in seen.statuses.items():
        tally.words[f"{status // 100}xx"] += count
    for fault, count in seen.faults.items():
        kind = "uncaught" if " answered 5" in fault else "disagreement"
        tally.faults[kind, fault] = Fault(kind, fault, seen.examples[fault], count, [seen.examples[fault]])


SERVED: dict[str, Callable[..., Awaitable[None]]] = {"connections": connections, "api": api}
