"""Makes the pictures in docs/images from the running product: `make screenshots`, or with names, those only."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page, async_playwright, expect

from controlplane.domain import allow_list
from tests import postgres
from tests.app import Api, served
from tests.browser import tools
from tests.browser.cards import card, field
from tests.browser.conftest import COUNTED, visiting
from tests.browser.deciding import arm, comment, decide
from tests.browser.samples import CONTRACT, DEPLOY, MIGRATION, REFUND, ask, asking
from tests.keys import keep_key, keep_keys, sent
from tests.postgres import Database

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 200 * 1024
DESK = {"width": 1100, "height": 800}
PHONE = {"width": 390, "height": 780}
# The same words for times wherever the pictures are made.
HERE: dict[str, Any] = {
    "locale": "en-GB",
    "timezone_id": "UTC",
    "reduced_motion": "reduce",
    "device_scale_factor": 1.25,
}
REVIEWER = "ann"
# Nobody is there to be told.
ALLOWED = allow_list.parse("127.0.0.1:9")
TOLD = {"callback_url": "http://127.0.0.1:9/webhooks/approval"}

DISCOUNT: dict[str, Any] = {
    "title": "Which discount may I offer Brightwater?",
    "description": "They asked for 10 %. Their volume has been level for two years.",
    "payload": {"customer": "Brightwater Logistics B.V.", "asked for": "10 %", "usual": "5 to 8 %"},
    "form": {
        "kind": "form",
        "schema": {
            "type": "object",
            "properties": {
                "discount": {"type": "number", "title": "Discount in %", "minimum": 0, "maximum": 12},
                "valid for": {"type": "string", "title": "Valid for", "enum": ["this order", "this year", "the term"]},
                "note": {"type": "string", "title": "A word to the customer"},
            },
            "required": ["discount", "valid for"],
        },
    },
    "expires_in_hours": 20,
}


class Scene:
    """The application with its data, and a browser to look at it with."""

    def __init__(self, browser: Browser, api: Api, key: str, ids: dict[str, str]) -> None:
        self.browser = browser
        self.api = api
        self.ids = ids
        self._key = key

    @asynccontextmanager
    async def page(self, path: str, **options: Any) -> AsyncIterator[Page]:
        """A page of somebody who has signed in."""
        async with visiting(self.browser, self.api.base, **(HERE | {"viewport": DESK} | options)) as visitor:
            page = await visitor.go(path)
            await page.get_by_label("Your key").fill(self._key)
            await page.get_by_role("button", name="Sign in").click()
            await expect(page).to_have_title(COUNTED)
            yield page


async def inbox_list(scene: Scene) -> None:
    """The list with a question for now on top."""
    async with asking(scene.api, kind="secret"), scene.page("/inbox") as page:
        await expect(card(page)).to_be_visible()
        await _keep(page, "inbox-list")


async def approval(scene: Scene) -> None:
    """What is asked, with before and after, and the bar that it is decided in."""
    async with scene.page(f"/inbox/{scene.ids['migration']}", viewport=DESK | {"height": 1060}) as page:
        await _keep(page, "approval")


async def armed(scene: Scene) -> None:
    """A verdict after its first press."""
    async with scene.page(f"/inbox/{scene.ids['refund']}") as page:
        await comment(page).fill("Go ahead, and tell the customer today.")
        await arm(page, "approved")
        await _keep(page, "armed")


async def question(scene: Scene) -> None:
    """A question that keeps for days, with a form."""
    async with scene.page(f"/inbox/{scene.ids['discount']}", viewport=DESK | {"height": 1340}) as page:
        await page.get_by_label("Discount in %").fill("8")
        await page.get_by_label("this year").check()
        await _keep(page, "question")


async def feedback(scene: Scene) -> None:
    """A one-time code while it is typed, and a choice."""
    options = ["Aisle, row 14", "Window, row 22"]
    message = "The cheaper fare has two seats left. Which one?"
    async with (
        asking(scene.api, unique_id="code", kind="secret"),
        asking(scene.api, message, unique_id="seat", options=options),
        scene.page("/inbox", viewport=DESK | {"height": 470}) as page,
    ):
        await field(page, "code").fill("493021")
        await expect(card(page, "seat")).to_be_visible()
        await _keep(page, "feedback")


async def settled(scene: Scene) -> None:
    """How an approval looks once it was decided."""
    async with scene.page(f"/inbox/{scene.ids['deploy']}") as page:
        await decide(page, "approved", "Go. Keep the canary for one more hour.")
        await page.reload()
        await expect(page.locator("[data-banner]")).to_contain_text(REVIEWER)
        await _keep(page, "settled")


async def dark(scene: Scene) -> None:
    """An approval by night."""
    options: dict[str, Any] = {"color_scheme": "dark", "viewport": DESK | {"height": 1060}}
    async with scene.page(f"/inbox/{scene.ids['contract']}", **options) as page:
        await _keep(page, "dark")


async def phone(scene: Scene) -> None:
    """An approval on a phone."""
    options: dict[str, Any] = {"viewport": PHONE, "is_mobile": True, "has_touch": True}
    async with scene.page(f"/inbox/{scene.ids['refund']}", **options) as page:
        await _keep(page, "phone")


async def sign_in(scene: Scene) -> None:
    """Where people sign in with their key."""
    async with visiting(scene.browser, scene.api.base, **(HERE | {"viewport": DESK | {"height": 420}})) as visitor:
        await _keep(await visitor.go("/inbox"), "sign-in")


async def runs(scene: Scene) -> None:
    """The runs of all agents, those that wait for a person among them."""
    async with scene.page("/inbox/executions", viewport=DESK | {"height": 720}) as page:
        await _keep(page, "runs")


async def run(scene: Scene) -> None:
    """One run with what happened in it."""
    async with scene.page("/inbox/executions/run-0147", viewport=DESK | {"height": 900}) as page:
        await _keep(page, "run")


async def deliveries(scene: Scene) -> None:
    """The callbacks, and how far they are."""
    async with scene.page("/inbox/deliveries", viewport=DESK | {"height": 480}) as page:
        await _keep(page, "deliveries")


async def nodes(scene: Scene) -> None:
    """The agents, and which of them are there."""
    async with scene.page("/inbox/nodes", viewport=DESK | {"height": 620}) as page:
        await _keep(page, "nodes")


async def status(scene: Scene) -> None:
    """Whether the server does its work."""
    async with scene.page("/inbox/status", viewport=DESK | {"height": 720}) as page:
        await _keep(page, "status")


SCENES: tuple[Callable[[Scene], Awaitable[None]], ...] = (
    inbox_list,
    approval,
    armed,
    question,
    feedback,
    dark,
    phone,
    sign_in,
    runs,
    nodes,
    settled,
    run,
    deliveries,
    status,
)


async def _keep(page: Page, name: str) -> None:
    await page.mouse.move(0, 0)
    await page.evaluate("scrollTo(0, 0)")
    path = IMAGES / f"{name}.png"
    await page.screenshot(path=path, animations="disabled", caret="hide")
    size = path.stat().st_size
    print(f"{path.name}: {size // 1024} KiB")
    if size > MOST_BYTES:
        raise SystemExit(f"{path.name} has {size:,} bytes; at most {MOST_BYTES:,} are kept")


async def _furnish(api: Api) -> dict[str, str]:
    for node in ("legal-desk", "dba", "support", "release", "sales"):
        await api.post("/nodes/register", {"id": node, "base_url": "http://127.0.0.1:9", "version": "2.4.1"})
    ids = {
        "migration": await ask(api, MIGRATION, "drop-legacy-total", run="run-0147", node="dba"),
        "contract": await ask(api, CONTRACT, "renew-msa-2041", run="run-2041", node="legal-desk"),
        "refund": await ask(api, REFUND, "refund-88-1203", run="run-88-1203", node="support"),
        "deploy": await ask(api, DEPLOY | TOLD, "deploy-checkout-4180", run="run-4180", node="release"),
        "discount": await ask(api, DISCOUNT, "discount-brightwater", run="run-2042", node="sales"),
    }
    await api.post("/executions/run-0147/notes", {"message": "Compared 48,211,903 rows.", "tags": ["check"]})
    return ids


async def _make(database: Database, names: list[str]) -> None:
    agent = (await keep_keys(database)).agent
    reviewer = await keep_key(database, REVIEWER, "review", "admin")
    async with async_playwright() as playwright, served(database, open_mode=False, callback_allow=ALLOWED) as api:
        api.client.headers.update(sent(agent))
        browser = await playwright.chromium.launch(executable_path=tools.chromium(), args=tools.arguments())
        scene = Scene(browser, api, reviewer, await _furnish(api))
        for each in SCENES:
            if not names or each.__name__ in names:
                await each(scene)
        await browser.close()


def main(names: list[str]) -> None:
    """Make the pictures with these names; all of them when there is none."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    environ = dict(os.environ)
    with (
        postgres.serve(postgres.choose(environ), environ) as server,
        postgres.template(server) as template,
        postgres.clone(server, template) as database,
    ):
        asyncio.run(_make(database, names))


if __name__ == "__main__":
    main(sys.argv[1:])
