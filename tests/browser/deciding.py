"""What a person does on an approval's page, and what became of it."""

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.app import Api

VERDICTS = {"approved": "Approved", "rejected": "Rejected", "request_changes": "Changes requested"}


def verdict(page: Page, word: str) -> Locator:
    """The button that gives it: the first press arms it, the second confirms."""
    return page.locator(f"form[data-decide] button[name=verdict][value={word}]")


def banner(page: Page) -> Locator:
    """What says how an approval ended."""
    return page.locator("[data-banner]:visible")


def comment(page: Page) -> Locator:
    """The field for the words to the agent."""
    return page.get_by_label("Comment for the agent")


async def decide(page: Page, word: str, feedback: str = "") -> None:
    """Give a verdict in two presses, and see it stand."""
    if feedback:
        await comment(page).fill(feedback)
    await arm(page, word)
    await confirm(page, word)


async def arm(page: Page, word: str) -> None:
    """Press once."""
    await verdict(page, word).click()
    await expect_armed(page, word)


async def expect_armed(page: Page, word: str) -> None:
    """The verdict that waits for its confirmation; empty: none."""
    await expect(page.locator("input[name=confirmed]")).to_have_value(word)


async def confirm(page: Page, word: str) -> None:
    """Press an armed verdict again, and see it stand."""
    await verdict(page, word).click()
    await expect(banner(page)).to_contain_text(VERDICTS[word])


async def status_of(api: Api, approval_id: str) -> str:
    """Where it stands, as the API says."""
    return str((await api.get(f"/approvals/{approval_id}")).json()["status"])


async def told(api: Api, execution_id: str = "run-1") -> tuple[str, str | None]:
    """The status and the words that the agent of a run is told."""
    reply: dict[str, Any] = (await api.get(f"/executions/{execution_id}/approval-status")).json()
    return reply["status"], (reply["response"] or {}).get("feedback")
