"""TCP ports of this machine: taken, or refused with the process that holds it and a free one."""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

import psutil

from ziggurat.errors import UsageError

__all__ = ["address_of", "free_port_after", "port_owner", "take_port"]

_PORTS_TRIED: Final = 100
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def take_port(host: str, port: int) -> socket.socket:
    """Return a socket that has the port; nobody else gets it until it is closed.

    Args:
        host: name or address of this machine; ``0.0.0.0``, ``::`` or nothing for all of its addresses.
        port: its number; 0 for any that is free.

    Raises:
        UsageError: where the port is taken, not allowed, or the host is not of this machine.
    """
    family, address = _resolved(host, port)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # A server that has just ended leaves the port in a state that only this option passes over.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)  # two that bind at once: one of them learns it here
    except OSError as error:
        listener.close()
        raise _refused(host, port, error) from None
    return listener


def address_of(listener: socket.socket, host: str, prefix: str = "") -> str:
    """Return the address by which a browser on this machine finds the server, such as ``http://127.0.0.1:5000/``."""
    name = _WILDCARDS.get(host, host)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{listener.getsockname()[1]}{prefix}/"


def free_port_after(host: str, port: int) -> int | None:
    """Return the next port that is free now; None where none of the next hundred is."""
    for candidate in range(port + 1, min(port + 1 + _PORTS_TRIED, 1 << 16)):
        try:
            family, address = _resolved(host, candidate)
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
        except OSError:
            continue
        return candidate
    return None


def port_owner(port: int) -> str:
    """Return who listens at a port, as far as this user may know: ``process 12 (python)``."""
    try:
        connections = psutil.net_connections("tcp")
        pids = [each.pid for each in connections if each.status == "LISTEN" and each.laddr and each.laddr.port == port]
        pid = next((pid for pid in pids if pid), None)
        return "a process of another user" if pid is None else f"process {pid} ({psutil.Process(pid).name()})"
    except (psutil.Error, OSError, AttributeError):
        return "another process"


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    if not 0 <= port < 1 << 16:
        raise UsageError("A port is a number from 0 to 65535.", received=port)
    try:
        found = socket.getaddrinfo(
            host.strip("[]") or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError) as error:
        raise _not_here(host, error) from None
    return found[0][0], found[0][4]


def _refused(host: str, port: int, error: OSError) -> UsageError:
    if error.errno == errno.EADDRINUSE:
        free = free_port_after(host, port)
        advice = f"Use a free one: --port {free}." if free else "Use another --port."
        return UsageError(f"Port {port} must be free.", received=f"it is taken by {port_owner(port)}", advice=advice)
    if error.errno == errno.EACCES:
        return UsageError(
            f"Port {port} must be one that you may use.",
            received="the system reserves ports below 1024",
            advice="Use another one, such as --port 5000.",
        )
    return _not_here(host, error)


def _not_here(host: str, error: Exception) -> UsageError:
    return UsageError(
        "The studio listens at a name or address of this machine.",
        received=f"{host!r}: {getattr(error, 'strerror', None) or error}",
        advice="Leave --host out for this machine alone, or use 0.0.0.0 for all of its addresses.",
    )
