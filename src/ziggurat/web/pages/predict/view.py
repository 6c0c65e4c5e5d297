"""View model of the prediction page: checkpoints, devices, splits, and the results of each question."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import DataError, ZigguratError
from ziggurat.web.caches import ImageCache
from ziggurat.web.columns import result_texts
from ziggurat.web.pages.predict.values import ColumnField, column_fields
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.images import png_picture
from ziggurat.workspace.studio.model_inputs import ModelInputs

__all__ = [
    "SPLITS",
    "TABS",
    "Prediction",
    "Question",
    "heat_answer",
    "layers_answer",
    "model_test",
    "one_answer",
    "some_answer",
    "time_words",
    "values_answer",
    "values_of",
]


TABS: Final = {"one": "One image", "many": "Many images", "splits": "Evaluate"}
SPLITS: Final = {"val": "Validation", "test": "Test", "train": "Training"}
_EARLIER: Final = 50


@dataclass(frozen=True, kw_only=True)
class SplitChoice:
    """A split that the model may be measured on.

    Args:
        name: ``train``, ``val`` or ``test``.
        title: what stands on the page.
        count: samples; None if unknown.
        openings: how often the test split was measured on; None for other splits, and if unknown.
    """

    name: str
    title: str
    count: int | None
    openings: int | None


@dataclass(frozen=True, kw_only=True)
class ModelTest:
    """What the page shows of a model.

    Args:
        job: its training.
        checkpoints: value and text of each that may be chosen.
        devices: value and text of each.
        dataset: that it was trained on; None where it is none of the studio's.
        splits: of its data.
        earlier: jobs that used it, the newest first.
        earlier_left: so many more are not shown.
        results: of those that are evaluations and done: id → value and metric.
        takes_address: whether an image may be named by its address.
        inputs: what the model takes; None where it has no checkpoint yet.
        fields: of the columns of a row; empty where it takes something else.
    """

    job: Job
    checkpoints: list[tuple[str, str]]
    devices: list[tuple[str, str]]
    dataset: Job | None
    splits: list[SplitChoice]
    earlier: list[Job]
    earlier_left: int
    results: dict[str, tuple[str, str]]
    takes_address: bool
    inputs: ModelInputs | None
    fields: Sequence[ColumnField] = ()

    @property
    def is_ready(self) -> bool:
        """Whether it has a checkpoint."""
        return bool(self.checkpoints)

    @property
    def takes_values(self) -> bool:
        """Whether it takes rows of a table, or texts, and no images."""
        return self.inputs is not None and self.inputs.kind != "image"

    @property
    def tabs(self) -> Mapping[str, str]:
        """Name and title of each part of the page."""
        if self.inputs is not None and self.inputs.task.generates:
            # What it makes is what one wants to see; its answer for a sample is whatever its author had in mind.
            return {"generate": "Generate", **({} if self.takes_values else TABS)}
        if self.inputs is None or not self.takes_values:
            return TABS
        return {"one": "One row" if self.inputs.kind == "row" else "One text", "splits": TABS["splits"]}


def model_test(studio: Studio, job: Job, tab: str) -> ModelTest:
    """Return what the page shows of a model.

    Args:
        studio: where it is.
        job: of kind ``train``.
        tab: that is shown; what only others show is left out.
    """
    is_about_splits = tab == "splits"
    needed = studio.jobs.some(job.depends_on)
    dataset = next((each for each in needed.values() if each.kind == "dataset"), None)
    earlier = [] if tab in ("", "one", "generate") else studio.evaluations.of_model(job.id)
    checkpoints = checkpoint_choices(job)
    inputs = studio.models.inputs(job.id) if checkpoints else None
    return ModelTest(
        job=job,
        checkpoints=checkpoints,
        devices=_devices(studio.machine.strip()["devices"], job),
        dataset=dataset,
        splits=_splits(studio, dataset) if is_about_splits else [],
        earlier=earlier[:_EARLIER],
        earlier_left=max(0, len(earlier) - _EARLIER),
        results=result_texts(studio.jobs.results(earlier[:_EARLIER])),
        takes_address=studio.web_pictures.is_on,
        inputs=inputs,
        fields=column_fields(inputs) if inputs is not None else (),
    )


def _devices(devices: list[Mapping[str, Any]], job: Job) -> list[tuple[str, str]]:
    usual = f"GPU {', '.join(map(str, job.devices))}" if job.devices else "CPU"
    chosen = [(str(each["index"]), f"GPU {each['index']}: {each['name']}") for each in devices if each["usable"]]
    return [("", f"As in the training ({usual})"), ("cpu", "CPU"), *chosen]


def _splits(studio: Studio, dataset: Job | None) -> list[SplitChoice]:
    counts: Mapping[str, int] | None = None
    openings: int | None = None
    try:
        if dataset is not None:
            about = studio.datasets.describe(dataset.id)
            counts, openings = about["splits"], about["test_openings"]
    except ZigguratError:  # it is not whole any more; the job will say why
        counts = None
    return [
        SplitChoice(
            name=name,
            title=title,
            count=None if counts is None else counts.get(name, 0),
            openings=openings if name == "test" else None,
        )
        for name, title in SPLITS.items()
        if counts is None or counts.get(name)
    ]


HISTOGRAM_SIZE: Final = (160, 48)
"""Width and height of the image of a histogram."""


@dataclass(frozen=True, kw_only=True)
class LayerView:
    """A layer's output, or its weights.

    Args:
        name: of the layer, or of the array.
        shape: such as ``28 × 28 × 6``.
        figures: ``mean``, ``deviation``, ``minimum`` and ``maximum``; None where no number is finite.
        not_finite: how many numbers are NaN or infinite.
        parameters: numbers in it, of weights.
        picture: number of its image among those that are kept; None where there is nothing to draw.
        bars: place, height and what it says, of each bar of the histogram.
    """

    name: str
    shape: str
    figures: Mapping[str, float | None]
    not_finite: int
    parameters: int
    picture: int | None
    bars: Sequence[tuple[float, float, float, str]]


def layer_views(layers: Sequence[Mapping[str, Any]], drawn: list[bytes]) -> list[LayerView]:
    """Return what is shown of layers.

    Args:
        layers: as ``Training.activations`` gives them.
        drawn: gets their images.
    """
    return [_view(layer, drawn) for layer in layers]


def _view(layer: Mapping[str, Any], drawn: list[bytes]) -> LayerView:
    if layer["png"] is not None:
        drawn.append(layer["png"])
    return LayerView(
        name=layer["name"],
        shape=" × ".join(map(str, layer["shape"])) or "one number",
        figures={name: layer[name] for name in ("mean", "deviation", "minimum", "maximum")},
        not_finite=layer["not_finite"],
        parameters=layer.get("parameters", 0),
        picture=None if layer["png"] is None else len(drawn) - 1,
        bars=_bars(layer["histogram"]),
    )


def _bars(histogram: Mapping[str, Sequence[float]]) -> list[tuple[float, float, float, str]]:
    """Return left edge, width, height and words of each bar; heights go by the root, or one bar would hide the rest."""
    counts, edges = histogram["counts"], histogram["edges"]
    if not counts:
        return []
    width = HISTOGRAM_SIZE[0] / len(counts)
    most = math.sqrt(max(counts)) or 1.0
    return [
        (
            round(number * width, 1),
            round(width - 1, 1),
            round(HISTOGRAM_SIZE[1] * math.sqrt(count) / most, 1),
            f"{edges[number]:.3g} to {edges[number + 1]:.3g}: {count}",
        )
        for number, count in enumerate(counts)
    ]


CHOICES: Final = 200
"""Classes that a page offers: the likeliest, where a network has more."""


@dataclass(frozen=True, kw_only=True)
class HeatView:
    """Where in an image a network found what speaks for a class.

    Args:
        class_name: of the class.
        number: of the class, as the field has it.
        probability: of the class.
        is_likeliest: whether no class is likelier.
        layer: that was looked at.
        places: of the layer, such as ``6 × 6``.
        is_empty: whether nothing speaks for the class there.
        overlay: number of the image with its heat among those that are kept.
        alone: number of the image of the heat alone.
        classes: value and text of each that may be chosen.
        layers: value and text of each that may be chosen, in the order of the network.
        stops: share of the legend, in percent, and the color there.
    """

    class_name: str
    number: str
    probability: float
    is_likeliest: bool
    layer: str
    places: str
    is_empty: bool
    overlay: int
    alone: int
    classes: Sequence[tuple[str, str]]
    layers: Sequence[tuple[str, str]]
    stops: Sequence[tuple[float, str]]


def heat_view(found: Mapping[str, Any], drawn: list[bytes]) -> HeatView:
    """Return what is shown.

    Args:
        found: as ``Training.grad_cam`` gives it, with the likeliest ``CHOICES`` classes.
        drawn: gets its images.
    """
    drawn += [found["png"], found["heat_png"]]
    named = {each["number"]: each["class"] for each in found["classes"]}
    classes = sorted({**named, found["number"]: found["class"]}.items())
    colours = found["colours"]
    return HeatView(
        class_name=found["class"],
        number=str(found["number"]),
        probability=found["probability"],
        is_likeliest=found["number"] == found["classes"][0]["number"],
        layer=found["layer"],
        places=f"{len(found['heat'])} × {len(found['heat'][0])}",
        is_empty=not found["largest"],
        overlay=len(drawn) - 2,
        alone=len(drawn) - 1,
        classes=[(str(number), name) for number, name in classes],
        layers=[(name, name) for name in found["layers"]],
        stops=[(round(100 * place / (len(colours) - 1), 1), colour) for place, colour in enumerate(colours)],
    )


_SHOWN_PX: Final = 480
_SMALL_PX: Final = 112
_PLACES_PX: Final = 960
_KEPT_BYTES: Final = 16 << 20
_SHOWN_VALUES: Final = 200


@dataclass(frozen=True, kw_only=True)
class Question:
    """How a model is asked.

    Args:
        model: id of the training.
        checkpoint: as ``Models.predict`` takes it.
        device: as ``Models.predict`` takes it.
        top: classes that are named.
    """

    model: str
    checkpoint: str = ""
    device: str = ""
    top: int = 5


@dataclass(frozen=True, kw_only=True)
class PictureAnswer:
    """What was said of one image.

    Args:
        name: of its file.
        number: of the image among those that are kept.
        classes: ``class``, ``number`` and ``probability``, best first; empty where the network does not classify.
        outputs: name, shape and the first values of each output of another network.
        said: all that the task says, as ``Task.decode`` returns it.
        task: name of the task, which has a template for it.
        original: path of the image that was given; empty where there is none.
        input: path of the image as the network gets it; empty where the prediction is no image, or lies on the
            original.
        drawn: path of the prediction as an image; empty where it is none.
        operating_point: ``thresholds``, ``used`` and ``problem`` of the model; empty where none was chosen.
    """

    name: str
    number: int
    classes: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[tuple[str, str, list[float]]] = field(default_factory=list)
    said: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    original: str = ""
    input: str = ""
    drawn: str = ""
    operating_point: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What was said of one image, with the way to ask again.

    Args:
        answer: what was said.
        kept: under which name the file is kept, as it came; empty where it was too large.
        shown: under which name the images of this answer are kept.
        step: of the checkpoint.
        epoch: of the checkpoint.
        took: how long the answer took, in words.
        layers: what each layer made of it; empty if not requested.
        weights: of each layer; empty if not requested.
        parameters: in all weights; 0 if not requested.
        heat: Grad-CAM; None if not requested, or not available.
        heat_error: why it is not available; None if it is, or was not requested.
    """

    answer: PictureAnswer
    kept: str
    shown: str
    step: int
    epoch: int
    took: str
    layers: list[LayerView] = field(default_factory=list)
    weights: list[LayerView] = field(default_factory=list)
    parameters: int = 0
    heat: HeatView | None = None
    heat_error: ZigguratError | None = None


