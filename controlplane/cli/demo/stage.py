"""Everything that the demo runs: PostgreSQL, control plane, agent, review service; started in order, all ended."""

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from controlplane.cli import needs
from controlplane.cli.demo.faults import DemoFault
from controlplane.cli.demo.programs import POLL_SECONDS, SEE_SECONDS, Program, free_port, stop
from controlplane.cli.demo.readback import Database, reading
from controlplane.cli.postgres import run_ephemeral
from controlplane.settings import Settings
from controlplane.storage import migrations

PACKAGE = Path(__file__).resolve().parents[2]
SENDER = "review-service"
REASONER = "review_contract"
HOLD_SECONDS = 10
CONTRACT = "The supplier indemnifies the customer.\nTermination is possible at any time.\nPayment within 30 days."


class Urls(NamedTuple):
    """Where each program listens."""

    control_plane: str
    agent: str
    reviews: str
    second_agent: str


class Started(NamedTuple):
    """A run that the control plane was asked for: under which key and with which arguments, and when."""

    execution_id: str
    key: str
    arguments: dict[str, Any]
    begun: float


class Stage(NamedTuple):
    """What runs, and where.

    `name` begins the ids of this demo's runs, `node` is its agent's, so that several demos may share a database;
    `secret` signs the review service's webhooks. `second_agent` is not started with the others.
    """

    name: str
    node: str
    secret: str
    urls: Urls
    http: httpx.Client
    database: Database
    control_plane: Program
    agent: Program
    reviews: Program
    second_agent: Program

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs that always run, in the order in which they are started."""
        return (self.control_plane, self.agent, self.reviews)

    @property
    def everything(self) -> tuple[Program, ...]:
        """Whatever may have been started."""
        return (*self.programs, self.second_agent)

    def execute(self, word: str, **arguments: Any) -> Started:
        """Have the control plane find an agent for a review.

        Raises:
            DemoFault: it would not.
        """
        begun = time.monotonic()
        key = f"{self.name}-{word}"
        answer = self._post_execute("execute/async", key, arguments)
        if answer.status_code != 202:
            raise DemoFault(f"the control plane answered {answer.status_code} to execute: {answer.text}")
        return Started(answer.json()["execution_id"], key, arguments, begun)

    def hold(self, started: Started) -> "Call":
        """Wait for a run's result in the background, with a call that is repeated until it was answered."""

        def until_ended() -> httpx.Response:
            while True:
                with suppress(httpx.TransportError):
                    answer = self._post_execute(f"execute?wait={HOLD_SECONDS}", started.key, started.arguments)
                    if answer.status_code == 200:
                        return answer
                time.sleep(POLL_SECONDS)

        return Call(started.execution_id, until_ended)

    def call(self, reasoner: str, execution_id: str, arguments: dict[str, Any]) -> "Call":
        """Call a reasoner at the agent itself, in the background: a run that nobody dispatches."""
        url, headers = f"{self.urls.agent}/reasoners/{reasoner}", {"x-execution-id": execution_id}
        return Call(execution_id, lambda: self.http.post(url, json=arguments, headers=headers, timeout=None))

    def review(self, approval_id: str, action: str, feedback: str = "") -> httpx.Response:
        """Have the review service act, as its command in the demo's text does; its answer is the control plane's."""
        url = f"{self.urls.reviews}/reviews/{approval_id}/{action}"
        return self.http.post(url, data={"feedback": feedback})

    def waiting(self) -> list[str]:
        """The approvals of this demo's agent that wait for a decision."""
        query = {"status": "pending", "node_id": self.node, "order": "deadline", "limit": "200"}
        page = self.http.get(f"{self.urls.control_plane}/api/v1/approvals", params=query).json()
        return [each["approval_id"] for each in page["approvals"]]

    def webhook(self, body: bytes, signature: str) -> httpx.Response:
        """Post bytes to the control plane's webhook route under a signature, whether it fits them or not."""
        headers = {"content-type": "application/json", "x-webhook-signature": signature}
        url = f"{self.urls.control_plane}/api/v1/webhooks/approval-response"
        return self.http.post(url, content=body, headers=headers)

    def _post_execute(self, route: str, key: str, arguments: dict[str, Any]) -> httpx.Response:
        way, _, query = route.partition("?")
        url = f"{self.urls.control_plane}/api/v1/{way}/{self.node}.{REASONER}?{query}"
        return self.http.post(url, json={"input": arguments}, headers={"idempotency-key": key})


