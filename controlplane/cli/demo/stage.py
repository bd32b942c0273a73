"""Everything that the demo runs: PostgreSQL, control plane, agent, review service; started in order, all ended."""

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from controlplane.cli.demo.faults import DemoFault
from controlplane.cli.demo.programs import SEE_SECONDS, Program, free_port, stop
from controlplane.cli.demo.readback import Database, reading
from controlplane.cli.postgres import run_ephemeral
from controlplane.settings import Settings
from controlplane.storage import migrations

PACKAGE = Path(__file__).resolve().parents[2]
SENDER = "review-service"
CONTRACT = "The supplier indemnifies the customer.\nTermination is possible at any time.\nPayment within 30 days."


class Urls(NamedTuple):
    """Where each program listens."""

    control_plane: str
    agent: str
    reviews: str


class Stage(NamedTuple):
    """What runs, and where.

    `name` begins the ids of this demo's runs, so that several demos may share a database; `secret` signs the review
    service's webhooks.
    """

    name: str
    secret: str
    urls: Urls
    http: httpx.Client
    database: Database
    control_plane: Program
    agent: Program
    reviews: Program

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs, in the order in which they are started."""
        return (self.control_plane, self.agent, self.reviews)

    def call(self, reasoner: str, execution_id: str, arguments: dict[str, Any]) -> "Call":
        """Call a reasoner of the agent in the background; that may take as long as people do."""
        return Call(self.http, f"{self.urls.agent}/reasoners/{reasoner}", execution_id, arguments)

    def review(self, approval_id: str, action: str, feedback: str = "") -> httpx.Response:
        """Have the review service act, as its command in the demo's text does; its answer is the control plane's."""
        url = f"{self.urls.reviews}/reviews/{approval_id}/{action}"
        return self.http.post(url, data={"feedback": feedback})

    def webhook(self, body: bytes, signature: str) -> httpx.Response:
        """Post bytes to the control plane's webhook route under a signature, whether it fits them or not."""
        headers = {"content-type": "application/json", "x-webhook-signature": signature}
        url = f"{self.urls.control_plane}/api/v1/webhooks/approval-response"
        return self.http.post(url, content=body, headers=headers)


class Call:
    """A call of a reasoner in the background; its answer is the agent's own.

    Args:
        http: sends it.
        url: of the reasoner.
        execution_id: of the run that it starts or continues.
        arguments: the reasoner's input.
    """

    def __init__(self, http: httpx.Client, url: str, execution_id: str, arguments: dict[str, Any]) -> None:
        self.execution_id = execution_id
        self.begun = time.monotonic()
        self._answer: Future[httpx.Response] = Future()
        threading.Thread(target=self._send, args=(http, url, arguments), daemon=True).start()

    @property
    def answered(self) -> bool:
        """Whether the agent has answered, or is gone."""
        return self._answer.done()

    @property
    def broken(self) -> bool:
        """Whether the agent went away before it answered."""
        return self.answered and self._answer.exception() is not None

    def result(self) -> dict[str, Any]:
        """The reasoner's result, once the run has ended.

        Raises:
            DemoFault: the agent answered something else, went away, or did not answer within 15 s.
        """
        try:
            answer = self._answer.result(SEE_SECONDS)
        except (httpx.HTTPError, TimeoutError) as fault:
            raise DemoFault(f"the agent did not answer for {self.execution_id}: {fault!r}") from fault
        if answer.status_code != 200:
            raise DemoFault(f"the agent answered {answer.status_code} for {self.execution_id}: {answer.text}")
        result: dict[str, Any] = answer.json()["result"]
        return result

    def _send(self, http: httpx.Client, url: str, arguments: dict[str, Any]) -> None:
        headers = {"x-execution-id": self.execution_id}
        try:
            self._answer.set_result(http.post(url, json=arguments, headers=headers, timeout=None))
        except (httpx.HTTPError, RuntimeError) as fault:
            self._answer.set_exception(fault)


@contextmanager
def set_up(settings: Settings) -> Iterator[Stage]:
    """Start everything; at the end of the block, however it ends, everything is stopped, the last started first.

    Args:
        settings: names the database, else PostgreSQL is started on data that are thrown away.

    Raises:
        DemoFault: a program did not start.
    """
    folder = _examples()
    with ExitStack() as stack:
        url = settings.database_url or stack.enter_context(run_ephemeral(entropy=os.urandom)).url
        asyncio.run(migrations.migrate(settings.migration_database_url or url))
        http = stack.enter_context(httpx.Client(timeout=SEE_SECONDS, trust_env=False))
        stage = _stage(url, folder, stack.enter_context(reading(url)), http)
        stack.callback(stop, stage.programs)
        for program in stage.programs:
            program.start()
        for program in stage.programs:
            program.wait_until_ready()
        yield stage


def _stage(url: str, folder: Path, database: Database, http: httpx.Client) -> Stage:
    urls = Urls(*(f"http://127.0.0.1:{free_port()}" for _ in Urls._fields))
    secret = os.urandom(24).hex()
    known = {"HOLDSHORT_URL": urls.control_plane, "REVIEWS_URL": urls.reviews}
    served = {"HOLDSHORT_DATABASE_URL": url, "HOLDSHORT_WEBHOOK_SECRETS": f"{SENDER}:{secret}"}
    return Stage(
        name=f"demo-{os.urandom(3).hex()}",
        secret=secret,
        urls=urls,
        http=http,
        database=database,
        control_plane=Program(
            "the control plane",
            ["-m", "controlplane.cli", "serve", "--port", _port(urls.control_plane)],
            served,
            health=f"{urls.control_plane}/health/ready",
        ),
        agent=_example(folder, "agent", urls.agent, known, health="/health"),
        reviews=_example(
            folder, "review_service", urls.reviews, {**known, "WEBHOOK_SECRET": secret}, health="/reviews"
        ),
    )


def _example(folder: Path, name: str, url: str, environ: dict[str, str], *, health: str) -> Program:
    named = f"the {name.replace('_', ' ')}"
    return Program(named, [str(folder / f"{name}.py")], {**environ, "PORT": _port(url)}, health=url + health)


def _port(url: str) -> str:
    return url.rpartition(":")[2]


def _examples() -> Path:
    """Where the example programs are: inside the installed package, or at the top of a checkout."""
    if importlib.util.find_spec("holdshort") is None:
        raise DemoFault("the demo's agent needs the Python SDK: pip install 'holdshort-server[demo]'")
    packaged = PACKAGE / "_examples"
    return (packaged if packaged.is_dir() else PACKAGE.parent / "examples") / "contract_review"
