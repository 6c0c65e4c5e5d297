"""View model of what a training records while it runs: machine load, sample predictions, events, early stopping."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.machine_load import LoadCurve, MachineLoad
from ziggurat.entities.sample_predictions import CLASSIFICATION, SamplePredictions, ShownSample
from ziggurat.formatting import as_bytes, as_count, as_number, as_percent
from ziggurat.web.spread import spread_indices
from ziggurat.workspace.found_masks import mask_overlap
from ziggurat.workspace.found_objects import count_found, object_colors
from ziggurat.workspace.job_outputs import LoggedImage
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.job_timeline import TimelineEvent

__all__ = ["LiveView", "LoadChart", "LoadLine", "PredictionsView"]

_POINTS: Final = 240
_ROWS: Final = 12
_TICKS: Final = 40
_WIDTH, _HEIGHT = 320.0, 56.0
_MOST_GPUS: Final = 8

BoxShape = tuple[float, float, float, float, str]
"""Left, top, width and height in px, and color."""


@dataclass(frozen=True, kw_only=True)
class LoadLine:
    """A line of a small chart.

    Args:
        title: what it shows.
        short: the same beside the title of its chart.
        series: number of its color, from 1; 0 for context.
        path: of the line, as SVG has it.
        area: of what is below the line; empty for context.
        texts: value at each point, for people; empty where it was not measured.
        heights: y of each point in the drawing; None where it was not measured.
        now: newest value, for people.
    """

    title: str
    short: str
    series: int
    path: str
    area: str
    texts: tuple[str, ...]
    heights: tuple[float | None, ...]
    now: str


@dataclass(frozen=True, kw_only=True)
class LoadChart:
    """A small chart of the machine's load.

    Args:
        name: of the chart, for ids.
        title: what it shows.
        now: newest value of the first line, with its unit, and while the job runs its limit.
        top: largest value of the axis, for people.
        lines: the first is the one that counts.
        times: of the points, for people.
        places: x of each point in the drawing.
    """

    name: str
    title: str
    now: str
    top: str
    lines: tuple[LoadLine, ...]
    times: tuple[float, ...]
    places: tuple[float, ...]

    @property
    def data(self) -> dict[str, Any]:
        """What the island needs: JSON values."""
        return {
            "times": self.times,
            "x": self.places,
            "lines": [{"title": line.title, "texts": line.texts, "y": line.heights} for line in self.lines],
        }


@dataclass(frozen=True, kw_only=True)
class SampleBoxes:
    """Boxes over the image of a sample.

    Args:
        size: (height, width) that their px are of.
        actual: left, top, width, height and color of each object.
        predicted: after each validation, the same of each detection.
    """

    size: tuple[int, int]
    actual: Sequence[BoxShape]
    predicted: Sequence[Sequence[BoxShape]]


@dataclass(frozen=True)
class SampleMasks:
    """Masks over the image of a sample.

    Args:
        actual: path of the true one.
        predicted: path of that after each validation.
    """

    actual: str
    predicted: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class PredictedSample:
    """A sample with what was predicted for it after each validation.

    Args:
        sample: it.
        image: address of its image, below the studio's root; empty where there is none.
        page: address of its page; empty where it has none.
        label: its class.
        predicted: class after each validation.
        scores: of that class, for people.
        right: whether that class is the label; None where a prediction is not just right or wrong.
        boxes: of the objects in the image; None where the task finds none.
        masks: of the image; None where the task has none.
    """

    sample: ShownSample
    image: str
    page: str
    label: str
    predicted: tuple[str, ...]
    scores: tuple[str, ...]
    right: tuple[bool | None, ...]
    boxes: SampleBoxes | None = None
    masks: SampleMasks | None = None

    @property
    def is_judged(self) -> bool:
        """Whether predictions of it are right or wrong."""
        return all(each is not None for each in self.right)

    @property
    def right_ticks(self) -> str:
        """SVG path with a high tick for each validation after which it was right, the newest last; so many as fit."""
        return "".join(f"M{3 * place + 0.5} 0h2v8h-2z" for place, each in enumerate(self.right[-_TICKS:]) if each)

    @property
    def wrong_ticks(self) -> str:
        """SVG path with a low tick for each of the others."""
        return "".join(f"M{3 * place + 0.5} 3h2v2h-2z" for place, each in enumerate(self.right[-_TICKS:]) if not each)

    @property
    def right_count(self) -> int:
        """Validations after which it was right."""
        return sum(map(bool, self.right))


@dataclass(frozen=True, kw_only=True)
class PredictionsView:
    """The sample predictions of a job.

    Args:
        kind: of the records; empty where there are none.
        samples: with their predictions; empty for a kind that this page does not show.
        epochs: of the records, for people: ``12``, or ``12.5``; ``0`` is the untrained network.
        steps: of the records.
    """

    kind: str = ""
    samples: tuple[PredictedSample, ...] = ()
    epochs: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()

    @property
    def tick_count(self) -> int:
        """Ticks of each bar."""
        return min(len(self.epochs), _TICKS)

    def data(self, place: Callable[[str], str]) -> dict[str, Any]:
        """Return what the island needs: JSON values.

        Args:
            place: returns the address of a path.
        """
        return {
            "epochs": self.epochs,
            "samples": [
                {
                    "predicted": each.predicted,
                    "scores": each.scores,
                    "right": each.right,
                    **({} if each.boxes is None else {"boxes": each.boxes.predicted}),
                    **({} if each.masks is None else {"masks": [place(path) for path in each.masks.predicted]}),
                }
                for each in self.samples
            ],
        }


class LiveView:
    """What a training records while it runs; of jobs of other kinds, and of old ones, it is empty.

    Each part is read when it is first asked for: a refresh shows one of them.

    Args:
        studio: where the job is.
        job: it.
    """

    def __init__(self, studio: Studio, job: Job) -> None:
        self.job = job
        self._studio = studio

    @cached_property
    def _load(self) -> MachineLoad:
        return self._studio.outputs.machine_load(self.job.id)

    @cached_property
    def machine(self) -> str:
        """The machine in a few words; empty if unknown."""
        return machine_words(self._load)

    @cached_property
    def charts(self) -> tuple[LoadChart, ...]:
        """Charts of the machine's load; empty where none was recorded."""
        return load_charts(self._load, is_active=self.job.is_active)

    @cached_property
    def load_rows(self) -> list[tuple[float, list[str]]]:
        """Time, and value of each line of each chart, at some of the points: the table behind the charts."""
        if not self.charts:
            return []
        times, lines = self.charts[0].times, [line for chart in self.charts for line in chart.lines]
        return [(times[row], [line.texts[row] or "–" for line in lines]) for row in spread_indices(len(times), _ROWS)]

    @cached_property
    def images(self) -> list[LoggedImage]:
        """The newest image of each name that it logged."""
        return self._studio.outputs.images(self.job.id)

    @cached_property
    def predictions(self) -> PredictionsView:
        """The sample predictions."""
        return predictions_view(self._studio, self.job, self._studio.outputs.sample_predictions(self.job.id))

    @cached_property
    def events(self) -> tuple[TimelineEvent, ...]:
        """The events, the newest first."""
        return tuple(reversed(self._studio.jobs.timeline(self.job.id)))


