"""Access: who calls, what each route is for, and which runs a caller may see and touch."""

from enum import StrEnum

from msgspec import Struct

from controlplane.domain.allow_list import Entry
from controlplane.domain.errors import NotAllowed
from controlplane.domain.keys import Scope


class Access(StrEnum):
    """What a route is for; every route has one, and a route without one is refused to everybody."""

    NOBODY = "nobody"  # nobody said what it is for
    PUBLIC = "public"  # needs no key: a word of health, or a webhook whose signature is the proof
    ANY = "any"  # whoever has a key
    AGENT = "agent"  # a node's own doings
    REVIEW = "review"  # what a person decides
    ADMIN = "admin"
    READ = "read"  # everybody, an agent its own nodes' only
    RUNS = "runs"  # everybody, an agent what it started or its own nodes' only
    EXECUTE = "execute"  # an agent, of any node
    CANCEL = "cancel"  # everybody, an agent what it started or its own nodes' only
    WITHDRAW = "withdraw"  # the asking agent, or a reviewer
    FEEDBACK = "feedback"  # an agent, what its own key asked of a person
    INBOX = "inbox"  # a page for people: whoever decides or administers


_ALLOWED: dict[Access, frozenset[Scope]] = {
    Access.ANY: frozenset(Scope),
    Access.AGENT: frozenset({Scope.AGENT}),
    Access.REVIEW: frozenset({Scope.REVIEW}),
    Access.ADMIN: frozenset({Scope.ADMIN}),
    Access.READ: frozenset(Scope),
    Access.RUNS: frozenset(Scope),
    Access.EXECUTE: frozenset({Scope.AGENT}),
    Access.CANCEL: frozenset(Scope),
    Access.WITHDRAW: frozenset({Scope.AGENT, Scope.REVIEW}),
    Access.FEEDBACK: frozenset({Scope.AGENT}),
    Access.INBOX: frozenset({Scope.REVIEW, Scope.ADMIN}),
}


# Whoever started a run may see how it stands and cancel it; what is done, asked and noted in it is its own node's.
_STARTED_TOO = frozenset({Access.RUNS, Access.CANCEL, Access.EXECUTE})


class Reach(Struct, frozen=True):
    """Which runs a caller may see and touch: those of some nodes, and those it started; None of nodes is every run.

    `nodes` is what was known when the key was read; nodes that `owner` has come to own since count as well.
    """

    nodes: frozenset[str] | None = None
    owner: str | None = None
    starter: str | None = None

    def covers(self, node_id: str | None, started_by: str | None = None) -> bool:
        """Whether a run of this node, started by this key, is in reach by what is known."""
        if self.nodes is None or node_id in self.nodes:
            return True
        return started_by is not None and started_by == self.starter


EVERYTHING = Reach()


class Principal(Struct, frozen=True, kw_only=True):
    """Who calls: a key with its scopes, or, in open mode, anybody on this machine.

    `owned` are the nodes that are the key's own, `nodes` those that it acts for: of a bound key only the one it is
    bound to, also before that is its own, and not once it is another key's. `allowance` is what its node may
    have called.
    """

    key_id: str | None
    name: str
    scopes: frozenset[Scope]
    node_id: str | None = None
    owned: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    allowance: tuple[Entry, ...] = ()

    def hears(self, node_id: str) -> bool:
        """Whether it sees what this node answered us: an administrator, and the node itself."""
        return Scope.ADMIN in self.scopes or (Scope.AGENT in self.scopes and node_id in self.nodes)

    def reach(self, access: Access) -> Reach:
        """Which runs it may see and touch by a route: an agent its nodes', and in part those it started elsewhere."""
        if self.scopes - {Scope.AGENT}:
            return EVERYTHING
        owner = self.key_id if self.node_id is None else None
        return Reach(self.nodes, owner, self.key_id if access in _STARTED_TOO else None)


ANYBODY_HERE = Principal(key_id=None, name="operator", scopes=frozenset(Scope))


def check(principal: Principal, access: Access) -> None:
    """Refuse a caller that a route is not for.

    Raises:
        NotAllowed: no scope of the caller's key is one of the route's.
    """
    allowed = _ALLOWED.get(access, frozenset())
    if not principal.scopes & allowed:
        wanted = " or ".join(sorted(allowed)) or "nobody"
        raise NotAllowed(f"This takes a key of scope {wanted}; use another key.", scopes=sorted(allowed))
