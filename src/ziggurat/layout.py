"""Names of files and folders in a job folder; no other module spells one.

A job folder::

    JOB/
      spec.json          configuration (written once, before the worker starts)
      job.json           name, notes, tags and place in the studio, as users set them, and what it needs of a machine
      attempt.json       where the studio started its newest worker, and what finds it again
      events.jsonl       events (append-only; one JSON object per line)
      last_words.json    outcome of the newest attempt: space that is reserved in case the disk is full
      heartbeat.json     the worker's heartbeat: process, time, step (replaced atomically)
      worker.lock        held by the running worker, so that two never train in one folder
      stop.json          a stop request, one plain sentence, written by any process that wants the worker to end; the
                         process that starts a worker removes an old one, and a worker that ends removes it
      fence.json         where the folder is on a network disk: number of the newest worker, which ends all earlier ones
      slurm.json         what the process on a node of Slurm says: that it sees the folder, and the worker's exit code
      log.txt            for people; never parsed
      classes.json       names of the classes, by number
      task.json          what is learned: the task, and the schema of the data
      threads.json       how many threads the first attempt chose; every resume takes as many
      network.py         the standard network that is trained, as it was when the job began; it fits the checkpoints
      baselines.json     what simple models reach on the validation split of a finished training, and its own value
      data/              of a job that trains on a bare folder: which files it found there, and the split of each
      operating-point.json  thresholds that predictions obey, and the evaluation that they were chosen on
      hyper.txt          hyperparameters that a user sets during training
      stats.json         the scalars of each epoch, one JSON object per line
      machine_load.jsonl       load of the machine while it trains, one JSON object per line
      sample_predictions.jsonl predictions for a few validation samples after each validation, likewise
      samples/           images of these samples, where no dataset of the workspace has them
      checkpoints/       step-00000042/ with state.json and arrays.npz, and the names that point at them
      tb/                TensorBoard event files
      black_box/         the last batches before a value was not finite
      results/           of a job that used a model: its prediction for every sample, complete or absent
      program/           of a job that runs a program: its script and the files that came with it; its current folder
      program.json       names of these files; what else is in the folder, the program has written
      ranks/             log and events of the other processes of a job over several nodes, a folder for each rank
      program_log/       points that the program logs by `ziggurat.log`, a file for each process; events.jsonl has them

The folder of a dataset is that of the job that creates it, and also has (see ``ziggurat.records.manifest``)::

      manifest.json      content of the dataset; present once it is finished, never changed
      index.sqlite       its catalog: every sample and problem, for exploring; training does not need it
      train.lmdb         the records of a split (``.hdf5``, ``.tfrecord``), likewise val and test
      mean.npy           mean image of the training split
      test-openings.jsonl  log of evaluations on the test split: time and reason of each
      pending-boxes.sqlite     corrected boxes of its images that are not a version of it yet
      work/              intermediate results while it is created

A workspace::

    WORKSPACE/
      studio.db          the studio's database, unless it is on a server
      jobs/ datasets/    a folder for each job and dataset
      uploads/           files that users uploaded
      weights/           pretrained weights: a folder for each, with weights.safetensors and weights.json
      .trash/            what was deleted: jobs, weights, uploads, saved views; see ``ziggurat.entities.trash``
      cache/             thumbnails, made again where they are missing
      features/          features of samples by a backbone, computed again where they are missing
      keys/              the key that signs exports (signing.pem, private), and the public keys that signed before
      models/            versions of models for serving: NAME/VERSION is an export, NAME/aliases.json names versions
      queue.json         ids of the jobs in the queue, in their order, as of the last time that a user changed it
      place.json         current and earlier paths of the workspace: spec paths below an earlier one are found here
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = [
    "CACHE_FOLDER",
    "CHECKPOINT_NAMES",
    "DATASETS_FOLDER",
    "FEATURES_FOLDER",
    "JOBS_FOLDER",
    "KEYS_FOLDER",
    "MODELS_FOLDER",
    "PLACE_FILE",
    "QUEUE_FILE",
    "RAY_TOKEN_FILE",
    "SECRETS_FOLDER",
    "TEST_OPENINGS_FILE",
    "UPLOADS_FOLDER",
    "WEIGHTS_FOLDER",
    "CheckpointFiles",
    "JobFolder",
    "Places",
    "ResultFiles",
    "WeightsFiles",
    "best_given_name",
    "checkpoint_name",
    "checkpoint_step",
    "job_folders",
    "lies_in",
    "other_folders",
    "present_path",
    "present_paths",
    "workspace_of",
]

JOBS_FOLDER: Final = "jobs"
"""Folder of a workspace: trainings and the jobs that use models."""

DATASETS_FOLDER: Final = "datasets"
"""Folder of a workspace: datasets."""

UPLOADS_FOLDER: Final = "uploads"
"""Folder of a workspace: files that people sent."""

WEIGHTS_FOLDER: Final = "weights"
"""Folder of a workspace: pretrained weights, one folder each."""

CACHE_FOLDER: Final = "cache"
"""Folder of a workspace: what can be made again, such as thumbnails."""

FEATURES_FOLDER: Final = "features"
"""Folder of a workspace: features of samples; see ``ziggurat.records.feature_store``."""

KEYS_FOLDER: Final = "keys"
"""Folder of a workspace: the keys of ``ziggurat.workspace.signing_keys``."""

SECRETS_FOLDER: Final = "secrets"
"""Folder of a workspace: passwords and keys that belong into no backup."""

MODELS_FOLDER: Final = "models"
"""Folder of a workspace: versions of models for serving; see ``ziggurat.serving.versions``."""

PLACE_FILE: Final = "place.json"
"""File of a workspace: where it is, and where it was before it was moved or copied."""

QUEUE_FILE: Final = "queue.json"
"""File of a workspace: ids of the jobs in the queue, in their order, as of the last change by a user (JSON)."""

TEST_OPENINGS_FILE: Final = "test-openings.jsonl"
"""File of a dataset: the log of evaluations on its test split, which is no part of its content."""

RAY_TOKEN_FILE: Final = ".ray_token"
"""File of a workspace: the token of its Ray cluster, which only its user may read."""

_WITH_JOBS: Final = (JOBS_FOLDER, DATASETS_FOLDER)
_LAYOUT: Final = (*_WITH_JOBS, UPLOADS_FOLDER)

CHECKPOINT_NAMES: Final = "names.json"
"""File in the folder of checkpoints: given name (``min-validation_error``) → checkpoint, as a JSON object."""

_BEST: Final = ("best", "min-", "max-")
_CHECKPOINT_NAME = re.compile(r"step-(\d{8,})")


@dataclass(frozen=True)
class JobFolder:
    """The files of one job.

    Args:
        path: the folder; it need not exist yet.
    """

    path: Path

    @property
    def spec(self) -> Path:
        """What was asked."""
        return self.path / "spec.json"

    @property
    def record(self) -> Path:
        """What users set on it."""
        return self.path / "job.json"

    @property
    def attempt(self) -> Path:
        """Where the studio started its newest worker, and by what its executor finds it again (JSON)."""
        return self.path / "attempt.json"

    @property
    def events(self) -> Path:
        """What happened: append-only, one JSON object a line."""
        return self.path / "events.jsonl"

    @property
    def last_words(self) -> Path:
        """Space for how the newest attempt ended, where the file of events cannot take it."""
        return self.path / "last_words.json"

    @property
    def heartbeat(self) -> Path:
        """The worker's pulse."""
        return self.path / "heartbeat.json"

    @property
    def lock(self) -> Path:
        """Held by the living worker."""
        return self.path / "worker.lock"

    @property
    def stop_request(self) -> Path:
        """Exists while a stop is requested; holds one plain sentence: why."""
        return self.path / "stop.json"

    @property
    def fence(self) -> Path:
        """Number of the newest worker, where the folder is on a network disk (JSON)."""
        return self.path / "fence.json"

    @property
    def slurm(self) -> Path:
        """What the process on a node of Slurm says of the worker (JSON)."""
        return self.path / "slurm.json"

    @property
    def log(self) -> Path:
        """The worker's output, for people."""
        return self.path / "log.txt"

    @property
    def class_names(self) -> Path:
        """Names of the classes, by number (JSON)."""
        return self.path / "classes.json"

    @property
    def task(self) -> Path:
        """The task, the schema of the data, and what was fitted on the training split (JSON)."""
        return self.path / "task.json"

    @property
    def threads(self) -> Path:
        """The number of threads that the first attempt chose (JSON); a node's spec does not travel back."""
        return self.path / "threads.json"

    @property
    def network(self) -> Path:
        """The text of the standard network that is trained, as it was when the job began."""
        return self.path / "network.py"

    @property
    def baselines(self) -> Path:
        """What simple models reach on the validation split, beside what the training reached (JSON)."""
        return self.path / "baselines.json"

    @property
    def operating_point(self) -> Path:
        """Thresholds that predictions obey, and the evaluation that they were chosen on (JSON)."""
        return self.path / "operating-point.json"

    @property
    def data(self) -> Path:
        """Folder of what a bare folder of images held when the job began: its samples and their splits."""
        return self.path / "data"

    @property
    def hyperparameters(self) -> Path:
        """``name: value`` lines that take effect while it trains."""
        return self.path / "hyper.txt"

    @property
    def stats(self) -> Path:
        """The scalars of each epoch, one JSON object a line."""
        return self.path / "stats.json"

    @property
    def machine_load(self) -> Path:
        """The load of the machine over time, one JSON object a line."""
        return self.path / "machine_load.jsonl"

    @property
    def sample_predictions(self) -> Path:
        """Predictions for a few validation samples after each validation, one JSON object a line."""
        return self.path / "sample_predictions.jsonl"

    def sample_image(self, number: int) -> Path:
        """Return the image of one of these samples, counted from 0: there where no dataset of the workspace has it."""
        return self.path / "samples" / f"{number}.png"

    @property
    def checkpoints(self) -> Path:
        """Folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def tensorboard(self) -> Path:
        """Folder of TensorBoard event files."""
        return self.path / "tb"

    @property
    def tensorboard_root(self) -> Path:
        """Folder that TensorBoard is shown: of a program, the whole job, since it may write event files of its own."""
        return self.path if self.program.is_dir() else self.tensorboard

    @property
    def black_box(self) -> Path:
        """Folder of the last batches before a value was not finite."""
        return self.path / "black_box"

    @property
    def results(self) -> Path:
        """Folder of what a model said of every sample; there when the job is done."""
        return self.path / "results"

    @property
    def program(self) -> Path:
        """Folder of the program that a job runs: its script and the files that came with it; its current folder."""
        return self.path / "program"

    @property
    def program_log(self) -> Path:
        """Folder of the points that a program logs by ``ziggurat.log``, a file for each process."""
        return self.path / "program_log"

    def of_rank(self, rank: int) -> JobFolder:
        """Return the folder with log and events of another process of a job over several nodes; rank 0 has this one."""
        return JobFolder(self.path / "ranks" / str(rank)) if rank else self

    @property
    def images(self) -> Path:
        """Folder of the images that were logged."""
        return self.path / "images"

    @property
    def program_files(self) -> Path:
        """Names of the files that came with a program (JSON)."""
        return self.path / "program.json"


@dataclass(frozen=True)
class CheckpointFiles:
    """The files of one checkpoint folder."""

    path: Path

    @property
    def state(self) -> Path:
        """Counters, callbacks, data position, random generators, and a checksum of every other file (JSON)."""
        return self.path / "state.json"

    @property
    def arrays(self) -> Path:
        """The program's arrays by name (npz, no pickle)."""
        return self.path / "arrays.npz"