# ---- machine load


def machine_words(load: MachineLoad) -> str:
    """Return the machine of a job in a few words: its GPUs, or its cores and memory; empty if unknown."""
    machine = load.machine
    if machine.gpus:
        first = machine.gpus[0]
        memory = first.get("memory_bytes")
        size = f", {as_bytes(memory)}" if isinstance(memory, int | float) and memory else ""
        more = f" and {len(machine.gpus) - 1} more" if len(machine.gpus) > 1 else ""
        return f"GPU {first.get('index', 0)}, {first.get('name', 'unknown')}{size}{more}"
    cores = f"{machine.cores} CPU cores" if machine.cores else ""
    memory_text = f"{as_bytes(machine.memory_bytes)} memory" if machine.memory_bytes else ""
    return ", ".join(part for part in (cores, memory_text) if part)


def load_charts(load: MachineLoad, *, is_active: bool) -> tuple[LoadChart, ...]:
    """Return the small charts of a machine's load: GPUs where there are any, throughput, CPU, memory and disk.

    Args:
        load: as it was recorded.
        is_active: whether the newest values are those of now; else, means and peaks are told.
    """
    if len(load.times) < 1:
        return ()
    curves = {curve.name: curve for curve in load.curves}
    gpus = sorted({name.split("_")[1] for name in curves if name.startswith("gpu_")}, key=int)[:_MOST_GPUS]
    wanted: list[tuple[str, str, list[str]]] = [
        ("gpu-utilization", "GPU utilization", [f"gpu_{index}_utilization_percent" for index in gpus]),
        ("gpu-memory", "GPU memory", [f"gpu_{index}_memory_bytes" for index in gpus]),
        ("throughput", "Throughput", ["images_per_s"]),
        ("cpu", "CPU", ["job_cpu_percent", "machine_cpu_percent"]),
        ("memory", "Memory", ["job_memory_bytes", "machine_memory_bytes"]),
        ("disk", "Disk", ["disk_write_bytes_per_s", "disk_read_bytes_per_s"]),
    ]
    made = [
        _chart(load, name, title, [curves[each] for each in names if each in curves], is_active=is_active)
        for name, title, names in wanted
    ]
    return tuple(chart for chart in made if chart is not None)


