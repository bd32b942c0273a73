"""Why the embedded PostgreSQL could not be had; each message says what to do."""

from controlplane.cli.faults import Fault


class ClusterFault(Fault):
    """PostgreSQL did not do as it was told."""


class PostgresMissing(ClusterFault):
    """The embedded PostgreSQL is not installed; install holdshort-server[embedded] or set HOLDSHORT_DATABASE_URL."""

    def __init__(self) -> None:
        """The docstring is the message."""
        super().__init__(" ".join((type(self).__doc__ or "").split()))


class EmbeddedBusy(ClusterFault):
    """Another running command uses the same data; stop it, or name another directory in HOLDSHORT_HOME."""