@dataclass(frozen=True, kw_only=True)
class BatchPrediction:
    """What was said of several images.

    Args:
        answers: in the order in which they came.
        failures: name and reason of those that could not be read.
        shown: under which name the images are kept.
        step: of the checkpoint.
        epoch: of the checkpoint.
        took: how long the answer took, in words.
    """

    answers: list[PictureAnswer]
    failures: list[tuple[str, str]]
    shown: str
    step: int
    epoch: int
    took: str


def one_answer(studio: Studio, question: Question, picture: tuple[str, bytes], kept: ImageCache) -> Prediction:
    """Return what a model says of an image.

    Raises:
        DataError: where the image cannot be read.
        ZigguratError: where the model cannot be asked.
    """
    found, took = _predict(studio, question, [picture])
    for failure in found["failures"]:
        raise DataError("An image must be readable.", received=f"`{picture[0]}`: {_reason(failure)}")
    answer = _answer(studio, question, found, 0, kept)
    shown = kept.keep(png_picture(picture[1], _with_places_px(answer, _SHOWN_PX), key=picture[0]))
    return Prediction(
        answer=replace(answer, original=f"/models/{question.model}/test/pictures/{shown}/0"),
        kept=_keep(kept, picture),
        shown=shown,
        step=found["step"],
        epoch=found["epoch"],
        took=took,
    )