def _chart(
    load: MachineLoad, name: str, title: str, curves: Sequence[LoadCurve], *, is_active: bool
) -> LoadChart | None:
    if not curves:
        return None
    indices = spread_indices(len(load.times), _POINTS)
    times = tuple(load.times[index] for index in indices)
    begin, length = times[0], max(times[-1] - times[0], 1e-9)
    places = tuple(round(_WIDTH * (time - begin) / length, 1) for time in times)
    attempts = [load.attempts[index] for index in indices]
    known = [value for curve in curves for value in curve.values if value is not None]
    limits = [curve.limit for curve in curves if curve.limit is not None]
    top = max(limits) if limits and curves[0].unit != "bytes/s" else 1.1 * max(known, default=1.0) or 1.0
    is_gpu = name.startswith("gpu")
    lines = tuple(
        _line(
            curve,
            [curve.values[index] for index in indices],
            places,
            attempts,
            top,
            series=number if is_gpu else (1 if number == 1 else 0),
            is_active=is_active,
        )
        for number, curve in enumerate(curves, start=1)
    )
    limit = curves[0].limit if curves[0].unit == "bytes" else None
    return LoadChart(
        name=name,
        title=title if len(curves) > 1 or not is_gpu else curves[0].title,
        now=lines[0].now + (f" of {as_bytes(limit)}" if limit and is_active else ""),
        top=_text(top, curves[0].unit),
        lines=lines,
        times=times,
        places=places,
    )


def _line(
    curve: LoadCurve,
    values: Sequence[float | None],
    places: Sequence[float],
    attempts: Sequence[float],
    top: float,
    *,
    series: int,
    is_active: bool,
) -> LoadLine:
    heights = tuple(None if value is None else round(_HEIGHT * (1 - min(value / top, 1)), 1) for value in values)
    runs: list[list[tuple[float, float]]] = []
    before = None
    for place, height, attempt in zip(places, heights, attempts, strict=True):
        if height is None:
            before = None
            continue
        if before != attempt:
            runs.append([])
            before = attempt
        runs[-1].append((place, height))
    return LoadLine(
        title=curve.title,
        short=_short(curve.title),
        series=series,
        path="".join(_path(run) for run in runs),
        area="".join(f"{_path(run)}L{run[-1][0]:g} {_HEIGHT:g}L{run[0][0]:g} {_HEIGHT:g}Z" for run in runs)
        if series == 1
        else "",
        texts=tuple("" if value is None else _text(value, curve.unit) for value in values),
        heights=heights,
        now=_now(curve, is_active=is_active),
    )


