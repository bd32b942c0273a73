"""Scripts of short-lived questions, as those in `scripts`."""

from typing import Any

from holdshort import FeedbackAnswer
from holdshort._seals import Lock

from tests.contract.scripts import Does, Ids, script

MINE, ANOTHERS = Lock(), Lock()


def opened(answer: FeedbackAnswer, unique_id: str) -> str | None:
    return answer.sealed and MINE.open(unique_id, answer.sealed.enc, answer.sealed.ct)


async def ask(do: Does, unique_id: str, **rest: Any) -> None:
    await do("ask_feedback", unique_id, "Which?", rest.pop("key", MINE).public_key, **rest)


@script
async def questions_are_answered_once(do: Does, ids: Ids) -> None:
    for method, rest in (("feedback_answer", ()), ("submit_feedback", ("x",)), ("end_feedback", ())):
        await do(method, ids.run, *rest)
    await ask(do, ids.run, options=["Red", "Blue"], session_id="s", execution_id="run-1")
    await ask(do, ids.run, options=["Red", "Blue"], session_id="s", execution_id="run-1")
    await ask(do, ids.run, options=["Red", "Blue"], session_id="s", execution_id="run-1", key=ANOTHERS)
    await ask(do, ids.run, options=["Red", "Blue", "Green"], session_id="s", execution_id="run-1")
    await do.waiting(ids.run)
    await do("feedback_answer", ids.run, wait=0.05)
    for unclear in ("", " \n", "Green", "Red Blue", "x" * 17_000):
        await do("submit_feedback", ids.run, unclear)
    await do.waiting(ids.run)
    await do("submit_feedback", ids.run, " red ", submission_id="s1")
    for submission in ("s1", "s2", None):
        await do("submit_feedback", ids.run, "Blue", submission_id=submission)
    await do.waiting(ids.run)
    for _ in range(2):
        do.keep(opened(await do("feedback_answer", ids.run, wait=5), ids.run))
    await do("end_feedback", ids.run)
    await do("feedback_answer", ids.run)
    await do("end_feedback", ids.run)
    await do("submit_feedback", ids.run, "Red", submission_id="s1")
    await ask(do, ids.run, options=["Red", "Blue"])


@script
async def each_kind_takes_its_own_answers(do: Does, ids: Ids) -> None:
    kinds: list[tuple[dict[str, Any], list[str]]] = [
        ({}, ["", " as it was typed\n"]),
        ({"kind": "secret"}, ["\t", "482913"]),
        ({"kind": "yes_no"}, ["", "ok", "perhaps", "no yes", "TRUE"]),
        ({"kind": "yes_no", "yes_label": "Send", "no_label": "Keep it"}, ["sen", "KEEP IT"]),
        ({"kind": "yes_no", "yes_label": "Send"}, ["reject"]),
        ({"kind": "multiple_choice", "options": ["No", "no", "Yes"]}, ["NO", "n", "yes"]),
    ]
    for number, (kind, said) in enumerate(kinds):
        name = f"{ids.run}-{number}"
        await ask(do, name, **kind)
        await do.waiting(name)
        for each in said:
            await do("submit_feedback", name, each)
        do.keep(opened(await do("feedback_answer", name), name))


@script
async def questions_end_without_an_answer(do: Does, ids: Ids) -> None:
    await ask(do, f"{ids.run}-1")
    await do("end_feedback", f"{ids.run}-1")
    await ask(do, f"{ids.run}-2", timeout_seconds=5)
    await do.pass_deadline(f"{ids.run}-2")
    for name in (f"{ids.run}-1", f"{ids.run}-2"):
        await do.waiting(name)
        await do("submit_feedback", name, "late")
        await do("feedback_answer", name, wait=5)
        await do("end_feedback", name)
        await ask(do, name)


@script
async def questions_are_checked(do: Does, ids: Ids) -> None:
    many = [str(number) for number in range(21)]
    wrong: list[dict[str, Any]] = [
        {"kind": "perhaps"},
        {"kind": "multiple_choice"},
        {"kind": "text", "options": ["a"]},
        *({"options": options} for options in ([], ["a", "a"], ["a", " a "], [" "], ["a\nb"], ["x" * 201], many)),
        {"yes_label": "Send"},
        {"kind": "yes_no", "yes_label": "Go", "no_label": "Go"},
        {"kind": "yes_no", "yes_label": " NO "},
        {"kind": "yes_no", "no_label": "approve"},
        *({"timeout_seconds": seconds} for seconds in (0, 4.9, 1801, -300)),
    ]
    for each in wrong:
        await ask(do, ids.run, **each)
    for name in ("", "a b", "x" * 129, "\u00e9"):
        await do("ask_feedback", name, "Which?", MINE.public_key)
    for message in ("", " \n", "m" * 4001):
        await do("ask_feedback", ids.run, message, MINE.public_key)
    for key in ("", "AAAA", "no base64", MINE.public_key[:-2]):
        await do("ask_feedback", ids.run, "Which?", key)
    await do("feedback_answer", ids.run, wait=61)
    await do.waiting(ids.run)
