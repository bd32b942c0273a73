"""Origins of web pages, spelled as browsers send them: `https://desk.example`, `http://localhost:5173`."""

import re

from controlplane.domain import hosts

_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>\[[0-9a-f:.]+\]|[^\s\[\]/:@?#]+)(?::(?P<port>[1-9][0-9]{0,4}))?")
_PORTS = {"http": "80", "https": "443"}


def parse(raw: str) -> tuple[str, ...]:
    """The origins of a setting, each once.

    Args:
        raw: origins with commas between.

    Raises:
        ValueError: one is spelled as no browser spells it, such as `*`, `null`, or with a path.
    """
    return tuple(dict.fromkeys(_origin(entry.strip()) for entry in raw.split(",")))


def _origin(entry: str) -> str:
    found = _ORIGIN.fullmatch(entry)
    if found is None or not _is_host(found["host"]) or found["port"] == _PORTS[found["scheme"]]:
        raise ValueError(
            "must be origins as browsers send them, with commas between: https://name or http://name:port, in small"
            " letters, without a path, and without a port that goes without saying"
        )
    return entry


def _is_host(host: str) -> bool:
    if host != host.lower():
        return False
    return hosts.is_name(host) or hosts.literal(host.strip("[]")) is not None
