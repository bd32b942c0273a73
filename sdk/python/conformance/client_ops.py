"""What a driver's client does, by the names that all drivers share."""

import time
from typing import Any, Self

import msgspec
from holdshort import (
    ApprovalResult,
    ApprovalStatus,
    AsyncClient,
    HoldshortError,
    Question,
    RunEnded,
    WaitTimeout,
    webhooks,
)

HOLD_SECONDS = 50.0
Args = dict[str, Any]


class ClientOps:
    """The ops of a client; one with another key is made for each `api_key` that an op names.

    Args:
        node_id: of the agent, which executions are created for.
    """

    def __init__(self, node_id: str) -> None:
        self._node_id = node_id
        self._clients: dict[str | None, AsyncClient] = {}
        self.ops = {
            "create_execution": self._create_execution,
            "request_approval": self._request_approval,
            "get_approval_status": self._get_approval_status,
            "wait_for_approval": self._wait_for_approval,
            "withdraw": self._withdraw,
            "human_feedback": self._human_feedback,
            "verify_webhook": self._verify_webhook,
            "sign_webhook": self._sign_webhook,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for client in self._clients.values():
            await client.aclose()

    def _client(self, args: Args) -> AsyncClient:
        key = args.pop("api_key", None)
        if key not in self._clients:
            self._clients[key] = AsyncClient(api_key=key)
        return self._clients[key]

    async def _create_execution(self, args: Args) -> Any:
        made = await self._client(args).create_execution(self._node_id, args["execution_id"])
        return {"execution_id": made.execution_id, "status": made.status}

    async def _request_approval(self, args: Args) -> Any:
        client, execution_id, node_id = self._client(args), args.pop("execution_id"), args.pop("node_id", None)
        question = msgspec.convert(args, Question)
        asked = msgspec.to_builtins(await client.request_approval(execution_id, question, node_id=node_id))
        return _only(asked, "approval_id", "round", "status", "approval_request_url", "payload_digest")

    async def _get_approval_status(self, args: Args) -> Any:
        found = await self._client(args).get_approval_status(
            args["execution_id"],
            approval_request_id=args.get("approval_request_id"),
            wait=args.get("wait_seconds"),
        )
        return _only(msgspec.to_builtins(found), "status", "round", "approval_id", "response")

    async def _wait_for_approval(self, args: Args) -> Any:
        """Through restarts of the control plane, and for as long as it takes or the caller gives."""
        client, seconds = self._client(args), args.get("timeout_seconds")
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = HOLD_SECONDS if until is None else min(HOLD_SECONDS, max(0.0, until - time.monotonic()))
            found = await client.get_approval_status(
                args["execution_id"], approval_request_id=args.get("approval_request_id"), wait=left
            )
            if found.final:
                return msgspec.to_builtins(_result(found))
            if until is not None and time.monotonic() >= until:
                raise WaitTimeout

    async def _withdraw(self, args: Args) -> Any:
        return _only(msgspec.to_builtins(await self._client(args).withdraw(args["approval_id"])), "status")

    async def _human_feedback(self, args: Args) -> str:
        return await self._client(args).human_feedback(
            args["message"],
            args["unique_id"],
            args["timeout_seconds"],
            args.get("options"),
            args.get("kind"),
            yes_label=args.get("yes_label"),
            no_label=args.get("no_label"),
        )

    async def _verify_webhook(self, args: Args) -> Any:
        found = webhooks.verify(args["headers"], args["body"].encode(), args["secrets"], now=args["now"])
        return {"scheme": found.scheme, "webhook_id": found.webhook_id}

    async def _sign_webhook(self, args: Args) -> Any:
        return webhooks.sign(
            args["secret"],
            args["body"].encode(),
            scheme=args["scheme"],
            now=args["now"],
            webhook_id=args.get("webhook_id", ""),
        )


def told(error: BaseException) -> dict[str, Any]:
    """An error as every driver tells it; what is no error of the SDK is an Error, whatever its language calls it."""
    if not isinstance(error, HoldshortError | RunEnded):
        return {"kind": "Error", "is": [], "code": None, "status": None}
    bases = [each.__name__ for each in type(error).__mro__[1:] if issubclass(each, HoldshortError | RunEnded)]
    return {"kind": type(error).__name__, "is": bases, "code": error.code, "status": error.status}


def _only(members: Args, *names: str) -> Args:
    return {name: members.get(name) for name in names}


def _result(found: ApprovalStatus) -> ApprovalResult:
    answer = found.response
    return ApprovalResult(
        decision=found.status,  # type: ignore[arg-type]  # final, so one of its words
        feedback=answer.feedback if answer else "",
        execution_id=found.execution_id,
        approval_request_id=found.approval_request_id,
        approval_id=found.approval_id,
        round=found.round,
        data=answer.data if answer else None,
    )
