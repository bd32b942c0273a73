"""A server that is killed and started again under an open page: the page says so, comes back, and is right again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from playwright.async_api import Browser, expect

from tests.browser.conftest import live, visiting
from tests.browser.deciding import banner, comment
from tests.cli.processes import Running, running
from tests.postgres import Database


@contextmanager
def dev(home: Path, database: Database, port: int = 0) -> Iterator[tuple[Running, str]]:
    with running("dev", "--port", str(port), HOLDSHORT_HOME=str(home), HOLDSHORT_DATABASE_URL=database.url) as process:
        yield process, process.wait_until_ready()


def post(base: str, path: str, **body: object) -> dict[str, object]:
    reply = httpx.post(f"{base}/api/v1{path}", json=body, timeout=30)
    assert reply.status_code < 300, reply.text
    return dict(reply.json())


def ask(base: str, name: str) -> str:
    post(base, "/executions", node_id="node-1", execution_id=name)
    return str(post(base, f"/executions/{name}/request-approval", approval_request_id=name)["approval_id"])


async def test_a_page_converges_after_a_kill(browser: Browser, database: Database, tmp_path: Path):
    with ExitStack() as stack:
        process, base = stack.enter_context(dev(tmp_path, database))
        one, other = ask(base, "run-1"), ask(base, "run-2")
        async with visiting(browser, base) as visitor:
            visitor.watch.expect("ERR_")
            page = await visitor.go(f"/inbox/{one}")
            rows = await visitor.context.new_page()
            await rows.goto(f"{base}/inbox")
            for each in (page, rows):
                await live(each)
            await comment(page).fill("typed before")
            process.kill()
            await expect(page.locator("[data-connection]")).to_contain_text("Reconnecting")
            with dev(tmp_path, database, int(base.rpartition(":")[2])):
                post(base, f"/approvals/{one}/decision", decision="rejected")
                ask(base, "run-3")
                await expect(page.locator("[data-connection]")).to_be_hidden(timeout=60_000)
                await expect(banner(page)).to_contain_text("Rejected")
                await expect(page.locator("textarea[name=feedback]")).to_have_value("typed before")
                await expect(rows.locator(f"article[data-approval={one}]")).to_contain_text("Rejected", timeout=60_000)
                await expect(rows.get_by_role("button", name="1 new")).to_be_visible()
                await expect(rows.locator(f"article[data-approval={other}]")).to_have_attribute(
                    "data-status", "pending"
                )
                await expect(rows).to_have_title("(2) Waiting · Holdshort")
                await visitor.context.close()
