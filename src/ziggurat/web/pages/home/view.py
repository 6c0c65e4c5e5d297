"""View model of the home page: its URL query, the table of jobs, and the queue with its moves."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import QueryParams

from ziggurat.entities import JOB_STATES, Job, JobChange, JobFilter
from ziggurat.errors import JobError, UnknownNameError, UsageError
from ziggurat.web.columns import Best, Column, best_values, column_choices, columns_of, value_of
from ziggurat.web.pages.job.view import JobAction, actions_of
from ziggurat.workspace.job_query import JobQuery, parse_conditions
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import Jobs

__all__ = [
    "NO_PROJECT",
    "PAGE_SIZES",
    "HomeQuery",
    "Results",
    "move_in_queue",
    "place_in_queue",
    "query_of",
    "query_of_text",
    "queue_of",
    "results_of",
]


PAGE_SIZES: Final = (25, 50, 100, 200)
"""How many jobs a page may show; usually the first: more than a screen holds are only waited for."""

NO_PROJECT: Final = "-"
"""What stands in the address for jobs without a project."""

TABS: Final = {
    "train": ("Models", ("train",)),
    "dataset": ("Datasets", ("dataset",)),
    "test": ("Tests", ("evaluate", "infer")),
    "all": ("Everything", ()),
}
"""Name in the address → title, and the kinds of job that the table has; none for all."""

_GROUPS: Final = ("project", "group")
_ORDER: Final = "-created"
_MOST_COLUMNS: Final = 20
_LONGEST: Final = 200
_WAITING_SHOWN: Final = 5
_WAITING_MOST: Final = 500


@dataclass(frozen=True, kw_only=True)
class HomeQuery:
    """What the first page shows.

    Args:
        kind: a name in ``TABS``.
        states: of the jobs; none for all.
        project: of the jobs; ``NO_PROJECT`` for those without one, empty for all.
        text: that must be in name, id, notes, network or tags.
        tag: that they must have.
        group: sweep that they must be of.
        owner: whose they must be.
        where: conditions, as they were typed.
        sort: name of what they are sorted by; with ``-``, large values first.
        by: ``project`` or ``group``: what stands together; empty for nothing.
        columns: names of spec fields and curves that are shown besides the usual ones.
        limit: how many jobs a page shows, one of ``PAGE_SIZES``.
        offset: jobs that are on the pages before.
        rename: id of the job whose name is being changed.
        waiting: ``all`` to show the whole queue.
    """

    kind: str = "train"
    states: tuple[str, ...] = ()
    project: str = ""
    text: str = ""
    tag: str = ""
    group: str = ""
    owner: str = ""
    where: str = ""
    sort: str = _ORDER
    by: str = ""
    columns: tuple[str, ...] = ()
    limit: int = PAGE_SIZES[0]
    offset: int = 0
    rename: str = ""
    waiting: str = ""

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out jobs of its tab."""
        return bool(self.states or self.project or self.text or self.tag or self.group or self.owner or self.where)

    @property
    def waiting_limit(self) -> int:
        """How many jobs of the queue are shown."""
        return _WAITING_MOST if self.waiting else _WAITING_SHOWN

    @property
    def sort_name(self) -> str:
        """The name of what is sorted by."""
        return self.sort.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        """Whether large values come first."""
        return self.sort.startswith("-")

    def chosen(self) -> JobFilter:
        """Return the filter.

        Raises:
            UsageError: where a condition is none.
        """
        names = ("text", "tag", "group", "owner", "sort", "offset", "limit")
        query = JobQuery.model_validate(
            {
                **{name: getattr(self, name) for name in names},
                "kind": TABS[self.kind][1],
                "state": self.states,
                "project": {"": None, NO_PROJECT: ""}.get(self.project, self.project),
                "where": [self.where],
            }
        )
        return query.chosen(group_by=self.by)

    def where_problem(self) -> str:
        """Return what is wrong with the conditions; empty for nothing."""
        try:
            parse_conditions(self.where)
        except UsageError as error:
            shape = error.as_dict()
            return " ".join(filter(None, (shape["rule"], f"Received: {shape['received']}.", shape["advice"])))
        return ""

    def values(self, **changes: Any) -> dict[str, Any]:
        """Return the values of an address with some of them changed; usual ones are left out."""
        changed = dataclasses.replace(self, **{"rename": "", "offset": 0, **changes})
        usual = HomeQuery()
        found = {
            _NAMES.get(each.name, each.name): value
            for each in dataclasses.fields(self)
            if (value := getattr(changed, each.name)) != getattr(usual, each.name)
        }
        # The tab stands in every address: without it, what there is decides.
        return {"kind": changed.kind, **{name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}}

    @property
    def text_form(self) -> str:
        """The query of its address, for a field by which a form sends it back."""
        return urlencode(self.values(offset=self.offset), doseq=True)

    def pairs(self, *without: str) -> list[tuple[str, str]]:
        """Return names and values for the hidden fields of a form, all but those of its own fields."""
        found: list[tuple[str, str]] = []
        for name, value in self.values().items():
            if name not in without:
                found += [(name, str(each)) for each in (value if isinstance(value, list) else [value])]
        return found


_NAMES: Final = {"states": "state", "columns": "column"}


