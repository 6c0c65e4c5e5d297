"""View model of an evaluation of a task without classes of samples: metrics, tables, charts, worst and best samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.task_report import SHARE, MetricInfo, Report, ReportChart, ReportValue, SampleField, ScoreInfo
from ziggurat.errors import JobError, ZigguratError
from ziggurat.formatting import as_number
from ziggurat.web.pages.evaluation.measures import Measure, change_of
from ziggurat.web.pages.evaluation.report_charts import DrawnChart, drawn_chart
from ziggurat.web.pages.evaluation.task_samples import (
    TaskTile,
    metric_text,
    score_text,
    task_tiles,
    why_not_drawn,
)
from ziggurat.web.pages.evaluation.view import Asked, SampleSource, sample_source
from ziggurat.workspace.recipes import Task
from ziggurat.workspace.studio import Studio

__all__ = [
    "ScoreComparison",
    "TaskFound",
    "difference_words",
    "interval_words",
    "score_comparison",
    "task_found",
    "task_measures",
]

_STRIP: Final = 12
_TRIED: Final = 8
_ORDERS: Final = {"worst": "hardest", "best": "easiest"}


@dataclass(frozen=True, kw_only=True)
class TaskFound:
    """What a job found.

    Args:
        summary: as ``Evaluations.summary`` gives it.
        asked: what the address asks for.
        source: where images and pages of samples are.
        task: of the network; None where the package that brings it is not installed.
        problem: why the results cannot be shown, as an error's JSON shape; None where they can.
        report: metrics, tables and charts; points of charts have name and address of their sample.
        tiles: the worst or the best samples.
        has_samples: whether there is anything about single samples.
        not_drawn: why the network cannot be asked for images, as one sentence; empty where it can.
        fields: of the task, which samples are chosen by.
        values: of them.
        given: those that the address names.
        charts: of the report, as they are shown.
        total: samples that the fields leave.
    """

    summary: Mapping[str, Any]
    asked: Asked
    source: SampleSource
    task: Task | None = None
    problem: Mapping[str, Any] | None = None
    report: Report = field(default_factory=Report)
    tiles: Sequence[TaskTile] = ()
    has_samples: bool = False
    not_drawn: str = ""
    fields: Sequence[SampleField] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    charts: Sequence[DrawnChart] = ()
    total: int = 0

    # What the parts of the page ask for that it shares with classification.
    rows = ()
    pairs = ()
    chart = None

    @property
    def has_labels(self) -> bool:
        """Whether it can be compared with other runs."""
        return self.has_samples and self.task is not None

    @property
    def show(self) -> str:
        """Samples that are shown: ``worst`` or ``best``."""
        return self.asked.show if self.asked.show in _ORDERS else "worst"

    @property
    def report_fields(self) -> list[SampleField]:
        """Fields that figures and charts depend on."""
        return [each for each in self.fields if each.is_of_report]

    @property
    def chosen(self) -> list[tuple[str, str]]:
        """Title of each field that leaves out samples, and what it asks for, for people."""
        fields = [each for each in self.fields if not each.is_of_report and self.values.get(each.name)]
        return [(each.title, dict(each.choices).get(self.values[each.name], self.values[each.name])) for each in fields]

    @property
    def rank(self) -> ScoreInfo:
        """What ranks the samples."""
        return self.task.score if self.task is not None else ScoreInfo()


@dataclass(frozen=True, kw_only=True)
class ScoreComparison:
    """Another run on the same samples, beside this one.

    Args:
        job: the other run.
        summary: its figures.
        counts: samples whose score is ``better``, ``worse`` and ``equal`` in this run.
        mean: difference of the mean score, for people: ``0.4 better``.
        verdict: ``better``, ``worse``, or empty.
        interval_text: 95 % interval of the difference, for people; empty where it is not known.
        is_significant: whether the interval is on one side of 0.
        versions: where the other run is on another version of the dataset, what both have in common, as
            ``Evaluations.differences`` gives it.
    """

    job: Job
    summary: Mapping[str, Any]
    counts: Mapping[str, int]
    mean: str
    verdict: str
    interval_text: str
    is_significant: bool
    versions: Mapping[str, Any] | None = None


def task_found(studio: Studio, job: Job, asked: Asked, place: Callable[[str], str]) -> TaskFound:
    """Return what a job that is done found.

    Args:
        studio: where it is.
        job: of kind ``evaluate``.
        asked: what the address asks for.
        place: returns the address of a path.

    Raises:
        StorageError: where its results are not whole.
    """
    summary, found = studio.evaluations.summary(job.id), studio.evaluations.results(job.id)
    source = sample_source(studio, job, summary)
    bare = TaskFound(summary=summary, asked=asked, source=source)
    try:
        task = found.task
    except ZigguratError as error:
        return replace(bare, problem=error.as_dict())
    fields = {each.name: asked.fields[each.name] for each in found.sample_fields if each.name in asked.fields}
    report = found.report(fields)
    if not found.has_samples:
        drawn = [drawn_chart(each, "", {}) for each in report.charts]
        return replace(bare, task=task, report=report, charts=drawn)
    not_drawn = why_not_drawn(studio, job)
    shown = replace(bare, task=task, report=report, has_samples=True, not_drawn=not_drawn)
    if found.task_scores is None:
        order = "row"
    else:
        order = _ORDERS[shown.show]
    listed = studio.evaluations.samples(job.id, limit=_STRIP, order=order, asked=fields)
    samples = listed["samples"]
    charts = [_with_names(found, each, source, place) for each in report.charts]
    list_place = place(f"/evaluations/{job.id}/samples")
    return replace(
        shown,
        fields=found.sample_fields,
        values=found.checked(fields),
        given=fields,
        total=listed["total"],
        tiles=task_tiles(studio, job, samples, source, is_drawn=not not_drawn, asked=fields),
        report=replace(report, charts=charts),
        charts=[drawn_chart(each, list_place, fields) for each in charts],
    )


def _with_names(found: Any, chart: ReportChart, source: SampleSource, place: Callable[[str], str]) -> ReportChart:
    """Put name and address of its sample in place of the number of each point."""
    groups = chart.data.get("groups")
    if not groups:
        return chart
    places = [int(point[2]) for group in groups for point in group["points"] if len(point) > 2]
    samples = dict(zip(places, found.keys(places), strict=True)) if places else {}
    rows = found.rows

    def named(point: Sequence[Any]) -> list[Any]:
        if len(point) < 3:
            return list(point)
        page = source.page({"split": found.split, "row": int(rows[point[2]])})
        return [point[0], point[1], samples[int(point[2])], *([place(page)] if page else [])]

    made = [{**group, "points": [named(point) for point in group["points"]]} for group in groups]
    return replace(chart, data={**chart.data, "groups": made})


def task_measures(found: TaskFound, other: Mapping[str, Any] | None) -> list[Measure]:
    """Return the metrics, the primary one first, with the difference from another run.

    Args:
        found: of this run.
        other: summary of the run that it is compared with.
    """
    metrics = (other or {}).get("metrics") or {}
    return [_measure(value, metrics.get(value.name)) for value in found.report.values]


def _measure(value: ReportValue, other: Any) -> Measure:
    info = value.info
    change, verdict = "", ""
    if value.value is not None and isinstance(other, int | float) and info.mode:
        if info.unit == SHARE:
            change, verdict = change_of(value.value, other, rises=info.mode == "max", is_share=True)
        else:
            change, verdict = _change(value.value - other, rises=info.mode == "max", unit=info.unit)
    text = _parts_text(value.parts, info) if value.parts else metric_text(value.value, info)
    return Measure(
        title=info.title,
        text=text,
        help=info.help,
        change=change,
        verdict=verdict,
        name=value.name,
        beside=value.beside,
        note=value.note,
        is_asked=value.is_asked,
    )


def _parts_text(parts: Sequence[float | None], info: MetricInfo) -> str:
    """Return values in one line; the unit stands after the last one."""
    if info.unit != SHARE:
        return " · ".join(metric_text(each, info) for each in parts)
    return " · ".join("–" if each is None else f"{100 * each:.1f}" for each in parts) + " %"


def _change(gap: float, *, rises: bool, unit: str) -> tuple[str, str]:
    if not gap:
        return "no difference", "same"
    verdict = "better" if (gap > 0) == rises else "worse"
    return f"{as_number(abs(gap), 3)}{' ' + unit if unit else ''} {verdict}", verdict


def score_comparison(
    studio: Studio, job: Job, others: Sequence[Job], wanted: str, info: ScoreInfo
) -> ScoreComparison | None:
    """Return the run beside this one; None where there is none.

    Args:
        studio: where they are.
        job: this run.
        others: runs on the same samples, the newest first.
        wanted: id of the other run, ``none``, or empty: the newest of another model or checkpoint.
        info: what ranks the samples.

    Raises:
        JobError: where the wanted run is of other samples or another task.
    """
    if wanted == "none":
        return None
    if wanted:
        return _comparison(studio, job, studio.jobs.get(wanted), info)
    used = (job.parent, studio.evaluations.checkpoint_of(job.id))
    for other in others[:_TRIED]:
        try:
            if (other.parent, studio.evaluations.checkpoint_of(other.id)) != used:
                return _comparison(studio, job, other, info)
        except JobError:  # of another task, or its samples were corrected meanwhile
            continue
    return None


def _comparison(studio: Studio, job: Job, other: Job, info: ScoreInfo) -> ScoreComparison:
    found = studio.evaluations.differences(other.id, job.id, limit=0)
    mean, interval = found["mean"], found["interval"]
    words, verdict = difference_words(mean, info)
    return ScoreComparison(
        job=other,
        summary=studio.evaluations.summary(other.id),
        counts=found["counts"],
        mean=words,
        verdict=verdict,
        interval_text=interval_words(interval, mean, info),
        is_significant=interval is not None and (interval[0] > 0 or interval[1] < 0),
        versions=found["versions"],
    )


def difference_words(mean: float | None, info: ScoreInfo) -> tuple[str, str]:
    """Return a difference of scores for people, and ``better``, ``worse`` or ``same``; empty where it is not known."""
    if mean is None:
        return "", ""
    if not mean:
        return "no difference", "same"
    verdict = "better" if mean > 0 else "worse"
    amount = f"{abs(100 * mean):.1f} points" if info.unit == SHARE else score_text(info.sign * abs(mean), info)
    return f"{amount} {verdict}", verdict


def interval_words(interval: Sequence[float] | None, mean: float | None, info: ScoreInfo) -> str:
    """Return an interval of a difference of scores, positive in the direction that ``difference_words`` names."""
    if interval is None or mean is None:
        return ""
    ends = sorted(each if mean >= 0 else -each for each in interval)
    if info.unit == SHARE:
        return " to ".join(f"{100 * each:.1f}" for each in ends) + " points"
    return " to ".join(f"{each:.3g}" for each in ends) + (f" {info.unit}" if info.unit else "")
