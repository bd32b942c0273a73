"""Addresses that callers give are judged when they are given, so that whoever gives one hears of a refusal at once.

This spares waiting, it guards nothing: every connection is judged by itself. So a name that does not resolve in time is
let through, and what a name resolved to is remembered for a few seconds: asking with a name costs no look-up each time.
"""

import asyncio

from controlplane.delivery.backend import judged_addresses
from controlplane.delivery.resolver import Resolver, Unresolved
from controlplane.domain import egress
from controlplane.domain.allow_list import Entry
from controlplane.domain.egress import Policy, Refusal
from controlplane.domain.errors import CallbackUrlRefused

REMEMBERED_SECONDS = 10.0
MOST_REMEMBERED = 1000


class Gate:
    """Judges URLs for one event loop."""

    def __init__(self, policy: Policy, resolver: Resolver) -> None:
        """Remember nothing yet.

        Args:
            policy: what this process may call.
            resolver: looks names up; not the one that sending uses, so that names that hang hold no sending up.
        """
        self._policy = policy
        self._resolver = resolver
        self._remembered: dict[str, tuple[float, list[str]]] = {}

    async def check(self, url: str, allowance: tuple[Entry, ...] = (), *, field: str = "callback_url") -> None:
        """Return if this server may call a URL, or cannot know yet because its name does not resolve within 2 s.

        Args:
            url: what the caller gave; an http(s) URL.
            allowance: what is allowed beside the operator's list.
            field: the field that it stands in.

        Raises:
            CallbackUrlRefused: it may not; names the rule, the setting that would allow it, and no address that the
                caller did not write.
        """
        try:
            judged = await judged_addresses(self._policy, self._resolve, egress.target_of(url), allowance)
        except Unresolved:
            return
        if isinstance(judged, Refusal):
            raise _refused(field, judged)

    async def _resolve(self, name: str) -> list[str]:
        """The addresses of a name, none for one that does not resolve now."""
        now = asyncio.get_running_loop().time()
        until, answers = self._remembered.get(name, (now, []))
        if until <= now:
            answers = await self._look_up(name)
            if len(self._remembered) >= MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[name] = (asyncio.get_running_loop().time() + REMEMBERED_SECONDS, answers)
        if not answers:
            raise Unresolved
        return answers

    async def _look_up(self, name: str) -> list[str]:
        try:
            return await self._resolver.resolve(name)
        except Unresolved:
            return []


def _refused(field: str, refusal: Refusal) -> CallbackUrlRefused:
    setting = {} if refusal.setting is None else {"setting": refusal.setting}
    why = refusal.why()
    return CallbackUrlRefused(
        f"{field}: {why}", errors=[{"field": field, "rule": why}], rule=str(refusal.rule), **setting
    )
