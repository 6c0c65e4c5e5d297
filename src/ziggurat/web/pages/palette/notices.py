"""View model of notifications: jobs that have just ended, each with one action, and a disk that is full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.entities import Identity, Job, JobFilter
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.notifications import JOB_WORDS, job_event

__all__ = ["MOST_WITHIN_S", "Notification", "notifications"]

MOST_WITHIN_S: Final = 600
"""A job that ended longer ago is no news."""

_MOST: Final = 10


@dataclass(frozen=True, kw_only=True)
class Notification:
    """One job that has ended, or a disk that is full.

    Args:
        id: what tells it from the end of another attempt of the same job.
        text: name of the job, or what the disk means.
        title: such as ``Run finished``.
        action: text of the link.
        path: where the link leads, from the studio's root.
        job: the job; None for a disk.
    """

    id: str
    text: str
    title: str
    action: str
    path: str
    job: Job | None = None


def notifications(studio: Studio, who: Identity, job_ids: Sequence[str], within_s: float) -> list[Notification]:
    """Return the jobs of a user that finished, failed or diverged, the newest first; before them a disk that is full.

    Args:
        studio: where they are.
        who: asks; with an account, only their own jobs are news.
        job_ids: jobs that a page was told about; empty for all.
        within_s: how long ago they may have ended.
    """
    least = studio.clock() - min(within_s, MOST_WITHIN_S)
    if job_ids:
        jobs = list(studio.jobs.some(job_ids).values())
    else:
        newest = JobFilter(conditions=(("ended", ">", least),), sort="ended", limit=_MOST)
        jobs = list(studio.jobs.page(newest).jobs)
    chosen = [each for each in jobs if job_event(each) and (each.ended or 0) > least and _is_news(each, who)]
    disk = _disk(studio.notifications.disk_low_since)
    return disk + [_notification(each) for each in sorted(chosen, key=lambda job: job.ended or 0, reverse=True)[:_MOST]]


def _disk(low_since: float | None) -> list[Notification]:
    if low_since is None:
        return []
    text = "No job starts until there is more."
    return [Notification(id=f"disk-{low_since:.0f}", text=text, title="Disk space is low", action="See", path="/about")]


def _is_news(job: Job, who: Identity) -> bool:
    return who.user is None or job.owner == who.name


def _notification(job: Job) -> Notification:
    places = {
        "train": ("Predict", f"/models/{job.id}/test"),
        "dataset": ("Explore", f"/datasets/{job.id}/explore"),
        "evaluate": ("Results", f"/evaluations/{job.id}"),
        "infer": ("Results", f"/evaluations/{job.id}"),
    }
    action, path = places.get(job.kind, ("Open", f"/jobs/{job.id}"))
    event = job_event(job)
    if event != "finished":
        action, path = "See why", f"/jobs/{job.id}"
    title = f"{JOB_WORDS.get(job.kind, 'Job')} {event}"
    return Notification(id=f"{job.id}-{job.attempt}", text=job.name, title=title, action=action, path=path, job=job)
