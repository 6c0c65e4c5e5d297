"""Use cases of evaluation and prediction jobs: start them and read their results."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.dataset import SklearnDigits
from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.entities import Job
from ziggurat.errors import JobError, UnknownNameError, UsageError
from ziggurat.layout import JobFolder, checkpoint_step, present_path
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.workspace.checkpoints import chosen_checkpoint
from ziggurat.workspace.new_jobs import JobMaker, JobRequest
from ziggurat.workspace.studio.evaluation_differences import Difference, EvaluationDifferences
from ziggurat.workspace.studio.images import read_pictures, smaller_picture
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.studio.paths import Paths
from ziggurat.workspace.studio.prediction_tables import TableFormat, prediction_table
from ziggurat.workspace.studio.predictions import Predictions, SampleFilter
from ziggurat.workspace.training_checks import DIGITS

__all__ = ["Evaluations", "has_digits"]

_KINDS: Final = ("evaluate", "infer")
_KEPT_OPEN: Final = 4
_NAME_LENGTH: Final = 200


def has_digits(summary: Mapping[str, Any]) -> bool:
    """Return whether an evaluation is on the built-in handwritten digits, which are no dataset of the studio.

    Args:
        summary: as ``Evaluations.summary`` gives it.
    """
    return summary["kind"] == "evaluate" and summary["data"] == DIGITS


@cache
def _digits(split: str) -> np.ndarray:
    """Return the images of a split, (N, 28, 28, 1) uint8."""
    return np.stack([image for image, _ in SklearnDigits(split, shuffle=False, size=28)])


class Evaluations:
    """Jobs of kinds ``evaluate`` and ``infer``, and what they found.

    Args:
        jobs: of every kind.
        maker: makes new jobs.
        paths: that people may name.
    """

    def __init__(self, jobs: Jobs, maker: JobMaker, paths: Paths) -> None:
        self._jobs = jobs
        self._maker = maker
        self._paths = paths
        self._open: OrderedDict[str, Predictions] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, str], EvaluationDifferences] = OrderedDict()
        self._lock = threading.Lock()

    # ---- making

    def create(
        self,
        model_id: str,
        *,
        split: str = "val",
        checkpoint: str = "",
        after_training: bool = False,
        owner: str = "",
    ) -> Job:
        """Put the evaluation of a model into the queue.

        Args:
            model_id: of a training that has a checkpoint; it need not be done.
            split: ``train``, ``val`` or ``test``.
            checkpoint: its name, a given name, ``best`` or ``latest``; empty: the best, or else the latest.
            after_training: whether it waits until the training is done, whose checkpoint need not be there yet.
            owner: name of who asks.

        Raises:
            JobError: where there is no such training.
            CheckpointError: where it has no such checkpoint.
            UnknownNameError: where its dataset has no such split.
        """
        model = self._jobs.of_kind(model_id, "train") if after_training else self._model(model_id, checkpoint)
        _check_split(model, split)
        asked = {"kind": "evaluate", "checkpoint": checkpoint, "split": split, "after_training": after_training}
        return self._submit(model, owner, asked, on=split)

    def create_many(
        self,
        model_id: str,
        source: str,
        *,
        checkpoint: str = "",
        image_folder: str = "",
        top: int = 5,
        limit: int = 0,
        owner: str = "",
    ) -> Job:
        """Put predicting for many images into the queue.

        Args:
            model_id: of a training that has a checkpoint; it need not be done.
            source: folder of images, or text file with a path in each line, and its label where it is known.
            checkpoint: as for ``create``.
            image_folder: where relative paths of a list begin; empty for the folder of the list.
            top: classes of each image that are kept, 1 to 5.
            limit: images at most; 0 for all.
            owner: name of who asks.

        Raises:
            JobError: where there is no such training.
            CheckpointError: where it has no such checkpoint.
            UsageError: where a path may not be named.
            SpecError: where a number is out of its range.
        """
        model = self._model(model_id, checkpoint)
        place = self._paths.allowed(source)
        asked = {"kind": "infer", "checkpoint": checkpoint, "source": str(place), "top": top, "limit": limit}
        if image_folder:
            asked["image_folder"] = str(self._paths.allowed(image_folder))
        return self._submit(model, owner, asked, on=place.name)

    # ---- looking

    def of_model(self, model_id: str) -> list[Job]:
        """Return the jobs that used a model, newest first.

        Raises:
            JobError: where there is no job of that id.
        """
        found = [job for job in self._jobs.dependents(model_id) if job.kind in _KINDS]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def summary(self, job_id: str) -> dict[str, Any]:
        """Return what a job found.

        Returns:
            ``kind``, ``model`` (id of the training), ``checkpoint``, ``step``, ``epoch``, ``split``, ``count``;
            ``task``, and of tasks other than classification ``metrics`` and what the task adds;
            ``skipped`` (how many could not be read) and ``failures`` (``key`` and ``reason`` of the first 1000);
            ``scalars`` (means over all samples); ``classifier``; ``classes`` (names); ``accuracy``, ``top5`` (with more
            than five classes), ``confusion`` (a row for each label) and ``per_class`` (``name``, ``precision``,
            ``recall``, ``f1``, ``support``), empty where labels are not known; ``labeled``, ``correct``,
            ``accuracy_interval`` (95 %), ``macro_f1``, ``top3``, ``log_loss`` and ``calibration_error``; ``dataset``
            (id of the dataset's job, or empty) and ``data`` (its place); ``openings`` (how often the test split was
            measured on, else None).
        """
        job, found = self._done(job_id), self._predictions(job_id)
        left_out = ("version", "samples_digest", "root", "threshold_counts")
        said = {name: value for name, value in found.summary.items() if name not in left_out}
        is_split, data = job.kind == "evaluate", present_path(str(said["data"]), self._maker.folder.parent)
        return {
            **said,
            "model": job.parent,
            "data": data,
            "dataset": self._dataset(data) if is_split else "",
            **found.figures,
            **found.quality,
        }

    def results(self, job_id: str) -> Predictions:
        """Return the results of a job as they stand in its folder, for pages that draw them.

        Raises:
            JobError: where it is no evaluation that is done.
            StorageError: where they are damaged.
        """
        return self._predictions(job_id)

    def checkpoint_of(self, job_id: str) -> str:
        """Return the name of the checkpoint that a job used; ``best`` and the like are resolved."""
        job = self._done(job_id)
        named = str(job.spec.get("checkpoint", ""))
        if checkpoint_step(named) is not None:
            return named
        return str(Predictions(JobFolder(Path(job.folder)).results).summary["checkpoint"])

    def samples(self, job_id: str, *, offset: int = 0, limit: int = 50, **chosen: Any) -> dict[str, Any]:
        """Return some of the samples that a filter leaves.

        Args:
            job_id: of the evaluation.
            offset: how many to leave out first.
            limit: how many to return at most.
            chosen: fields of ``ziggurat.workspace.studio.predictions.SampleFilter``.

        Returns:
            ``total`` that the filter leaves, and ``samples``: ``split``, ``row``, ``key``, ``score``; of a classifier
            ``label`` (None where it is not known), ``predicted``, and ``top``: ``class``, ``name`` and ``score`` of the
            best classes, and ``decision`` (``class``, ``number``, ``threshold``) of predictions that obey an operating
            point; of another network ``values``: what its task keeps, by name. ``fields`` that the task chooses
            samples by: ``name``, ``title``, and ``choices`` or ``low`` and ``high``, ``default``.

        Raises:
            UnknownNameError: where a field of the task is not known.
            UsageError: where the value of one cannot be.
        """
        found, filter_ = self._predictions(job_id), SampleFilter(**chosen)
        places = found.select(filter_)
        return {
            "total": len(places),
            "samples": found.samples(places[offset : offset + limit], filter_.asked),
            "fields": [each.document() for each in found.sample_fields],
        }

    def rows(self, job_id: str, **chosen: Any) -> list[int]:
        """Return the rows of the samples that a filter leaves, in its order; ``chosen`` is that of ``samples``."""
        found = self._predictions(job_id)
        return found.rows[found.select(SampleFilter(**chosen))].tolist()

    def of_rows(self, job_id: str, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return row → what a job found of it, shaped as by ``samples``; rows that it did not see are left out."""
        found = self._predictions(job_id)
        places = [place for row in rows if (place := found.known_place(row)) is not None]
        return {each["row"]: each for each in found.samples(np.array(places, np.int64))}

    def curves(self, job_id: str, class_index: int, *, points: int = 200) -> dict[str, Any]:
        """Return how well one class is told from all others, at thresholds that fall.

        Returns:
            ``thresholds``, ``precision``, ``recall``, ``false_positive`` and ``true_positive``, all of one length;
            ``average_precision`` and ``area``; ``exact``, False where not all probabilities were kept.
        """
        return self._predictions(job_id).curves(class_index, points)

    def at_threshold(self, job_id: str, threshold: float) -> dict[str, Any]:
        """Return the figures where a sample counts as decided from a score of ``threshold`` on.

        Returns:
            ``threshold``, ``coverage``, ``decided``, ``accuracy``, ``per_class`` and ``confusion``; undecided samples
            count in the recall of their class, and nowhere else.
        """
        return self._predictions(job_id).at_threshold(threshold)

    def top_of_class(self, job_id: str, class_index: int, limit: int = 10) -> list[dict[str, Any]]:
        """Return the samples with the highest score of a class, the most confident first; shaped as by ``samples``."""
        found = self._predictions(job_id)
        return found.samples(found.surest_of_class(class_index, limit))

    def differences(
        self,
        first_job_id: str,
        second_job_id: str,
        *,
        which: Difference | None = None,
        margin: float | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> dict[str, Any]:
        """Return the samples that a second model got right, got wrong, or still gets wrong.

        Of networks that do not classify: those with a better, a worse or the same score. Evaluations of two datasets,
        such as two versions of one, are joined by the content of the samples, see
        ``ziggurat.datasets.versions.match_samples``; each prediction is judged by the label of its own dataset.

        Args:
            first_job_id: of an evaluation.
            second_job_id: of another one, with the same split.
            which: ``fixed``, ``broken`` or ``still_wrong``; else ``better``, ``worse`` or ``equal``; of two datasets
                also ``label_changed``, ``only_first`` and ``only_second``. None: the first list.
            margin: of the score, up to which it is equal; None for 5 % of the standard deviation of the first scores.
            offset: how many to leave out first.
            limit: how many to return at most.

        Returns:
            ``counts`` of the lists, ``total`` of the chosen one, and ``samples``: those of the first evaluation, with
            what the second says of each as ``second`` (of ``only_second`` those of the second). Of a classifier also
            ``p_value`` of McNemar's test, and ``accuracy``: ``samples`` that both have, ``first``, ``second``,
            ``difference`` (second less first), its 95 % ``interval`` (see
            ``ziggurat.tasks.classification_metrics.paired_difference_interval``) and of two datasets
            ``first_by_second_labels``; None where no label is known. Else ``margin``, ``mean`` (of the differences,
            second less first; large scores are good), ``interval`` (95 %, by the normal approximation of the paired
            differences), ``unknown`` (samples without a score), of each sample ``difference``, and ``changes``: what
            the task counts inside of samples, such as boxes, title → count.

            ``versions``: None where the samples are the same; else ``common`` (samples of both), ``label_changed``
            (None where labels are not compared: masks and target images), and ``unmatched`` (samples that are only in
            one, though the other has their content as well, but not as often). Then samples of a classifier have
            ``label_before``, ``label_after`` and ``prediction_changed``; those of other tasks in the list
            ``label_changed`` the first two.

        Raises:
            JobError: where they are not of the same task and split, or have no sample in common.
            UsageError: where there is no such list.
        """
        found = self._compared(first_job_id, second_job_id)
        return found.document(which, margin, slice(offset, offset + limit))

    def table(self, job_id: str, table_format: TableFormat = "csv") -> Iterator[bytes]:
        """Return the predictions for all samples, part by part; see ``prediction_table`` for the columns."""
        return prediction_table(self._predictions(job_id), table_format)

    def picture(self, job_id: str, row: int, *, max_side_px: int = 1024) -> bytes:
        """Return an image that a job predicted for as PNG, or a built-in digit; other evaluations use a dataset.

        Raises:
            JobError: if the job is an evaluation on a dataset.
            UsageError: if there is no such row, or its file may not be shown any more.
            DataError: if it cannot be read any more.
        """
        found = self._predictions(job_id)
        if has_digits(found.summary):
            digits = _digits(str(found.summary["split"]))
            if row >= len(digits):
                raise UsageError(f"The split has no row {row}.", advice=f"Rows are below {len(digits)}.")
            return smaller_picture(encode_image(digits[row], "png"), max_side_px)
        if "root" not in found.summary:
            raise JobError(f"The images of the evaluation {job_id} are not known: its dataset is gone.")
        (key,) = found.keys([found.place_of_row(row)])
        root = present_path(str(found.summary["root"]), self._maker.folder.parent)
        ((name, content),) = read_pictures(self._paths, [str(Path(root) / key)])
        return smaller_picture(encode_image(decode_image(content, key=name), "png"), max_side_px)

    # ---- within

    def _model(self, model_id: str, checkpoint: str) -> Job:
        model = self._jobs.get(model_id)
        chosen_checkpoint(model, checkpoint)  # refused now; the job takes what the name means when it begins
        return model

    def _submit(self, model: Job, owner: str, asked: Mapping[str, Any], *, on: str) -> Job:
        name = f"{model.name or model.id} on {on}"[:_NAME_LENGTH]
        spec = {"version": 1, "name": name, "model": model.folder, **asked}
        needs = model.needs if model.needs.slot == "device" else None  # also where the studio chose one for it
        request = JobRequest(spec=spec, model=model.id, project=model.project, parent=model.id, needs=needs)
        return self._maker.make(request, owner)

    def _done(self, job_id: str) -> Job:
        job = self._jobs.get(job_id)
        if job.kind not in _KINDS or job.state != "done":
            raise JobError(
                f"{job_id} is of kind {job.kind} and {job.state}; this needs an evaluation, or predictions "
                "for many images, that is done."
            )
        return job

    def _predictions(self, job_id: str) -> Predictions:
        """Return the results of a job; those of the last few stay open."""
        job = self._done(job_id)
        with self._lock:
            found = self._open.pop(job_id, None)
            if found is None:  # one that keeps no samples has length 0
                found = Predictions(JobFolder(Path(job.folder)).results)
            self._open[job_id] = found
            while len(self._open) > _KEPT_OPEN:
                self._open.popitem(last=False)
        return found

    def _compared(self, first_job_id: str, second_job_id: str) -> EvaluationDifferences:
        """Return the differences of two evaluations; those of the last few stay open, as joining reads every sample."""
        first, second = self._predictions(first_job_id), self._predictions(second_job_id)
        with self._lock:
            found = self._pairs.pop((first_job_id, second_job_id), None)
        found = found or EvaluationDifferences(first, second, self._data_folder)
        with self._lock:
            self._pairs[first_job_id, second_job_id] = found
            while len(self._pairs) > _KEPT_OPEN:
                self._pairs.popitem(last=False)
        return found

    def _data_folder(self, found: Predictions) -> Path:
        return Path(present_path(str(found.summary["data"]), self._maker.folder.parent))

    def _dataset(self, place: str) -> str:
        """Return the id of the dataset that stands in a folder; empty where the studio has none there."""
        job_id = Path(place).name
        try:
            job = self._jobs.get(job_id)
        except JobError:
            return ""
        return job_id if job.kind == "dataset" and Path(job.folder) == Path(place) else ""


def _check_split(model: Job, split: str) -> None:
    """Refuse a split that a dataset does not have; other data is looked at when the job begins."""
    place = Path(str(model.spec["data"]["source"]))
    if (place / MANIFEST_NAME).is_file():
        known = list(Manifest.load(place).splits)
        if split not in known:
            raise UnknownNameError("split of this data", split, known)
