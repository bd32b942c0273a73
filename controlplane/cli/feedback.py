"""`holdshort feedback`: the short-lived questions that wait for a person, and answering one."""

import os
import sys

import click

from controlplane.cli.api import Api, json_option, url_option
from controlplane.cli.output import literal, print_json, print_table

COLUMNS = ("unique_id", "kind", "expires_at", "message_for_user", "options")
MOST_BYTES = 64 * 1024
SUBMISSION_BYTES = 16


@click.group()
def feedback() -> None:
    """List and answer the short-lived questions that agents wait with; for keys of scope review."""


@feedback.command("list")
@url_option
@json_option
def list_questions(url: str, *, as_json: bool) -> None:
    """List the questions that wait, oldest first."""
    page = _api(url).page("/pending", "requests")
    if as_json:
        print_json(page)
    else:
        print_table(page["requests"], COLUMNS, empty="no questions wait")


@feedback.command()
@click.argument("unique_id")
@url_option
@json_option
def answer(unique_id: str, url: str, *, as_json: bool) -> None:
    """Answer one question.

    The answer is asked for and not shown while it is typed, or read from standard input, less one newline at its end.
    It is no argument, as those are seen by every program of the machine and kept by shells.
    """
    body = {"unique_id": unique_id, "response": _given(), "submission_id": os.urandom(SUBMISSION_BYTES).hex()}
    reply = _api(url).post("/submit", body)
    if as_json:
        print_json(reply)
    else:
        click.echo(literal(reply.get("message", "answered")))


def _api(url: str) -> Api:
    return Api(url, under="/api/human-feedback")


def _given() -> str:
    """The answer, from a person at a terminal or from another program."""
    if sys.stdin.isatty():
        return str(click.prompt("Answer (it is not shown)", hide_input=True, err=True))
    read = sys.stdin.buffer.read(MOST_BYTES + 1)
    try:
        text = read.decode()
    except UnicodeDecodeError:
        raise click.UsageError("the answer must be UTF-8") from None
    if len(read) > MOST_BYTES:
        raise click.UsageError(f"the answer must be at most {MOST_BYTES} bytes")
    return text.removesuffix("\n").removesuffix("\r")
