"""What the acceptance tests share: the older SDKs' environment, a control plane, an agent, and somebody who asks."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance import environment
from tests.acceptance.desk import Desk
from tests.acceptance.peers import Peer, peer
from tests.durability.plane import Plane, planes
from tests.postgres import Server, clone


@pytest.fixture(scope="session")
def peer_python(given_environ: dict[str, str]) -> Path:
    """The Python of the older SDKs; where it cannot be had the tests are skipped, but never in CI."""
    try:
        return environment.build(given_environ)
    except environment.NotBuilt as error:
        if os.environ.get("CI"):
            pytest.fail(f"the older SDKs cannot be installed: {error}")
        pytest.skip(f"the older SDKs cannot be installed: {error}")


@pytest.fixture(scope="module")
def plane(postgres_server: Server, template_database: str) -> Iterator[Plane]:
    """One control plane for all of them."""
    with clone(postgres_server, template_database) as database, planes(database.url) as (made,):
        yield made


@pytest.fixture(scope="module")
def agent(peer_python: Path, plane: Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    """One agent, the node `peer`, for those that neither stop it nor look at all that it sends."""
    with peer(peer_python, plane.url, tmp_path_factory.mktemp("peer")) as made:
        yield made


@pytest.fixture
async def desk(plane: Plane) -> AsyncIterator[Desk]:
    async with httpx.AsyncClient(base_url=plane.url, timeout=90, trust_env=False) as client:
        yield Desk(client)
