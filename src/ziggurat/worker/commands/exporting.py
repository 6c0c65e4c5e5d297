"""Export of a trained network: model, parity report on real samples, model card, and files to predict elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat import __version__
from ziggurat.dataflow import standalone_preprocessing
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.engine.capabilities import ExportOrder, ExportResult, SupportsExport
from ziggurat.entities.backend_info import backend_info
from ziggurat.errors import ConfigurationError, DataError, DatapointError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.specs import FileNetwork
from ziggurat.tasks import TaskContext
from ziggurat.tasks.base import named_targets
from ziggurat.worker.commands.trained import TrainedJob, open_trained_job, provider_of
from ziggurat.worker.pipeline import middle_crop
from ziggurat.worker.source import DataSource, FilePath, labels_of, open_source

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
    proof = proof_samples(job, _PROOF_SAMPLES)
    out = Path(request["out"]).resolve()
    with _new_folder(out) as folder:
        order = ExportOrder(
            format=request["format"],
            folder=folder,
            context=job.context,
            preprocess=lambda samples: preprocessed(job.context, samples),
            inside=place == "inside" and _may_be_inside(job, request["format"]),
            samples=proof.samples,
            targets=proof.targets,
        )
        result = provider.export(job.request, job.state.arrays, order)
        _write_beside(folder, job, result, order, proof.split)
    return {
        **job.summary(),
        "out": request["out"],
        "files": sorted(path.name for path in out.iterdir()),
        "split": proof.split,
        "parity": dict(result.parity),
    }


def _may_be_inside(job: TrainedJob, format_name: str) -> bool:
    """Return whether a model can preprocess its inputs: for texts, no format has operations for words."""
    formats = {each.name: each for each in backend_info(job.spec.backend).export_formats}
    holds = format_name not in formats or formats[format_name].holds_preprocessing
    return holds and not isinstance(job.context.preprocessing, TextPreprocessing)


def _write_beside(folder: Path, job: TrainedJob, result: ExportResult, order: ExportOrder, split: str) -> None:
    """Write everything that stands beside the model."""
    description = {
        "format": order.format,
        "file": result.file,
        "preprocessing": "inside" if order.inside else "beside",
        "input": {"shape": list(result.input_shape), "dtype": result.input_dtype, "images": _images(job.context)},
        "outputs": result.outputs,
    }
    job.context.preprocessing.save(folder)
    texts = {
        "model.json": json.dumps(description, indent=1) + "\n",
        "task.json": json.dumps(_task(job.context), indent=1) + "\n",
        "parity.json": json.dumps(result.parity, indent=1) + "\n",
        "MODEL_CARD.md": model_card(job, result, split=split, inside=order.inside),
    }
    if job.class_names:
        texts["labels.txt"] = "".join(f"{name}\n" for name in job.class_names)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copyfile(result.script, folder / "predict.py")
    if not isinstance(job.context.preprocessing, Preprocessing):
        shutil.copyfile(str(standalone_preprocessing.__file__), folder / "standalone_preprocessing.py")


def _task(context: TaskContext) -> dict[str, Any]:
    """Return what was learned, and how a prediction is made of the outputs, as JSON values."""
    return {
        "task": context.task.name,
        "title": context.task.title,
        "schema": context.schema.as_json(),
        "statistics": dict(context.statistics),
        "postprocessing": dict(context.task.postprocessing(context)),
    }


def _images(context: TaskContext) -> int:
    """Return how many images stand in the channels of the input; 0 where it is no image."""
    before = context.preprocessing
    return context.task.input(context).shape[-1] // before.channels if isinstance(before, Preprocessing) else 0


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


@dataclass(frozen=True, kw_only=True)
class ProofSamples:
    """Real samples that the network was not trained on, where there are any.

    Args:
        split: where they come from.
        samples: (N, …) decoded inputs, as ``preprocessed`` takes them.
        targets: ``x`` and, where there is a target, ``y`` of the samples, for the metrics of the task.
    """

    split: str
    samples: np.ndarray
    targets: Mapping[str, np.ndarray]


def proof_samples(job: TrainedJob, count: int) -> ProofSamples:
    """Return up to ``count`` samples, spread over a split.

    Raises:
        DataError: where none can be read.
    """
    source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(job.folder))
    split = next(name for name in _FOR_PROOF if name in source.splits and len(source.splits[name]))
    context, flow = job.context, source.for_task(job.context.task).splits[split]
    made = _made_rows(job, source, flow) if isinstance(flow, IndexedFlow) else None
    samples = []
    for point in _spread(made or flow, count):
        parts = [read_file(part) if isinstance(part, FilePath) else part for part in (point[:-1] if made else point)]
        try:
            samples.append(context.task.sample(context, parts, "sample"))
        except DatapointError:
            continue  # an unreadable file proves nothing
    if not samples:
        raise DataError(
            "A model is proven on samples that can be read.",
            received=f"none in the split {split} of {job.spec.data.source}",
            advice="Check the data's folder.",
        )
    arrays = [np.stack(part) for part in zip(*samples, strict=True)]
    decoded = context.task.batch(context, arrays, lambda inputs: inputs)[0]
    batch = context.task.batch(context, _cropped(context, arrays), context.preprocessing.finish)
    targets = named_targets(batch)
    return ProofSamples(split=split, samples=decoded, targets=targets)


def preprocessed(context: TaskContext, samples: np.ndarray) -> np.ndarray:
    """Return decoded inputs as the network gets them.

    Args:
        context: of the job.
        samples: (N, …), what ``InputPreprocessing.decode`` gives; several images of a sample stand in the channels.
    """
    before = context.preprocessing
    if not isinstance(before, Preprocessing) or samples.shape[-1] == before.channels:
        return before.finish(samples)
    images = np.split(samples, samples.shape[-1] // before.channels, axis=-1)
    return np.concatenate([before.finish(image) for image in images], axis=-1)


def _made_rows(job: TrainedJob, source: DataSource, flow: IndexedFlow) -> IndexedFlow | None:
    """Return what the task makes of the samples of a split, with a key at the end; None where they stay as they are."""

    # The same as in an evaluation, whatever the seed of the job is.
    return job.task.rows(source.schema, flow, lambda: labels_of(flow), shuffle=False, seed=0)


def _cropped(context: TaskContext, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return the arrays of samples; what moves with the image is cropped in the middle, as ``finish`` crops images."""
    crop = middle_crop(context)
    if crop is None:
        return list(arrays)
    samples = [crop(list(each), np.random.RandomState(0)) for each in zip(*arrays, strict=True)]
    return [arrays[0], *(np.stack(part) for part in list(zip(*samples, strict=True))[1:])]


def _spread(flow: DataFlow, count: int) -> Iterator[Any]:
    """Yield up to ``count`` datapoints from all over a flow: in the order of the classes, the first are of one."""
    chosen = np.linspace(0, len(flow) - 1, num=min(count, len(flow)), dtype=int).tolist()
    if isinstance(flow, IndexedFlow):
        yield from flow.read_many(chosen)
        return
    wanted = set(chosen)
    yield from (point for number, point in enumerate(flow) if number in wanted)


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
        _table(_parity(result.parity)),
        "## Use it",
        _usage(job, result),
        f"Made by Ziggurat {__version__} with {result.framework}.",
    ]
    return "\n\n".join(parts) + "\n"


def _parity(report: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield name and value; those of boxes where there are boxes."""
    for name, value in report.items():
        if value is not None or not name.startswith("boxes"):
            yield name.replace("_", " "), _text(value)


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


def _input(job: TrainedJob, result: ExportResult, inside: bool) -> str:
    before = job.context.preprocessing
    if isinstance(before, Preprocessing):
        kind = "RGB" if before.channels == 3 else "grey"
        height, width = before.size
        several = _images(job.context)
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
