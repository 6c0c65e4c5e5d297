"""Background exports of trained models: queued, run one at a time, kept, downloaded."""

from __future__ import annotations

import json
import logging
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.entities import Job
from ziggurat.entities.backend_info import ExportFormat, backend_infos
from ziggurat.entities.operating_point import checkpoint_digest, read_operating_point
from ziggurat.errors import JobError, MissingEntryError, UnknownNameError, UsageError, ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.workspace.checkpoints import chosen_checkpoint
from ziggurat.workspace.studio.archives import archive, files_below
from ziggurat.workspace.studio.jobs import Jobs

__all__ = ["EXPORTS_FOLDER", "PREPROCESSING", "Export", "Exports", "export_formats", "obeys"]

_LOG: Final = logging.getLogger(__name__)

EXPORTS_FOLDER: Final = "exports"
"""Name of the folder in that of a job where its exports are kept."""

PREPROCESSING: Final = ("inside", "beside")
"""Where crop, mean and whitening go: into the model, or into a file beside it."""

_LIMIT_S: Final = 1800.0
_NAME: Final = re.compile(r"[a-z0-9]+-step-[0-9]{8,}-(inside|beside)")
_TEXT_FILES: Final = ("MODEL_CARD.md", "predict.py")


@dataclass(frozen=True, kw_only=True)
class Export:
    """A model in a format of other programs.

    Args:
        name: of the export, made of the next three.
        format: name of the format.
        checkpoint: name of the checkpoint.
        preprocessing: a name in ``PREPROCESSING``.
        state: ``waiting``, ``running``, ``done``, ``failed``, or ``interrupted`` where the studio ended before it.
        created: when it was asked for, in seconds since 1970.
        ended: when it was done or failed; None before.
        result: what ``Models.export`` returned, with ``size_bytes``; empty before.
        error: that ended it, as JSON values; None where none did.
    """

    name: str
    format: str
    checkpoint: str
    preprocessing: str
    state: str
    created: float
    ended: float | None = None
    result: Mapping[str, Any]
    error: Mapping[str, Any] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether it is not done yet."""
        return self.state in ("waiting", "running")


def export_formats(job: Job) -> tuple[ExportFormat, ...]:
    """Return the formats that a training's framework writes; none where it writes none."""
    info = backend_infos().get(job.framework)
    return () if info is None else info.export_formats


def obeys(export: Export, job: Job) -> bool:
    """Return whether an export that is done has the thresholds that its checkpoint obeys now.

    Raises:
        StorageError: where the operating point of the job is damaged.
    """
    folder = JobFolder(Path(job.folder))
    point = read_operating_point(folder)
    wanted = None
    if point is not None and not point.problem(export.checkpoint, checkpoint_digest(folder, export.checkpoint)):
        wanted = dict(zip(point.names, point.thresholds, strict=True))
    exported = export.result.get("operating_point") or {}
    return wanted == (exported.get("thresholds") if exported.get("used") else None)


