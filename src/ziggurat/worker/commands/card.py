"""Model card of an export: the model, its training data and configuration, and its parity report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ziggurat import __version__
from ziggurat.engine.capabilities import ExportResult
from ziggurat.specs import FileNetwork
from ziggurat.worker.commands.trained import TrainedJob

__all__ = ["model_card"]


def model_card(job: TrainedJob, result: ExportResult, *, split: str, inside: bool) -> str:
    """Return the card as Markdown.

    Args:
        job: what was exported.
        result: what the export gave.
        split: where the samples of the parity report come from.
        inside: whether the model preprocesses images by itself.
    """
    spec = job.spec
    network = spec.network.path if isinstance(spec.network, FileNetwork) else spec.network.name
    parts = [
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
        _table([(name.replace("_", " "), _text(value)) for name, value in result.parity.items()]),
        "## Use it",
        f"`python predict.py IMAGE...` needs {', '.join(['numpy', 'pillow or opencv-python', *result.packages])}, and "
        "not Ziggurat.",
        f"Made by Ziggurat {__version__} with {result.framework}.",
    ]
    return "\n\n".join(parts) + "\n"


def _what(job: TrainedJob, result: ExportResult, inside: bool) -> Iterable[tuple[str, str]]:
    height, width, channels = (*job.preprocessing.size, job.preprocessing.channels)
    kind = "RGB" if channels == 3 else "grey"
    yield "input", f"`input`: {kind} images, {height} x {width}, float32 from 0 to 255 before preprocessing"
    yield "preprocessing", "inside the model" if inside else "beside the model, see `preprocessing.json`"
    for name, shape in result.outputs.items():
        yield "output", f"`{name}`: {_shape(shape)}"
    yield "parameters", f"{result.parameters:,}"
    yield "classes", f"{len(job.class_names)}, see `labels.txt`"


def _data(job: TrainedJob) -> Iterable[tuple[str, str]]:
    before = job.preprocessing
    yield "source", f"`{job.spec.data.source}`"
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
