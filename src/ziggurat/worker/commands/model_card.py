"""Model card of an export: what it is, what it was trained on, how, and its figures, as Markdown with front matter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import yaml

from ziggurat import __version__
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.engine.capabilities import ExportResult
from ziggurat.specs import FileNetwork
from ziggurat.tasks import TaskContext
from ziggurat.worker.commands.trained import TrainedJob

__all__ = ["input_images", "model_card"]

_LIBRARIES: Final = {"onnx": "onnx", "tflite": "tflite", "pt2": "pytorch", "safetensors": "pytorch"}
"""Format → name of its library on the Hugging Face Hub; of all others, TensorFlow."""

_PIPELINES: Final = {
    ("classification", "image"): "image-classification",
    ("classification", "row"): "tabular-classification",
    ("classification", "text"): "text-classification",
    ("detection", "image"): "object-detection",
    ("image-to-image", "image"): "image-to-image",
    ("regression", "row"): "tabular-regression",
    ("segmentation", "image"): "image-segmentation",
}
"""Task and kind of input → name of what the model does on the Hub."""


def model_card(job: TrainedJob, result: ExportResult, *, export_format: str, split: str, inside: bool) -> str:
    """Return the card as Markdown.

    Args:
        job: what was exported.
        result: what the export gave.
        export_format: name of the format.
        split: where the samples of the parity report come from.
        inside: whether the model preprocesses images by itself.
    """
    spec = job.spec
    network = _network(job)
    parts = [
        _front_matter(job, export_format),
        f"# {spec.name or job.folder.name}",
        "**License:** (fill in: the terms under which others may use this model, and those of its data)",
        "## What it is",
        _table(
            [("network", f"`{network}`"), ("format", f"{result.title}, `{result.file}`"), *_what(job, result, inside)]
        ),
        "## Data",
        _table(_data(job)),
        "## Figures of its checkpoint",
        _table([(tag, f"{value:.6g}") for tag, value in _scalars(job)]) or "None was recorded.",
        "## How it was trained",
        _table(_training(job)),
        "## Parity",
        f"The exported file beside the network that was trained, on {result.parity['samples']} samples of the split "
        f"`{split}`. A relative difference is a share of the largest output, where that is above 1.",
        _table(_parity(result.parity)),
        "## Use it",
        _usage(job, result),
        f"Made by Ziggurat {__version__} with {result.framework}.",
    ]
    return "\n\n".join(parts) + "\n"


def input_images(context: TaskContext) -> int:
    """Return how many images stand in the channels of the input; 0 if it is no image."""
    before = context.preprocessing
    return context.task.input(context).shape[-1] // before.channels if isinstance(before, Preprocessing) else 0


def _network(job: TrainedJob) -> str:
    network = job.spec.network
    return network.path if isinstance(network, FileNetwork) else network.name


def _front_matter(job: TrainedJob, export_format: str) -> str:
    """Return what the Hugging Face Hub reads, in YAML: only what is known. The license is for its owner to say."""
    part = job.context.schema.parts[0]
    pipeline = _PIPELINES.get((job.task.name, part if part in ("row", "text") else "image"))
    metrics = [tag.removeprefix("validation_") for tag, _ in _scalars(job)]
    tags = ["ziggurat", job.task.name]
    if not isinstance(job.spec.network, FileNetwork):
        tags.append(_network(job))
    content = {
        "library_name": _LIBRARIES.get(export_format, "tensorflow"),
        "pipeline_tag": pipeline,
        "tags": tags,
        "metrics": [name for name in metrics if name not in ("cost", "loss", "error")],
    }
    text = yaml.safe_dump({name: value for name, value in content.items() if value}, sort_keys=False)
    return f"---\n{text}---"


def _parity(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield name and value; those of boxes where there are boxes."""
    for name, value in report.items():
        if value is not None or not name.startswith("boxes"):
            yield name.replace("_", " "), _text(value)


def _operating_point(job: TrainedJob) -> Iterable[tuple[str, str]]:
    """Yield the thresholds that predictions obey, where they were chosen, and why they are not used if they are not."""
    point = job.operating_point
    if not point:
        return
    if point["problem"]:
        yield "operating point", str(point["problem"])
        return
    shown = ", ".join(f"{name} {value:g}" for name, value in point["thresholds"].items())
    yield "operating point", f"{shown}; chosen on the validation split, in the evaluation {point['evaluation']}"


def _usage(job: TrainedJob, result: ExportResult) -> str:
    is_image = isinstance(job.context.preprocessing, Preprocessing)
    packages = ["numpy", *(["pillow or opencv-python"] if is_image else []), *result.packages]
    files = {"row": "ROWS.csv", "text": "TEXTS.txt"}.get(job.context.schema.parts[0], "IMAGE...")
    return f"`python predict.py {files}` needs {', '.join(packages)}, and not Ziggurat."


