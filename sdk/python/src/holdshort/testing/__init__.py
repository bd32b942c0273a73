"""A control plane in this process, for tests of your own agents: no server, no database, a clock that you move.

It keeps the rules of the real one: rounds, asking again, conflicts, expiry, withdrawal, what each does to a run.
"""

from holdshort._errors import RunFailed
from holdshort.testing._plane import ControlPlane

__all__ = ["ControlPlane", "RunFailed"]
