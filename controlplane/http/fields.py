"""Kinds of fields that more than one body takes, each with the words of its rule."""

from typing import Annotated

from msgspec import Meta

from controlplane.domain.steps import MAX_NAME

# `$` would let a line feed pass behind the text.
_END = r"(?![\s\S])"
_NO_CONTROL = rf"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*{_END}"
_NAME = rf"^[A-Za-z0-9._~:-]{{1,128}}{_END}"

Name = Annotated[str, Meta(pattern=_NAME, extra={"rule": "a string of 1 to 128 characters of A-Z a-z 0-9 . _ ~ : -"})]
Label = Annotated[
    str,
    Meta(
        pattern=_NO_CONTROL,
        max_length=128,
        extra={"rule": "a string of at most 128 characters, none of them a control character"},
    ),
]
StepName = Annotated[
    str,
    Meta(
        pattern=_NO_CONTROL,
        min_length=1,
        max_length=MAX_NAME,
        extra={"rule": f"a string of 1 to {MAX_NAME} characters, none of them a control character"},
    ),
]
Secret = Annotated[
    str,
    Meta(
        pattern=_NO_CONTROL,
        min_length=16,
        max_length=256,
        extra={"rule": "a string of 16 to 256 characters, none of them a control character"},
    ),
]
Sender = Annotated[
    str,
    Meta(
        pattern=rf"^[a-z][a-z0-9-]{{0,31}}{_END}",
        extra={"rule": "the name of a webhook sender: a-z 0-9 -, beginning with a letter, at most 32 characters"},
    ),
]
Url = Annotated[str, Meta(max_length=2048, extra_json_schema={"format": "uri"})]
RequestId = Annotated[str, Meta(min_length=1, max_length=256)]
Round = Annotated[int, Meta(ge=1, le=2**31 - 1)]
