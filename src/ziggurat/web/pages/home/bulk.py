"""Bulk actions on the jobs selected on the home page, and the message shown afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from ziggurat.entities import Identity, Job, JobChange, JobFilter
from ziggurat.errors import UsageError
from ziggurat.formatting import plural
from ziggurat.operations import jobs
from ziggurat.web.flash import Outcome, Refused
from ziggurat.web.job_changes import change_from, named_tags
from ziggurat.web.pages.home.query import NO_PROJECT, HomeQuery
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import chosen_ids

__all__ = ["Choice", "carry_out", "change_of"]


_UNDONE: Final = 500
"""So many deletions are taken back by one button; others are on the page of deleted jobs."""

_SHOWN: Final = 20
_DONE: Final = {
    "stop": ("was asked to stop", "were asked to stop"),
    "stop_now": ("was ended", "were ended"),
    "pause": ("was asked to pause", "were asked to pause"),
    "resume": ("is in the queue again", "are in the queue again"),
    "retry": ("is in the queue again", "are in the queue again"),
    "delete": ("was deleted", "were deleted"),
    "describe": ("was changed", "were changed"),
    "evaluate": ("is evaluated on the validation split", "are evaluated on the validation split"),
}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which jobs.

    Args:
        ids: that were ticked.
        query: what is shown, for all that it leaves.
        is_all: whether all that ``query`` leaves are meant, and not ``ids``.
    """

    ids: tuple[str, ...] = ()
    query: HomeQuery = field(default_factory=HomeQuery)
    is_all: bool = False

    def resolve(self, studio: Studio) -> list[str]:
        """Return the ids.

        Raises:
            UsageError: where no job is chosen, or the conditions of the filter are none.
        """
        found = chosen_ids(studio.jobs, self._filter(studio)) if self.is_all else list(dict.fromkeys(self.ids))
        if not found:
            raise UsageError("No job is chosen.", advice="Select some jobs in the table first.")
        return found

    def _filter(self, studio: Studio) -> JobFilter:
        # All jobs of a sweep are meant by its row.
        chosen = self.query.chosen(studio.clock())
        return replace(chosen, listing=replace(chosen.listing, one_per_sweep=False, pinned=0))


def carry_out(
    studio: Studio,
    who: Identity,
    action: str,
    ids: Sequence[str],
    *,
    form: Mapping[str, str] | None = None,
    force: bool = False,
) -> Outcome:
    """Do something with jobs, and return what is said of it.

    Args:
        studio: that is held.
        who: asks for it.
        action: ``stop``, ``pause``, ``resume``, ``retry``, ``delete``, ``evaluate`` or ``describe``.
        ids: of the jobs.
        form: ``add_tags``, ``remove_tags`` and ``project`` for ``describe``.
        force: for ``delete``: also jobs that run, or that others need.

    Raises:
        UsageError: where ``describe`` is asked for and nothing was typed.
    """
    known = studio.jobs.some(ids)
    does: Callable[[str], object] | None = None
    if action == "describe":
        does = _describes(studio, known, form or {})
    elif action == "evaluate":
        does = partial(studio.evaluations.create, owner=who.name)
    audited = "change" if action == "describe" else action
    results = jobs.act(studio, who, audited, ids, force=force, does=does, is_one=len(ids) == 1)
    done = [each["id"] for each in results if each["done"]]
    refused = [_refused(each, known) for each in results if not each["done"]]
    return Outcome(
        text=_text(action, done, known),
        deleted=done[:_UNDONE] if action == "delete" and studio.settings.trash_days else (),
        refused=refused[:_SHOWN],
        refused_total=len(refused),
    )


def change_of(form: Mapping[str, str], job: Job) -> JobChange | None:
    """Return what a form for many changes of a job; None for nothing.

    Args:
        form: ``add_tags``, ``remove_tags``, ``project``.
        job: as it is.
    """
    added, removed = named_tags(form.get("add_tags", "")), named_tags(form.get("remove_tags", ""))
    tags = tuple(tag for tag in dict.fromkeys((*job.tags, *added)) if tag not in removed or tag in added)
    project = form.get("project", "").strip()
    change = JobChange(
        tags=tags if tags != job.tags else None,
        project=None if not project else "" if project == NO_PROJECT else project,
    )
    return None if change in (JobChange(), replace(JobChange(), project=job.project)) else change


def _describes(studio: Studio, known: Mapping[str, Job], form: Mapping[str, str]) -> Callable[[str], None]:
    if not any(form.get(name, "").strip(" ,") for name in ("add_tags", "remove_tags", "project")):
        raise UsageError("Nothing was entered.", advice="Type tags, or the name of a project.")
    change_from({"tags": form.get("add_tags", ""), "project": form.get("project", "")})  # before any of them is changed

    def describe(job_id: str) -> None:
        change = change_of(form, known.get(job_id) or studio.jobs.get(job_id))
        if change is not None:
            studio.jobs.change(job_id, change)

    return describe


def _refused(result: Mapping[str, Any], known: Mapping[str, Job]) -> Refused:
    job, error = known.get(result["id"]), result["error"]
    why = " ".join(filter(None, (error.get("rule"), error.get("advice"))))
    return Refused(result["id"], job.name if job is not None else result["id"], why)


def _text(action: str, done: Sequence[str], known: Mapping[str, Job]) -> str:
    if not done:
        return ""
    one, many = _DONE[action]
    if len(done) == 1:
        job = known.get(done[0])
        return f"{job.name if job is not None else done[0]} {one}."
    return f"{plural(len(done), 'job')} {many}."
