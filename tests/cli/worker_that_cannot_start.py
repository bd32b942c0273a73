"""A worker process that ends as one whose application's start failed."""

import sys

from controlplane.cli.serving.supervisor import EXIT_FAILED_TO_START

sys.exit(EXIT_FAILED_TO_START)
