"""User accounts of the store, with the sessions and tokens that identify them."""

from __future__ import annotations

from ziggurat.store.database import Database
from ziggurat.store.sessions import SessionRepository
from ziggurat.store.tokens import TokenRepository
from ziggurat.store.users import UserRepository

__all__ = ["AccountStore"]


class AccountStore:
    """Accounts and what stands for them.

    Args:
        database: where they are.

    Attributes:
        users: the accounts.
        sessions: of browsers.
        tokens: of programs.
    """

    def __init__(self, database: Database) -> None:
        self.users = UserRepository(database)
        self.sessions = SessionRepository(database)
        self.tokens = TokenRepository(database)
