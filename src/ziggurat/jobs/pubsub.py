"""Event bus (pub-sub): a notice such as "job 12 has news up to offset N", sent once to every subscriber.

A notice carries no data: its receiver fetches what is new. So a newer notice on the same subject replaces an older
one that was not yet received, and a slow subscriber costs neither memory nor time.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

__all__ = ["RELOAD", "EventBus", "Notice", "Subscription"]

RELOAD: Final = "reload"
"""The kind of a notice that stands for all those that a listener missed: it should ask for everything again."""

_Key = tuple[str, str, str]


@dataclass(frozen=True)
class Notice:
    """Something has news.

    Args:
        number: of the notice; later ones have larger numbers.
        topic: what listeners choose by: ``jobs``, ``job:ID``, ``queue``, ``devices``, …
        kind: what is new: ``state``, ``events``, ``added``, ``deleted``, ``changed``, ``waiting``, ``reload``.
        id: of the job or thing; empty where the topic says it.
        offset: how far the news goes, such as bytes of events; 0 where that means nothing.
        encoded: the same as one server-sent event, made once for all listeners.
    """

    number: int
    topic: str
    kind: str
    id: str
    offset: int
    encoded: bytes

    @property
    def key(self) -> tuple[str, str, str]:
        """What a newer notice must share to take its place."""
        return self.topic, self.kind, self.id


class EventBus:
    """Passes notices on to subscriptions. Any thread may call any method; nothing here waits for a listener.

    Args:
        kept: latest notices that are kept for listeners that come back.
    """

    def __init__(self, *, kept: int = 1000) -> None:
        self._lock = threading.Lock()
        self._kept = kept
        self._number = 0
        self._forgotten = 0
        self._latest: OrderedDict[_Key, Notice] = OrderedDict()
        self._subscriptions: list[Subscription] = []

    @property
    def number(self) -> int:
        """Number of the newest notice; 0 before the first."""
        return self._number

    def publish(self, topic: str, kind: str, thing_id: str = "", offset: int = 0) -> Notice:
        """Tell everybody who listens to a topic; return the notice."""
        with self._lock:
            self._number += 1
            notice = _notice(self._number, topic, kind, thing_id, offset)
            self._latest.pop(notice.key, None)
            self._latest[notice.key] = notice
            while len(self._latest) > self._kept:
                self._forgotten = max(self._forgotten, self._latest.popitem(last=False)[1].number)
            listeners = [each for each in self._subscriptions if each.wants(topic)]
        for each in listeners:
            each.put(notice)
        return notice

    def subscribe(
        self,
        topics: Collection[str] = (),
        *,
        since: int | None = None,
        limit: int = 256,
        ready: Callable[[], None] | None = None,
    ) -> Subscription:
        """Return a subscription; close it when it is no longer read.

        Args:
            topics: that are wanted; empty for all.
            since: number of the last notice that the listener had, where it comes back; it gets what it missed, or one
                notice of the kind ``reload`` where that is not known any more, or the hub is another one.
            limit: different things that wait at most; beyond that, one ``reload`` stands for all.
            ready: called when something is there after there was nothing, by any thread: it must not wait.
        """
        subscription = Subscription(self, frozenset(topics), limit, ready)
        with self._lock:
            self._subscriptions.append(subscription)
            missed = list(self._latest.values()) if since is not None else []
            is_unknown = since is not None and (since < self._forgotten or since > self._number)
            number = self._number
        if is_unknown:
            subscription.put(_notice(number, "", RELOAD, "", 0))
        else:
            for notice in missed:
                if notice.number > (since or 0) and subscription.wants(notice.topic):
                    subscription.put(notice)
        return subscription

    def forget(self, subscription: Subscription) -> None:
        """Stop passing notices on to a subscription; what ``close`` of a subscription calls."""
        with self._lock:
            self._subscriptions = [each for each in self._subscriptions if each is not subscription]


class Subscription:
    """What one listener has not taken yet. ``EventBus.subscribe`` makes it."""

    def __init__(self, hub: EventBus, topics: frozenset[str], limit: int, ready: Callable[[], None] | None) -> None:
        self._hub = hub
        self._topics = topics
        self._limit = limit
        self._ready = ready
        self._condition = threading.Condition()
        self._waiting: OrderedDict[_Key, Notice] = OrderedDict()
        self._is_closed = False

    def wants(self, topic: str) -> bool:
        """Return whether the listener chose a topic."""
        return not self._topics or topic in self._topics

    def put(self, notice: Notice) -> None:
        """Add a notice in the place of an older one of the same thing; what the hub calls."""
        with self._condition:
            if self._is_closed:
                return
            was_empty = not self._waiting
            older = self._waiting.get(notice.key)
            if older is not None and older.number > notice.number:
                return  # two threads published at once, and this one came second
            if ("", RELOAD, "") in self._waiting or (older is None and len(self._waiting) >= self._limit):
                self._waiting.clear()
                notice = _notice(notice.number, "", RELOAD, "", 0)
            self._waiting.pop(notice.key, None)
            self._waiting[notice.key] = notice
            self._condition.notify_all()
        if was_empty and self._ready is not None:
            self._ready()

    def take(self, timeout_s: float = 0.0) -> list[Notice]:
        """Return what is there, oldest first, and wait for something at most so long; empty where nothing came."""
        with self._condition:
            self._condition.wait_for(lambda: self._waiting or self._is_closed, timeout_s)
            taken = sorted(self._waiting.values(), key=lambda notice: notice.number)
            self._waiting.clear()
            return taken

    def close(self) -> None:
        """End the subscription; closing twice does nothing."""
        with self._condition:
            self._is_closed = True
            self._waiting.clear()
            self._condition.notify_all()
        self._hub.forget(self)


def _notice(number: int, topic: str, kind: str, thing_id: str, offset: int) -> Notice:
    data = json.dumps({"topic": topic, "kind": kind, "id": thing_id, "offset": offset}, separators=(",", ":"))
    return Notice(number, topic, kind, thing_id, offset, f"id: {number}\nevent: {kind}\ndata: {data}\n\n".encode())
