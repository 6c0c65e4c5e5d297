"""Subscription to a studio's event stream, with automatic reconnection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.client.connection import Connection
from ziggurat.errors import UsageError

__all__ = ["Notice", "notices"]

_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something has news; who wants them asks for them.

    Args:
        kind: ``state``, ``events``, ``added``, ``deleted``, ``changed``, ``waiting``; ``reload`` at the start, after
            a break, and where notices may have been missed.
        topic: what was listened to.
        id: of the job.
    """

    kind: str
    topic: str
    id: str


def notices(
    connection: Connection, topics: Sequence[str], *, tries: int = 8, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Notice]:
    """Yield notices without end; a connection that breaks is made again, and goes on where it was.

    Args:
        connection: to the studio.
        topics: such as ``jobs`` or ``job:ID``.
        tries: how often in a row the studio may be out of reach.
        sleep: waits so many seconds.

    Raises:
        UsageError: where the studio stays out of reach.
        ZigguratError: where it refuses.
    """
    ids: list[str] = []
    failures = 0
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": ids[-1]} if ids else {})}
        try:
            # The studio says something every 15 s; who hears nothing for four times as long has lost it.
            lines = connection.lines("/events", params={"topics": ",".join(topics)}, headers=headers, timeout=60.0)
            for notice in _parsed(lines, ids):
                failures = 0
                yield notice
        except UsageError as error:
            if not error.details.get("unreachable") or failures >= tries:
                raise
        failures += 1
        sleep(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**failures))


def _parsed(lines: Iterator[str], ids: list[str]) -> Iterator[Notice]:
    """Yield the notices of a stream; the id of the newest event is kept as the only one of ``ids``."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "id" in fields:
            ids[:] = [fields["id"]]
        notice = _notice(fields)
        fields = {}
        if notice is not None:
            yield notice


def _notice(fields: dict[str, str]) -> Notice | None:
    if fields.get("event") == "hello":
        return Notice(kind="reload", topic="", id="")
    try:
        data = json.loads(fields.get("data", ""))
        return Notice(kind=str(data["kind"]), topic=str(data["topic"]), id=str(data["id"]))
    except (ValueError, KeyError, TypeError):
        return None
