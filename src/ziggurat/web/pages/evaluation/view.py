"""View model of an evaluation page: the job, its results at a score threshold, and links to their samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.web.pages.evaluation.confusion import (
    MOST_CELLS_ACROSS,
    ConfusedPair,
    ConfusionRow,
    confused_pairs,
    confusion_rows,
)
from ziggurat.web.pages.job.view import Failure, JobAction, actions_of, failure_of
from ziggurat.workspace.studio import Studio

__all__ = ["COLUMNS", "Asked", "evaluation_state", "found_view", "other_runs", "sample_source"]


_SIDE: Final = 200
_LEFT: Final = 34
_TOP: Final = 8
_TABLE_ROWS: Final = 21


@dataclass(frozen=True, kw_only=True)
class CurvesPicture:
    """Numbers of the two images.

    Args:
        precision: points of an SVG polyline, precision over recall.
        rates: points of an SVG polyline, true over false positive rate.
        precision_mark: place of the threshold on the first curve; None where there is none.
        rates_mark: place of the threshold on the second curve; None where there is none.
        table: threshold, precision, recall and false positive rate, thinned out.
    """

    precision: str
    rates: str
    precision_mark: tuple[float, float] | None
    rates_mark: tuple[float, float] | None
    table: Sequence[tuple[float, float, float, float]]


def curves_picture(curves: Mapping[str, Any], threshold: float) -> CurvesPicture:
    """Return the images of a class.

    Args:
        curves: as ``Evaluations.curves`` gives them.
        threshold: that is marked; 0 for none.
    """
    recall, precision = curves["recall"], curves["precision"]
    false, true = curves["false_positive"], curves["true_positive"]
    marked = _marked(curves["thresholds"], threshold)
    rows = list(zip(curves["thresholds"], precision, recall, false, strict=True))
    return CurvesPicture(
        precision=_points(recall, precision),
        rates=_points([0.0, *false], [0.0, *true]),
        precision_mark=None if marked is None else _place(recall[marked], precision[marked]),
        rates_mark=None if marked is None else _place(false[marked], true[marked]),
        table=[rows[place] for place in _thinned(len(rows))],
    )


def _marked(thresholds: Sequence[float], threshold: float) -> int | None:
    """Return the place of the last point that a threshold leaves; thresholds fall."""
    left = [place for place, value in enumerate(thresholds) if value >= threshold]
    return left[-1] if left and threshold > 0 else None


def _points(across: Sequence[float], up: Sequence[float]) -> str:
    places = (_place(x, y) for x, y in zip(across, up, strict=True))
    return " ".join(f"{x},{y}" for x, y in places)


def _place(across: float, up: float) -> tuple[float, float]:
    return round(_LEFT + _SIDE * across, 1), round(_TOP + _SIDE * (1 - up), 1)


def _thinned(count: int) -> list[int]:
    return sorted({round(row * (count - 1) / (_TABLE_ROWS - 1)) for row in range(_TABLE_ROWS)}) if count else []


COLUMNS: Final = {"precision": "Precision", "recall": "Recall", "f1": "F1", "support": "Samples"}
_STRIP: Final = 8
_ROWS: Final = 200
_OTHERS: Final = 200
_COUNTED_CLASSES: Final = 40


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the address of the page asks for.

    Args:
        threshold: a sample counts as decided from that score on.
        class_number: whose curves are shown; None for the one that is told worst.
        sort: a name in ``COLUMNS``; empty for the order of the classes.
        down: whether the largest comes first.
        all_classes: whether the table shows all of them.
    """

    threshold: float = 0.0
    class_number: int | None = None
    sort: str = ""
    down: bool = False
    all_classes: bool = False


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
class ClassPart:
    """What is shown of one class.

    Args:
        number: of the class.
        name: of the class.
        curves: precision and recall, and rates; None where no label is known.
        average_precision: None where it is not defined.
        area: under the curve of the rates; None where it is not defined.
        exact: whether all probabilities were kept.
        highest: samples with the highest score of the class.
    """

    number: int
    name: str
    curves: CurvesPicture | None
    average_precision: float | None
    area: float | None
    exact: bool
    highest: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a job found; of a network that does not classify, the summary alone.

    Args:
        summary: as ``Evaluations.summary`` gives it.
        asked: what the address asks for.
        source: where images and pages of samples are.
        has_labels: whether the truth of some samples is known.
        at: figures at the threshold; empty for a network that does not classify.
        per_class: rows of the table, with ``number``.
        classes_left: so many rows more are not shown.
        rows: of the confusion matrix; empty where there are too many classes.
        pairs: classes that are confused most.
        hardest: samples whose label got the lowest score; without labels, the least sure ones.
        surest_wrong: wrong samples with the highest score.
        counts: how many samples each class was predicted for; empty with labels, and where there are many classes.
        chosen: the class whose curves are shown; None where there is none.
    """

    summary: Mapping[str, Any]
    asked: Asked
    source: SampleSource
    has_labels: bool
    at: Mapping[str, Any]
    per_class: Sequence[Mapping[str, Any]] = ()
    classes_left: int = 0
    rows: Sequence[ConfusionRow] = ()
    pairs: Sequence[ConfusedPair] = ()
    hardest: Sequence[Mapping[str, Any]] = ()
    surest_wrong: Sequence[Mapping[str, Any]] = ()
    counts: Sequence[tuple[int, str, int]] = ()
    chosen: ClassPart | None = None


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
    """Return what a job that is done found.

    Raises:
        StorageError: where its results are not whole.
        UsageError: where there is no such class.
    """
    summary = studio.evaluations.summary(job.id)
    source = sample_source(studio, job, summary)
    if not summary["classifier"]:
        return Found(summary=summary, asked=asked, source=source, has_labels=False, at={})
    has_labels = bool(summary["confusion"])
    at = studio.evaluations.at_threshold(job.id, asked.threshold)
    per_class = _per_class(at["per_class"], asked)
    matrix = at["confusion"] if has_labels else []
    few = len(summary["classes"]) <= MOST_CELLS_ACROSS
    return Found(
        summary=summary,
        asked=asked,
        source=source,
        has_labels=has_labels,
        at=at,
        per_class=per_class if asked.all_classes else per_class[:_ROWS],
        classes_left=0 if asked.all_classes else max(0, len(per_class) - _ROWS),
        rows=confusion_rows(matrix, summary["classes"]) if few else (),
        pairs=confused_pairs(matrix, summary["classes"]),
        hardest=_some(studio, job, asked, order="hardest"),
        surest_wrong=_some(studio, job, asked, order="surest_wrong", only="wrong") if has_labels else (),
        counts=() if has_labels else _counts(studio, job, summary["classes"], asked),
        chosen=_class_part(studio, job, summary, asked, has_labels=has_labels),
    )


def other_runs(studio: Studio, job: Job) -> list[Job]:
    """Return jobs whose samples are the same as those of this one, the newest first."""
    chosen = JobFilter(kinds=(job.kind,), states=("done",), limit=_OTHERS)
    others = [each for each in studio.jobs.page(chosen).jobs if each.id != job.id]
    if job.kind == "infer":
        names = ("source", "image_folder", "limit")
        return [each for each in others if all(each.spec.get(name) == job.spec.get(name) for name in names)]
    models = _models_on_the_same_data(studio, job)
    return [each for each in others if each.spec.get("split") == job.spec.get("split") and each.parent in models]


def _models_on_the_same_data(studio: Studio, job: Job) -> set[str]:
    model = studio.jobs.some([job.parent]).get(job.parent)
    dataset_ids = (
        [each.id for each in studio.jobs.some(model.depends_on).values() if each.kind == "dataset"] if model else []
    )
    if not dataset_ids:
        return {job.parent}
    return {job.parent, *(each.id for each in studio.jobs.dependents(dataset_ids[0]))}


def _per_class(figures: Sequence[Mapping[str, Any]], asked: Asked) -> list[dict[str, Any]]:
    rows = [{"number": number, **each} for number, each in enumerate(figures)]
    if not asked.sort:
        return rows[::-1] if asked.down else rows
    known = [row for row in rows if row[asked.sort] is not None]
    known.sort(key=lambda row: row[asked.sort], reverse=asked.down)
    return known + [row for row in rows if row[asked.sort] is None]


def _some(studio: Studio, job: Job, asked: Asked, **chosen: Any) -> list[dict[str, Any]]:
    return studio.evaluations.samples(job.id, limit=_STRIP, min_score=asked.threshold, **chosen)["samples"]


def _counts(studio: Studio, job: Job, classes: Sequence[str], asked: Asked) -> list[tuple[int, str, int]]:
    if len(classes) > _COUNTED_CLASSES:
        return []

    def count(number: int) -> int:
        chosen = {"predicted": number, "order": "row", "min_score": asked.threshold}
        return studio.evaluations.samples(job.id, limit=0, **chosen)["total"]

    return [(number, name, count(number)) for number, name in enumerate(classes)]


def _class_part(
    studio: Studio, job: Job, summary: Mapping[str, Any], asked: Asked, *, has_labels: bool
) -> ClassPart | None:
    classes = summary["classes"]
    if not classes or not summary["count"]:
        return None
    number = asked.class_number if asked.class_number is not None else _worst(summary["per_class"])
    curves = studio.evaluations.curves(job.id, number)
    return ClassPart(
        number=number,
        name=classes[number],
        curves=curves_picture(curves, asked.threshold) if has_labels else None,
        average_precision=curves["average_precision"],
        area=curves["area"],
        exact=curves["exact"],
        highest=studio.evaluations.top_of_class(job.id, number, _STRIP),
    )


def _worst(per_class: Sequence[Mapping[str, Any]]) -> int:
    """Return the class that is told worst, of those that have samples; it may not jump with the threshold."""
    figures = [(each["f1"], number) for number, each in enumerate(per_class) if each["support"]]
    try:
        return min(figures)[1]
    except ValueError:
        return 0


_TINY_PX: Final = 64
_PICTURE_PX: Final = 160


@dataclass(frozen=True, kw_only=True)
class SampleSource:
    """Where the samples of a job are.

    Args:
        job: id of the job.
        dataset: id of the dataset; empty where the studio has it not.
        kind: ``evaluate`` or ``infer``.
        tiny: whether images are so small that their pixels are shown as squares.
    """

    job: str
    dataset: str
    kind: str
    tiny: bool

    def picture(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's image; empty if there is none."""
        if self.kind == "infer":
            return f"/api/v1/evaluations/{self.job}/pictures/{sample['row']}"
        return f"/api/v1/datasets/{self.dataset}/pictures/{sample['split']}/{sample['row']}" if self.dataset else ""

    def page(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's page, where its label can be changed; empty where there is none."""
        return f"/datasets/{self.dataset}/samples/{sample['split']}/{sample['row']}" if self.dataset else ""

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
    is_tiny = isinstance(size, list | tuple) and bool(size) and max(size) <= _TINY_PX
    return SampleSource(job=job.id, dataset=dataset_id, kind=job.kind, tiny=is_tiny)
