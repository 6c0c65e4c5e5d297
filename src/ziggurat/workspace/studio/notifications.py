"""Notifications: watches for jobs that end and for a full disk, and tells the receivers of an admin's choice."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.formatting import as_bytes
from ziggurat.jobs.pubsub import RELOAD
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.services.outbox import RETRY_AFTER_S, Message, Outbox
from ziggurat.services.receivers import Mail, Webhook
from ziggurat.workspace.studio.notification_settings import NotificationFile, NotificationSettings, changed_settings

if TYPE_CHECKING:
    from ziggurat.jobs.pubsub import EventBus, Subscription
    from ziggurat.workspace.studio.jobs import Jobs

__all__ = ["JOB_WORDS", "Notifications", "job_event"]

_LOG: Final = logging.getLogger(__name__)

JOB_WORDS: Final = {
    "train": "Run",
    "program": "Program",
    "dataset": "Dataset",
    "evaluate": "Evaluation",
    "infer": "Predictions",
    "embed": "Map",
}
"""Kind of a job → what it is called in notifications."""

_EVENTS: Final = {"done": "finished", "failed": "failed", "diverged": "diverged"}
_NEWS_FOR_S: Final = 24 * 3600.0
_MOST_TOLD: Final = 10_000
_DISK_EVERY_S: Final = 30.0
_TEST_LIMIT_S: Final = 15.0
_MISSED_S: Final = 600.0
_MISSED: Final = 200


def job_event(job: Job) -> str:
    """Return the event of a job that ended, such as ``diverged``; empty for one that runs or was stopped."""
    return _EVENTS.get(job.outcome, "")


class Notifications:
    """Receivers of notifications, and the thread that watches.

    Nothing here waits for a receiver, except ``test``: each has a thread and a queue of its own.

    Args:
        workspace: its folder.
        jobs: of the studio.
        bus: notices of jobs whose state changes.
        disk: returns the free bytes, and the bytes below which no job starts.
        webhook_hosts: the setting of this name.
        clock: seconds since 1970.
        retry_after_s: seconds before each further try of a delivery.
    """

    def __init__(
        self,
        workspace: Path,
        jobs: Jobs,
        bus: EventBus,
        disk: Callable[[], tuple[int, int]],
        *,
        webhook_hosts: str = "",
        clock: Callable[[], float] = time.time,
        retry_after_s: Sequence[float] = RETRY_AFTER_S,
    ) -> None:
        self._file = NotificationFile(workspace)
        self._jobs, self._bus, self._disk, self._clock = jobs, bus, disk, clock
        self._allowed = AllowedAddresses.of("webhook_hosts", webhook_hosts)
        self._retry_after_s = tuple(retry_after_s)
        self._lock = threading.Lock()
        self._outboxes: dict[str, Outbox] = {}
        self._settings: NotificationSettings | None = None
        self._told: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._subscription: Subscription | None = None
        self._closing = threading.Event()
        self._disk_checked = 0.0
        self.disk_low_since: float | None = None

    @property
    def settings(self) -> NotificationSettings:
        """Present settings.

        Raises:
            ConfigurationError: if their file is damaged.
        """
        with self._lock:
            return self._opened()

    def describe(self) -> dict[str, Any]:
        """Return the settings without secrets, and ``last``: receiver → ``time``, ``title``, ``problem``.

        Raises:
            ConfigurationError: if their file is damaged.
        """
        with self._lock:
            shown = self._opened().describe()
            last = {name: outbox.last for name, outbox in self._outboxes.items()}
        return {**shown, "last": {name: vars(each) for name, each in last.items() if each is not None}}

    def set(self, values: Mapping[str, Any]) -> None:
        """Change some settings; they hold at once. Messages that wait for a receiver are dropped.

        Args:
            values: name of a field of ``NotificationSettings`` → value; those that are left out stay.

        Raises:
            ConfigurationError: if a value is not valid; its details name the field.
            StorageError: if the file cannot be written.
        """
        with self._lock:
            try:
                before = self._opened()
            except ZigguratError:
                before = NotificationSettings()  # a damaged file is replaced
            after = changed_settings(before, values)
            self._file.write(after)
            self._use(after)

    def test(self) -> dict[str, str]:
        """Send a test message to each receiver; return receiver → why it failed, empty if it was delivered.

        Each is tried once; it takes 15 seconds at most.

        Raises:
            UsageError: if no receiver is set.
        """
        message = Message(
            kind="test", title="Test of notifications", text="This studio can reach you.", time=self._clock()
        )
        with self._lock:
            self._opened()
            sent = {name: outbox.put(message, once=True) for name, outbox in self._outboxes.items()}
        if not sent:
            raise UsageError("No receiver is set.", advice="Set a webhook or e-mail first.")
        wait(sent.values(), timeout=_TEST_LIMIT_S)
        return {
            name: each.result().problem if each.done() and not each.cancelled() else "no answer yet"
            for name, each in sent.items()
        }

    def start(self) -> None:
        """Begin to watch, in a thread."""
        self._subscription = self._bus.subscribe({"jobs"})
        threading.Thread(target=self._watch, args=(self._subscription,), name="notifications", daemon=True).start()

    def close(self) -> None:
        """End the threads, without waiting for a receiver."""
        self._closing.set()
        if self._subscription is not None:
            self._subscription.close()
        with self._lock:
            for outbox in self._outboxes.values():
                outbox.close()
            self._outboxes = {}

    def tell(self, message: Message) -> None:
        """Queue a message for each receiver, if its kind was chosen."""
        with self._lock:
            if message.kind in self._opened().events:
                for outbox in self._outboxes.values():
                    outbox.put(message)

    def _opened(self) -> NotificationSettings:
        if self._settings is None:
            self._use(self._file.read())
        assert self._settings is not None
        return self._settings

    def _use(self, settings: NotificationSettings) -> None:
        for outbox in self._outboxes.values():
            outbox.close()
        made: dict[str, Outbox] = {}
        if settings.webhook_url:
            hook = Webhook(url=settings.webhook_url, key=settings.webhook_key, allowed=self._allowed, clock=self._clock)
            made["webhook"] = self._outbox("webhook", hook)
        if settings.email_to:
            mail = Mail(
                host=settings.smtp_host,
                port=settings.smtp_port,
                security=settings.smtp_security,
                user=settings.smtp_user,
                password=settings.smtp_password,
                sender=settings.email_from,
                to=settings.receivers,
            )
            made["email"] = self._outbox("email", mail)
        self._outboxes, self._settings = made, settings

    def _outbox(self, name: str, send: Callable[[Message], None]) -> Outbox:
        return Outbox(name, send, retry_after_s=self._retry_after_s, clock=self._clock)

    def _watch(self, subscription: Subscription) -> None:
        while not self._closing.is_set():
            try:
                for notice in subscription.take(_DISK_EVERY_S):
                    if notice.kind == "state":
                        self._look_at_jobs(self._jobs.some([notice.id]).values())
                    elif notice.kind == RELOAD:  # too many at once: look at what ended just now
                        newest = JobFilter(
                            conditions=(("ended", ">", self._clock() - _MISSED_S),), sort="ended", limit=_MISSED
                        )
                        self._look_at_jobs(self._jobs.page(newest).jobs)
                self._look_at_disk()
            except Exception:
                _LOG.exception("watching for notifications failed; it goes on")

    def _look_at_jobs(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            event, key = job_event(job), (job.id, job.attempt)
            if event and key not in self._told and self._clock() - (job.ended or 0.0) < _NEWS_FOR_S:
                self._told[key] = None
                while len(self._told) > _MOST_TOLD:
                    self._told.popitem(last=False)
                self.tell(self._job_message(job, event))

    def _job_message(self, job: Job, event: str) -> Message:
        path = f"/jobs/{job.id}"
        address = self.settings.address.rstrip("/")
        facts = {"id": job.id, "name": job.name, "kind": job.kind, "state": job.state, "owner": job.owner}
        divergence = "" if job.divergence is None else job.divergence.text
        lines = [f"{JOB_WORDS.get(job.kind, 'Job')} {job.name} {event}.", divergence or (job.reason or "")]
        if address:
            facts["url"] = address + path
            lines.append(facts["url"])
        title = f"{JOB_WORDS.get(job.kind, 'Job')} {event}: {job.name}"
        text = "\n".join(filter(None, lines))
        return Message(kind=event, title=title, text=text, time=job.ended or self._clock(), details={"job": facts})

    def _look_at_disk(self) -> None:
        now = self._clock()
        if now - self._disk_checked < _DISK_EVERY_S:
            return
        self._disk_checked = now
        free, reserve = self._disk()
        if free >= reserve:
            self.disk_low_since = None
        elif self.disk_low_since is None:
            self.disk_low_since = now
            text = f"{as_bytes(free)} are free. No job starts with less than {as_bytes(reserve)} free."
            details = {"disk": {"free_bytes": free, "reserve_bytes": reserve}}
            self.tell(Message(kind="disk_low", title="Disk space is low", text=text, time=now, details=details))