@dataclass(frozen=True)
class ResultFiles:
    """The files in a folder of results."""

    path: Path

    @property
    def summary(self) -> Path:
        """What was done, and the figures of all samples (JSON)."""
        return self.path / "summary.json"

    @property
    def keys(self) -> Path:
        """What names each sample, one a line, in the order of the arrays."""
        return self.path / "keys.txt"

    def array(self, name: str) -> Path:
        """Return the file of an array (npy, no pickle): ``ziggurat.worker.results`` says which there are."""
        return self.path / f"{name}.npy"


@dataclass(frozen=True)
class WeightsFiles:
    """The files in the folder of pretrained weights."""

    path: Path

    @property
    def arrays(self) -> Path:
        """The arrays under their published names (safetensors)."""
        return self.path / "weights.safetensors"

    @property
    def entry(self) -> Path:
        """License, source, checksum, classes and preprocessing (JSON)."""
        return self.path / "weights.json"


def best_given_name(given: Iterable[str]) -> str | None:
    """Return which given name marks the best checkpoint; None where none does."""
    names = sorted(given)
    return next((name for start in _BEST for name in names if name.startswith(start)), None)


def checkpoint_name(global_step: int) -> str:
    """Return the folder name of the checkpoint after ``global_step`` steps: names sort as steps do."""
    return f"step-{global_step:08d}"


