"""Who looks at a page, as templates and handlers see them."""

from msgspec import Struct

from controlplane.domain.access import ANYBODY_HERE, Principal
from controlplane.domain.keys import Scope
from controlplane.domain.sessions import token_of
from controlplane.runtime.session_book import Signed


class Viewer(Struct, frozen=True, kw_only=True):
    """A person: their key's name and scopes, and the session that they signed in to (None in open mode).

    `csrf` is what every form of theirs carries; empty in open mode, where there is no session to bind it to.
    """

    name: str
    key_id: str | None
    session_id: str | None
    scopes: frozenset[Scope]
    csrf: str = ""
    signed: Signed | None = None

    def may(self, scope: Scope | str) -> bool:
        """Whether their key has a scope: a control that it may not use is not drawn."""
        return scope in self.scopes

    @property
    def admin(self) -> bool:
        """Whether they administer: see deliveries and what they came to."""
        return Scope.ADMIN in self.scopes

    @property
    def reviewer(self) -> bool:
        """Whether they decide and answer."""
        return Scope.REVIEW in self.scopes


ANYBODY = Viewer(name=ANYBODY_HERE.name, key_id=None, session_id=None, scopes=ANYBODY_HERE.scopes)


def viewer_from(signed: Signed, secret: bytes) -> Viewer:
    """Who is signed in, with the token that their cookie's secret gives their forms."""
    principal: Principal = signed.principal
    return Viewer(
        name=principal.name,
        key_id=principal.key_id,
        session_id=signed.session.session_id,
        scopes=principal.scopes,
        csrf=token_of(secret),
        signed=signed,
    )