def query_of(params: QueryParams, counts: Mapping[str, int] | None = None) -> HomeQuery:
    """Return what an address asks for; what it cannot mean is left out.

    Args:
        params: of the address.
        counts: kind → jobs, to choose a tab where the address names none.
    """
    given = {name: params.get(name, "").strip()[:_LONGEST] for name in _TEXTS}
    kind = params.get("kind", "")
    by, sort, offset = params.get("by", ""), given.pop("sort"), params.get("offset", "")
    limit = next((size for size in PAGE_SIZES if str(size) == params.get("limit")), PAGE_SIZES[0])
    columns = dict.fromkeys(name.strip()[:_LONGEST] for name in params.getlist("column") if name.strip())
    return HomeQuery(
        kind=kind if kind in TABS else _usual_kind(counts or {}),
        states=tuple(state for state in JOB_STATES if state in params.getlist("state")),
        by=by if by in _GROUPS else "",
        sort=sort if sort.removeprefix("-") else _ORDER,
        columns=tuple(columns)[:_MOST_COLUMNS],
        limit=limit,
        offset=min(int(offset), 10**9) // limit * limit if offset.isdecimal() and len(offset) < 12 else 0,
        waiting="all" if params.get("waiting") == "all" else "",
        **given,
    )


def query_of_text(text: str) -> HomeQuery:
    """Return what the query of an address asks for, as a form sends it back."""
    return query_of(QueryParams(parse_qsl(text, keep_blank_values=True)))


_TEXTS: Final = ("project", "text", "tag", "group", "owner", "where", "sort", "rename")


def _usual_kind(counts: Mapping[str, int]) -> str:
    return "dataset" if counts.get("dataset") and not counts.get("train") else "train"


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
        kinds: kind → jobs, if already counted.
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


MOVES: Final = ("first", "up", "down", "last")
"""Where a button moves a job of the queue."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job of the queue.

    Args:
        place: from 1.
        job: it; its ``reason`` says why it waits.
        expected_start: seconds since 1970; None while unknown.
        actions: what can be done with it.
    """

    place: int
    job: Job
    expected_start: float | None
    actions: Sequence[JobAction]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """What runs and what waits.

    Args:
        running: the oldest first, each with what can be done with it.
        waiting: the next one first, as many as are shown.
        following: id of the first that is not shown; empty where all are.
        total: how many wait.
        is_whole: whether more than the first few were asked for.
    """

    running: Sequence[tuple[Job, Sequence[JobAction]]]
    waiting: Sequence[Waiting]
    following: str
    total: int
    is_whole: bool


def queue_of(studio: Studio, limit: int, *, is_whole: bool = False, running: Sequence[Job] | None = None) -> Queue:
    """Return what runs and what waits.

    Args:
        studio: that is held.
        limit: how many waiting jobs are shown.
        is_whole: whether more than the first few were asked for.
        running: running jobs, if already loaded.
    """
    jobs = studio.jobs
    found = jobs.queue(limit + 1)
    waiting = [
        Waiting(place=place, job=job, expected_start=jobs.expected_start(job.id), actions=actions_of(job))
        for place, job in enumerate(found[:limit], start=1)
    ]
    total = len(found) if len(found) <= limit else jobs.counts()["queued"]
    following = found[limit].id if len(found) > limit else ""
    total = max(total, len(found))  # some may have come meanwhile
    at_work = [(job, actions_of(job)) for job in (jobs.running() if running is None else running)]
    return Queue(running=at_work, waiting=waiting, following=following, total=total, is_whole=is_whole)


def move_in_queue(jobs: Jobs, job_id: str, move: str) -> int:
    """Move a job of the queue, and return its new place, from 1.

    Args:
        jobs: of every kind.
        job_id: of the job.
        move: a name in ``MOVES``.

    Raises:
        UnknownNameError: where there is no such move.
        JobError: where it is not in the queue.
    """
    if move not in MOVES:
        raise UnknownNameError("move", move, MOVES)
    order = [each for each, _ in jobs.queue_order()]
    here = _place(jobs, order, job_id)
    there = {"first": 0, "up": max(0, here - 1), "down": min(len(order) - 1, here + 1), "last": len(order) - 1}[move]
    if there == here:
        return here + 1
    rest = [each for each in order if each != job_id]
    return place_in_queue(jobs, job_id, rest[there] if there < len(rest) else None)


def place_in_queue(jobs: Jobs, job_id: str, before: str | None) -> int:
    """Put a job of the queue before another one, or last, and return its new place, from 1.

    Jobs of a higher priority come first. So a job that is put among those of another priority takes that one over.

    Raises:
        JobError: where one of them is not in the queue.
    """
    queue = jobs.queue_order()
    _, own = queue[_place(jobs, [each for each, _ in queue], job_id)]
    rest = [(each, priority) for each, priority in queue if each != job_id]
    there = len(rest) if before is None else _place(jobs, [each for each, _ in rest], before)
    ahead = rest[there - 1][1] if there else None
    behind = rest[there][1] if there < len(rest) else None
    priority = _fitting(own, ahead, behind)
    if priority != own:
        jobs.change(job_id, JobChange(priority=priority))
    if behind == priority:
        jobs.reorder(job_id, rest[there][0])
    elif ahead == priority:
        jobs.reorder(job_id)  # behind all others of its priority
    return there + 1


def _fitting(priority: int, ahead: int | None, behind: int | None) -> int:
    """Return the priority nearest to its own with which a job stands between two others."""
    if behind is not None and priority < behind:
        return behind
    return ahead if ahead is not None and priority > ahead else priority


def _place(jobs: Jobs, order: Sequence[str], job_id: str) -> int:
    if job_id not in order:
        state = jobs.get(job_id).state
        raise JobError(
            "Only jobs in the queue are moved.",
            received=f"job {job_id} is {state}",
            advice="Check the queue again: it has changed meanwhile.",
        )
    return order.index(job_id)
