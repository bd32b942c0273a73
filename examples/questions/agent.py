"""Questions that may wait for days: each is kept, and so is its answer, through every restart."""

import os
from dataclasses import dataclass

from holdshort import Agent

app = Agent(node_id=os.environ.get("NODE_ID", "planner"), version="1.0.0")


@dataclass
class Trip:
    """What a person fills in: one field of the form each."""

    nights: int
    hotel: str


@app.reasoner()
async def plan_trip(city: str) -> dict[str, object]:
    """Ask where to go by which means, and for what a plan needs; a question that is turned down ends the plan."""
    means = await app.ask(f"How shall we travel to {city}?", options=["by train", "by plane"])
    if not means.approved:
        return {"status": means.decision, "feedback": means.feedback}
    trip = await app.ask(f"What shall I book in {city}?", schema=Trip)
    if not trip.approved:
        return {"status": trip.decision, "feedback": trip.feedback}
    booked: Trip = trip.values
    return {"status": "planned", "means": means.values, "nights": booked.nights, "hotel": booked.hotel}


if __name__ == "__main__":
    app.run(port=int(os.environ.get("PORT", "8001")))