def layers_answer(studio: Studio, question: Question, picture: tuple[str, bytes], kept: ImageCache) -> Prediction:
    """Return what a model says of an image, and what each of its layers makes of it."""
    plain = one_answer(studio, question, picture, kept)
    found = studio.models.activations(question.model, picture, checkpoint=question.checkpoint, device=question.device)
    drawn = [png_picture(picture[1], _SHOWN_PX, key=picture[0])]
    layers = layer_views(found["activations"], drawn)
    weights = layer_views(found["weights"], drawn)
    return replace(plain, shown=kept.keep(*drawn), layers=layers, weights=weights, parameters=found["parameters"])


def heat_answer(
    studio: Studio,
    question: Question,
    picture: tuple[str, bytes],
    kept: ImageCache,
    *,
    class_name: str = "",
    layer: str = "",
) -> Prediction:
    """Return what a model says of an image, and where in it it found what speaks for a class.

    Args:
        studio: where the model is.
        question: how it is asked.
        picture: name and content of a file.
        kept: gets the images.
        class_name: number or name of a class; empty for the likeliest.
        layer: with maps; empty for the one of the last convolution.
    """
    plain = one_answer(studio, question, picture, kept)
    options = {"class": class_name, "layer": layer, "top": CHOICES}
    try:
        found = studio.models.grad_cam(
            question.model, picture, checkpoint=question.checkpoint, device=question.device, **options
        )
    except ZigguratError as error:
        return replace(plain, heat_error=error)
    drawn = [png_picture(picture[1], _SHOWN_PX, key=picture[0])]
    heat = heat_view(found, drawn)
    return replace(plain, shown=kept.keep(*drawn), heat=heat)


