"""Overview of a training that diverged: its last steps, its last batch, and what was checked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ziggurat.entities import Job
from ziggurat.entities.best_checkpoint import metric_title
from ziggurat.entities.black_box import ArrayFacts, LastBatch
from ziggurat.entities.jobs import TRAINING_LOSSES, Divergence, rate_text
from ziggurat.errors import UnknownNameError
from ziggurat.formatting import as_count, as_heading, as_number, plural
from ziggurat.workspace.recipes import NextRate
from ziggurat.workspace.studio import Studio

__all__ = ["DivergenceView", "divergence_view"]

_STEPS: Final = 8
_SAMPLES: Final = 12
_RATE: Final = "learning_rate"
_START: Final = ("validation_cost", "validation_loss", "cost", "loss")
_INPUTS: Final = {
    "image-classification": "Images",
    "detection": "Images",
    "segmentation": "Images",
    "table": "Rows",
    "text-classification": "Texts",
}

Level = Literal["ok", "warning", "error", "unknown"]


@dataclass(frozen=True, kw_only=True)
class StepRow:
    """One of the last steps.

    Args:
        step: ``global_step``.
        values: text of each column.
        is_bad: whether this is the step that showed the divergence.
    """

    step: int
    values: tuple[str, ...]
    is_bad: bool


@dataclass(frozen=True)
class Checked:
    """A line of "What was checked".

    Args:
        level: of the finding.
        title: what was checked.
        value: what was found.
    """

    level: Level
    title: str
    value: str


@dataclass(frozen=True, kw_only=True)
class BatchSample:
    """A sample of the last batch.

    Args:
        row: in its split, from 0.
        page: path of its page.
        image: path of its image; empty for a sample that is none.
    """

    row: int
    page: str
    image: str


@dataclass(frozen=True, kw_only=True)
class DivergenceView:
    """What the overview of a diverged run shows.

    Args:
        columns: titles of the columns of the last steps, behind the step.
        steps: the oldest first; empty if nothing was recorded.
        checks: what was checked.
        samples: first samples of the last batch; empty if they are not known, or in no dataset of the studio.
        batch: the last batch in words; empty if it was not recorded.
        rows: rows of the last batch in words if it is in no dataset of the studio; empty if they are not known.
        dataset: id of the dataset; empty if it is none of the studio's.
        last_loss: the newest finite loss; None if none is known.
        last_step: ``global_step`` of it.
        rate: learning rate at which it diverged, as text; empty if the job has none.
        typical_rate: typical learning rate, as text; empty if the job has none.
    """

    columns: tuple[str, ...]
    steps: tuple[StepRow, ...]
    checks: tuple[Checked, ...]
    samples: tuple[BatchSample, ...]
    batch: str
    rows: str
    dataset: str
    last_loss: float | None
    last_step: int
    rate: str
    typical_rate: str


def divergence_view(studio: Studio, job: Job, next_rate: NextRate | None) -> DivergenceView | None:
    """Return the overview of a training that diverged; None if it did not.

    Args:
        studio: where the job is.
        job: a training.
        next_rate: learning rate to try next; None if the job has none.
    """
    divergence = job.divergence
    if divergence is None:
        return None
    found = studio.outputs.last_batches(job.id)
    tags = _tags(job, divergence)
    points = _points(studio, job, tags, found, divergence)
    steps = sorted({step for column in points.values() for step in column if step <= divergence.noticed_step})[-_STEPS:]
    columns = [tag for tag in tags if any(step in points[tag] for step in steps)]
    finite = [(step, value) for step, value in sorted(points[tags[0]].items()) if math.isfinite(value)]
    before = [(step, value) for step, value in finite if step <= divergence.noticed_step]
    dataset = next((each.id for each in studio.jobs.some(job.depends_on).values() if each.kind == "dataset"), "")
    return DivergenceView(
        columns=tuple(_title(tag) for tag in columns),
        steps=tuple(
            StepRow(
                step=step,
                values=tuple(_text(tag, points[tag].get(step)) for tag in columns),
                is_bad=step == divergence.step,
            )
            for step in steps
        ),
        checks=tuple(_checks(job, found, divergence, next_rate, points)),
        samples=_samples(found, dataset),
        batch=_batch_words(found),
        rows="" if dataset else _rows_words(found),
        dataset=dataset,
        last_loss=before[-1][1] if before else None,
        last_step=before[-1][0] if before else 0,
        rate="" if next_rate is None else rate_text(next_rate.used),
        typical_rate="" if next_rate is None else rate_text(next_rate.typical),
    )


# ---- the last steps


def _tags(job: Job, divergence: Divergence) -> list[str]:
    """Return the curves that tell of the last steps: the loss that showed it first, then what grows with it."""
    further = [tag for tag in job.scalars if tag in TRAINING_LOSSES or tag == "regularization" or "norm" in tag.lower()]
    return list(dict.fromkeys((divergence.tag, *sorted(further), _RATE)))


def _points(
    studio: Studio, job: Job, tags: Sequence[str], found: LastBatch, divergence: Divergence
) -> dict[str, dict[int, float]]:
    """Return step → value of each curve, with the values of single steps from the record of the last batches."""
    points: dict[str, dict[int, float]] = {}
    for tag in tags:
        try:
            curve = studio.curves.curve(job.id, tag, max_points=100_000)
            points[tag] = dict(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
        except UnknownNameError:  # it ended before its first point
            points[tag] = {}
    if found.steps:  # a point of a curve may be the mean of several steps
        first = found.steps[0].step
        for tag in {name for each in found.steps for name in each.values} & set(points):
            kept = {step: value for step, value in points[tag].items() if step < first}
            points[tag] = {**kept, **{each.step: each.values[tag] for each in found.steps if tag in each.values}}
    if divergence.learning_rate is not None:
        points[_RATE].setdefault(divergence.step, divergence.learning_rate)
    return points


def _title(tag: str) -> str:
    return "Loss" if tag in TRAINING_LOSSES else as_heading(metric_title(tag))


def _text(tag: str, value: float | None) -> str:
    if value is None:
        return "–"
    return rate_text(value) if tag == _RATE else as_number(value, 3)


# ---- the last batch


def _samples(found: LastBatch, dataset: str) -> tuple[BatchSample, ...]:
    if not dataset or not found.split:
        return ()
    base = f"/datasets/{dataset}"
    is_image = found.inputs not in ("table", "text-classification")
    return tuple(
        BatchSample(
            row=row,
            page=f"{base}/samples/{found.split}/{row}",
            image=f"{base}/pictures/{found.split}/{row}" if is_image else "",
        )
        for row in found.rows[:_SAMPLES]
    )


def _batch_words(found: LastBatch) -> str:
    if not found.steps:
        return ""
    last = found.steps[-1]
    arrays = list(last.arrays.values())
    count = len(found.rows) or (arrays[0].shape[0] if arrays and arrays[0].shape else 0)
    noun = {"Images": "image", "Rows": "row", "Texts": "text"}[_INPUTS.get(found.inputs, "Images")]
    shown = f"{as_count(_SAMPLES)} of " if len(found.rows) > _SAMPLES else ""
    return f"step {as_count(last.step)}" + (f", {shown}{plural(count, noun)}" if count else "")


def _rows_words(found: LastBatch) -> str:
    rows = ", ".join(map(as_count, found.rows[:_SAMPLES]))
    return rows + (", …" if len(found.rows) > _SAMPLES else "")


# ---- what was checked


def _checks(
    job: Job,
    found: LastBatch,
    divergence: Divergence,
    next_rate: NextRate | None,
    points: Mapping[str, Mapping[int, float]],
) -> Iterator[Checked]:
    """Yield what is known for sure: of the spec, of the record of the last batches, and of the curves."""
    if next_rate is not None:
        used, typical = rate_text(next_rate.used), rate_text(next_rate.typical)
        times = next_rate.used / next_rate.typical
        level: Level = "error" if times >= 10 else "warning" if times > 1 else "ok"
        yield Checked(level, "Learning rate", f"{used}, typical {typical}")
    if found.steps:
        yield from _batch_checks(found)
    start = next((tag for tag in _START if tag in job.scalars), "")
    first = min(points.get(start, {}).items(), default=None)
    if first is not None and first[0] <= 1 and first[0] < divergence.step:
        level = "ok" if math.isfinite(first[1]) else "error"
        yield Checked(level, "Loss at the start", f"{as_number(first[1], 3)} at step {as_count(first[0])}")
    precision = job.spec.get("precision")
    if isinstance(precision, str):
        yield Checked("ok" if precision == "float32" else "warning", "Precision", precision)
    if "gradient_clip" in job.spec:
        clip: Any = job.spec["gradient_clip"]
        is_on = isinstance(clip, int | float)
        yield Checked("ok" if is_on else "unknown", "Gradient clipping", f"norm {as_number(clip)}" if is_on else "off")


def _batch_checks(found: LastBatch) -> Iterator[Checked]:
    last = found.steps[-1].arrays
    inputs, target = last.get("batch/0"), last.get("batch/1")
    if inputs is not None and inputs.finite is not None:
        title = f"{_INPUTS.get(found.inputs, 'Inputs')} of the last batch"
        yield Checked("ok" if inputs.finite else "error", title, _range(inputs))
    if target is not None and target.finite is not None:
        yield _target_check(target, found.classes)
    others = [each.arrays for each in found.steps[:-1] if each.arrays]
    if others:
        bad = sum(any(array.finite is False for array in arrays.values()) for arrays in others)
        value = f"{as_count(bad)} of {as_count(len(others))} not finite" if bad else f"{as_count(len(others))}, finite"
        yield Checked("error" if bad else "ok", "Batches before it", value)


def _target_check(target: ArrayFacts, classes: int | None) -> Checked:
    if classes is None or target.least is None or target.largest is None:
        return Checked("ok" if target.finite else "error", "Targets of the last batch", _range(target))
    is_known = target.least >= 0 and target.largest < classes
    return Checked("ok" if is_known else "error", "Labels of the last batch", f"{_range(target)}, {classes} classes")


def _range(array: ArrayFacts) -> str:
    words = (
        [] if array.finite and array.dtype.startswith(("int", "uint")) else ["finite" if array.finite else "not finite"]
    )
    if array.least is not None:
        words.append(f"{as_number(array.least, 3)} to {as_number(array.largest, 3)}")
    return ", ".join(words)