class Exports:
    """Exports of the models of a studio. Any thread may call any method.

    One is made at a time, in a process of its own: each loads a framework. Each has a record in the folder of its job
    from the start on. One whose record does not say its end when the studio starts again was interrupted: it has to
    be started again, and its partial files are not offered.

    Args:
        jobs: of every kind.
        make: writes one, as ``Models.export`` does.
        tell: called with the id of a job when one of its exports is another.
        clock: seconds since 1970.
    """

    def __init__(
        self, jobs: Jobs, make: Callable[..., dict[str, Any]], tell: Callable[[str], None], clock: Callable[[], float]
    ) -> None:
        self._jobs = jobs
        self._make = make
        self._tell = tell
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Export] = {}
        self._orders: SimpleQueue[tuple[str, str] | None] = SimpleQueue()
        self._worker: threading.Thread | None = None
        self._is_closed = False

    def start(self, job_id: str, export_format: str, *, preprocessing: str = "inside", checkpoint: str = "") -> Export:
        """Ask for an export; one that is there or under way is returned as it is, any other is made again.

        One that is there but obeys other thresholds than the model does now is made again, too.

        Args:
            job_id: of a training that has a checkpoint.
            export_format: name of a format that its framework writes.
            preprocessing: a name in ``PREPROCESSING``; ``beside`` in any case for a format of weights alone.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.

        Raises:
            JobError: where there is no such training, or its framework writes no formats.
            CheckpointError: where it has no such checkpoint.
            UnknownNameError: where the format is none.
            UsageError: where the studio ends.
            StorageError: where its record cannot be written.
        """
        job = self._jobs.get(job_id)
        found = chosen_checkpoint(job, checkpoint)
        _check(job, export_format, preprocessing)
        if not all(each.holds_preprocessing for each in export_formats(job) if each.name == export_format):
            preprocessing = "beside"
        name = f"{export_format}-{found.name}-{preprocessing}"
        with self._lock:
            known = self._known.get((job_id, name)) or _read(_place(job), name)
            if known is not None and (known.is_under_way or (known.state == "done" and obeys(known, job))):
                return known
            asked = Export(
                name=name,
                format=export_format,
                checkpoint=found.name,
                preprocessing=preprocessing,
                state="waiting",
                created=self._clock(),
                result={},
            )
            self._enqueue(job, asked)
        self._tell(job_id)
        return asked

    def of_job(self, job_id: str) -> list[Export]:
        """Return the exports of a job, newest first.

        Raises:
            JobError: where there is no job of that id.
        """
        place = _place(self._jobs.get(job_id))
        with self._lock:  # else one that begins or ends meanwhile looks as if it were interrupted
            names = [path.stem for path in place.glob("*.json")] if place.is_dir() else []
            found = {each.name: each for name in names if (each := _read(place, name)) is not None}
            found |= {name: each for (owner, name), each in self._known.items() if owner == job_id}
        return sorted(found.values(), key=lambda each: each.created, reverse=True)

    def get(self, job_id: str, name: str) -> Export:
        """Return an export.

        Raises:
            MissingEntryError: where the job has none of that name.
        """
        for each in self.of_job(job_id):
            if each.name == name:
                return each
        raise MissingEntryError(
            f"There is no export `{name[:200]}` of this model.", advice="Look at the list of its exports."
        )

    def archive(self, job_id: str, name: str, archive_format: str = "zip") -> Iterator[bytes]:
        """Return an export as an archive; its ``info.json`` has the parity report.

        Raises:
            MissingEntryError: where the job has none of that name.
            JobError: where it is not done.
        """
        found, folder = self._done(job_id, name)
        info = {**found.result, "job": job_id, "format": found.format, "preprocessing": found.preprocessing}
        return archive(archive_format, files_below(folder), info, now=self._clock())

    def text(self, job_id: str, name: str, file: str) -> str:
        """Return a text of an export: its ``MODEL_CARD.md`` or ``predict.py``.

        Raises:
            MissingEntryError: where there is no such export or file.
            JobError: where it is not done.
        """
        _, folder = self._done(job_id, name)
        if file not in _TEXT_FILES or not (folder / file).is_file():
            raise MissingEntryError(f"There is no text `{file[:200]}` of an export.", advice=", ".join(_TEXT_FILES))
        return (folder / file).read_text(encoding="utf-8")

    def folder(self, job_id: str, name: str) -> Path:
        """Return the folder of an export that is done.

        Raises:
            MissingEntryError: where the job has none of that name.
            JobError: where it is not done.
        """
        return self._done(job_id, name)[1]

    def remove(self, job_id: str, name: str) -> None:
        """Delete an export that is not under way.

        Raises:
            MissingEntryError: where the job has none of that name.
            JobError: where it is under way.
        """
        if self.get(job_id, name).is_under_way:
            raise JobError(
                f"The export {name} is under way: it can be deleted when it is done.", advice="Wait for its end."
            )
        place = _place(self._jobs.get(job_id))
        with self._lock:
            self._known.pop((job_id, name), None)
            if _NAME.fullmatch(name):
                (place / f"{name}.json").unlink(missing_ok=True)
                shutil.rmtree(place / name, ignore_errors=True)
        self._tell(job_id)

    def close(self) -> None:
        """Begin no further ones; one that is being made ends with this process. Closing twice does nothing."""
        self._is_closed = True
        self._orders.put(None)

    # ---- within

    def _enqueue(self, job: Job, asked: Export) -> None:
        if self._is_closed:
            raise UsageError("The studio is about to end.", advice="Ask again when it runs.")
        with storage_errors(_place(job)):
            _place(job).mkdir(exist_ok=True)
        _record(_place(job), asked)
        self._known[job.id, asked.name] = asked
        self._orders.put((job.id, asked.name))
        if self._worker is None:
            # A daemon: the exit must not wait for a framework, and the task ends with this process.
            self._worker = threading.Thread(target=self._work, name="exports", daemon=True)
            self._worker.start()

    def _work(self) -> None:
        while (order := self._orders.get()) is not None and not self._is_closed:
            job_id, name = order
            self._note(job_id, replace(self._known[order], state="running"))
            try:
                self._write(job_id, self._known[order])
            except ZigguratError as error:
                self._fail(order, error.as_dict())
            except Exception as error:  # a thread that ends would leave all that wait alone
                _LOG.exception("the export %s of job %s failed", name, job_id)
                self._fail(order, {"rule": "An export must be written.", "received": str(error), "advice": ""})
            self._tell(job_id)

    def _write(self, job_id: str, asked: Export) -> None:
        place = _place(self._jobs.get(job_id))
        folder = place / asked.name
        shutil.rmtree(folder, ignore_errors=True)  # without its record, it is a part of one
        options = {"preprocessing": asked.preprocessing, "checkpoint": asked.checkpoint, "time_limit_s": _LIMIT_S}
        result = self._make(job_id, asked.format, folder, **options)
        size_bytes = sum(path.stat().st_size for _, path in files_below(folder))
        result = {name: value for name, value in result.items() if name not in ("folder", "out")}
        done = replace(asked, state="done", ended=self._clock(), result={**result, "size_bytes": size_bytes})
        _record(place, done)
        with self._lock:
            self._known.pop((job_id, asked.name), None)

    def _fail(self, order: tuple[str, str], error: Mapping[str, Any]) -> None:
        failed = replace(self._known[order], state="failed", ended=self._clock(), error=error)
        try:
            if not self._is_closed:  # else the end of the studio may be all that it failed of
                _record(_place(self._jobs.get(order[0])), failed)
        except Exception:  # such as a job that was deleted meanwhile, or a disk that is full
            _LOG.warning("the end of the export %s of job %s was not recorded", order[1], order[0], exc_info=True)
        self._note(order[0], failed)

    def _note(self, job_id: str, export: Export) -> None:
        with self._lock:
            self._known[job_id, export.name] = export
        self._tell(job_id)

    def _done(self, job_id: str, name: str) -> tuple[Export, Path]:
        found = self.get(job_id, name)
        if found.state != "done":
            raise JobError(f"The export {name} is {found.state}; this needs one that is done.")
        return found, _place(self._jobs.get(job_id)) / name


def _place(job: Job) -> Path:
    return JobFolder(Path(job.folder)).path / EXPORTS_FOLDER


def _record(place: Path, export: Export) -> None:
    atomic_write_text(place / f"{export.name}.json", json.dumps(asdict(export), indent=1), "The record of an export")


def _read(place: Path, name: str) -> Export | None:
    """Return the export of that name that is on the disk, which is not being made now; None if there is none."""
    if not _NAME.fullmatch(name):
        return None
    try:
        found = Export(**json.loads((place / f"{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # not there, or of another release
        return None
    if found.is_under_way:
        return replace(found, state="interrupted")
    return None if found.state == "done" and not (place / name).is_dir() else found


def _check(job: Job, export_format: str, preprocessing: str) -> None:
    known = [each.name for each in export_formats(job)]
    if not known:
        raise JobError(
            f"Models of the backend `{job.framework}` are not exported.",
            advice="Download the archive of the model instead.",
        )
    if export_format not in known:
        raise UnknownNameError("format of an export", export_format, known)
    if preprocessing not in PREPROCESSING:
        raise UnknownNameError("place of the preprocessing", preprocessing, PREPROCESSING)
