"""Use cases of networks and models: train, show, evaluate, predict, export, download."""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.errors import JobError, UsageError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.workspace.checkpoint_files import checkpoint_details
from ziggurat.workspace.rate_curve import rate_curve
from ziggurat.workspace.standard_networks import network_text, standard_networks
from ziggurat.workspace.studio.archives import sent_folder
from ziggurat.workspace.studio.exports import EXPORTS_FOLDER
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.new_jobs import JobRequest, expand_sweep, make_jobs, train_needs, train_spec
from ziggurat.workspace.studio.training_previews import TrainingPreviews
from ziggurat.workspace.studio.turns import Turns
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.training_checks import Pending, obstacle_of

__all__ = ["Training"]

_EARLIER_JOBS: Final = 200
"""So many of the newest trainings are looked at to tell how long one takes."""

_NETWORK_LIMIT_S: Final = 120.0
"""How long a person's network may take to be described or debugged."""

_ENDED: Final = ("done", "failed")
"""States of a job that will bring nothing further."""

_LOOKS_AT_ONCE: Final = 2
_WAIT_FOR_A_TURN_S: Final = 30.0


class Training:
    """Networks and models.

    Args:
        jobs: of every kind.
        supervisor: takes new jobs.
        tasks: short processes around a training.
        inference: warm processes that predict.
        folder: where each training gets its folder.
        clock: seconds since 1970.
        machine: what it has.
    """

    def __init__(
        self,
        jobs: Jobs,
        supervisor: Any,
        tasks: Tasks,
        inference: Any,
        folder: Path,
        clock: Callable[[], float],
        machine: Any,
    ) -> None:
        self._jobs = jobs
        self._supervisor = supervisor
        self._tasks = tasks
        self._inference = inference
        self._folder = folder
        self._clock = clock
        self._looks = Turns(_LOOKS_AT_ONCE, _WAIT_FOR_A_TURN_S)
        self._machine = machine
        self._previews = TrainingPreviews(tasks, machine, jobs.get, self._finished)

    # ---- before one is started

    def rate_curve(
        self, spec: Mapping[str, Any], *, points: int = 300, steps_per_epoch: int | None = None
    ) -> dict[str, Any]:
        """Return the learning rate over a whole training; see ``ziggurat.workspace.rate_curve``."""
        return rate_curve(spec, points=points, steps_per_epoch=steps_per_epoch)

    def augmented(
        self,
        dataset_id: str,
        spec: Mapping[str, Any],
        *,
        row: int | None = None,
        split: str = "train",
        count: int = 12,
        seed: int = 0,
    ) -> dict[str, Any]:
        """Show images of a dataset exactly as the network will get them, before a mean is taken off.

        Args:
            dataset_id: of a dataset that is done.
            spec: of the training; network and data may still be missing.
            row: of the split; None for several, in the order of the first epoch.
            split: ``val`` and ``test`` are never varied.
            count: how often the one row is shown, or how many rows are.
            seed: of the training; the same seed gives the same bytes.

        Returns:
            ``seed``, ``sentence`` and ``pictures``: ``row``, ``label``, ``label_name``, ``original_png`` and
            ``augmented_png`` (one for each epoch from the first on), both PNG in base64.

        Raises:
            JobError: where the dataset is not done.
            SpecError: where the spec is not valid; it names the field.
            DataError: where networks are not trained on such data.
        """
        return self._previews.augmented(dataset_id, spec, row=row, split=split, count=count, seed=seed)

    def preflight(self, request: JobRequest, *, describe: bool = True) -> dict[str, Any]:
        """Find out what a training will take, before it is started.

        Args:
            request: as for ``create``.
            describe: whether the data is measured and the network built, in processes of their own; takes seconds.

        Returns:
            ``findings``: ``name`` (``memory``, ``disk``, ``time``, ``data``, ``network``, ``batch`` or ``device``),
            ``level`` (``ok``, ``unknown``, ``warning`` or ``error``), ``sentence`` and its numbers; a name may come
            several times. ``steps``, ``steps_per_epoch`` and ``parameters``, None if unknown.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
        """
        complete = self._complete(request)
        return self._previews.preflight(complete, self._obstacle(complete), describe=describe)

    def as_text(self, request: JobRequest, *, url: str = "http://127.0.0.1:5000") -> dict[str, str]:
        """Return the same training as command line, JSON and Python.

        Args:
            request: as for ``create``.
            url: of the studio.

        Returns:
            ``cli``: a line for a shell of this machine for each training; ``json``: the whole spec (with a sweep, what
            the REST API takes); ``python``: a program that asks the studio for it.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
        """
        return self._previews.as_text(request, self._complete(request), url)

    # ---- training

    def create(self, request: JobRequest, owner: str = "") -> list[Job]:
        """Put a training, or a sweep of several, into the queue.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            JobError: where the dataset or the model is not there, or of the wrong kind.
            ZigguratError: where the training cannot succeed, see ``obstacle_of``; nothing was made.
        """
        complete, now = self._complete(request), self._clock()
        self._refuse(complete)
        usable = sum(device.usable for device in self._machine.resources().devices)
        needs = functools.partial(train_needs, accelerators=usable)
        return make_jobs(complete, self._folder, self._supervisor.submit, owner=owner, now=now, needs=needs)

    def check(self, request: JobRequest) -> None:
        """Refuse a training, or a sweep, that cannot succeed; ``create`` raises the same before it makes anything."""
        self._refuse(self._complete(request))

    def _refuse(self, complete: JobRequest) -> None:
        obstacle = self._obstacle(complete)
        if obstacle is not None:
            raise obstacle

    def _obstacle(self, complete: JobRequest) -> ZigguratError | None:
        """Return what is wrong with the first training that cannot succeed; None where all can."""
        waits_for: tuple[tuple[str, Pending], ...] = ((complete.dataset, "data"), (complete.model, "pretrained"))
        pending: set[Pending] = {
            what for job_id, what in waits_for if job_id and self._jobs.get(job_id).state not in _ENDED
        }
        found = (obstacle_of(train_spec(content), pending=pending) for content, _ in expand_sweep(complete))
        return next((each for each in found if each is not None), None)

    def _complete(self, request: JobRequest) -> JobRequest:
        """Return a request whose spec has the places of dataset and weights."""
        content = dict(request.spec)
        if not request.dataset:
            self._refuse_id(content.get("data"))
        if request.dataset:
            data = content.get("data")
            content["data"] = {
                **(data if isinstance(data, Mapping) else {}),
                "source": self._of_kind(request.dataset, "dataset").folder,
            }
        if request.model:
            content["pretrained"] = self._weights(request.model, request.checkpoint)
        return dataclasses.replace(request, spec=content)

    def _refuse_id(self, data: Any) -> None:
        """Refuse the id of a dataset where a folder must stand: the worker would look for a folder of that name."""
        source = data.get("source") if isinstance(data, Mapping) else data
        if isinstance(source, str) and self._jobs.some([source]):
            raise JobError(
                "`data` is a folder or `digits`; a dataset of the studio is named apart from it.",
                received=f"the id {source} as `data`",
                advice=f"Give it as the dataset: `--dataset {source}` in the shell, `dataset` in a request.",
            )

    def _finished(self) -> Sequence[Job]:
        """Return trainings that are done, the newest first."""
        return self._jobs.page(JobFilter(kinds=("train",), states=("done",), limit=_EARLIER_JOBS)).jobs

    # ---- networks

    def standard(self, framework: str = DEFAULT_BACKEND) -> list[dict[str, Any]]:
        """Return the standard networks of a framework."""
        return standard_networks(framework)

    def network_text(self, name: str, framework: str = DEFAULT_BACKEND) -> str:
        """Return the source of a standard network, to be changed.

        Raises:
            UnknownNameError: where there is none of that name.
        """
        return network_text(name, framework)

    def describe(
        self, network: str = "", *, text: str = "", time_limit_s: float = _NETWORK_LIMIT_S, **options: Any
    ) -> dict[str, Any]:
        """Describe a standard network, or the text of a network file: layers, shapes, parameters, cost.

        Args:
            network: name of a standard network; unused where there is a text.
            text: of a network file.
            time_limit_s: how long it may take.
            options: see ``ziggurat.workspace.tasks.Tasks.describe``; those that are None are left out.
        """
        with self._looks.turn(), _place_of(network, text) as place:
            found = self._tasks.describe(place, time_limit_s=time_limit_s, **_given(options))
        return {**found, "network": network}

    def debug(
        self,
        network: str = "",
        *,
        text: str = "",
        dataset: str = "",
        time_limit_s: float = _NETWORK_LIMIT_S,
        **options: Any,
    ) -> dict[str, Any]:
        """Run a standard network, or the text of a network file, eagerly on one real batch.

        Args:
            network: name of a standard network; unused where there is a text.
            text: of a network file.
            dataset: id of a dataset that is done; empty for handwritten digits.
            time_limit_s: how long it may take.
            options: see ``ziggurat.workspace.tasks.Tasks.debug``; those that are None are left out.
        """
        chosen = {**_given(options), "data": self._of_kind(dataset, "dataset").folder if dataset else "digits"}
        with self._looks.turn(), _place_of(network, text) as place:
            found = self._tasks.debug(place, time_limit_s=time_limit_s, **chosen)
        return {**found, "network": network}

    # ---- models

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
            images: name and content of each file.
            top: classes of each that are named.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.
            device: ``cpu`` or the index of an accelerator; empty: those of the training.
        """
        job = self._of_kind(job_id, "train")
        return self._inference.predict(Path(job.folder), checkpoint or None, pictures, top, device or None)

    def activations(
        self, job_id: str, picture: tuple[str, bytes], *, checkpoint: str = "", device: str = "", weights: bool = True
    ) -> dict[str, Any]:
        """Return what each layer makes of an image: shape, mean, deviation, histogram, and small images."""
        job = self._of_kind(job_id, "train")
        folder = Path(job.folder)
        return self._inference.activations(folder, checkpoint or None, picture, device or None, weights=weights)

    def grad_cam(
        self, job_id: str, picture: tuple[str, bytes], *, checkpoint: str = "", device: str = "", **options: Any
    ) -> dict[str, Any]:
        """Return where in an image a model finds what speaks for a class; see ``InferencePool.grad_cam``."""
        folder = Path(self._of_kind(job_id, "train").folder)
        return self._inference.grad_cam(folder, checkpoint or None, picture, device or None, **options)

    def evaluate(self, job_id: str, *, split: str = "val", checkpoint: str | None = None) -> dict[str, Any]:
        """Evaluate a model on every sample of a split; the test split counts how often that is done."""
        job = self._of_kind(job_id, "train")
        return self._tasks.evaluate(Path(job.folder), split=split, checkpoint=checkpoint)

    def export(self, job_id: str, export_format: str, target: Path, **options: Any) -> dict[str, Any]:
        """Write a model in a format of other programs, with the proof that it gives the same."""
        job = self._of_kind(job_id, "train")
        return self._tasks.export(Path(job.folder), export_format, target, **options)

    def files(self, job_id: str, checkpoint: str = "") -> Iterable[tuple[str, Path]]:
        """Yield name and path of the files of a job that a person takes away: all, or those of one checkpoint."""
        job = self._jobs.get(job_id)
        root = Path(job.folder)
        chosen = self._checkpoint_name(job, checkpoint) if checkpoint else ""
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
        chosen = _given(options)
        return sent_folder(
            lambda target: self.export(job_id, export_format, target, **chosen),
            self._folder,
            archive_format,
            now=self._clock(),
        )

    def _of_kind(self, job_id: str, kind: str) -> Job:
        job = self._jobs.get(job_id)
        if job.kind != kind:
            raise JobError(f"This needs a job of kind {kind}.", received=f"{job_id}, of kind {job.kind}")
        return job

    def _weights(self, job_id: str, checkpoint: str) -> str:
        """Return the place of weights; without a name, the job's best or newest when the training begins."""
        job = self._of_kind(job_id, "train")
        if not checkpoint:
            return job.folder
        return str(Path(job.folder) / "checkpoints" / self._checkpoint_name(job, checkpoint))

    def _checkpoint_name(self, job: Job, name: str) -> str:
        return checkpoint_details(JobFolder(Path(job.folder)), name).summary.name


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@contextmanager
def _place_of(network: str, text: str) -> Iterator[str]:
    """Give the text of a network file a place for as long as a task looks at it; a name stays what it is."""
    if text:
        with tempfile.TemporaryDirectory(prefix="ziggurat-") as folder:
            path = Path(folder) / "network.py"
            path.write_text(text, encoding="utf-8")
            yield str(path)
        return
    if not network or "/" in network or network.endswith(".py"):
        raise UsageError(
            "A network is the name of a standard one, or the text of a file.",
            received=f"`{network}`",
            advice="Send the file's text.",
        )
    yield network
