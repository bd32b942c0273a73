"""`holdshort execute`: have an agent run a reasoner, say how it goes on meanwhile, and print what it returned."""

import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from msgspec import DecodeError, json

from controlplane.cli.api import Api, Document, json_option, url_option
from controlplane.cli.output import literal, print_json
from controlplane.cli.watching import is_over, watch

EXIT_CODES = {"succeeded": 0, "failed": 3, "cancelled": 4, "timeout": 5}
GOES_ON = 6
INTERRUPTED = 130
# What ends within this time is answered without a word in between.
FIRST_SECONDS = 1.0


@click.command()
@click.argument("target")
@click.option("--input", "given", default="{}", help="Its arguments: JSON, or @FILE that holds it (@- reads stdin).")
@click.option("--wait", type=click.FloatRange(0), default=None, help="Seconds to wait; without it, until the run ends.")
@click.option("--async", "at_once", is_flag=True, help="Do not wait; print the run's id.")
@click.option("--key", default=None, help="Idempotency-Key: the same again joins the run that it started before.")
@url_option
@json_option
def execute(**options: Any) -> None:
    """Have an agent run TARGET, which is written node.reasoner, and print what it returned.

    Ends with 0 if the run succeeded, 3 if it failed, 4 if it was cancelled (as a rejected or expired question does),
    5 if its time limit passed, 6 if it still goes on when --wait has passed; 1 or 2 if nothing was started.
    """
    api, target = Api(options["url"]), _target(options["target"])
    body, key = {"input": _input(options["given"])}, options["key"] or f"cli-{os.urandom(12).hex()}"
    if options["at_once"]:
        queued = api.post(f"/execute/async/{target}", body, idempotency_key=key)
        _print_queued(queued, as_json=options["as_json"])
        return
    seconds = options["wait"]
    first = FIRST_SECONDS if seconds is None else min(FIRST_SECONDS, seconds)
    started = api.post(f"/execute/{target}?wait={first:g}", body, idempotency_key=key)
    left = None if seconds is None else seconds - first
    run = _watched(api, started["execution_id"], left)
    _print_end(run, as_json=options["as_json"])
    sys.exit(EXIT_CODES.get(run["status"], GOES_ON))


def _watched(api: Api, execution_id: str, seconds: float | None) -> Document:
    try:
        return watch(api, execution_id, seconds, lambda line: click.echo(line, err=True))
    except KeyboardInterrupt:
        click.echo(f"{execution_id} goes on; holdshort executions show {execution_id}", err=True)
        sys.exit(INTERRUPTED)


def _print_queued(queued: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(queued)
    else:
        click.echo(queued["execution_id"])


def _print_end(run: Document, *, as_json: bool) -> None:
    """What the run returned on standard output; on standard error how it stands, unless it succeeded."""
    succeeded = run["status"] == "succeeded"
    if as_json:
        print_json(run)
    elif succeeded or run["result"] is not None:
        print_json(run["result"])
    if not succeeded:
        why = ": ".join(literal(run[name]) for name in ("status_reason", "error", "last_error") if run[name])
        stands = run["status"] if is_over(run) else f"{run['status']}, goes on"
        click.echo(f"{run['execution_id']} {stands}{f': {why}' if why else ''}", err=True)


def _target(text: str) -> str:
    if "." not in text.strip("."):
        raise click.BadParameter("is written node.reasoner", param_hint="TARGET")
    return quote(text, safe="")


def _input(text: str) -> Any:
    """The arguments as JSON.

    Raises:
        click.BadParameter: they are not JSON, or the file cannot be read.
    """
    try:
        if text == "@-":
            return json.decode(sys.stdin.buffer.read())
        return json.decode(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as fault:
        raise click.BadParameter(f"{fault.filename} cannot be read: {fault.strerror}", param_hint="--input") from fault
    except (DecodeError, UnicodeDecodeError) as fault:
        raise click.BadParameter(f"is not JSON: {fault}", param_hint="--input") from fault