class Call:
    """A call in the background that may take as long as people do.

    Args:
        execution_id: of the run that it starts, continues or waits for.
        ask: sends it and returns the answer to it.
    """

    def __init__(self, execution_id: str, ask: Callable[[], httpx.Response]) -> None:
        self.execution_id = execution_id
        self.begun = time.monotonic()
        self._answer: Future[httpx.Response] = Future()
        threading.Thread(target=self._send, args=(ask,), daemon=True).start()

    def result(self) -> dict[str, Any]:
        """The run's result, once it has ended.

        Raises:
            DemoFault: the answer is another, or did not come within 15 s.
        """
        try:
            answer = self._answer.result(SEE_SECONDS)
        except (httpx.HTTPError, TimeoutError) as fault:
            raise DemoFault(f"there was no answer for {self.execution_id}: {fault!r}") from fault
        if answer.status_code != 200:
            raise DemoFault(f"the answer for {self.execution_id} was {answer.status_code}: {answer.text}")
        result: dict[str, Any] = answer.json()["result"]
        return result

    def _send(self, ask: Callable[[], httpx.Response]) -> None:
        try:
            self._answer.set_result(ask())
        except (httpx.HTTPError, RuntimeError) as fault:
            self._answer.set_exception(fault)


@contextmanager
def set_up(settings: Settings) -> Iterator[Stage]:
    """Start everything; at the end of the block, however it ends, everything is stopped, the last started first.

    Args:
        settings: names the database, else PostgreSQL is started on data that are thrown away.

    Raises:
        DemoFault: a program did not start, or the database has API keys: the demo's programs have none.
    """
    folder = _examples()
    with ExitStack() as stack:
        url = settings.database_url or stack.enter_context(run_ephemeral(entropy=os.urandom)).url
        asyncio.run(migrations.migrate(settings.migration_database_url or url))
        if asyncio.run(needs.has_key(url)):
            raise DemoFault("the demo runs without API keys, and this database has some; give it another one, or none")
        http = stack.enter_context(httpx.Client(timeout=SEE_SECONDS, trust_env=False))
        database = stack.enter_context(reading(url))
        stage = _stage(url, folder, database, http)
        stack.callback(stop, stage.everything)
        for program in stage.programs:
            program.start()
        for program in stage.programs:
            program.wait_until_ready()
        database.instance(stage.node, stage.urls.agent)
        yield stage


def _stage(url: str, folder: Path, database: Database, http: httpx.Client) -> Stage:
    urls = Urls(*(f"http://127.0.0.1:{free_port()}" for _ in Urls._fields))
    secret, mark = os.urandom(24).hex(), os.urandom(3).hex()
    node = f"contract-reviewer-{mark}"
    known = {"HOLDSHORT_URL": urls.control_plane, "NODE_ID": node}
    served = {"HOLDSHORT_DATABASE_URL": url, "HOLDSHORT_WEBHOOK_SECRETS": f"{SENDER}:{secret}"}
    return Stage(
        name=f"demo-{mark}",
        node=node,
        secret=secret,
        urls=urls,
        http=http,
        database=database,
        control_plane=Program(
            "the control plane",
            ["-m", "controlplane.cli", "dev", "--port", _port(urls.control_plane)],
            served,
            health=f"{urls.control_plane}/health/ready",
        ),
        agent=_agent("the agent", folder, urls.agent, known),
        reviews=Program(
            "the review service",
            [str(folder / "review_service.py")],
            {**known, "WEBHOOK_SECRET": secret, "PORT": _port(urls.reviews)},
            health=f"{urls.reviews}/reviews",
        ),
        second_agent=_agent("the second agent", folder, urls.second_agent, known),
    )


def _agent(name: str, folder: Path, url: str, environ: dict[str, str]) -> Program:
    return Program(name, [str(folder / "agent.py")], {**environ, "PORT": _port(url)}, health=f"{url}/health")


def _port(url: str) -> str:
    return url.rpartition(":")[2]


def _examples() -> Path:
    """Where the example programs are: inside the installed package, or at the top of a checkout."""
    if importlib.util.find_spec("holdshort") is None:
        raise DemoFault("the demo's agent needs the Python SDK: pip install 'holdshort-server[demo]'")
    packaged = PACKAGE / "_examples"
    return (packaged if packaged.is_dir() else PACKAGE.parent / "examples") / "contract_review"
