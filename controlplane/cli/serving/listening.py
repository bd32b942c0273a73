"""The listening socket and the process's limits, so that many thousand calls may wait at once."""

import resource
import socket

from controlplane.cli.faults import Fault
from controlplane.domain.egress import Endpoint
from controlplane.domain.egress_ranges import Kind, kind_of, read

Listener = socket.socket
BACKLOG = 4096


class AddressTaken(Fault):
    """The address cannot be listened on; the message says which and why."""


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket, which worker processes may share.

    Args:
        host: an address or name of this machine.
        port: 0 takes a free one.

    Raises:
        AddressTaken: another program listens there, or the address is not ours.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, kind, protocol)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(BACKLOG)
    except OSError as fault:
        raise AddressTaken(
            f"cannot listen on {host} port {port}: {fault.strerror}; choose another with --port"
        ) from fault
    server.setblocking(False)
    return server


def endpoints(server: socket.socket) -> tuple[Endpoint, ...]:
    """Where a socket listens, in the plain form of its address."""
    host, port = server.getsockname()[:2]
    return (Endpoint(str(read(host)), port),)


def on_loopback(server: socket.socket) -> bool:
    """True when nobody beyond this machine reaches a listening socket."""
    return kind_of(read(server.getsockname()[0])) is Kind.LOOPBACK


def url_of(server: socket.socket) -> str:
    """The http URL of a listening socket."""
    host, port = server.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def raise_file_limit() -> int:
    """Allow this process as many open files as the system lets it; a waiting call is one. The new limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 1_048_576 if hard == resource.RLIM_INFINITY else hard
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted
