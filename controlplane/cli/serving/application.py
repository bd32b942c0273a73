"""The application served by this process, as its settings want it."""

import gc

from controlplane.app import create_app
from controlplane.cli.serving.listening import Listener, endpoints
from controlplane.cli.serving.server import serve
from controlplane.settings import Settings

# Each waiting call is a connection; so many more may there be.
BESIDE_WAITS = 10_000


def serve_application(settings: Settings, server: Listener) -> None:
    """Serve the API and run the workers on a listening socket until SIGTERM or SIGINT.

    Raises:
        FailedToStart: the application's start failed, for example because the schema is unknown.
    """
    app = create_app(settings, own=endpoints(server))
    # All of it stands as long as the process does: searched for garbage, it would stop every caller for 40 ms.
    gc.freeze()

    def closing() -> None:
        app.state.runtime.stop()

    serve(app, server, closing=closing, connections=settings.max_waits + BESIDE_WAITS)
