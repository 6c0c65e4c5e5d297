"""Use cases of the studio's datasets: create, show, check, change, export."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.datasets.catalog import Entry
from ziggurat.datasets.checks import CheckReport
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.importer import Guess
from ziggurat.datasets.versions import VersionNote, history
from ziggurat.entities import Job, NewJob
from ziggurat.errors import JobError, SpecError, ZigguratError
from ziggurat.jobs import Supervisor
from ziggurat.jobs.job_file import record_of, write_job_file
from ziggurat.layout import CACHE_FOLDER, other_folders
from ziggurat.records.manifest import Manifest
from ziggurat.records.offered_folders import only_offered, watched_source
from ziggurat.records.schema import Schema
from ziggurat.specs import DatasetSpec, parse_spec
from ziggurat.store import Store
from ziggurat.workspace import dataset_versions
from ziggurat.workspace.box_corrections import BoxCorrections, corrected_version
from ziggurat.workspace.datasets import Datasets, check_new_dataset, recognize_source, source_name, stored_source
from ziggurat.workspace.new_jobs import JobRequest, claim_folder, dataset_needs, make_jobs, new_job_ids
from ziggurat.workspace.previews import preview_dataset
from ziggurat.workspace.studio.archives import sent_folder
from ziggurat.workspace.studio.images import smaller_picture
from ziggurat.workspace.studio.jobs import Jobs, clone_request
from ziggurat.workspace.studio.originals import OriginalImage, original_image, source_file, unchanged_source
from ziggurat.workspace.studio.thumbnails import ThumbnailCache
from ziggurat.workspace.tasks import Tasks

# `Dataset`, `Entry` and `Schema` are what `opened` gives: the faces know them from here.
__all__ = ["Dataset", "Entry", "Schema", "StudioDatasets"]

_open_here: Final[ContextVar[Mapping[tuple[int, str], Dataset]]] = ContextVar("open_here", default=MappingProxyType({}))
"""Datasets that this thread has open at this moment, by studio and id."""


class StudioDatasets(Datasets):
    """The datasets of the studio; each is a job of kind ``dataset``, and its folder is the dataset.

    Args:
        jobs: of every kind.
        store: what is known of them.
        supervisor: takes new jobs.
        tasks: short processes that look at a source.
        folder: where each gets its folder.
        clock: seconds since 1970.
        offered: returns the folders below which files are read for people of the studio; links lead nowhere else.

    Attributes:
        thumbnails: small images of samples that were made once.
        boxes: corrections of boxes that are not a version yet.
    """

    def __init__(
        self,
        jobs: Jobs,
        store: Store,
        supervisor: Supervisor,
        tasks: Tasks,
        folder: Path,
        clock: Callable[[], float],
        offered: Callable[[], Sequence[str]],
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._supervisor = supervisor
        self._tasks = tasks
        self._folder = folder
        self._clock = clock
        self._box_locks: dict[str, threading.Lock] = {}
        self._offered = offered
        self.thumbnails = ThumbnailCache(folder.parent / CACHE_FOLDER / "thumbnails")
        self.boxes = BoxCorrections(self, clock)
        self._findings: dict[str, int] = {}

    # ---- checking

    def check(self, name: str, *, verify: bool = False, predictions: Path | None = None) -> CheckReport:
        """Return what may spoil a training; how many errors and warnings there are is remembered."""
        report = super().check(name, verify=verify, predictions=predictions)
        if predictions is None and not verify:
            self._findings[name] = report.counts["error"] + report.counts["warning"]
        return report

    def known_findings(self, job_id: str) -> int | None:
        """Return the errors and warnings of the last quick check of a dataset; None if it was not checked."""
        return self._findings.get(job_id)

    # ---- making

    def guesses(self, source: str) -> list[Guess]:
        """Return what every importer thinks of a source, the most confident first."""
        with only_offered(self._offered()), watched_source(Path(source)):
            return list(recognize_source(source).guesses)

    def preview(self, spec: Mapping[str, Any], *, samples: int = 24, time_limit_s: float = 10.0) -> dict[str, Any]:
        """Return what is in a source, as far as it can be seen in time; see ``ziggurat.workspace.previews``."""
        offered = self._offered()
        return preview_dataset(self._tasks, spec, samples=samples, time_limit_s=time_limit_s, offered=offered)

    def create(self, request: JobRequest, owner: str = "") -> Job:
        """Put a dataset into the queue.

        Raises:
            SpecError: where the spec is not valid; it names the field.
            DataError: where the source is not there.
            UnknownNameError: where format or option are unknown.
        """
        spec = parse_spec({"kind": "dataset", "version": 1, **request.spec}, source="the request")
        if not isinstance(spec, DatasetSpec):
            raise SpecError(f"The spec is of kind {spec.kind}, and a dataset has one of kind dataset.")
        source = stored_source(spec.source)
        spec = spec.model_copy(update={"source": source, "name": spec.name or source_name(source)})
        with only_offered(self._offered()), watched_source(Path(source)):
            check_new_dataset(spec)
        complete = dataclasses.replace(request, spec=spec.model_dump(mode="json"), sweep={})
        now = self._clock()
        (job,) = make_jobs(complete, self._folder, self._supervisor.submit, owner=owner, now=now, needs=dataset_needs)
        return job

    def create_again(self, job_id: str, *, name: str = "", owner: str = "") -> Job:
        """Put a dataset into the queue that is made by the spec of another one, which becomes its parent.

        Args:
            job_id: of a dataset that is done.
            name: of the new one; empty: the same.
            owner: name of who asks.

        Raises:
            DataError: where that is a version, or its source is gone or would be refused.
        """
        spec, request = self.again(job_id), clone_request(self._jobs, job_id)
        spec = spec.model_copy(update={"name": name or spec.name})
        return self.create(dataclasses.replace(request, spec=spec.model_dump(mode="json")), owner)

    # ---- looking

    def folder(self, name: str) -> Path:
        """Return the folder of a dataset that is done.

        Raises:
            JobError: where there is none of that id, or it is not done.
        """
        kind, state, folder = self._store.jobs.place(name)
        if kind != "dataset" or state != "done":
            raise JobError(f"{name} is of kind {kind} and {state}; this needs a dataset that is done.")
        return Path(folder)

    def facts(self, jobs: Sequence[Job]) -> dict[str, dict[str, Any]]:
        """Return id → kind of data, samples, counts of the splits and classes of each dataset that is done.

        The worker that made it writes them into its folder; they are read from there the first time, and noted.
        """
        known = self._store.datasets.facts([job.id for job in jobs])
        for job in jobs:
            if job.state == "done" and not known.get(job.id):
                try:
                    known[job.id] = _facts(Manifest.load(Path(job.folder)))
                    self._store.jobs.note(job.id, facts=known[job.id])
                except ZigguratError:  # its folder was damaged, or it is deleted at this moment
                    continue
        return known

    @contextmanager
    def opened(self, name: str) -> Iterator[Dataset]:
        """Open a dataset that is done; files that it refers to are read below the offered folders only.

        Within an opening of the same dataset by the same thread, that one is given: a page asks several times.
        """
        opened, key = _open_here.get(), (id(self), name)
        if key in opened:
            yield opened[key]
            return
        with only_offered(self._offered()), super().opened(name) as dataset:
            token = _open_here.set({**opened, key: dataset})
            try:
                yield dataset
            finally:
                _open_here.reset(token)

    def picture(self, name: str, split: str, row: int, part: int = 0, *, max_side_px: int | None = None) -> bytes:
        """Return an image of a sample as PNG, made smaller where its longer side is longer than ``max_side_px``."""
        content = super().picture(name, split, row, part)
        return content if max_side_px is None else smaller_picture(content, max_side_px)

    def original(self, name: str, split: str, row: int, part: int = 0) -> OriginalImage:
        """Return the image that a sample was made of, see ``ziggurat.workspace.studio.originals``.

        Raises:
            MissingEntryError: where there is no such sample.
            DataError: where the sample has no such image.
        """
        with self.opened(name) as dataset:
            return original_image(dataset, dataset.entry(split, row), self._offered(), part)

    def may_have_sources(self, dataset: Dataset, entries: Iterable[Entry]) -> list[bool]:
        """Return whether the file that each sample was made of is there and may be read; contents are not looked at."""
        offered = self._offered()
        return [source_file(dataset, entry, offered) is not None for entry in entries]

    def source_content(self, dataset: Dataset, entry: Entry) -> bytes | None:
        """Return the file that a sample was made of; None where it is gone, has changed or may not be read."""
        return unchanged_source(dataset, entry, self._offered())

    def exported(
        self, job_id: str, export_format: str, archive_format: str, options: Mapping[str, Any]
    ) -> Iterator[bytes]:
        """Return an archive of a dataset in a format of others; its ``info.json`` says what could not be written.

        Args:
            job_id: of a dataset that is done.
            export_format: such as ``coco``.
            archive_format: a name in ``ziggurat.workspace.studio.archives.ARCHIVE_FORMATS``.
            options: of the export.
        """
        return sent_folder(
            lambda target: dataclasses.asdict(self.export(job_id, export_format, target, options)),
            self._folder,
            archive_format,
            now=self._clock(),
        )

    # ---- versions

    def versions(self, job_id: str) -> list[VersionNote]:
        """Return a dataset and all that it came from, newest first."""
        return history(self.folder(job_id))

    def relabel(self, job_id: str, samples: Sequence[str], label: Any, *, name: str = "", owner: str = "") -> Job:
        """Make a version in which samples (``SPLIT/ROW`` or key) have another label."""
        return self._version(
            job_id, name, owner, lambda old, new: dataset_versions.relabel(old, samples, label, new, name)
        )

    def correct(
        self,
        job_id: str,
        labels: Mapping[str, Any],
        excluded: Sequence[str],
        *,
        reason: str = "",
        name: str = "",
        owner: str = "",
    ) -> Job:
        """Make one version of many corrections: ``SPLIT/ROW`` or key → label, and samples that are left out."""
        return self._version(
            job_id,
            name,
            owner,
            lambda old, new: dataset_versions.correct(old, labels, excluded, new, reason=reason, name=name),
        )

    def correct_boxes(self, job_id: str, samples: Sequence[str] = (), *, name: str = "", owner: str = "") -> Job:
        """Make a version of the corrected boxes of some samples (``SPLIT/ROW`` or key), or of all.

        A correction goes into one version: of several simultaneous calls, one makes it.

        Raises:
            UsageError: where no boxes are corrected.
        """
        with self._box_locks.setdefault(job_id, threading.Lock()):
            states = self.boxes.states(job_id, samples)
            job = self._version(job_id, name, owner, lambda old, new: corrected_version(old, states, new, name))
            self.boxes.note_applied(job_id, states, job.name)
        return job

    def exclude(
        self,
        job_id: str,
        samples: Sequence[str],
        *,
        problem: str = "",
        reason: str = "",
        name: str = "",
        owner: str = "",
    ) -> Job:
        """Make a version without some samples, or without those that have a problem."""
        return self._version(
            job_id,
            name,
            owner,
            lambda old, new: dataset_versions.exclude(old, samples, new, problem=problem, reason=reason, name=name),
        )

    def change_classes(self, job_id: str, changes: Mapping[str, Any], *, name: str = "", owner: str = "") -> Job:
        """Make a version with other classes."""
        return self._version(
            job_id, name, owner, lambda old, new: dataset_versions.change_classes(old, changes, new, name)
        )

    def merge(self, job_ids: Sequence[str], *, name: str = "", owner: str = "") -> Job:
        """Make one dataset of several."""
        folders = [self.folder(job_id) for job_id in job_ids]
        return self._version(job_ids[0], name, owner, lambda _old, new: dataset_versions.merge(folders, new, name=name))

    def take_in(self, new: NewJob, facts: Mapping[str, Any]) -> Job:
        """Take in a dataset that is done already, such as a version.

        Args:
            new: its folder is complete.
            facts: what it holds, as JSON values.
        """
        write_job_file(Path(new.folder), record_of(new))
        job = self._store.datasets.add_finished(new, facts)
        self._supervisor.hub.publish("jobs", "added", job.id)
        return job

    def _version(self, job_id: str, name: str, owner: str, make: Callable[[Path, Path], Manifest]) -> Job:
        parent, old, now = self._jobs.get(job_id), self.folder(job_id), self._clock()
        folder = claim_folder(self._folder, new_job_ids(now), apart_from=other_folders(self._folder))
        making = folder.with_name(f".{folder.name}.making")
        try:
            manifest = make(old, making)
            with storage_errors(folder):
                making.rename(folder)  # takes the place of the empty folder that keeps the id
        except BaseException:
            shutil.rmtree(making, ignore_errors=True)
            folder.rmdir()
            raise
        new = NewJob(
            id=folder.name,
            kind="dataset",
            name=name or manifest.name,
            folder=str(folder),
            spec=parent.spec,
            project=parent.project,
            owner=owner,
            parent=job_id,
            created=now,
        )
        return self.take_in(new, _facts(manifest))


def _facts(manifest: Manifest) -> dict[str, Any]:
    by_class = itertools.zip_longest(*(note.class_counts for note in manifest.splits.values()), fillvalue=0)
    used = sum(1 for counts in by_class if any(counts))
    return {
        "kind": manifest.schema.kind,
        "samples": sum(note.count for note in manifest.splits.values()),
        "counts": {split: note.count for split, note in manifest.splits.items()},
        "classes": used or len(manifest.schema.class_names),  # with samples; all where none is counted
    }
