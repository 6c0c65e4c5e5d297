"""View model of the job table on the home page: rows, group headings, a sweep and its best job."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.web.best_values import best_values
from ziggurat.web.columns import Best, Column, column_choices, columns_of, value_of
from ziggurat.web.pages.home.query import TABS, HomeQuery
from ziggurat.workspace.studio import Studio

__all__ = ["Results", "Row", "Sweep", "Tab", "results_of"]

_SWEEP_MOST: Final = 200


@dataclass(frozen=True, kw_only=True)
class Row:
    """A job in the table.

    Args:
        job: it.
        heading: what begins here where jobs stand in groups; None where none does.
        sources: jobs that it was made from, as far as they are still there.
        facts: of a dataset that is done.
        users: how many jobs need it.
        best: that it came to; None for nothing.
        elapsed_s: that its newest attempt took, or takes; None before the first.
        chosen: values of the columns that people chose.
    """

    job: Job
    heading: str | None
    sources: tuple[Job, ...]
    facts: Mapping[str, Any]
    users: int
    best: Best | None
    elapsed_s: float | None
    chosen: Mapping[str, Any]

    @property
    def samples(self) -> int | None:
        """How many samples a dataset has; None where it is none, or not done."""
        counts = self.facts.get("counts")  # of a version that an earlier release made, they are all that is noted
        return self.facts.get("samples", sum(counts.values()) if isinstance(counts, dict) else None)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep that is shown alone.

    Args:
        id: of the group.
        states: state → jobs, without states that no job is in.
        best: the best of its jobs; None while there is none.
        best_value: by what.
    """

    id: str
    states: Mapping[str, int]
    best: Job | None
    best_value: Best | None


@dataclass(frozen=True)
class Tab:
    """A tab.

    Args:
        name: in the address.
        title: that stands on it.
        count: of jobs, whatever the filter.
    """

    name: str
    title: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Results:
    """What the part with the table shows.

    Args:
        query: what was asked for.
        total: jobs that the filter leaves.
        rows: of the page.
        tabs: all of them.
        columns: behind that of the names.
        scalars: curves that may become columns.
        settings: fields of a spec that may become columns.
        others: further names.
        projects: names of all.
        sweep: that is shown alone; None for none.
        where_problem: what is wrong with the conditions; empty for nothing.
        states: state → all jobs of the studio.
        typed: what was typed as a new name, where it was not taken.
        name_problem: why not.
    """

    query: HomeQuery
    total: int = 0
    rows: Sequence[Row] = ()
    tabs: Sequence[Tab] = ()
    columns: Sequence[Column] = ()
    scalars: Sequence[str] = ()
    settings: Sequence[str] = ()
    others: Sequence[str] = ()
    projects: Sequence[str] = field(default=())
    sweep: Sweep | None = None
    where_problem: str = ""
    states: Mapping[str, int] = field(default_factory=dict)
    typed: str | None = None
    name_problem: str = ""


def results_of(
    studio: Studio,
    query: HomeQuery,
    kinds: Mapping[str, int] | None = None,
    states: Mapping[str, int] | None = None,
) -> Results:
    """Return what the part with the table shows; the number of questions to the store does not grow with the rows.

    Args:
        studio: that is held.
        query: what was asked for.
        kinds: kind → jobs, where somebody counted them already.
        states: state → jobs, in the same way.
    """
    jobs, counted = studio.jobs, studio.jobs.kind_counts() if kinds is None else kinds
    problem = query.where_problem()
    # Where the conditions are wrong, nothing is shown: all jobs would be taken for those that were asked for.
    page = None if problem else jobs.page(query.chosen())
    if page is not None and not page.jobs and page.total and query.offset:
        query = dataclasses.replace(query, offset=(page.total - 1) // query.limit * query.limit)
        page = jobs.page(query.chosen())
    shown = () if page is None else page.jobs
    rows = _rows(studio, query, shown)
    scalars, settings, others = column_choices(shown, query.columns)
    return Results(
        query=query,
        total=0 if page is None else page.total,
        rows=rows,
        tabs=[Tab(name, title, _count(counted, each)) for name, (title, each) in TABS.items()],
        columns=_columns(query, rows),
        scalars=scalars,
        settings=settings,
        others=others,
        projects=[project.name for project, _ in studio.projects.all()],
        sweep=_sweep(studio, query.group) if query.group else None,
        where_problem=problem,
        states=jobs.counts() if states is None else states,
    )


def _count(counts: Mapping[str, int], kinds: Sequence[str]) -> int:
    return sum(count for kind, count in counts.items() if not kinds or kind in kinds)


def _rows(studio: Studio, query: HomeQuery, shown: Sequence[Job]) -> list[Row]:
    jobs, now = studio.jobs, studio.clock()
    needed = {each for job in shown for each in job.depends_on}
    sources = jobs.some(needed) if needed else {}
    datasets = [job for job in shown if job.kind == "dataset"]
    facts = studio.datasets.facts(datasets) if datasets else {}
    users = jobs.dependent_counts([job.id for job in datasets]) if datasets else {}
    headings = _headings(query, shown)
    bests = best_values(studio, shown)
    return [
        Row(
            job=job,
            heading=heading,
            sources=tuple(sources[each] for each in _in_order(job, sources)),
            facts=facts.get(job.id, {}),
            users=users.get(job.id, 0),
            best=bests.get(job.id),
            elapsed_s=_elapsed_s(job, now),
            chosen={name: value_of(job, name, facts.get(job.id, {})) for name in query.columns},
        )
        for job, heading in zip(shown, headings, strict=True)
    ]


def _headings(query: HomeQuery, shown: Sequence[Job]) -> list[str | None]:
    """Return of each job the name of the group that begins with it."""
    if not query.by:
        return [None] * len(shown)
    names = [getattr(job, query.by) for job in shown]
    return [name if place == 0 or names[place - 1] != name else None for place, name in enumerate(names)]


def _in_order(job: Job, sources: Mapping[str, Job]) -> list[str]:
    """Return the ids of what a job was made from: of a test the model first, of a training the dataset."""
    first = "dataset" if job.kind == "train" else "train"
    return sorted((each for each in job.depends_on if each in sources), key=lambda each: sources[each].kind != first)


def _elapsed_s(job: Job, now: float) -> float | None:
    if job.started is None or job.state == "queued":
        return None
    return max(0.0, (now if job.ended is None else job.ended) - job.started)


def _columns(query: HomeQuery, rows: Sequence[Row]) -> list[Column]:
    """Return the columns; that of the best sorts by the curve that most of the jobs are judged by."""
    tags = Counter(row.best.tag for row in rows if row.best is not None)
    tag = next(iter(tags.most_common(1)), ("", 0))[0]
    found = columns_of(query.kind, query.columns)
    return [dataclasses.replace(each, sort=tag) if each.name == "best" else each for each in found]


def _sweep(studio: Studio, group: str) -> Sweep:
    jobs = studio.jobs.page(JobFilter(group=group, limit=_SWEEP_MOST)).jobs
    bests = best_values(studio, jobs)
    judged = [(bests[job.id], job) for job in jobs if job.id in bests]
    tag = Counter(best.tag for best, _ in judged).most_common(1)
    same = [(best, job) for best, job in judged if best.tag == tag[0][0]]
    pick: Callable[..., Any] = max if same and same[0][0].word == "highest" else min
    found = pick(same, key=lambda pair: pair[0].value) if same else (None, None)
    return Sweep(id=group, states=Counter(job.state for job in jobs), best=found[1], best_value=found[0])
