"""Fixtures of the server tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from api_parts import Clock, Site

from tests.unit.studio_samples import CHEAP
from ziggurat.store import Store
from ziggurat.workspace.accounts import Accounts
from ziggurat.workspace.passwords import LoginLimits


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def site(tmp_path, clock):
    with Store.open(tmp_path / "studio.db", clock=clock) as store:
        yield Site(store, Accounts(store, clock=clock, passwords=CHEAP, limits=LoginLimits(clock)), clock)


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    return asyncio.run
