"""Rules for the address that the server binds to: beyond loopback only with accounts."""

from __future__ import annotations

import ipaddress

from ziggurat.errors import UsageError
from ziggurat.workspace.accounts import LOCAL, Accounts

__all__ = ["check_bind", "first_token", "is_loopback"]


def is_loopback(host: str) -> bool:
    """Return whether a host name or an address, with or without brackets, means this machine alone."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def check_bind(host: str, people: Accounts) -> None:
    """Raise where the studio would listen beyond this machine without anybody having to log in.

    Args:
        host: name or address to listen at; ``0.0.0.0``, ``::`` and the empty one mean all.
        people: of the studio.

    Raises:
        UsageError: it says what to do.
    """
    if not is_loopback(host) and not people.has_accounts():
        raise UsageError(
            "The studio listens beyond this machine only where people must log in.",
            received=f"the address {host!r}, and nobody has an account",
            advice="Make an account with `ziggurat user add NAME --role admin`, or add `--new-token` for a token that "
            "is printed once, or leave `--host` out.",
        )


def first_token(people: Accounts) -> str:
    """Return the secret of a new token of scope ``admin`` for an admin; where there is none, ``admin`` is made.

    An account that is made so has no password: its token opens the studio, in a browser as well.
    """
    admins = [user for user in people.users() if user.role == "admin" and not user.disabled]
    user = admins[0] if admins else people.create_user("admin", None, role="admin", by=LOCAL)
    return people.create_token(user.name, "printed at the start", scope="admin", by=LOCAL)[1]
