"""The embedded PostgreSQL: run from a wheel's programs for development, the demo and the tests; kept between runs."""

from controlplane.cli.postgres.binaries import Binaries
from controlplane.cli.postgres.embedded import Embedded, run_embedded, run_ephemeral
from controlplane.cli.postgres.faults import ClusterFault, EmbeddedBusy, PostgresMissing

__all__ = ["Binaries", "ClusterFault", "Embedded", "EmbeddedBusy", "PostgresMissing", "run_embedded", "run_ephemeral"]