def _now(curve: LoadCurve, *, is_active: bool) -> str:
    """Return the newest value of a curve; of one that has ended, its peak for memory, and else its mean."""
    known = [value for value in curve.values if value is not None]
    if not known:
        return "–"
    if is_active:
        return _text(known[-1], curve.unit)
    if curve.unit == "bytes":
        return f"peak {_text(max(known), curve.unit)}"
    busy = [value for value in known if value > 0] if curve.unit == "samples/s" else known
    return f"mean {_text(sum(busy) / max(1, len(busy)), curve.unit)}"


def _short(title: str) -> str:
    """Return what tells the lines of one chart apart: ``this job`` of ``CPU, this job``."""
    short = title.rpartition(", ")[2].removeprefix("Disk ")
    return short if not short.startswith("GPU") else " ".join(short.split()[:2])


def _path(run: Sequence[tuple[float, float]]) -> str:
    if len(run) == 1:  # a line of no length is not drawn
        ((x, y),) = run
        return f"M{max(0.0, x - 1):g} {y:g}L{x + 1:g} {y:g}"
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in run)


def _text(value: float, unit: str) -> str:
    if unit == "%":
        return as_percent(value / 100, 0)
    if unit == "bytes":
        return as_bytes(value)
    if unit == "bytes/s":
        return f"{as_bytes(value)}/s"
    number = as_count(round(value)) if value >= 100 else as_number(value, 3)
    return f"{number} {unit}"


# ---- sample predictions


def predictions_view(studio: Studio, job: Job, found: SamplePredictions) -> PredictionsView:
    """Return the sample predictions of a job; empty where it keeps none, or of a kind that is not shown."""
    make = _maker(found)
    if not found.records or make is None:
        return PredictionsView(kind=found.kind)
    dataset = _dataset_id(studio, job)
    return PredictionsView(
        kind=found.kind,
        samples=tuple(make(job, found, each, dataset) for each in found.samples),
        epochs=tuple(f"{each['epoch']:g}" for each in found.records),
        steps=tuple(int(each["step"]) for each in found.records),
    )


def _maker(found: SamplePredictions) -> Callable[[Job, SamplePredictions, ShownSample, str], PredictedSample] | None:
    """Return what shows samples with such labels; None for a kind that is not shown."""
    if found.kind == CLASSIFICATION:
        return _predicted
    forms = ((_has_boxes, _with_boxes), (_has_mask, _with_mask), (_has_values, _with_values))
    for is_such, make in forms:
        if found.samples and all(is_such(each.label) for each in found.samples):
            return make
    return None


def _predicted(job: Job, found: SamplePredictions, sample: ShownSample, dataset: str) -> PredictedSample:
    own = [record["predictions"][sample.number] for record in found.records]
    is_own = not dataset or sample.content
    image = _own_image(job, sample) if is_own else f"/datasets/{dataset}/pictures/{sample.split}/{sample.row}"
    return PredictedSample(
        sample=sample,
        image=image,
        page=_sample_page(dataset, sample),
        label=_class_name(found, sample.label),
        predicted=tuple(_class_name(found, each.get("class")) for each in own),
        scores=tuple(_score(each) for each in own),
        right=tuple(each.get("class") == sample.label for each in own),
    )


def _own_image(job: Job, sample: ShownSample) -> str:
    """Return the path of the image that the job keeps of a sample; empty where the sample is no image."""
    return "" if sample.content else f"/jobs/{job.id}/sample-predictions/{sample.number}.png"


def _sample_page(dataset: str, sample: ShownSample) -> str:
    return f"/datasets/{dataset}/samples/{sample.split}/{sample.row}" if dataset else ""


def _has_mask(label: Any) -> bool:
    return isinstance(label, Mapping) and isinstance(label.get("mask"), str)


