"""What `holdshort demo --auto` does in the inbox, as a person whose browser runs no script."""

import time

from controlplane.cli.demo.faults import check
from controlplane.cli.demo.page import Page
from controlplane.cli.demo.stage import Stage
from controlplane.cli.demo.steps import Tell, ask, check_outcome

CODE = "493201"
FOLDER = "suppliers"


def decided_in_the_inbox(stage: Stage, tell: Tell) -> None:
    """A person on the pages of the agent's questions: approves, chooses an option, types a one-time code."""
    asked = ask(stage, "inbox", questions=True)
    took = _approve(stage, asked.run, "analysis", "As it is.", feedback="As it is.")
    tell("the page: Approve, and once more to confirm; the agent resumed with the comment", took)
    _approve(stage, asked.run, "sign-off", "")
    took = _approve(stage, asked.run, "folder", FOLDER, **{"value.answer": FOLDER})
    tell("a question that keeps: an option chosen on its page; the agent has it", took)
    named = stage.agent.wrote("code: asked for, ", asked.begun).text.rpartition(" ")[2]
    path = f"/inbox/feedback/{stage.database.question(named).unique_id}"
    card = Page(stage.http, stage.urls.control_plane, path)
    begun = time.monotonic()
    card.press(f"{path}/answer", response=CODE)
    check("Response submitted" in card.text, "`Response submitted`", f"{card.status} {card.text[:200]}")
    tell("a one-time code, typed into its card; the agent has it", stage.agent.wrote("code: right", begun).at - begun)
    begun = time.monotonic()
    check_outcome(stage, asked.run, "succeeded", "approved")
    told = [program.name for program in stage.everything if program.written(CODE, asked.begun)]
    check(not told and CODE not in card.text, "the code in no log and on no page", told)
    tell("the run ended; the code is in no log, on no page", time.monotonic() - begun)


def _approve(stage: Stage, run: str, request_id: str, then: str, **given: str) -> float:
    """Approve on the question's page, in two presses; the seconds from the second one until the agent went on."""
    question = stage.database.approval(run, request_id, "pending").approval
    path = f"/inbox/{question.approval_id}"
    page = Page(stage.http, stage.urls.control_plane, path)
    page.press(f"{path}/decision", verdict="approved", **given)
    check('value="back"' in page.text, "the verdict armed by the first press", f"{page.status} {page.text[:200]}")
    stage.database.approval(run, request_id, "pending")
    begun = time.monotonic()
    page.press(f"{path}/decision", verdict="approved", **given)
    return stage.agent.wrote(f"{request_id}: approved {then}".rstrip(), begun).at - begun