def checkpoint_step(name: str) -> int | None:
    """Return the step that a checkpoint folder's name tells, or None where it is another name."""
    match = _CHECKPOINT_NAME.fullmatch(name)
    return int(match.group(1)) if match else None


@dataclass(frozen=True)
class Places:
    """Where a workspace is and was.

    Args:
        present: absolute path at which a studio last opened it; empty where none did.
        earlier: absolute paths of before, the newest last.
    """

    present: str = ""
    earlier: tuple[str, ...] = ()

    @classmethod
    def of(cls, workspace: Path) -> Places:
        """Return what the file of a workspace says, as far as it can be used."""
        try:
            content = json.loads((workspace / PLACE_FILE).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return cls()
        if not isinstance(content, dict):
            return cls()
        present, earlier = content.get("present"), content.get("earlier")
        known = earlier if isinstance(earlier, list) else []
        return cls(
            present=present if isinstance(present, str) else "",
            earlier=tuple(each for each in known if isinstance(each, str) and os.path.isabs(each)),
        )

    def text(self) -> str:
        """Return the text of the file."""
        return json.dumps({"version": 1, "present": self.present, "earlier": list(self.earlier)}, indent=2) + "\n"

    def moved_to(self, place: str) -> Places:
        """Return the places of the same workspace at another one."""
        before = [each for each in (*self.earlier, self.present) if each and each != place]
        return Places(present=place, earlier=tuple(dict.fromkeys(before)))


def workspace_of(job_folder: Path) -> Path | None:
    """Return the workspace that a job folder lies in, by the names of folders; None where it lies elsewhere."""
    folder = Path(os.path.abspath(job_folder))
    return folder.parent.parent if folder.parent.name in _WITH_JOBS else None


def lies_in(folder: Path, workspace: Path, among: Iterable[str] = _WITH_JOBS) -> bool:
    """Return whether a folder is one of a workspace, whatever its path says: deletions keep to these.

    Args:
        folder: such as that of a job.
        workspace: the folder of everything.
        among: folders of the workspace that it may lie in; those of jobs if not given.
    """
    parent = Path(os.path.abspath(folder)).parent
    return os.path.realpath(parent) in [os.path.realpath(workspace / name) for name in among]


def other_folders(folder: Path) -> tuple[Path, ...]:
    """Return the other folders with jobs of the workspace whose ``jobs`` or ``datasets`` is given."""
    return tuple(folder.parent / name for name in _WITH_JOBS if name != folder.name)


def job_folders(workspace: Path) -> list[Path]:
    """Return the folders in a workspace that may hold a job, in the order of their paths."""
    found: list[Path] = []
    for name in _WITH_JOBS:
        try:
            with os.scandir(workspace / name) as entries:
                names = sorted(each.name for each in entries if not each.name.startswith(".") and each.is_dir())
        except OSError:
            continue
        found += [workspace / name / each for each in names]
    return found


def present_path(path: str, workspace: Path, places: Places | None = None) -> str:
    """Return where a path lies that was written down when the workspace may have been elsewhere.

    A path below an earlier place of the workspace is taken as below the present one, also where the earlier place is
    still there: a copy uses its own files. A path that is nowhere, and whose end is there in the workspace
    (``…/datasets/NAME``), is taken as that: the workspace was moved before anything noted its place.

    Args:
        path: as it was written; a relative one is returned as it is.
        workspace: the folder of everything.
        places: of the workspace; read from its file where not given.
    """
    if not os.path.isabs(path):
        return path
    plain = os.path.normpath(path)
    for place in reversed((Places.of(workspace) if places is None else places).earlier):
        if plain.startswith(place.rstrip("/") + "/"):
            here = os.path.join(workspace, os.path.relpath(plain, place))
            if os.path.exists(here) or not os.path.exists(path):
                return here
    parts = plain.split("/")
    if not any(name in parts for name in _LAYOUT) or os.path.exists(path):
        return path
    for start in range(len(parts) - 1, 0, -1):
        here = os.path.join(workspace, *parts[start:])
        if parts[start] in _LAYOUT and parts[start + 1 :] and os.path.exists(here):
            return here
    return path


def present_paths(content: Any, workspace: Path, places: Places | None = None) -> Any:
    """Return JSON values in which every text that is an absolute path is where it lies now; see ``present_path``."""
    known = Places.of(workspace) if places is None else places
    if isinstance(content, str):
        return present_path(content, workspace, known) if content.startswith(os.sep) else content
    if isinstance(content, dict):  # what JSON gives; a check against `Mapping` takes ten times as long
        return {name: present_paths(part, workspace, known) for name, part in content.items()}
    return [present_paths(part, workspace, known) for part in content] if isinstance(content, list) else content