def _what(job: TrainedJob, result: ExportResult, inside: bool) -> Iterable[tuple[str, str]]:
    yield "task", job.task.title
    yield "input", f"`input`: {_input(job, result, inside)}"
    is_text = isinstance(job.context.preprocessing, TextPreprocessing)
    beside = "`predict.py` makes the token numbers, see `preprocessing.json`" if is_text else "see `preprocessing.json`"
    yield "preprocessing", "inside the model" if inside else f"beside the model, {beside}"
    for name, shape in result.outputs.items():
        yield "output", f"`{name}`: {_shape(shape)}"
    yield "parameters", f"{result.parameters:,}"
    if job.class_names:
        yield "classes", f"{len(job.class_names)}, see `labels.txt`"
    yield from _operating_point(job)


def _input(job: TrainedJob, result: ExportResult, inside: bool) -> str:
    before = job.context.preprocessing
    if isinstance(before, Preprocessing):
        kind = "RGB" if before.channels == 3 else "grey"
        height, width = before.size
        several = input_images(job.context)
        channels = f", {several} of a sample in the channels" if several > 1 else ""
        return f"{kind} images, {height} x {width}{channels}, float32 from 0 to 255 before preprocessing"
    shape = f"{_shape(result.input_shape)} {result.input_dtype}"
    if isinstance(before, TablePreprocessing):
        how = "encoded as `preprocessing.json` describes" + ("" if inside else ", and scaled")
        return f"rows {shape}, {how}: {', '.join(before.feature_names)}"
    return f"token numbers {shape}: 0 padding, 1 unknown, then the words of `preprocessing.json`"


def _data(job: TrainedJob) -> Iterable[tuple[str, str]]:
    yield "source", f"`{job.spec.data.source}`"
    before = job.context.preprocessing
    if isinstance(before, TablePreprocessing):
        yield "columns", ", ".join(column.name for column in before.columns)
        yield "target", before.target
        yield "numbers", before.numbers
        for name, reason in before.left_out.items():
            yield "left out", f"{name}: {reason}"
    elif isinstance(before, TextPreprocessing):
        yield "tokens of a text", str(before.length)
        yield "vocabulary", f"{before.vocabulary_size:,}"
    elif isinstance(before, Preprocessing):
        yield from _images_data(job, before)


def _images_data(job: TrainedJob, before: Preprocessing) -> Iterable[tuple[str, str]]:
    yield "size", f"{before.size[0]} x {before.size[1]} px, mode `{before.resize_mode}`"
    yield "crop", "none" if before.crop is None else f"{before.crop} px, in the middle"
    yield "mean", before.mean
    yield "whitening", "yes" if before.whitening else "no"
    varied = {name: value for name, value in job.spec.augmentation.model_dump().items() if value not in (0, "none")}
    yield "augmentation in training", ", ".join(f"{name} {value}" for name, value in varied.items()) or "none"


def _training(job: TrainedJob) -> Iterable[tuple[str, str]]:
    spec, meta = job.spec, job.state.meta
    yield "checkpoint", f"{job.checkpoint}: step {meta['global_step']}, epoch {meta['epoch_num']} of {spec.epochs}"
    yield "optimizer", _options(spec.optimizer.model_dump())
    yield "learning rate", f"{spec.learning_rate:g}, schedule {_options(spec.schedule.model_dump())}"
    yield "batch size", str(spec.batch_size * spec.gradient_accumulation_steps)
    yield "weight decay", f"{spec.weight_decay:g}"
    if spec.ema_decay is not None:
        yield "averaged weights", f"decay {spec.ema_decay:g}"
    yield "precision", spec.precision
    yield "seed", str(spec.seed)
    if spec.pretrained is not None:
        yield "started from", f"`{spec.pretrained}`"


def _scalars(job: TrainedJob) -> list[tuple[str, float]]:
    latest: Mapping[str, Any] = job.state.meta.get("latest", {})
    return [(tag, float(point[1])) for tag, point in sorted(latest.items()) if tag.startswith("validation_")]


def _options(content: Mapping[str, Any]) -> str:
    name = next((str(content[key]) for key in ("name", "policy") if key in content), "")
    options = (f"{key} {value}" for key, value in content.items() if key not in ("name", "policy"))
    return ", ".join(filter(None, [name, *options]))


def _shape(shape: Sequence[int | None] | None) -> str:
    return "unknown shape" if shape is None else f"({', '.join('N' if side is None else str(side) for side in shape)})"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"| {name} | {value} |" for name, value in rows]
    return "\n".join(["| | |", "|---|---|", *lines]) if lines else ""
