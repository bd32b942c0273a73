"""A person who decides without script: opens the page, presses, and presses again."""

from itertools import count
from typing import Any

import httpx

from tests.app import Api
from tests.inbox.person import Person
from tests.inbox.reading import Page

_numbers = count(1)


class Desk:
    """One person's page of one approval, as it was when they opened it."""

    def __init__(self, person: Person, approval_id: str, page: Page) -> None:
        self.person = person
        self.approval_id = approval_id
        self.page = page

    async def press(self, verdict: str, **typed: str) -> httpx.Response:
        """Press a button once, with what was typed; fields replace those of the page."""
        fields = {**self.page.fields(), "verdict": verdict, **typed}
        return await self.person.post(f"/inbox/{self.approval_id}/decision", fields)

    async def decide(self, verdict: str, **typed: str) -> httpx.Response:
        """Press a button and confirm it, as the script does with the second press."""
        return await self.press(verdict, confirmed=verdict, **typed)


async def opened(api: Api, approval_id: str, person: Person | None = None) -> Desk:
    """Open an approval's page; somebody in open mode where nobody is named."""
    person = person or Person(api)
    reply = await person.get(f"/inbox/{approval_id}")
    assert reply.status_code == 200, reply.text
    return Desk(person, approval_id, Page(reply.text))


async def status_of(api: Api, approval_id: str) -> Any:
    """How an approval stands."""
    return (await api.get(f"/approvals/{approval_id}")).json()["status"]


async def ask(api: Api, **fields: Any) -> str:
    """Ask in a run of its own; the approval's id."""
    return await api.asked(f"q-{next(_numbers)}", f"run-{next(_numbers)}", **fields)


async def ask_again(api: Api, approval_id: str, **fields: Any) -> str:
    """Ask in the same run: the next round, or what `approval_request_id` names."""
    asked = (await api.get(f"/approvals/{approval_id}")).json()
    if "request_id" not in fields:
        fields |= {"request_id": asked["approval_request_id"], "round": asked["round"] + 1}
    return str((await api.ask(execution_id=asked["execution_id"], **fields))["approval_id"])
