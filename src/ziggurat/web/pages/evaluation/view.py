"""View model of an evaluation page: the job, its results at a score threshold, and links to their samples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ziggurat.entities import Job, JobFilter
from ziggurat.errors import UsageError
from ziggurat.web.pages.evaluation.confusion import (
    MOST_CELLS_ACROSS,
    ConfusedPair,
    ConfusionRow,
    confused_pairs,
    confusion_rows,
)
from ziggurat.web.pages.evaluation.curves import (
    MOST_CONTEXT_LINES,
    Chart,
    CurveKind,
    curve_table,
    line_of,
    worst_classes,
)
from ziggurat.web.pages.evaluation.sample_content import IMAGES, SampleContent, contents_of, held_by
from ziggurat.web.pages.job.view import Failure, JobAction, actions_of, failure_of
from ziggurat.workspace.checkpoints import best_of_model, checkpoints_of_model
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.evaluations import has_digits

__all__ = [
    "COLUMNS",
    "Asked",
    "CheckpointOption",
    "Found",
    "checkpoint_options",
    "evaluation_state",
    "found_view",
    "other_runs",
    "sample_source",
]


COLUMNS: Final = {
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "ap": "AP",
    "support": "Samples",
}
_STRIP: Final = 10
_ROWS: Final = 200
_OTHERS: Final = 200
_VERSIONS: Final = 30
_COUNTED_CLASSES: Final = 40
_CURVE_POINTS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the address of the page asks for.

    Args:
        threshold: a sample counts as decided from that score on.
        class_number: that is highlighted besides the worst ones; None for none.
        sort: a name in ``COLUMNS``, or ``name`` for the order of the classes.
        down: whether the largest comes first.
        all_classes: whether the table shows all of them.
        label: actual class of the cell whose samples are shown; None for none.
        predicted: predicted class of that cell.
        show: samples below the charts: ``errors``, ``cell``, ``hardest`` or ``highest``.
        values: of the confusion matrix: ``count`` or ``percent``.
        curve: ``pr`` or ``roc``.
        against: id of the run to compare with, ``none``, or empty for the newest one.
        fields: of the task, with the values of the address.
    """

    threshold: float = 0.0
    class_number: int | None = None
    sort: str = "f1"
    down: bool = False
    all_classes: bool = False
    label: int | None = None
    predicted: int | None = None
    show: str = ""
    values: str = "count"
    curve: CurveKind = "pr"
    against: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def cell(self) -> tuple[int, int] | None:
        """The cell of the confusion matrix that is chosen; None for none."""
        return None if self.label is None or self.predicted is None else (self.label, self.predicted)

    def kept(self) -> dict[str, str]:
        """Return the values that the form of the threshold must send along, without those that are the default."""
        usual = Asked()
        names = {"class": "class_number", "all": "all_classes"}
        names |= {name: name for name in ("sort", "down", "label", "predicted", "show", "values", "curve", "against")}
        return {
            name: str(getattr(self, field)).lower() if field in ("down", "all_classes") else str(getattr(self, field))
            for name, field in names.items()
            if getattr(self, field) != getattr(usual, field)
        }


@dataclass(frozen=True, kw_only=True)
class EvaluationState:
    """The job, and where it comes from.

    Args:
        job: it.
        model: that it used; None where it was deleted.
        actions: buttons that apply.
        failure: why it failed; None where it did not.
    """

    job: Job
    model: Job | None
    actions: list[JobAction]
    failure: Failure | None

    @property
    def has_ended(self) -> bool:
        """Whether nothing changes any more by itself."""
        return self.job.state in ("done", "failed", "stopped")


