"""View model of the job lists: rows with their curves and best values, sweeps, and what the filter says."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.entities import ACTIVE_STATES, ENDED_STATES, RUN_KINDS, Job, JobFilter, SweepSummary
from ziggurat.entities.jobs import DIVERGED
from ziggurat.errors import UsageError
from ziggurat.formatting import as_clock, as_number
from ziggurat.web.columns import (
    Best,
    Column,
    best_values,
    column_choices,
    columns_of,
    result_text,
    value_of,
)
from ziggurat.web.pages.home.query import HomeQuery
from ziggurat.web.sparklines import Sparkline, sparkline_of
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.training_checks import default_title, why_not_trainable

__all__ = [
    "FilterProblem",
    "Results",
    "Row",
    "Why",
    "clock_duration",
    "distinct_titles",
    "results_of",
    "short_duration",
]

_TRIALS_SHOWN: Final = 50
_STRIP: Final = 4
_ICONS: Final = {"table": "table", "text": "text"}
_MOST_WORDS: Final = 160


@dataclass(frozen=True)
class Why:
    """What stands in the place of a curve.

    Args:
        text: one sentence.
        level: ``failed``, ``diverged``, or empty.
    """

    text: str
    level: str = ""


@dataclass(frozen=True)
class Thumbnail:
    """The small image of a dataset.

    Args:
        path: of an image of its first sample; empty where it has none.
        icon: that stands in its place.
        strip: paths of images of some samples.
    """

    path: str = ""
    icon: str = "image"
    strip: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Row:
    """A job in the table.

    Args:
        job: it; of a sweep its best job, or the first one.
        heading: what begins here where jobs stand in groups; None where none does.
        sources: jobs that it was made from, as far as they are still there.
        thumbnail: of its dataset.
        facts: of a dataset or an evaluation that is done.
        users: how many jobs need it.
        best: that it came to; None for nothing.
        spark: its curve; None where it has none, or ``why`` says more.
        why: what is said in place of the curve; None for nothing.
        elapsed_s: that its newest attempt took, or takes; None before the first.
        chosen: values of the columns that users chose.
        sweep: that the row stands for; None for a job.
        is_trial: whether it stands below the row of its sweep.
        title: that is shown as its name.
        published: names of the models that it was published as.
    """

    job: Job
    heading: str | None = None
    sources: tuple[Job, ...] = ()
    thumbnail: Thumbnail = field(default_factory=Thumbnail)
    facts: Mapping[str, Any] = field(default_factory=dict)
    users: int = 0
    best: Best | None = None
    spark: Sparkline | None = None
    why: Why | None = None
    elapsed_s: float | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
    sweep: SweepSummary | None = None
    is_trial: bool = False
    title: str = ""
    published: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """The state that its glyph shows; of a sweep that of the jobs that are not done, if any."""
        if self.sweep is None:
            job = self.job
            if job.paused and job.state == "stopped":
                return "paused"
            return DIVERGED if job.divergence is not None and job.state != "queued" else job.state
        states = self.sweep.states
        if any(each in states for each in ACTIVE_STATES):
            return "running"
        if self.sweep.diverged == self.sweep.total:
            return DIVERGED
        return next((each for each in ("queued", "done", "stopped") if each in states), "failed")

    @property
    def samples(self) -> int | None:
        """How many samples a dataset has; None where it is none, or not done."""
        counts = self.facts.get("counts")  # of a version that an earlier release made, they are all that is noted
        return self.facts.get("samples", sum(counts.values()) if isinstance(counts, dict) else None)

    @property
    def rate(self) -> Any:
        """The learning rate; None where it has none."""
        return self.job.spec.get("learning_rate")

    @property
    def epochs(self) -> int:
        """Epochs that a training has; 0 for other jobs."""
        asked = self.job.spec.get("epochs")
        return self.job.max_epoch or (asked if isinstance(asked, int) else 0)

    @property
    def share(self) -> float | None:
        """How much of a running job is done, in [0, 1]; None while unknown."""
        return min(1.0, self.job.global_step / self.job.total_steps) if self.job.total_steps else None

    @property
    def can_train(self) -> str:
        """What a dataset can train; empty where that is not known, or it is none."""
        kind = self.facts.get("kind")
        if not isinstance(kind, str):
            return ""
        has_classes = bool(self.facts.get("classes"))
        if why_not_trainable(kind, ("?",) if has_classes else ()):
            return "No network trains on it yet"
        return f"For {default_title(kind, has_classes)}"

    @property
    def result(self) -> tuple[str, str]:
        """Value and metric of an evaluation; empty where it has none."""
        return result_text(self.facts)


@dataclass(frozen=True)
class FilterProblem:
    """What is wrong with the filter, or with the name to sort by.

    Args:
        text: rule, what came, and advice.
        name: what is meant to be something else; empty where there is no suggestion.
        suggestion: what to write instead.
        fixed: the whole filter with it.
    """

    text: str
    name: str = ""
    suggestion: str = ""
    fixed: str = ""


@dataclass(frozen=True, kw_only=True)
class Results:
    """What the part with the table shows.

    Args:
        query: what was asked for.
        total: rows that the filter leaves.
        rows: of the page.
        columns: behind that of the names.
        scalars: curves that may become columns.
        settings: fields of a spec that may become columns.
        others: further names.
        projects: names of all.
        sweep: that is shown alone; None for none.
        problem: what is wrong with the filter or the order; None for nothing.
        typed: what was typed as a new name, where it was not taken.
        name_problem: why not.
        model: newest finished training, of an empty list without a filter: what such a list leads on with; else None.
    """

    query: HomeQuery
    total: int = 0
    rows: Sequence[Row] = ()
    columns: Sequence[Column] = ()
    scalars: Sequence[str] = ()
    settings: Sequence[str] = ()
    others: Sequence[str] = ()
    projects: Sequence[str] = field(default=())
    sweep: SweepSummary | None = None
    problem: FilterProblem | None = None
    typed: str | None = None
    name_problem: str = ""
    model: Job | None = None

    @property
    def suggested_filter(self) -> str:
        """A condition that some of the rows fulfill, of the metric that they are judged by."""
        best = next((row.best for row in self.rows if row.best is not None), None)
        if best is None:
            return "learning_rate > 0.01 and accuracy > 0.9"
        metric = re.sub(r"^val(idation)?[_/]", "", best.tag)
        return f"learning_rate > 0.001 and {metric} {'<' if best.word == 'lowest' else '>'} {best.value:.2g}"


def results_of(studio: Studio, query: HomeQuery) -> Results:
    """Return what the part with the table shows; the number of questions to the store does not grow with the rows.

    Args:
        studio: that is held.
        query: what was asked for.
    """
    jobs, now = studio.jobs, studio.clock()
    problem = _sort_problem(studio, query)
    if problem is not None:
        query = dataclasses.replace(query, sort=HomeQuery.sort)
    try:
        page = jobs.page(query.chosen(now))
        if not page.jobs and page.total and query.offset:
            query = dataclasses.replace(query, offset=(page.total - 1) // query.limit * query.limit)
            page = jobs.page(query.chosen(now))
    except UsageError as error:
        # Where the conditions are wrong, nothing is shown: all jobs would be taken for those that were asked for.
        columns, projects = _columns(query, ()), studio.projects.names()
        return Results(query=query, columns=columns, projects=projects, problem=_problem(error, query.q))
    rows = _rows(studio, query, page.jobs)
    scalars, settings, others = column_choices(page.jobs, query.columns)
    return Results(
        query=query,
        total=page.total,
        rows=rows,
        columns=_columns(query, rows),
        scalars=scalars,
        settings=settings,
        others=others,
        projects=studio.projects.names(),
        sweep=jobs.sweeps([query.group]).get(query.group) if query.group else None,
        problem=problem,
        model=None if rows or query.is_filtered else _newest_model(studio),
    )


def _newest_model(studio: Studio) -> Job | None:
    return next(iter(studio.jobs.page(JobFilter(kinds=("train",), states=("done",), limit=1)).jobs), None)


def _sort_problem(studio: Studio, query: HomeQuery) -> FilterProblem | None:
    if query.sort_name in ("name", *(column.sort for column in columns_of(query.kind, query.columns))):
        return None
    try:
        studio.jobs.names.check(query.sort_name)
    except UsageError as error:
        return FilterProblem(f"The list cannot be sorted by `{query.sort_name}`. {error.advice}")
    return None


def _problem(error: UsageError, typed: str) -> FilterProblem:
    shape = error.as_dict()
    details = shape.get("details") or {}
    name, suggestion = str(details.get("name", "")), str(details.get("suggestion", ""))
    if not suggestion:
        return FilterProblem(str(error))
    fixed = re.sub(rf"(?<![\w.]){re.escape(name)}(?![\w.])", lambda _: suggestion, typed, count=1)
    return FilterProblem(str(shape["rule"]), name, suggestion, fixed)


def _rows(studio: Studio, query: HomeQuery, shown: Sequence[Job]) -> list[Row]:
    jobs = studio.jobs
    if query.shows_sweeps:
        sweeps = jobs.sweeps({job.group for job in shown if job.group})
    else:
        sweeps = {}
    sweeps = {group: found for group, found in sweeps.items() if found.total > 1}
    best_jobs = jobs.some([each.best_id for each in sweeps.values() if each.best_id])
    trials = _trials(studio, query) if query.open in sweeps else []
    leads = [best_jobs.get(sweeps[job.group].best_id, job) if job.group in sweeps else job for job in shown]
    known = _Known(studio, query, [*leads, *trials])
    headings = _headings(query, shown)
    rows: list[Row] = []
    for job, lead, heading in zip(shown, leads, headings, strict=True):
        sweep = sweeps.get(job.group)
        rows.append(known.row(lead, heading, sweep=sweep))
        if sweep is not None and query.open == job.group:
            titles = distinct_titles([each.name for each in trials])
            rows += [known.row(each, None, title=title) for each, title in zip(trials, titles, strict=True)]
    if query.group:  # the jobs of one sweep, alone
        titles = distinct_titles([row.job.name for row in rows])
        rows = [dataclasses.replace(row, title=title) for row, title in zip(rows, titles, strict=True)]
    return rows


def _trials(studio: Studio, query: HomeQuery) -> Sequence[Job]:
    wanted = JobFilter(group=query.open, sort="name", descending=False, limit=_TRIALS_SHOWN)
    return studio.jobs.page(wanted).jobs


def distinct_titles(names: Sequence[str]) -> list[str]:
    """Return names without the words that all of them begin with: what differs is seen where they are cut off."""
    if len(set(names)) < 2:
        return list(names)
    words = [name.split(" ") for name in names]
    same = sum(1 for _ in itertools.takewhile(lambda each: len(set(each)) == 1, zip(*words, strict=False)))
    return [" ".join(each[same:]) or name for each, name in zip(words, names, strict=True)]


class _Known:
    """What is known of the jobs of a page besides themselves, asked for all at once."""

    def __init__(self, studio: Studio, query: HomeQuery, shown: Sequence[Job]) -> None:
        jobs = studio.jobs
        needed = {each for job in shown for each in job.depends_on}
        self._sources = jobs.some(needed) if needed else {}
        datasets = {job.id: job for job in (*shown, *self._sources.values()) if job.kind == "dataset"}
        self._facts = studio.datasets.facts(list(datasets.values())) if datasets else {}
        tests = [job for job in shown if job.kind in ("evaluate", "infer")]
        self._facts |= jobs.results(tests) if tests else {}
        own = [job.id for job in shown if job.kind == "dataset"]
        self._users = jobs.dependent_counts(own) if own else {}
        self._bests = best_values(studio, shown)
        self._outlines = studio.curves.outlines(
            {
                job.id: job.scalars[best.tag]
                for job in shown
                if (best := self._bests.get(job.id)) is not None and job.kind in RUN_KINDS and best.tag in job.scalars
            }
        )
        self._published: dict[str, list[str]] = {}
        if query.kind == "model":
            for each in studio.published.all():
                self._published.setdefault(each.job, []).append(each.name)
        self._query, self._now = query, studio.clock()
        queued = any(job.state == "queued" for job in shown)
        order = jobs.queue_order() if queued else []
        self._places = {job_id: place for place, (job_id, _) in enumerate(order, start=1)}
        self._expected = jobs.expected_start

    def row(self, job: Job, heading: str | None, *, sweep: SweepSummary | None = None, title: str = "") -> Row:
        """Return the row of a job, or of a sweep by its best job."""
        sources = tuple(self._sources[each] for each in self._in_order(job))
        facts, best = self._facts.get(job.id, {}), self._bests.get(job.id)
        why = self._waits(job) if job.state == "queued" else _why(job, best)
        dataset = job if job.kind == "dataset" else next((each for each in sources if each.kind == "dataset"), None)
        return Row(
            job=job,
            heading=heading,
            sources=sources,
            thumbnail=_thumbnail(dataset, self._facts) if dataset is not None else Thumbnail(),
            facts=facts,
            users=self._users.get(job.id, 0),
            best=best,
            spark=self._spark(job, best) if why is None or sweep is not None else None,
            why=why if sweep is None or best is None else None,
            elapsed_s=_elapsed_s(job, self._now) if sweep is None else _sweep_elapsed_s(sweep, self._now),
            chosen={name: value_of(job, name, facts) for name in self._query.columns},
            sweep=sweep,
            is_trial=bool(title),
            title=title or (_without_suffix(job) if sweep is not None else job.name),
            published=tuple(self._published.get(job.id, ())),
        )

    def _waits(self, job: Job) -> Why:
        """Return why a job of the queue waits: the first by its reason, others by their place."""
        place, start = self._places.get(job.id, 1), self._expected(job.id)
        text = _sentence(job.reason) or "Starts soon"
        # What a job needs says more than its place.
        if place > 1 and not job.reason.startswith("needs the "):
            text = f"{_ordinal(place)} in the queue" + ("" if start is None else f", starts about {as_clock(start)}")
        return Why(text)

    def _spark(self, job: Job, best: Best | None) -> Sparkline | None:
        outline = self._outlines.get(job.id)
        if outline is None or best is None:
            return None
        ring = None if best.step is None or not math.isfinite(best.value) else (best.step, best.value)
        return sparkline_of(outline, ring, rises=best.word == "highest")

    def _in_order(self, job: Job) -> list[str]:
        """Return the ids of what a job was made from: of a test the model first, of a training the dataset."""
        first = "dataset" if job.kind == "train" else "train"
        found = (each for each in job.depends_on if each in self._sources)
        return sorted(found, key=lambda each: self._sources[each].kind != first)


_SUFFIX: Final = re.compile(r"(?: [\w.]+=\S+)+$")


def _without_suffix(job: Job) -> str:
    """Return the name of a sweep: that of one of its jobs without the values that it tries."""
    return _SUFFIX.sub("", job.name) or job.name


def _headings(query: HomeQuery, shown: Sequence[Job]) -> list[str | None]:
    """Return of each job the name of the group that begins with it."""
    if not query.by:
        return [None] * len(shown)
    names = [getattr(job, query.by) for job in shown]
    return [name if place == 0 or names[place - 1] != name else None for place, name in enumerate(names)]


def _why(job: Job, best: Best | None) -> Why | None:
    """Return what is said in place of a curve: why a job waits, failed or diverged, or that there is nothing yet."""
    if job.divergence is not None:
        value = job.divergence.value
        loss = job.divergence.non_finite or "not finite" if value is None else as_number(value)
        return Why(f"Diverged at epoch {job.divergence.epoch}: loss {loss}", DIVERGED)
    if job.state == "failed":
        return Why(_sentence(job.reason) or "Failed for an unknown reason", "failed")
    if job.is_active and job.health in ("hung", "silent"):
        return Why("No step for a long time" if job.health == "hung" else "No heartbeat of its worker", "diverged")
    if job.state == "running" and job.reason:  # it waits in the queue of a cluster
        return Why(_sentence(job.reason))
    if best is not None or job.kind not in RUN_KINDS:
        return None
    if job.state in ENDED_STATES:
        return Why(_sentence(job.reason) if job.state == "stopped" else "No metrics")
    return Why("Waiting for the first metrics")


def _ordinal(number: int) -> str:
    teens = 10 <= number % 100 <= 20
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _sentence(text: str) -> str:
    words = text.strip().rstrip(".").replace("`", "")  # a row has no room for code
    is_name = text.strip().startswith("`") or not words.partition(" ")[0].strip(",:;").isalpha()  # such as train.py
    return (words if is_name else f"{words[:1].upper()}{words[1:]}")[:_MOST_WORDS]


def _thumbnail(dataset: Job, facts: Mapping[str, Mapping[str, Any]]) -> Thumbnail:
    known = facts.get(dataset.id, {})
    kind = str(known.get("kind", ""))
    icon = next((icon for word, icon in _ICONS.items() if word in kind), "image")
    counts = known.get("counts")
    found = [(name, count) for name, count in counts.items() if count] if isinstance(counts, Mapping) else []
    if not kind or not found or icon != "image" or dataset.state != "done":
        return Thumbnail(icon=icon)
    split, total = found[0]
    rows = range(0, total, max(1, total // _STRIP))[:_STRIP]
    paths = [f"/datasets/{dataset.id}/pictures/{split}/{row}" for row in rows]
    return Thumbnail(paths[0], strip=tuple(paths))


def _elapsed_s(job: Job, now: float) -> float | None:
    if job.started is None or job.state == "queued":
        return None
    return max(0.0, (now if job.ended is None else job.ended) - job.started)


def _sweep_elapsed_s(sweep: SweepSummary, now: float) -> float | None:
    if sweep.first_start is None:
        return None
    return max(0.0, (sweep.newest_end or now) - sweep.first_start)


def _columns(query: HomeQuery, rows: Sequence[Row]) -> list[Column]:
    """Return the columns; that of the best sorts by the curve that most of the jobs are judged by."""
    tags = Counter(row.best.tag for row in rows if row.best is not None)
    tag = next(iter(tags.most_common(1)), ("", 0))[0]
    found = columns_of(query.kind, query.columns)
    return [dataclasses.replace(each, sort=tag) if each.name == "best" else each for each in found]


def short_duration(duration_s: float | None) -> str:
    """Return a duration in its largest unit, such as ``6 min``: a time left is known no better."""
    if duration_s is None or not math.isfinite(duration_s):
        return ""
    for unit_s, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if duration_s >= 1.5 * unit_s:
            return f"{round(duration_s / unit_s)} {unit}"
    return f"{max(1, round(duration_s))} s"


def clock_duration(duration_s: float | None) -> str:
    """Return a duration as a clock counts it: ``3:10``, ``1:12:05``."""
    if duration_s is None or not math.isfinite(duration_s):
        return "\u2013"
    minutes, seconds = divmod(max(0, round(duration_s)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
