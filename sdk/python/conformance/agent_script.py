"""The one reasoner of a driver's agent, which performs what its input says."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from client_ops import told
from holdshort import Agent, Form, HoldshortError

Op = dict[str, Any]


class Performer:
    """Registers `perform`, and remembers which steps were done in this process.

    Args:
        agent: of the driver.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._journal: list[str] = []
        self._failed: set[str] = set()
        self._does: dict[str, Callable[[Any], Any]] = {
            "pause": self._pause,
            "step": self._step,
            "fail_once_step": self._fail_once_step,
            "ask": self._ask,
            "human_feedback": self._human_feedback,
            "note": self._note,
            "together": self._together,
            "fail": self._fail,
        }
        agent.reasoner(name="perform")(self._perform)
        self.ops = {"journal": self._told_journal, "wait_for_resume": self._wait_for_resume}

    async def _perform(self, script: list[Op]) -> list[Any]:
        return [await self._do(op) for op in script]

    async def _do(self, op: Op) -> Any:
        (name,) = op.keys() - {"catch"}
        try:
            return await self._does[name](op[name])
        except HoldshortError as error:
            if not op.get("catch"):
                raise
            refused = told(error)
            return {"error": {member: refused[member] for member in ("kind", "is", "code")}}

    async def _pause(self, args: Op) -> Any:
        asked = {name: value for name, value in args.items() if name != "timeout_seconds"}
        if "form" in asked:
            asked["form"] = msgspec.convert(asked["form"], Form)
        return msgspec.to_builtins(await self._agent.pause(**asked, timeout=args.get("timeout_seconds")))

    async def _step(self, args: Op) -> Any:
        async def done() -> Any:
            return await self._agent.step(args["name"], self._done, args["name"], args.get("result"))

        # A branch is a task of its own here, as `together` makes one for each of its parts.
        return await (asyncio.create_task(done()) if "branch" in args else done())

    def _done(self, name: str, result: Any) -> Any:
        self._journal.append(name)
        return result

    async def _fail_once_step(self, args: Op) -> Any:
        try:
            return await self._agent.step(args["name"], self._failing_once, args["name"], args.get("result"))
        except RuntimeError:
            return {"error": "Error"}

    def _failing_once(self, name: str, result: Any) -> Any:
        if name not in self._failed:
            self._failed.add(name)
            raise RuntimeError("the first time")
        return self._done(name, result)

    async def _ask(self, args: Op) -> Any:
        return msgspec.to_builtins(await self._agent.ask(**args))

    async def _human_feedback(self, args: Op) -> str:
        return await self._agent.human_feedback(
            args["message"],
            args["unique_id"],
            args["timeout_seconds"],
            args.get("options"),
            args.get("kind"),
            yes_label=args.get("yes_label"),
            no_label=args.get("no_label"),
        )

    async def _note(self, args: Op) -> None:
        self._agent.note(args["message"])

    async def _together(self, ops: list[Op]) -> list[Any]:
        return await asyncio.gather(*(self._do(op) for op in ops))

    async def _fail(self, args: Op) -> None:
        raise RuntimeError(args["message"])

    async def _told_journal(self, _: Op) -> list[str]:
        return list(self._journal)

    async def _wait_for_resume(self, args: Op) -> Any:
        return msgspec.to_builtins(
            await self._agent.wait_for_resume(
                args["approval_request_id"], args.get("execution_id"), args.get("timeout_seconds")
            )
        )
