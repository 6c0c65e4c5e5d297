"""Use cases of trained models: predict, explain, evaluate, export, download."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ziggurat.layout import JobFolder
from ziggurat.services.inference_pool import InferencePool
from ziggurat.workspace.checkpoint_files import checkpoint_details
from ziggurat.workspace.studio.archives import sent_folder
from ziggurat.workspace.studio.exports import EXPORTS_FOLDER
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.tasks import Tasks

__all__ = ["Models"]


class Models:
    """Models that trainings of the studio made.

    Args:
        jobs: of every kind.
        tasks: short processes around a training.
        inference: warm processes that predict.
        folder: where archives are put together.
        clock: seconds since 1970.
    """

    def __init__(
        self, jobs: Jobs, tasks: Tasks, inference: InferencePool, folder: Path, clock: Callable[[], float]
    ) -> None:
        self._jobs = jobs
        self._tasks = tasks
        self._inference = inference
        self._folder = folder
        self._clock = clock

    def predict(
        self,
        job_id: str,
        pictures: Sequence[tuple[str, bytes]],
        *,
        top: int = 5,
        checkpoint: str = "",
        device: str = "",
    ) -> dict[str, Any]:
        """Predict for images in a warm process.

        Args:
            job_id: of a training.
            pictures: name and content of each file.
            top: classes of each that are named.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.
            device: ``cpu`` or the index of an accelerator; empty: those of the training.
        """
        folder = self._trained(job_id)
        return self._inference.predict(folder, checkpoint or None, pictures, top, device or None)

    def activations(
        self, job_id: str, picture: tuple[str, bytes], *, checkpoint: str = "", device: str = "", weights: bool = True
    ) -> dict[str, Any]:
        """Return what each layer makes of an image: shape, mean, deviation, histogram, and small images."""
        folder = self._trained(job_id)
        return self._inference.activations(folder, checkpoint or None, picture, device or None, weights=weights)

    def grad_cam(
        self, job_id: str, picture: tuple[str, bytes], *, checkpoint: str = "", device: str = "", **options: Any
    ) -> dict[str, Any]:
        """Return where in an image a model finds what speaks for a class; see ``InferencePool.grad_cam``."""
        folder = self._trained(job_id)
        return self._inference.grad_cam(folder, checkpoint or None, picture, device or None, **options)

    def evaluate(self, job_id: str, *, split: str = "val", checkpoint: str | None = None) -> dict[str, Any]:
        """Evaluate a model on every sample of a split; the test split counts how often that is done."""
        return self._tasks.evaluate(self._trained(job_id), split=split, checkpoint=checkpoint)

    def export(self, job_id: str, export_format: str, target: Path, **options: Any) -> dict[str, Any]:
        """Write a model in a format of other programs, with the proof that it gives the same."""
        return self._tasks.export(self._trained(job_id), export_format, target, **options)

    def files(self, job_id: str, checkpoint: str = "") -> Iterable[tuple[str, Path]]:
        """Yield name and path of the files of a job that a person takes away: all, or those of one checkpoint."""
        root = Path(self._jobs.get(job_id).folder)
        chosen = checkpoint_details(JobFolder(root), checkpoint).summary.name if checkpoint else ""
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if not path.is_file() or path.is_symlink() or name in ("worker.lock", "heartbeat.json"):
                continue
            if name.startswith(f"{EXPORTS_FOLDER}/"):
                continue  # an export is downloaded on its own
            if chosen and name.startswith("checkpoints/step-") and not name.startswith(f"checkpoints/{chosen}/"):
                continue
            yield name, path

    def exported(self, job_id: str, export_format: str, archive_format: str, **options: Any) -> Iterator[bytes]:
        """Return an archive of a model in a format of other programs; its ``info.json`` has the proof.

        Args:
            job_id: of a training.
            export_format: such as ``onnx``.
            archive_format: a name in ``ziggurat.workspace.studio.archives.ARCHIVE_FORMATS``.
            options: ``preprocessing`` and ``checkpoint``; those that are None are left out.
        """
        chosen = {name: value for name, value in options.items() if value is not None}
        return sent_folder(
            lambda target: self.export(job_id, export_format, target, **chosen),
            self._folder,
            archive_format,
            now=self._clock(),
        )

    def _trained(self, job_id: str) -> Path:
        return Path(self._jobs.of_kind(job_id, "train").folder)
