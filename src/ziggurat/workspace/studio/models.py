"""Use cases of trained models: predict, explain, evaluate, export, download, publish for others to start from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from ziggurat.entities import Job
from ziggurat.entities.names import check_notes
from ziggurat.errors import ConfigurationError, JobError, MissingEntryError, UsageError
from ziggurat.layout import JobFolder
from ziggurat.services.inference_pool import InferencePool
from ziggurat.workspace.checkpoints import checkpoint_details, chosen_checkpoint
from ziggurat.workspace.studio.archives import sent_folder
from ziggurat.workspace.studio.exports import EXPORTS_FOLDER
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.model_inputs import ModelInputs, read_model_inputs
from ziggurat.workspace.tasks import Tasks

__all__ = ["MOST_VALUES", "Models", "Published", "PublishedModel"]

MOST_VALUES: Final = 1000
"""Rows or texts of one request."""

_SETTING: Final = "published_models"
_NAME_LENGTH: Final = 200


class _Settings(Protocol):
    def get(self, name: str, default: Any = None) -> Any: ...

    def set(self, name: str, value: Any) -> None: ...


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
        drawn: bool = False,
    ) -> dict[str, Any]:
        """Predict for images in a warm process.

        Args:
            job_id: of a training.
            pictures: name and content of each file.
            top: classes of each that are named.
            drawn: whether predictions that are images come as ``picture`` too, PNG.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.
            device: ``cpu`` or the index of an accelerator; empty: those of the training.
        """
        folder = self._trained(job_id)
        return self._inference.predict(folder, checkpoint or None, pictures, top, device or None, drawn=drawn)

    def predict_values(
        self,
        job_id: str,
        *,
        rows: Sequence[Any] = (),
        texts: Sequence[str] = (),
        top: int = 5,
        checkpoint: str = "",
        device: str = "",
        drawn: bool = False,
    ) -> dict[str, Any]:
        """Predict for rows of a table (column → value, or a list in their order), or for texts, in a warm process.

        Raises:
            UsageError: where there are none, or both, or too many; or where the network takes something else.
        """
        given = {name: values for name, values in (("rows", rows), ("texts", texts)) if values}
        if len(given) != 1:
            raise UsageError(
                "Neither `rows` nor `texts` are given to predict for."
                if not given
                else "Both `rows` and `texts` are given: a prediction is for one of them."
            )
        count = sum(map(len, given.values()))
        if count > MOST_VALUES:
            raise UsageError(f"{count} rows or texts are given; at most {MOST_VALUES} are predicted for at once.")
        folder = self._trained(job_id)
        return self._inference.predict_values(folder, checkpoint or None, given, top, device or None, drawn=drawn)

    def generate(
        self,
        job_id: str,
        count: int,
        *,
        checkpoint: str = "",
        device: str = "",
        drawn: bool = False,
        **given: Any,
    ) -> dict[str, Any]:
        """Return samples that a network makes of noise, in a warm process; see ``InferencePool.generate``.

        Args:
            job_id: of a training.
            count: how many samples.
            checkpoint: as for ``predict``.
            device: as for ``predict``.
            drawn: as for ``predict``.
            given: ``seed``, ``inputs`` and ``first``; those that are None are left out.
        """
        chosen = {name: value for name, value in given.items() if value is not None}
        folder = self._trained(job_id)
        return self._inference.generate(folder, checkpoint or None, count, device or None, drawn=drawn, **chosen)

    def inputs(self, job_id: str) -> ModelInputs:
        """Return what a model takes and learned; see ``ziggurat.workspace.studio.model_inputs``."""
        return read_model_inputs(JobFolder(self._trained(job_id)))

    def samples(
        self, job_id: str, split: str, rows: Sequence[int], *, checkpoint: str, **options: Any
    ) -> dict[str, Any]:
        """Return samples of the data of a training as its task draws them; see ``InferencePool.samples``."""
        return self._inference.samples(self._trained(job_id), checkpoint or None, split, rows, **options)

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


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """A model that others may start from.

    Args:
        name: of the model; no other published one has it.
        job: id of the training.
        checkpoint: name of the checkpoint's folder.
        created: when it was published, in seconds since 1970.
        owner: name of who published it.
        notes: what others should know of it.
    """

    name: str
    job: str
    checkpoint: str
    created: float
    owner: str = ""
    notes: str = ""


class Published:
    """Published models. As long as one is, its job and its checkpoint are not deleted.

    Args:
        jobs: of every kind.
        settings: of the studio; they keep the list.
        clock: seconds since 1970.
    """

    def __init__(self, jobs: Jobs, settings: _Settings, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._settings = settings
        self._clock = clock
        self._changing = threading.Lock()

    def all(self) -> list[PublishedModel]:
        """Return the published models by name."""
        found = [PublishedModel(**each) for each in self._settings.get(_SETTING, [])]
        return sorted(found, key=lambda each: (each.name.casefold(), each.name))

    def get(self, name: str) -> PublishedModel:
        """Return a published model.

        Raises:
            MissingEntryError: where there is none of that name.
        """
        for each in self.all():
            if each.name == name:
                return each
        raise MissingEntryError(f"There is no published model `{name[:200]}`.", advice="Look at the list of them.")

    def of_job(self, job_id: str) -> list[PublishedModel]:
        """Return the models that a job was published as, by name."""
        return [each for each in self.all() if each.job == job_id]

    def publish(
        self, job_id: str, name: str, *, checkpoint: str = "", notes: str = "", owner: str = ""
    ) -> PublishedModel:
        """Publish a checkpoint of a training under a name.

        Args:
            job_id: of a training that no worker is at: one that runs may remove its checkpoints.
            name: that no other published model has.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.
            notes: what others should know of it.
            owner: name of who asks.

        Raises:
            JobError: where there is no such training, or a worker is at it.
            CheckpointError: where it has no such checkpoint.
            ConfigurationError: where the name is empty or too long.
            UsageError: where another one has the name.
        """
        job, name = self._jobs.get(job_id), name.strip()
        _check_name(name)
        check_notes(notes, "The notes of a published model")
        found = chosen_checkpoint(job, checkpoint)
        if job.is_active or job.state == "queued":
            raise JobError(
                f"{job_id} is {job.state}; a model is published when its training has ended: until then "
                "checkpoints come and go.",
                advice="Stop it first, or wait for its end.",
            )
        made = PublishedModel(
            name=name, job=job_id, checkpoint=found.name, created=self._clock(), owner=owner, notes=notes.strip()
        )
        with self._changing:
            known = self.all()
            if any(each.name == name for each in known):
                raise UsageError(
                    f"There is a published model of the name {name} already.",
                    advice="Choose another name, or withdraw that one first.",
                    details={"field": "name"},
                )
            self._keep([*known, made])
        return made

    def withdraw(self, name: str) -> None:
        """Take a model out of the list; its job and its files stay.

        Raises:
            MissingEntryError: where there is none of that name.
        """
        with self._changing:
            self.get(name)
            self._keep([each for each in self.all() if each.name != name])

    def is_whole(self, model: PublishedModel) -> bool:
        """Return whether the checkpoint is still there: a training that was resumed may have removed it."""
        job = self._jobs.some([model.job]).get(model.job)
        return job is not None and _checkpoint_folder(job, model.checkpoint).is_dir()

    def refuse_deletion(self, job_id: str, checkpoint: str = "") -> None:
        """Refuse that a job, or one of its checkpoints, is deleted while it is published.

        Raises:
            JobError: where it is; it names the published models.
        """
        used = [each.name for each in self.of_job(job_id) if checkpoint in ("", each.checkpoint)]
        if used:
            raise JobError(
                f"{checkpoint or job_id} is published as {', '.join(used)}, and a published model cannot be deleted.",
                advice="Withdraw it first, on the export page.",
                details={"job": job_id, "published": used},
            )

    def _keep(self, models: list[PublishedModel]) -> None:
        self._settings.set(_SETTING, [asdict(each) for each in models] or None)


def _checkpoint_folder(job: Job, name: str) -> Path:
    return JobFolder(Path(job.folder)).checkpoints / name


def _check_name(name: str) -> None:
    is_path = any(part in ("", ".", "..") for part in name.split("/"))  # it is a part of addresses
    if is_path or len(name) > _NAME_LENGTH or not name.isprintable():
        raise ConfigurationError(
            f"{name[:50]!r} is no name of a published model: it has 1 to {_NAME_LENGTH} printable "
            "characters, and is no path.",
            advice="Such as `LeNet on digits`.",
            details={"field": "name"},
        )
