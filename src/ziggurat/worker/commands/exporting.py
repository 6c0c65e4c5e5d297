"""Export of a trained network: model, parity report on real samples, model card, and files to predict elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat import __version__
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.engine.capabilities import ExportOrder, ExportResult, SupportsExport
from ziggurat.errors import ConfigurationError, DataError, DatapointError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.specs import FileNetwork
from ziggurat.worker.commands.trained import TrainedJob, open_trained_job, provider_of
from ziggurat.worker.source import open_source

__all__ = ["export"]


_PROOF_SAMPLES: Final = 100


def export(request: Mapping[str, Any]) -> dict[str, Any]:
    """Export a job's network.

    Args:
        request: ``folder``; ``format``; ``out`` (a folder that is not there yet, or empty); ``preprocessing``:
            ``inside`` the model (default) or ``beside`` it; ``checkpoint`` (as for ``evaluate``).

    Returns:
        ``folder``, ``checkpoint``, ``step``, ``epoch``, ``out``, ``files`` (names in it), ``split`` (of the samples)
        and ``parity`` (the report).
    """
    place = request.get("preprocessing") or "inside"
    if place not in ("inside", "beside"):
        raise ConfigurationError("`preprocessing` must be inside or beside.", received=place, advice="Choose one.")
    job = open_trained_job(Path(request["folder"]), request.get("checkpoint"))
    provider = provider_of(job.spec.backend, SupportsExport, "export models")
    split, images, labels = first_samples(job, _PROOF_SAMPLES)
    out = Path(request["out"]).resolve()
    with _new_folder(out) as folder:
        order = ExportOrder(
            format=request["format"],
            folder=folder,
            preprocess=job.context.preprocessing.finish,
            inside=place == "inside",
            preprocessing=job.context.preprocessing,
            pictures=images,
            labels=labels,
        )
        result = provider.export(job.request, job.state.arrays, order)
        _write_beside(folder, job, result, order, split)
    return {
        **job.summary(),
        "out": request["out"],
        "files": sorted(path.name for path in out.iterdir()),
        "split": split,
        "parity": dict(result.parity),
    }


def _write_beside(folder: Path, job: TrainedJob, result: ExportResult, order: ExportOrder, split: str) -> None:
    """Write everything that stands beside the model."""
    description = {
        "format": order.format,
        "file": result.file,
        "preprocessing": "inside" if order.inside else "beside",
        "outputs": result.outputs,
    }
    job.context.preprocessing.save(folder)
    texts = {
        "model.json": json.dumps(description, indent=1) + "\n",
        "parity.json": json.dumps(result.parity, indent=1) + "\n",
        "labels.txt": "".join(f"{name}\n" for name in job.class_names),
        "MODEL_CARD.md": model_card(job, result, split=split, inside=order.inside),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copyfile(result.script, folder / "predict.py")


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Yield a folder to write into, which takes its place when all is written: half an export is none."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(
            "An export must get a folder of its own.",
            received=f"{out}, which holds something",
            advice="Choose another folder with --out, or empty this one.",
        )
    temporary = out.with_name(f".{out.name}.part")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        yield temporary
        if out.is_dir():
            out.rmdir()
        temporary.rename(out)
    except OSError as error:
        raise StorageError(
            f"The export must be written to {out}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights.",
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


_FOR_PROOF: Final = ("val", "test", "train")


def first_samples(job: TrainedJob, count: int) -> tuple[str, np.ndarray, np.ndarray]:
    """Return up to ``count`` real samples that the network was not trained on, where there are any.

    Returns:
        The split, images (N, height, width, C) uint8, fitted, and labels (N) int64. They are spread over the split.
    """
    source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(job.folder))
    split = next(name for name in _FOR_PROOF if name in source.splits and len(source.splits[name]))
    fit = _Fit(job, source.in_memory)
    points = []
    for point in _spread(source.splits[split], count):
        try:
            points.append(fit(point))
        except DatapointError:
            continue  # an unreadable file proves nothing
    if not points:
        raise DataError(
            "A model is proven on samples that can be read.",
            received=f"none in the split {split} of {job.spec.data.source}",
            advice="Check the data's folder.",
        )
    return split, np.stack([point[0] for point in points]), np.array([point[1] for point in points], np.int64)


def _spread(flow: DataFlow, count: int) -> Iterator[Any]:
    """Yield up to ``count`` datapoints from all over a flow: in the order of the classes, the first are of one."""
    chosen = np.linspace(0, len(flow) - 1, num=min(count, len(flow)), dtype=int).tolist()
    if isinstance(flow, IndexedFlow):
        yield from flow.read_many(chosen)
        return
    wanted = set(chosen)
    yield from (point for number, point in enumerate(flow) if number in wanted)


class _Fit:
    """Decodes and fits an image as the job's preprocessing says."""

    def __init__(self, job: TrainedJob, in_memory: bool) -> None:
        self._preprocessing = job.context.preprocessing
        self._in_memory = in_memory

    def __call__(self, point: Any) -> list[Any]:
        fit = self._preprocessing
        return [fit.fit(point[0]) if self._in_memory else fit.decode(point[0], "picture"), point[1]]


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
    height, width, channels = (*job.context.preprocessing.size, job.context.preprocessing.channels)
    kind = "RGB" if channels == 3 else "grey"
    yield "input", f"`input`: {kind} images, {height} x {width}, float32 from 0 to 255 before preprocessing"
    yield "preprocessing", "inside the model" if inside else "beside the model, see `preprocessing.json`"
    for name, shape in result.outputs.items():
        yield "output", f"`{name}`: {_shape(shape)}"
    yield "parameters", f"{result.parameters:,}"
    yield "classes", f"{len(job.class_names)}, see `labels.txt`"


def _data(job: TrainedJob) -> Iterable[tuple[str, str]]:
    before = job.context.preprocessing
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
