"""The cards of short-lived questions on a page, and what a person does with them."""

from playwright.async_api import Locator, Page, expect


def card(page: Page, unique_id: str = "question-1") -> Locator:
    """One question's card."""
    return page.locator(f'article[data-feedback="{unique_id}"]')


def field(page: Page, unique_id: str = "question-1") -> Locator:
    """The field of a card."""
    return card(page, unique_id).locator("[name=response]")


async def send(page: Page, text: str, unique_id: str = "question-1") -> None:
    """Type an answer, send it, and see that it was taken."""
    await field(page, unique_id).fill(text)
    await card(page, unique_id).get_by_role("button", name="Send").click()
    await expect(card(page, unique_id)).to_contain_text("Response submitted")


async def place(shown: Locator) -> tuple[int, int]:
    """Where something stands, to the pixel that an eye could tell."""
    box = await shown.bounding_box()
    assert box is not None
    return round(box["x"] / 2), round(box["y"] / 2)
