"""Export of a trained network: model, parity report on real samples, model card, and files to predict elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat import __version__
from ziggurat.dataflow import standalone_prediction, standalone_preprocessing, standalone_samples
from ziggurat.dataflow.base import DataFlow
from ziggurat.dataflow.image_codec import read_file
from ziggurat.dataflow.indexed import IndexedFlow
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.dataflow.text_preprocessing import TextPreprocessing
from ziggurat.engine.capabilities import ExportOrder, ExportResult, SupportsExport
from ziggurat.entities.backend_info import backend_info
from ziggurat.errors import ConfigurationError, DataError, DatapointError, StorageError
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import Manifest
from ziggurat.serving.manifest import write_manifest
from ziggurat.tasks import TaskContext
from ziggurat.tasks.base import named_targets
from ziggurat.worker.commands.model_card import input_images, model_card
from ziggurat.worker.commands.trained import TrainedJob, open_trained_job, provider_of
from ziggurat.worker.pipeline import middle_crop
from ziggurat.worker.source import DataSource, FilePath, is_dataset, labels_of, open_source

__all__ = ["export"]


_PROOF_SAMPLES: Final = 100

_TEST_SAMPLES: Final = 16
"""Of the proof samples: those that the export brings, for the self-test."""

_TEST_FILE: Final = "self-test.npz"
_TEST_TOLERANCE: Final = 1e-3
"""Of the self-test: other processors and versions of a runtime sum in other orders, also in bfloat16 and TF32."""


def export(request: Mapping[str, Any]) -> dict[str, Any]:
    """Export a job's network.

    Args:
        request: ``folder``; ``format``; ``out`` (a folder that is not there yet, or empty); ``preprocessing``:
            ``inside`` the model (default) or ``beside`` it; ``checkpoint`` (as for ``evaluate``).

    Returns:
        ``folder``, ``checkpoint``, ``step``, ``epoch``, ``task``, ``operating_point`` (if one was chosen), ``out``,
        ``files`` (names in it), ``split`` (of the samples) and ``parity`` (the report).
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
        write_manifest(folder, _provenance(job, result))
    return {
        **job.prediction_summary(),
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
        "input": {
            "shape": list(result.input_shape),
            "dtype": result.input_dtype,
            "images": input_images(job.context),
        },
        "outputs": result.outputs,
    }
    job.context.preprocessing.save(folder)
    texts = {
        "model.json": json.dumps(description, indent=1) + "\n",
        "task.json": json.dumps(_task(job.context), indent=1) + "\n",
        "parity.json": json.dumps(result.parity, indent=1) + "\n",
        "MODEL_CARD.md": model_card(job, result, export_format=order.format, split=split, inside=order.inside),
    }
    if job.class_names:
        texts["labels.txt"] = "".join(f"{name}\n" for name in job.class_names)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copyfile(result.script, folder / "predict.py")
    shutil.copyfile(str(standalone_samples.__file__), folder / "standalone_samples.py")
    if not isinstance(job.context.preprocessing, Preprocessing):
        shutil.copyfile(str(standalone_preprocessing.__file__), folder / "standalone_preprocessing.py")
    description["self_test"] = _self_test(folder, order, seed=job.spec.seed, split=split)
    (folder / "model.json").write_text(json.dumps(description, indent=1) + "\n", encoding="utf-8")


def _self_test(folder: Path, order: ExportOrder, *, seed: int, split: str) -> dict[str, Any]:
    """Write some of the samples with the outputs of the exported model; return what ``model.json`` says of them."""
    generator = np.random.default_rng(seed)
    count = min(_TEST_SAMPLES, len(order.samples))
    chosen = np.sort(generator.choice(len(order.samples), count, replace=False))
    model, inside = standalone_prediction.load_model(folder)
    reader = standalone_prediction.Reader(folder, inside)
    inputs = np.ascontiguousarray(order.samples[chosen])
    # One by one, as predict.py runs them: a sum over a larger batch may have other last bits.
    found = [model(reader.prepared(sample[None])) for sample in inputs]
    arrays = {
        f"output/{name}": np.stack([standalone_samples.stored_values(each[name][0]) for each in found])
        for name in found[0]
    }
    with (folder / _TEST_FILE).open("wb") as file:
        np.savez_compressed(file, inputs=inputs, **arrays)  # pyright: ignore[reportArgumentType]
    about = {"file": _TEST_FILE, "samples": count, "split": split, "seed": seed, "tolerance": _TEST_TOLERANCE}
    return {**about, "rows": chosen.tolist()}


def _provenance(job: TrainedJob, result: ExportResult) -> dict[str, Any]:
    """Return where an export comes from, as JSON values."""
    source = Path(job.spec.data.source)
    dataset: dict[str, Any] = {"source": job.spec.data.source}
    if is_dataset(source):
        manifest = Manifest.load(source)
        dataset |= {"name": manifest.name, "id": manifest.id, "parents": [each.id for each in manifest.parents]}
    meta = job.state.meta
    point = {"operating_point": dict(job.operating_point)} if job.operating_point else {}
    return {
        **point,
        "job": job.folder.name,
        "name": job.spec.name,
        "checkpoint": job.checkpoint,
        "step": int(meta["global_step"]),
        "epoch": int(meta["epoch_num"]),
        "dataset": dataset,
        "ziggurat": __version__,
        "framework": result.framework,
        "arithmetic": meta.get("arithmetic") or {},
    }


def _task(context: TaskContext) -> dict[str, Any]:
    """Return what was learned, and how a prediction is made of the outputs, as JSON values."""
    return {
        "task": context.task.name,
        "title": context.task.title,
        "schema": context.schema.as_json(),
        "statistics": dict(context.statistics),
        "postprocessing": dict(context.task.postprocessing(context)),
    }


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
            f"No sample in the split {split} of {job.spec.data.source} can be read, and a model is proven on some.",
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
