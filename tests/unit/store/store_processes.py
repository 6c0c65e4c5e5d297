"""Functions that other processes run on a store; each is started with spawn."""

from __future__ import annotations

import resource
from typing import Any

from tests.unit.store.store_samples import message, new_job, point
from ziggurat.entities import AuditEntry
from ziggurat.errors import StorageError
from ziggurat.store import Store


def add_jobs(address: str, prefix: str, count: int) -> None:
    with Store.open(address) as store:
        for number in range(count):
            store.jobs.add(new_job(f"{prefix}{number}", project="shared"))
            store.events.take("common", 0, 1, [message(prefix)])


def write_until_killed(address: str, ready: Any) -> None:
    with Store.open(address) as store:
        offset = store.jobs.get("a").events_offset
        ready.set()
        while True:
            store.events.take("a", offset, offset + 1, [point("loss", offset * 500 + step, 1.0) for step in range(500)])
            offset += 1


def write_until_the_disk_is_full(address: str, answers: Any) -> None:
    with Store.open(address) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        written, offset = 0, 0
        try:
            for offset in range(10_000):
                store.events.take("a", offset, offset + 1, [message("x" * 10_000) for _ in range(20)])
                store.audit.add(AuditEntry(time=float(offset), who="a", action="write", details={"x": "y" * 10_000}))
                written += 1
        except StorageError as error:
            answers.put((written, str(error), store.jobs.get("a").events_offset))
        else:
            answers.put((written, "", offset))
