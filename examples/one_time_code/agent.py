"""Signing in somewhere with a one-time code that only a person has: it is typed into the inbox and kept nowhere."""

import os

from holdshort import Agent, FeedbackExpired, unique_id

app = Agent(node_id=os.environ.get("NODE_ID", "bank-clerk"), version="1.0.0")
PATIENCE_SECONDS = 300


def sign_in(code: str) -> bool:
    """Stand in for the bank's own page; what it is given it keeps to itself."""
    return code.isdecimal() and len(code) == 6


@app.reasoner()
async def fetch_statement(account: str) -> dict[str, object]:
    """Ask for the code that the bank just sent, and sign in with it; no code in time is no sign-in."""
    question = f"The code that the bank just sent you, to read the statement of {account}:"
    try:
        code = await app.human_feedback(question, unique_id("bank-code"), PATIENCE_SECONDS, kind="secret")
    except FeedbackExpired:
        return {"status": "nobody_answered"}
    # The code stands in no step, no note and no result: those are kept.
    return {"status": "signed_in" if sign_in(code) else "wrong_code", "account": account}


if __name__ == "__main__":
    app.run(port=int(os.environ.get("PORT", "8001")))
