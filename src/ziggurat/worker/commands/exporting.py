"""Export of a trained network: model, parity report, model card, and files to predict elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ziggurat.engine.capabilities import ExportOrder, ExportResult, SupportsExport
from ziggurat.errors import ConfigurationError, StorageError
from ziggurat.worker.commands.capabilities import provider_of
from ziggurat.worker.commands.card import model_card
from ziggurat.worker.commands.samples import first_samples
from ziggurat.worker.commands.trained import TrainedJob, open_trained_job

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
    split, pictures, labels = first_samples(job, _PROOF_SAMPLES)
    out = Path(request["out"]).resolve()
    with _new_folder(out) as folder:
        order = ExportOrder(
            format=request["format"],
            folder=folder,
            preprocess=job.preprocessing.finish,
            inside=place == "inside",
            preprocessing=job.preprocessing,
            pictures=pictures,
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
    job.preprocessing.save(folder)
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
