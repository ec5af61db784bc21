"""The port of `up`, bound before anything is loaded or made."""

from __future__ import annotations

import ipaddress
import socket

from listen_finalization.cli.exit_codes import ExitCode
from listen_finalization.cli.faults import CommandError


def loopback(host: str) -> bool:
    """Whether only this machine can reach the host, by its spelling."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Bind the port before anything else is made. Raises `CommandError`."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        opened = socket.socket(family, kind, number)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
            opened.listen(socket.SOMAXCONN)
        except OSError:
            opened.close()
            raise
    except OSError as fault:
        raise CommandError(
            f"port {port} of {host} cannot be used: {fault.strerror}",
            code=ExitCode.UNAVAILABLE,
            remedy="stop what uses it, or give another with --port (0: any free one) or --host",
            word="port_unavailable",
        ) from fault
    return opened


def address_of(opened: socket.socket) -> str:
    """Return the URL that the socket is reached at."""
    host, port = opened.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