def some_answer(
    studio: Studio, question: Question, pictures: Sequence[tuple[str, bytes]], kept: ImageCache
) -> BatchPrediction:
    """Return what a model says of several images; each that cannot be read is among the failures."""
    pictures = _by_other_names(pictures)
    found, took = _predict(studio, question, pictures)
    bad = {each["file"] for each in found["failures"]}
    answers = [_answer(studio, question, found, number, kept) for number in range(len(found["predictions"]))]
    side_px = _with_places_px(answers[0], _SMALL_PX) if answers else _SMALL_PX
    drawn = [png_picture(content, side_px, key=name) for name, content in pictures if name not in bad]
    shown = kept.keep(*drawn)
    place = f"/models/{question.model}/test/pictures/{shown}"
    return BatchPrediction(
        answers=[replace(each, original=f"{place}/{each.number}") for each in answers],
        failures=[(each["file"], _reason(each)) for each in found["failures"]],
        shown=shown,
        step=found["step"],
        epoch=found["epoch"],
        took=took,
    )


def _with_places_px(answer: PictureAnswer, side_px: int) -> int:
    """Return the longer side of a shown image: larger where a prediction has places in it."""
    return _PLACES_PX if "boxes" in answer.said or (answer.drawn and not answer.input) else side_px


def _predict(studio: Studio, question: Question, pictures: Sequence[tuple[str, bytes]]) -> tuple[dict[str, Any], str]:
    began = time.perf_counter()
    found = studio.models.predict(
        question.model, pictures, top=question.top, checkpoint=question.checkpoint, device=question.device, drawn=True
    )
    return found, _took(began)


