"""A contract reviewer: a person looks at its analysis, in as many rounds as it takes, somebody signs off, it is filed.

What it does itself is done in steps: kill it wherever you like and start it again, the run goes on behind the last one.
"""

import asyncio
import os
import re

from holdshort import Agent, FeedbackExpired, unique_id

app = Agent(node_id=os.environ.get("NODE_ID", "contract-reviewer"), version="1.0.0")
# A review tool's page; without one, people decide in the control plane's own inbox.
REVIEWS = os.environ.get("REVIEWS_URL", "")
CODE_SECONDS = 1800
FOLDERS = ["suppliers", "customers", "archive"]
RISKY = ("indemnif", "unlimited", "terminat", "exclusive")


def say(what: str) -> None:
    """Print what is done, and which process does it."""
    print(f"[{os.getpid()}] {what}".rstrip(), flush=True)


def read(document: str) -> list[str]:
    """The clauses of a contract."""
    say("step read")
    return [line.strip() for line in document.splitlines() if line.strip()]


async def analyse(clauses: list[str], remarks: list[str], seconds: float) -> dict[str, list[str]]:
    """What a person should look at, and what people said of it so far; `seconds` stand for a model that thinks."""
    say("step analyse")
    await asyncio.sleep(seconds)
    risks = [clause for clause in clauses if any(word in clause.lower() for word in RISKY)]
    return {"risks": risks, "remarks": remarks}


async def file_away(folder: str) -> str:
    """Put the contract away; the folder is the run's own, so that filing twice is filing once."""
    say("step file")
    return folder


async def confirmed() -> bool:
    """Have a person type the archive's one-time code, which only they have; nobody's answer confirms nothing."""
    while True:
        question = unique_id("code")
        say(f"code: asked for, {question}")
        try:
            code = await app.human_feedback(
                "The archive's one-time code, please: any six digits will do.", question, CODE_SECONDS, kind="secret"
            )
        except FeedbackExpired:
            say("code: nobody answered")
            return False
        if re.fullmatch(r"[0-9]{6}", code.strip()):
            say("code: right")
            return True
        say("code: wrong")


@app.reasoner()
async def review_contract(
    document: str, hours: float = 48, seconds: float = 0, questions: bool = False
) -> dict[str, object]:
    """Analyse, have the analysis reviewed until nobody wants a change, then ask for the signature and file it.

    With `questions` it also asks where to file it, and for a one-time code. The first answer is kept with the run; the
    code is short-lived, and kept nowhere.
    """
    clauses = await app.step("read", read, document)
    remarks: list[str] = []
    while True:
        analysis = await app.step("analyse", analyse, clauses, remarks, seconds)
        review = await app.pause(
            "analysis", REVIEWS, hours, title=f"Analysis, version {len(remarks) + 1}", payload=analysis
        )
        say(f"analysis: {review.decision} {review.feedback}")
        if not review.changes_requested:
            break
        remarks = [*remarks, review.feedback]
    if not review.approved:
        return {"status": review.decision, "feedback": review.feedback}

    sign_off = await app.pause("sign-off", REVIEWS, hours, title="Sign the contract", payload=analysis)
    say(f"sign-off: {sign_off.decision} {sign_off.feedback}")
    if not sign_off.approved:
        return {"status": sign_off.decision, "feedback": sign_off.feedback}
    folder = "archive"
    if questions:
        chosen = await app.ask(
            "Which folder does it go to?", options=FOLDERS, expires_in_hours=hours, approval_request_id="folder"
        )
        say(f"folder: {chosen.decision} {chosen.values}")
        if not chosen.approved or not await confirmed():
            return {"status": "not filed", "feedback": chosen.feedback}
        folder = chosen.values
    filed = await app.step("file", file_away, f"{folder}/{app.execution_id}")
    return {"status": "approved", "feedback": sign_off.feedback, "analysis": analysis, "filed": filed}


@app.reasoner()
async def look_up(execution_id: str, question: str) -> dict[str, object]:
    """What was decided about a run's question, also while this program was not there; waits while it is open."""
    result = await app.wait_for_resume(question, execution_id=execution_id)
    return {"status": result.decision, "feedback": result.feedback, "round": result.round}


if __name__ == "__main__":
    app.run(port=int(os.environ.get("PORT", "8001")))
