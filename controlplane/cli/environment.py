"""What every serving command does first: read the settings, set up logging, say what is unsafe about them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane import settings, telemetry
from controlplane.domain.webhook_secrets import untried, weak

SECRET_FILE = "webhook-secret"  # noqa: S105 - the name of a file in the home
MASTER_KEY_FILE = "master-key"
ENDING = (signal.SIGTERM, signal.SIGINT)


def prepare() -> settings.Settings:
    """The settings of this process, with logging set up by them.

    Raises:
        SettingsFault: some are wrong; names all of them.
    """
    found = settings.load(os.environ, root=os.geteuid() == 0)
    telemetry.configure(found.log_format, found.log_level)
    telemetry.guard_process()
    for sender in weak(found.webhook_secrets):
        telemetry.logger("settings").warning("webhook_secret_is_short", sender=sender, least=16)
    for sender in untried(found.webhook_secrets):
        telemetry.logger("settings").warning("webhook_secret_is_never_tried", sender=sender, most=5)
    if found.dangerous_callback_allow:
        telemetry.logger("settings").warning("callback_allow_may_be_wide", setting="HOLDSHORT_DANGEROUS_CALLBACK_ALLOW")
    return found


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block, and what it started, on SIGTERM, Ctrl-C or a closed terminal; only the first signal counts."""

    def end(number: int, _frame: object) -> None:
        ignore_signals()
        raise SystemExit(0 if number == signal.SIGTERM else 130)

    previous = {each: signal.signal(each, end) for each in ENDING}
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup asks to outlive the terminal
        previous[signal.SIGHUP] = signal.signal(signal.SIGHUP, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


def ignore_signals() -> None:
    """From here on only stop what was started; another signal must not leave the rest of it running."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