@dataclass(frozen=True, kw_only=True)
class Strip:
    """Samples that are shown below the charts.

    Args:
        show: what they are: ``errors``, ``cell``, ``hardest`` or ``highest``.
        samples: the first ones.
        total: how many there are; None where they are not counted.
        query: of the page of samples that shows them all.
    """

    show: str
    samples: Sequence[Mapping[str, Any]]
    total: int | None
    query: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a job found; of a network that does not classify, the summary alone.

    Args:
        summary: as ``Evaluations.summary`` gives it.
        asked: what the address asks for.
        source: where images and pages of samples are.
        has_labels: whether the truth of some samples is known.
        at: figures at the threshold; empty for a network that does not classify.
        wrong: errors among the decided samples.
        per_class: rows of the table, with ``number`` and ``ap``.
        classes_left: so many rows more are not shown.
        rows: of the confusion matrix; empty where there are too many classes.
        pairs: classes that are confused most.
        strip: samples that are shown below.
        counts: how many samples each class was predicted for; empty with labels, and where there are many classes.
        chart: precision and recall, or ROC; None where no label is known.
    """

    summary: Mapping[str, Any]
    asked: Asked
    source: SampleSource
    has_labels: bool
    at: Mapping[str, Any]
    wrong: int = 0
    per_class: Sequence[Mapping[str, Any]] = ()
    classes_left: int = 0
    rows: Sequence[ConfusionRow] = ()
    pairs: Sequence[ConfusedPair] = ()
    strip: Strip | None = None
    counts: Sequence[tuple[int, str, int]] = ()
    chart: Chart | None = None

    @property
    def has_samples(self) -> bool:
        """Whether there is anything about single samples."""
        return bool(self.summary["classifier"])


@dataclass(frozen=True, kw_only=True)
class CheckpointOption:
    """A checkpoint of the model that can be evaluated on the same split.

    Args:
        name: of it; what a form sends.
        text: such as ``Step 66, epoch 6``.
        job: id of its newest evaluation that is done; empty where there is none.
        is_shown: whether this page is about it.
    """

    name: str
    text: str
    job: str
    is_shown: bool


def evaluation_state(studio: Studio, job: Job) -> EvaluationState:
    """Return the job as the page shows it.

    Args:
        studio: where it is.
        job: of kind ``evaluate`` or ``infer``.
    """
    return EvaluationState(
        job=job,
        model=studio.jobs.some([job.parent]).get(job.parent) if job.parent else None,
        actions=[each for each in actions_of(job) if each.name in ("stop", "stop_now", "retry")],
        failure=failure_of(job),
    )


def found_view(studio: Studio, job: Job, asked: Asked) -> Found:
    """Return what a job that is done found with a network that classifies.

    Raises:
        StorageError: where its results are not whole.
        UsageError: where there is no such class.
    """
    summary = studio.evaluations.summary(job.id)
    source = sample_source(studio, job, summary)
    _check_classes(summary["classes"], asked)
    has_labels = bool(summary["confusion"])
    at = studio.evaluations.at_threshold(job.id, asked.threshold)
    if not has_labels:
        counts = _counts(studio, job, summary["classes"], asked)
        strip = _strip(studio, job, asked, has_labels=False)
        return Found(summary=summary, asked=asked, source=source, has_labels=False, at=at, counts=counts, strip=strip)
    matrix, few = np.array(at["confusion"], np.int64), len(summary["classes"]) <= MOST_CELLS_ACROSS
    chart, precisions = _chart(studio, job, summary, asked)
    per_class = _per_class(at["per_class"], precisions, asked)
    return Found(
        summary=summary,
        asked=asked,
        source=source,
        has_labels=True,
        at=at,
        wrong=int(matrix.sum() - matrix.trace()),
        per_class=per_class if asked.all_classes else per_class[:_ROWS],
        classes_left=0 if asked.all_classes else max(0, len(per_class) - _ROWS),
        rows=confusion_rows(at["confusion"], summary["classes"]) if few else (),
        pairs=confused_pairs(at["confusion"], summary["classes"]),
        strip=_strip(studio, job, asked, has_labels=True),
        chart=chart,
    )


def checkpoint_options(studio: Studio, job: Job, model: Job | None, shown: str) -> list[CheckpointOption]:
    """Return the checkpoints of the model of an evaluation, the newest first; none where the model was deleted.

    Args:
        studio: where they are.
        job: of kind ``evaluate``.
        model: its training.
        shown: name of the checkpoint of this evaluation.
    """
    if model is None or job.kind != "evaluate":
        return []
    best, done = best_of_model(model), {shown: job.id}
    evaluated = [each for each in studio.evaluations.of_model(model.id) if _is_alike(each, job)]
    for each in evaluated[:_OTHERS]:
        done.setdefault(studio.evaluations.checkpoint_of(each.id), each.id)
    marked = best.checkpoint if best is not None and best.basis != "newest" else None
    return [
        CheckpointOption(
            name=each.name,
            text=f"Best: {each.place}" if each == marked else each.place.capitalize(),
            job=done.get(each.name, ""),
            is_shown=each.name == shown,
        )
        for each in reversed(checkpoints_of_model(model))
    ]


def _is_alike(one: Job, other: Job) -> bool:
    return one.state == "done" and one.kind == other.kind and one.spec.get("split") == other.spec.get("split")


def other_runs(studio: Studio, job: Job) -> list[Job]:
    """Return jobs whose samples are those of this one, the newest first; then those on the versions before it."""
    chosen = JobFilter(kinds=(job.kind,), states=("done",), limit=_OTHERS)
    others = [each for each in studio.jobs.page(chosen).jobs if each.id != job.id]
    if job.kind == "infer":
        names = ("source", "image_folder", "limit")
        return [each for each in others if all(each.spec.get(name) == job.spec.get(name) for name in names)]
    alike = [each for each in others if each.spec.get("split") == job.spec.get("split")]
    by_version = _models_by_version(studio, job)
    return [each for models in by_version for each in alike if each.parent in models]


def _models_by_version(studio: Studio, job: Job) -> list[set[str]]:
    """Return the models that were trained on the dataset of an evaluation, then those of the version before it, ..."""
    model = studio.jobs.some([job.parent]).get(job.parent)
    needed = studio.jobs.some(model.depends_on).values() if model else ()
    at = next((each for each in needed if each.kind == "dataset"), None)
    found: list[set[str]] = [] if at else [{job.parent}]
    while at is not None and len(found) < _VERSIONS:
        found.append({each.id for each in studio.jobs.dependents(at.id)})
        at = studio.jobs.some([at.parent]).get(at.parent) if at.parent else None
    return found


def _check_classes(classes: Sequence[str], asked: Asked) -> None:
    for number in (asked.class_number, asked.label, asked.predicted):
        if number is not None and number >= len(classes):
            raise UsageError(f"A class has a number from 0 to {len(classes) - 1}.", received=str(number))


def _per_class(
    figures: Sequence[Mapping[str, Any]], precisions: Mapping[int, float | None], asked: Asked
) -> list[dict[str, Any]]:
    rows = [{"number": number, "ap": precisions.get(number), **each} for number, each in enumerate(figures)]
    if asked.sort == "name":
        return rows[::-1] if asked.down else rows
    known = [row for row in rows if row[asked.sort] is not None]
    known.sort(key=lambda row: row[asked.sort], reverse=asked.down)
    return known + [row for row in rows if row[asked.sort] is None]


def _chart(studio: Studio, job: Job, summary: Mapping[str, Any], asked: Asked) -> tuple[Chart, dict[int, float | None]]:
    """Return the chart, and the average precision of each class whose curve is known."""
    classes = summary["classes"]
    highlighted = worst_classes(summary["per_class"], asked.class_number)
    supported = [number for number, each in enumerate(summary["per_class"]) if each["support"]]
    drawn = supported if len(classes) <= MOST_CONTEXT_LINES else [each for each in supported if each in highlighted]
    curves = {
        number: studio.evaluations.curves(job.id, number, points=_CURVE_POINTS) for number in {*drawn, *highlighted}
    }
    lines = [
        line_of(
            number,
            classes[number],
            found,
            kind=asked.curve,
            series=highlighted.get(number, 0),
            threshold=asked.threshold,
        )
        for number, found in sorted(curves.items(), key=lambda item: highlighted.get(item[0], 0))
    ]
    chart = Chart(
        kind=asked.curve,
        lines=[each for each in lines if each.series],
        context=[each for each in lines if not each.series],
        hidden=len(supported) - len(drawn),
        exact=all(each["exact"] for each in curves.values()),
        tables=[curve_table(classes[number], curves[number]) for number in highlighted],
    )
    return chart, {number: each["average_precision"] for number, each in curves.items()}


def _strip(studio: Studio, job: Job, asked: Asked, *, has_labels: bool) -> Strip:
    """Return the samples that are shown below the charts, and the way to all of them."""
    show = asked.show or ("cell" if asked.cell else "errors" if has_labels else "hardest")
    if show == "highest" and asked.class_number is not None:
        samples = studio.evaluations.top_of_class(job.id, asked.class_number, _STRIP)
        return Strip(show=show, samples=samples, total=None, query={"predicted": asked.class_number})
    query: dict[str, Any] = {"order": "hardest"}
    if show == "cell" and asked.cell:
        is_right = asked.label == asked.predicted
        query = {"label": asked.label, "predicted": asked.predicted, "order": "hardest" if is_right else "surest_wrong"}
    elif show == "errors" and has_labels:
        query = {"only": "wrong", "order": "surest_wrong"}
    else:
        show = "hardest"
    found = studio.evaluations.samples(job.id, limit=_STRIP, min_score=asked.threshold, **query)
    return Strip(
        show=show,
        samples=found["samples"],
        total=found["total"],
        query={**query, "min_score": asked.threshold or None},
    )


def _counts(studio: Studio, job: Job, classes: Sequence[str], asked: Asked) -> list[tuple[int, str, int]]:
    if len(classes) > _COUNTED_CLASSES:
        return []

    def count(number: int) -> int:
        chosen = {"predicted": number, "order": "row", "min_score": asked.threshold}
        return studio.evaluations.samples(job.id, limit=0, **chosen)["total"]

    return [(number, name, count(number)) for number, name in enumerate(classes)]


_TINY_PX: Final = 64
_PICTURE_PX: Final = 160
_LARGEST_PX: Final = 4096


@dataclass(frozen=True, kw_only=True)
class SampleSource:
    """Where the samples of a job are.

    Args:
        job: id of the job.
        dataset: id of the dataset; empty where the studio has it not.
        kind: ``evaluate`` or ``infer``.
        tiny: whether images are so small that their pixels are shown as squares.
        held: what the samples are, as ``held_by`` says it.
        read: returns row → what was given to the network, of samples that are no images.
        is_built_in: whether they are the handwritten digits, which are no dataset.
    """

    job: str
    dataset: str
    kind: str
    tiny: bool
    held: str = IMAGES
    read: Callable[[Sequence[Mapping[str, Any]]], Mapping[int, SampleContent]] | None = None
    is_built_in: bool = False

    def contents(self, samples: Sequence[Mapping[str, Any]]) -> Mapping[int, SampleContent]:
        """Return row → what was given to the network; none of images, and where it cannot be read."""
        return {} if self.read is None or self.held == IMAGES else self.read(samples)

    def picture(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's image; empty if there is none."""
        if self.kind == "infer" or self.is_built_in:
            return f"/api/v1/evaluations/{self.job}/pictures/{sample['row']}"
        is_there = self.dataset and self.held == IMAGES
        return f"/api/v1/datasets/{self.dataset}/pictures/{sample['split']}/{sample['row']}" if is_there else ""

    def page(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's page, where its label can be changed; empty where there is none."""
        return f"/datasets/{self.dataset}/samples/{sample['split']}/{sample['row']}" if self.dataset else ""

    @property
    def original_query(self) -> Mapping[str, Any]:
        """The query that asks the path of an image for its full size."""
        return {"max_side_px": _LARGEST_PX} if self.kind == "infer" or self.is_built_in else {"original": "true"}

    @property
    def picture_px(self) -> int:
        """The longer side of an image at most."""
        return _PICTURE_PX


def sample_source(studio: Studio, job: Job, summary: Mapping[str, Any]) -> SampleSource:
    """Return where the samples of a job are.

    Args:
        studio: where it is.
        job: of kind ``evaluate`` or ``infer``, done.
        summary: as ``Evaluations.summary`` gives it.
    """
    dataset_id = str(summary["dataset"])
    dataset = studio.jobs.some([dataset_id]).get(dataset_id) if dataset_id else None
    size = dataset.spec.get("size") if dataset is not None else None
    is_built_in = has_digits(summary)
    is_tiny = is_built_in or (isinstance(size, list | tuple) and bool(size) and max(size) <= _TINY_PX)
    held = held_by(studio, dataset_id) if dataset_id else IMAGES
    read = functools.partial(contents_of, studio, dataset_id) if dataset_id else None
    return SampleSource(
        job=job.id,
        dataset=dataset_id,
        kind=job.kind,
        tiny=is_tiny,
        held=held,
        read=read,
        is_built_in=is_built_in,
    )
