"""Parts of the server tests: a studio with accounts, clients of its app, a settable clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from ziggurat.api import create_app
from ziggurat.jobs.pubsub import EventBus
from ziggurat.store import Store
from ziggurat.workspace.accounts import LOCAL, Accounts

PASSWORD = "correct horse battery"


class Clock:
    """Seconds since 1970 that pass only when a test says so."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, duration_s: float) -> None:
        self.now += duration_s


@dataclass
class Site:
    """A studio with its app; ``client`` asks it as a browser or a program would."""

    store: Store
    people: Accounts
    clock: Clock
    notices: EventBus = field(default_factory=EventBus)
    settings: Any = None

    def app(self, **options: Any) -> Any:
        return create_app(self, **options)

    def client(self, app: Any, *, address: str = "127.0.0.1", base: str = "http://localhost:5000", **headers: str):
        transport = httpx.ASGITransport(app, client=(address, 40000))
        return httpx.AsyncClient(transport=transport, base_url=base, headers=headers)

    def add(self, name: str, role: str = "admin", *, scope: str = "") -> str:
        """Make an account with ``PASSWORD``; return the secret of a session, or of a token of that scope."""
        if not self.people.has_accounts() and role != "admin":
            self.add("root")
        if name not in [user.name for user in self.people.users()]:
            self.people.create_user(name, PASSWORD, role=role, by=LOCAL)
        if scope:
            return self.people.create_token(name, "of a test", scope=scope, by=LOCAL)[1]
        return self.people.login(name, PASSWORD, address="192.0.2.1").secret


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def cookie(secret: str, name: str = "ziggurat_session_5000") -> dict[str, str]:
    return {"Cookie": f"{name}={secret}"}
