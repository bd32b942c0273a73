"""One worker process of `holdshort serve --workers N`; started by the supervisor with inherited descriptors."""

import os
import signal
import socket
import sys
import threading

from msgspec import structs

from controlplane import settings, telemetry
from controlplane.cli.serving.application import serve_application
from controlplane.cli.serving.server import FailedToStart
from controlplane.cli.serving.supervisor import EXIT_FAILED_TO_START


def main(server_descriptor: int, lifeline: int, workers: int) -> int:
    """Serve on an inherited socket until told to stop, or until the parent is gone; the exit code."""
    configured = structs.replace(settings.load(os.environ), processes=workers)
    telemetry.configure(configured.log_format, configured.log_level)
    telemetry.guard_process()
    threading.Thread(target=_end_with_parent, args=(lifeline,), daemon=True).start()
    try:
        serve_application(configured, socket.socket(fileno=server_descriptor))
    except FailedToStart:
        return EXIT_FAILED_TO_START
    return 0


def _end_with_parent(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
