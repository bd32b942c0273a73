"""A contract reviewer: a person looks at its analysis, in as many rounds as it takes, and then signs off."""

import os

from holdshort import Agent

app = Agent(node_id="contract-reviewer", version="1.0.0")
REVIEWS = os.environ.get("REVIEWS_URL", "http://127.0.0.1:8090")
RISKY = ("indemnif", "unlimited", "terminat", "exclusive")


def analyse(document: str, remarks: list[str]) -> dict[str, list[str]]:
    """What a person should look at, and what people said about it so far."""
    lines = [line.strip() for line in document.splitlines()]
    return {"risks": [line for line in lines if any(word in line.lower() for word in RISKY)], "remarks": remarks}


@app.reasoner()
async def review_contract(document: str, hours: float = 48) -> dict[str, object]:
    """Analyse, have the analysis reviewed until nobody wants a change, then ask for the signature."""
    remarks: list[str] = []
    while True:
        analysis = analyse(document, remarks)
        review = await app.pause(
            "analysis", REVIEWS, hours, title=f"Analysis, version {len(remarks) + 1}", payload=analysis
        )
        print(f"analysis: {review.decision} {review.feedback}".rstrip(), flush=True)
        if not review.changes_requested:
            break
        remarks = [*remarks, review.feedback]
    if not review.approved:
        return {"status": review.decision, "feedback": review.feedback}

    sign_off = await app.pause("sign-off", REVIEWS, hours, title="Sign the contract", payload=analysis)
    print(f"sign-off: {sign_off.decision} {sign_off.feedback}".rstrip(), flush=True)
    return {"status": sign_off.decision, "feedback": sign_off.feedback, "analysis": analysis}


@app.reasoner()
async def look_up(execution_id: str, question: str) -> dict[str, object]:
    """What was decided about a run's question, also while this program was not there; waits while it is open."""
    result = await app.wait_for_resume(question, execution_id=execution_id)
    return {"status": result.decision, "feedback": result.feedback, "round": result.round}


if __name__ == "__main__":
    app.run(port=int(os.environ.get("PORT", "8001")))