def _took(began: float) -> str:
    return time_words(time.perf_counter() - began)


def time_words(took_s: float) -> str:
    """Return a short time in words."""
    return f"{took_s:.1f} s" if took_s >= 1 else f"{took_s * 1000:.0f} ms"


def values_answer(
    studio: Studio, question: Question, values: Mapping[str, Sequence[Any]], kept: ImageCache
) -> Prediction:
    """Return what a model says of a row of a table, or of a text.

    Args:
        studio: where the model is.
        question: how it is asked.
        values: ``rows`` or ``texts``, with one.
        kept: gets images that the task draws.

    Raises:
        DataError: where the model cannot read it.
        ZigguratError: where the model cannot be asked.
    """
    began = time.perf_counter()
    asked: dict[str, Any] = {**values, "top": question.top, "drawn": True}
    found = studio.models.predict_values(
        question.model, checkpoint=question.checkpoint, device=question.device, **asked
    )
    for failure in found["failures"]:
        raise DataError(f"What was typed does not fit the columns of the model: {_reason(failure).rstrip('.')}.")
    return Prediction(
        answer=_answer(studio, question, found, 0, kept),
        kept="",
        shown="",
        step=found["step"],
        epoch=found["epoch"],
        took=_took(began),
    )


def _reason(failure: Mapping[str, Any]) -> str:
    """Return why a file cannot be read, without its name."""
    message = str(failure["message"])
    return (message.partition(" cannot be used: ")[2] or message).rstrip(".")


def _by_other_names(pictures: Sequence[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
    """Return images of which no two have the same name: what is said of each is found by it."""
    counts: dict[str, int] = {}
    named: list[tuple[str, bytes]] = []
    for name, content in pictures:
        counts[name] = counts.get(name, 0) + 1
        named.append((f"{name} ({counts[name]})" if counts[name] > 1 else name, content))
    return named


def _answer(
    studio: Studio, question: Question, found: Mapping[str, Any], number: int, kept: ImageCache
) -> PictureAnswer:
    said = found["predictions"][number]
    outputs = [(name, *values_of(each)) for name, each in said.get("outputs", {}).items()]
    classes = [each for each in said.get("classes", ()) if "probability" in each]
    images = {name: bytes(said[name]) for name in ("input", "picture") if said.get(name)}
    places = {}
    if "picture" in images:  # alone where it lies on the image that was given
        shown = kept.keep(*images.values())
        places = {name: f"/models/{question.model}/test/pictures/{shown}/{at}" for at, name in enumerate(images)}
    return PictureAnswer(
        name=said["file"],
        number=number,
        classes=classes,
        outputs=outputs,
        said={name: value for name, value in said.items() if name not in ("file", "input", "picture")},
        task=studio.models.inputs(question.model).task.name,
        input=places.get("input", ""),
        drawn=places.get("picture", ""),
        operating_point=found.get("operating_point") or {},
    )


def values_of(output: Mapping[str, Any]) -> tuple[str, list[float]]:
    """Return the shape of an output in words, and its first numbers."""
    return _shape(output["shape"]), _values(output["values"])


def _values(values: Any) -> list[float]:
    """Return the first numbers of nested lists."""
    found: list[float] = []
    waiting = [values]
    while waiting and len(found) < _SHOWN_VALUES:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += reversed(value)
        else:
            found.append(value)
    return found


def _shape(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _keep(kept: ImageCache, picture: tuple[str, bytes]) -> str:
    """Keep a file for the next question, with its name; a page holds only what it is kept under."""
    name, content = picture
    return kept.keep(content, name.encode("utf-8", "surrogateescape")) if len(content) <= _KEPT_BYTES else ""