def _with_mask(job: Job, found: SamplePredictions, sample: ShownSample, dataset: str) -> PredictedSample:
    own = [record["predictions"][sample.number].get("mask") or "" for record in found.records]
    overlaps = [mask_overlap(sample.label["mask"], each) for each in own]
    place = f"/jobs/{job.id}/sample-predictions/{sample.number}"
    return PredictedSample(
        sample=sample,
        image=_own_image(job, sample),
        page=_sample_page(dataset, sample),
        label="actual mask",
        predicted=tuple("no pixel counts" if each is None else f"IoU {as_percent(each, 0)}" for each in overlaps),
        scores=("",) * len(own),
        right=(None,) * len(own),
        masks=SampleMasks(f"{place}/actual.png", tuple(f"{place}/{record['step']}.png" for record in found.records)),
    )


def _has_values(label: Any) -> bool:
    values = label.get("values") if isinstance(label, Mapping) else None
    return isinstance(values, list) and all(isinstance(each, int | float) for each in values)


def _with_values(job: Job, found: SamplePredictions, sample: ShownSample, dataset: str) -> PredictedSample:
    own = [record["predictions"][sample.number].get("values") or [] for record in found.records]
    return PredictedSample(
        sample=sample,
        image=_own_image(job, sample),
        page=_sample_page(dataset, sample),
        label=_values_text(sample.label["values"]),
        predicted=tuple(_values_text(each) for each in own),
        scores=(f"actual {_values_text(sample.label['values'])}",) * len(own),
        right=(None,) * len(own),
    )


def _values_text(values: Sequence[Any]) -> str:
    few = ", ".join(as_number(each, 3) for each in values[:3])
    return f"{few}, …" if len(values) > 3 else few or "–"


def _has_boxes(label: Any) -> bool:
    return isinstance(label, Mapping) and isinstance(label.get("boxes"), list) and len(label.get("size") or ()) == 2


def _with_boxes(job: Job, found: SamplePredictions, sample: ShownSample, dataset: str) -> PredictedSample:
    own = [record["predictions"][sample.number].get("boxes") or [] for record in found.records]
    actual = sample.label["boxes"]
    colors = object_colors(len(found.class_names))
    counts = count_found(actual, own)
    objects = sum(each["number"] >= 0 for each in actual)
    return PredictedSample(
        sample=sample,
        image=_own_image(job, sample),
        page=_sample_page(dataset, sample),
        label=f"{objects} objects",
        predicted=tuple(f"{true} of {true + missed} found" for true, _, missed in counts),
        scores=tuple(f"{false} false" if false else "" for _, false, _ in counts),
        right=tuple(not false and not missed for _, false, missed in counts),
        boxes=SampleBoxes(
            size=(int(sample.label["size"][0]), int(sample.label["size"][1])),
            actual=[_box_shape(each, colors) for each in actual],
            predicted=[[_box_shape(each, colors) for each in boxes] for boxes in own],
        ),
    )


def _box_shape(each: Mapping[str, Any], colors: Sequence[str]) -> BoxShape:
    left, top, right, bottom = each["box"]
    number = int(each["number"])
    color = colors[number] if 0 <= number < len(colors) else "#808080"
    return (left, top, round(right - left, 1), round(bottom - top, 1), color)


def _class_name(found: SamplePredictions, number: Any) -> str:
    if isinstance(number, int) and 0 <= number < len(found.class_names):
        return found.class_names[number]
    return "–" if number is None else str(number)


def _score(prediction: Mapping[str, Any]) -> str:
    score = prediction.get("score")
    return as_percent(score, 0) if isinstance(score, int | float) and math.isfinite(score) else "–"


def _dataset_id(studio: Studio, job: Job) -> str:
    """Return the dataset of the studio that a job trains on; empty where it is none, or was deleted."""
    known = studio.jobs.some(job.depends_on)
    return next((each.id for each in known.values() if each.kind == "dataset"), "")
