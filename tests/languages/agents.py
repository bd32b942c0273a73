"""The drivers that scenarios are played with: shared ones of each mode, and those that a scenario may kill."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.cli.demo.programs import free_port
from tests.languages import sdks
from tests.languages.driving import Driver
from tests.languages.planes import Plane
from tests.languages.scenarios import Scenario
from tests.languages.sdks import Sdk


class Pool:
    """The shared drivers of one SDK, one for each callback mode that was asked for; each is a node of its own.

    Args:
        sdk: whose they are.
        plane: that they work with.
        session: of the tests, which what they ran is counted for.
    """

    def __init__(self, sdk: Sdk, plane: Plane, session: str) -> None:
        self._sdk = sdk
        self._plane = plane
        self._environ = sdks.environ_of(sdk, session)
        self._node = f"{sdk.name}-{secrets.token_hex(4)}"
        self._started: dict[str, Driver] = {}

    def of(self, mode: str) -> Driver:
        """The shared one of a mode."""
        if mode not in self._started:
            self._started[mode] = self.start(self.node_of(mode), mode, free_port())
        return self._started[mode]

    def node_of(self, mode: str) -> str:
        """The node of the shared one of a mode."""
        return f"{self._node}-{mode}"

    def start(self, node: str, mode: str, port: int) -> Driver:
        """One more, which its caller ends."""
        environ = {"HOLDSHORT_URL": self._plane.url, "HOLDSHORT_API_KEY": self._plane.keys.agent}
        told = {"NODE": node, "CALLBACK": mode}
        driver = Driver(self._sdk.driver(), {**self._environ, **environ, **told}, port)
        try:
            driver.wait_until_ready()
        except BaseException:
            driver.close()
            raise
        return driver

    def end(self) -> None:
        """End all that are shared, and see that they end well."""
        try:
            for driver in self._started.values():
                driver.end()
        finally:
            for driver in self._started.values():
                driver.close()


class Cast:
    """The drivers of one play."""

    def __init__(self, pool: Pool, scenario: Scenario) -> None:
        self._pool = pool
        self._mode = scenario.mode
        self._own: Driver | None = None
        self._node = f"own-{secrets.token_hex(4)}"
        self._port = free_port() if scenario.own else 0
        for mode in scenario.modes if not scenario.own else ():
            pool.of(mode)
        if scenario.own:
            self.start()

    def named(self, mode: str | None) -> Driver:
        return self._own if self._own is not None else self._pool.of(mode or self._mode)

    def node_of(self, mode: str | None) -> str:
        return self._node if self._own is not None else self._pool.node_of(mode or self._mode)

    def kill(self) -> None:
        assert self._own is not None
        self._own.kill()

    def start(self) -> None:
        self._own = self._pool.start(self._node, self._mode, self._port)

    def end(self) -> None:
        """End what is the play's own."""
        if self._own is not None:
            self._own.end()

    def close(self) -> None:
        """Leave nothing of it behind."""
        if self._own is not None:
            self._own.close()


@contextmanager
def cast(pool: Pool, scenario: Scenario) -> Iterator[Cast]:
    """The drivers of a play; its own one is seen to end well when the play did."""
    made = Cast(pool, scenario)
    try:
        yield made
        made.end()
    finally:
        made.close()
