"""Use cases of maps of datasets: compute features of the samples as a job, and read what it found."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ziggurat.datasets.embeddings.neighbors import nearest
from ziggurat.entities import Job
from ziggurat.errors import JobError, MissingDependencyError, MissingEntryError, NotThereError, StorageError, UsageError
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.workspace.checkpoints import chosen_checkpoint
from ziggurat.workspace.new_jobs import JobMaker, JobRequest
from ziggurat.workspace.studio.datasets import Dataset, StudioDatasets
from ziggurat.workspace.studio.jobs import Jobs
from ziggurat.workspace.weights import Weights

__all__ = ["BACKBONE", "DatasetMap", "DatasetMaps", "Features", "entry_named"]

BACKBONE: Final = "efficientnet_lite0"
"""Entry of the list of public weights whose network gives features if no other one is named."""

Features = Literal["", "backbone", "model", "own"]

_KIND: Final = "embed"
_OPEN: Final = 4
_SMALL_PX: Final = 32
"""Images up to this size are told apart by their pixels as well as by a backbone that was made for photographs."""

_GRID: Final = 65_535
"""Places on a map are whole numbers from 0 to this, so that browser and studio mean the same by an area."""

_MARGIN: Final = 0.02
_LONGEST_NAME: Final = 200
_MOST_CORNERS: Final = 500


class DatasetMap:
    """What a job of kind ``embed`` found: features of samples, and what follows from them.

    A place is a number of a sample in the arrays of the map.

    Args:
        job: it is done.

    Raises:
        StorageError: if its results are damaged.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._files = ResultFiles(JobFolder(Path(job.folder)).results)
        try:
            self.summary: Mapping[str, Any] = json.loads(self._files.summary.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self._damaged(error) from None

    @property
    def id(self) -> str:
        """Id of the job."""
        return self.job.id

    @property
    def title(self) -> str:
        """What the features are of, for people: ``EfficientNet-Lite0 on ImageNet-1k``, a model, or ``own words``."""
        features = self.summary["features"]
        if features["source"] == "own":
            return f"own {features['name']}"
        return str(features.get("title") or features["name"])

    @property
    def source(self) -> str:
        """Where lists come from, for people: ``features of efficientnet_lite0``."""
        features = self.summary["features"]
        return f"own {features['name']}" if features["source"] == "own" else f"features of {features['name']}"

    @property
    def projections(self) -> list[str]:
        """Names of what places samples, the better one first: ``tsne`` if it was asked for, and ``pca``."""
        return ["tsne", "pca"] if "tsne" in self.summary else ["pca"]

    @cached_property
    def numbers(self) -> np.ndarray:
        """(N,) int64 catalog numbers of the samples, in order."""
        return self.array("numbers")

    def array(self, name: str) -> np.ndarray:
        """Return an array of the results; its file is read when it is used.

        Raises:
            StorageError: if it is not there, or damaged.
        """
        try:
            return np.load(self._files.array(name), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise self._damaged(error) from None

    def grid(self, projection: str) -> np.ndarray:
        """Return where each sample stands, (N, 2) uint16: to the right, and down.

        Both axes have one scale, and the samples a margin around them.

        Args:
            projection: a name in ``projections``.
        """
        points = np.asarray(self.array(projection if projection in self.projections else "pca"), np.float64)
        low, high = points.min(axis=0), points.max(axis=0)
        side = max(float((high - low).max()), 1e-12) * (1 + 2 * _MARGIN)
        found = (points - (low + high) / 2) / side + 0.5
        found[:, 1] = 1 - found[:, 1]
        return np.rint(found * _GRID).clip(0, _GRID).astype(np.uint16)

    def inside(self, area: str) -> np.ndarray:
        """Return the catalog numbers of the samples inside of an area, in order.

        Args:
            area: ``tsne:x,y,x,y,…`` or ``pca:…``: the corners, as numbers of ``grid``.

        Raises:
            UsageError: if it is no area.
        """
        projection, _, text = area.partition(":")
        try:
            corners = np.array([int(each) for each in text.split(",")], np.float64).reshape(-1, 2)
        except ValueError:
            corners = np.zeros((0, 2))
        if projection not in ("tsne", "pca") or not 3 <= len(corners) <= _MOST_CORNERS:
            raise UsageError(
                f"`{area[:60]}` is no area of a map: a projection and its corners.",
                advice="Such as: tsne:100,100,900,100,900,900. Draw it on the map.",
            )
        return self.numbers[_within(self.grid(projection).astype(np.float64), corners)]

    def chosen(self, which: str) -> np.ndarray:
        """Return catalog numbers of samples, ranked.

        Args:
            which: ``label-errors``, the least probable label first; ``near-duplicates``, the most similar pair first;
                ``wrong``, the most confident prediction first; ``right``.
        """
        if which == "near-duplicates":
            return self.numbers[self.array("near")]
        if not self.summary["labels"]:
            return self.numbers[:0]
        if which == "label-errors":
            return self.numbers[self.array("candidates")]
        outcome, score = self.outcomes, self.array("score")
        places = np.flatnonzero(outcome == (1 if which == "right" else 2))
        return self.numbers[places[np.argsort(-score[places], kind="stable")]]

    @cached_property
    def outcomes(self) -> np.ndarray:
        """(N,) uint8: 1 if the class that was predicted without a sample is its label, 2 if not, 0 if unknown.

        A prediction is wrong if the label is less probable than another class.
        """
        if not self.summary["labels"]:
            return np.zeros(len(self.numbers), np.uint8)
        own, best = self.array("own_score"), self.array("score")
        return np.where(np.isnan(own), 0, np.where(own >= best, 1, 2)).astype(np.uint8)

    def predicted(self, number: int) -> tuple[int, float] | None:
        """Return class number and probability that were predicted for a sample without it; None if unknown."""
        place = self.place(number)
        if place is None or not self.summary["labels"] or self.array("predicted")[place] < 0:
            return None
        return int(self.array("predicted")[place]), float(self.array("score")[place])

    def place(self, number: int) -> int | None:
        """Return the place of a catalog number; None if the map does not have the sample."""
        place = int(np.searchsorted(self.numbers, number))
        return place if place < len(self.numbers) and self.numbers[place] == number else None

    def neighbors(self, number: int, count: int) -> list[tuple[int, float]]:
        """Return the catalog numbers of the most similar samples, the most similar first, with their cosines.

        Raises:
            MissingEntryError: if the map does not have the sample.
        """
        place = self.place(number)
        if place is None:
            raise MissingEntryError(
                f"The map does not have sample {number}.",
                advice="It could not be read, or the map has only some samples of the dataset.",
            )
        places, cosines = nearest(self.array("features"), place, count)
        return list(zip(self.numbers[places].tolist(), cosines.tolist(), strict=True))

    def _damaged(self, error: Exception) -> StorageError:
        return StorageError(
            f"The results of the map, {self._files.path}, cannot be read: {str(error).rstrip('.')}.",
            advice=f"Delete the job {self.job.id}, and make the map again.",
        )


class DatasetMaps:
    """Jobs of kind ``embed``, and what they found.

    Args:
        jobs: of every kind.
        datasets: that maps are of.
        weights: pretrained weights of the workspace.
        maker: makes new jobs.
    """

    def __init__(self, jobs: Jobs, datasets: StudioDatasets, weights: Weights, maker: JobMaker) -> None:
        self._jobs = jobs
        self._datasets = datasets
        self._weights = weights
        self._maker = maker
        self._open: OrderedDict[tuple[str, float | None], DatasetMap] = OrderedDict()
        self._lock = threading.Lock()

    def create(
        self, dataset_id: str, *, features: Features = "", model: str = "", owner: str = "", **options: Any
    ) -> Job:
        """Put the map of a dataset into the queue.

        Args:
            dataset_id: of a dataset that is done.
            features: ``backbone``, ``model`` or ``own``; empty: those of ``model`` if it is named, of a backbone for
                photographs, else the samples' own.
            model: id of a training that has a checkpoint, for ``model``.
            owner: name of who asks.
            options: further fields of ``ziggurat.specs.EmbedSpec``.

        Raises:
            JobError: if there is no such dataset or model.
            SpecError: if a field is not valid.
            CheckpointError: if the model has no such checkpoint.
            UsageError: if a backbone is asked for, and samples are no images.
            MissingDependencyError: if the weights of the backbone, or t-SNE, are not installed.
        """
        folder = self._datasets.folder(dataset_id)
        if options.get("tsne", True) and not self.has_tsne:
            raise MissingDependencyError("openTSNE", extra="maps", purpose="t-SNE")
        dataset = self._jobs.get(dataset_id)
        features = features or ("model" if model else self.default_features(dataset_id))
        asked: dict[str, Any] = {"features": features, **options}
        needs, on = None, "own features"
        if features == "model":
            if not model:
                raise UsageError("Name the model whose features are used.", details={"field": "model"})
            training = self._jobs.of_kind(model, "train")
            chosen_checkpoint(training, str(options.get("checkpoint", "")))  # refused now
            asked["model"], on = training.folder, training.name or training.id
            needs = training.needs if training.needs.slot == "device" else None
        elif features == "backbone":
            asked["backbone"] = on = str(options.get("backbone") or BACKBONE)
            self._prepare_backbone(dataset_id, on, owner)
        name = f"{dataset.name or dataset.id} by {on}"[:_LONGEST_NAME]
        spec = {"kind": _KIND, "version": 1, "name": name, "dataset": str(folder), **asked}
        request = JobRequest(
            spec=spec,
            dataset=dataset_id,
            model=model if features == "model" else "",
            project=dataset.project,
            parent=dataset_id,
            needs=needs,
        )
        return self._maker.make(request, owner)

    @property
    def has_tsne(self) -> bool:
        """Whether t-SNE is installed."""
        return find_spec("openTSNE") is not None

    def default_features(self, dataset_id: str) -> Literal["backbone", "own"]:
        """Return what a map is made of if nothing is chosen: a backbone for photographs, if its weights are here."""
        with self._datasets.opened(dataset_id) as dataset:
            image = dataset.manifest.image
            if image is None:
                return "own"
            sides = (image.width_px, image.height_px)
            is_small = None not in sides and max(side or 0 for side in sides) <= _SMALL_PX
        entry = next((each for each in self._weights.public if each.name == BACKBONE), None)
        is_here = self._weights.folder.has(BACKBONE) or (entry is not None and entry.is_here)
        return "own" if is_small or not is_here else "backbone"

    def of_dataset(self, dataset_id: str) -> list[Job]:
        """Return the jobs that make maps of a dataset, the newest first."""
        found = [job for job in self._jobs.dependents(dataset_id) if job.kind == _KIND]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def find(self, dataset_id: str, map_id: str = "") -> DatasetMap | None:
        """Return a map of a dataset: the one that is named, else the newest; None if none is done."""
        done = [job for job in self.of_dataset(dataset_id) if job.state == "done"]
        job = next((job for job in done if job.id == map_id), None) or next(iter(done), None)
        return None if job is None else self._opened(job)

    def get(self, dataset_id: str, map_id: str = "") -> DatasetMap:
        """Return a map as ``find`` does.

        Raises:
            NotThereError: if none is done, or the one that is named is not.
        """
        found = self.find(dataset_id, map_id)
        if found is None or (map_id and found.id != map_id):
            raise NotThereError(
                f"There is no map {map_id or 'of this dataset'}.",
                advice="Make one: `ziggurat dataset map ID`, or open its explorer and choose Map.",
            )
        return found

    def similar(self, dataset_id: str, sample: str, *, map_id: str = "", limit: int = 24) -> dict[str, Any]:
        """Return the samples that are most similar to one by the features of a map.

        Args:
            dataset_id: of the dataset.
            sample: ``SPLIT/ROW``, or the key of a sample.
            map_id: of the map; empty for the newest.
            limit: how many.

        Returns:
            ``map`` (its id), ``features`` (what they are of), ``sample``, and ``samples``: ``split``, ``row``, ``key``,
            ``label`` (name of its class, or None) and ``similarity`` (cosine), the most similar first.

        Raises:
            NotThereError: if there is no map.
            MissingEntryError: if there is no such sample, or the map does not have it.
        """
        found = self.get(dataset_id, map_id)
        with self._datasets.opened(dataset_id) as dataset:
            wanted = entry_named(dataset, sample)
            neighbors = found.neighbors(wanted.number, limit)
            entries = {each.number: each for each in dataset.catalogue.entries([number for number, _ in neighbors])}
            names = dataset.schema.class_names
            return {
                "map": found.id,
                "features": found.source,
                "sample": f"{wanted.split}/{wanted.row}",
                "samples": [
                    {**_document(entries[number], names), "similarity": round(cosine, 4)}
                    for number, cosine in neighbors
                ],
            }

    def findings(self, dataset_id: str, which: str, *, map_id: str = "", offset: int = 0, limit: int = 50) -> Any:
        """Return samples that a map makes doubtful.

        Args:
            dataset_id: of the dataset.
            which: ``label-errors`` or ``near-duplicates``.
            map_id: of the map; empty for the newest.
            offset: how many to leave out first.
            limit: how many.

        Returns:
            ``map``, ``source`` (such as ``features of efficientnet_lite0, 5 folds``), ``total``, and ``samples``:
            ``split``, ``row``, ``key``, ``label``; and ``predicted``, ``score`` and ``label_score`` (probabilities by
            models that did not see the sample), or ``neighbor`` (``SPLIT/ROW``) and ``similarity``.

        Raises:
            NotThereError: if there is no map.
        """
        found = self.get(dataset_id, map_id)
        numbers = found.chosen(which)
        some = numbers[offset : offset + limit].tolist()
        with self._datasets.opened(dataset_id) as dataset:
            names = dataset.schema.class_names
            samples = [
                {**_document(entry, names), **_reason(dataset, found, entry.number, which)}
                for entry in dataset.catalogue.entries(some)
            ]
        source = found.source
        if which == "label-errors" and found.summary["labels"]:
            source += f", {found.summary['labels']['folds']} folds"
        return {"map": found.id, "source": source, "total": len(numbers), "samples": samples}

    def _prepare_backbone(self, dataset_id: str, name: str, owner: str) -> None:
        with self._datasets.opened(dataset_id) as dataset:
            if dataset.manifest.image is None:
                raise UsageError(
                    f"This dataset is of kind {dataset.kind}, and a backbone gives features of images.",
                    advice="Choose the samples' own features, or a model that was trained on them.",
                    details={"field": "features"},
                )
        if not self._weights.folder.has(name):
            entry = self._weights.downloadable(name)
            if not entry.is_packaged:
                raise MissingEntryError(
                    f"The weights of the backbone `{name}` are not in the workspace.",
                    advice=f"Download them first: ziggurat weights download {name}.",
                )
            self._weights.download(name, added_by=owner)

    def _opened(self, job: Job) -> DatasetMap:
        key = (job.id, job.ended)
        with self._lock:
            found = self._open.pop(key, None)
            if found is None:
                found = DatasetMap(job)
            self._open[key] = found
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return found


def entry_named(dataset: Dataset, sample: str) -> Any:
    """Return the entry of a sample by ``SPLIT/ROW``, else by its key.

    Raises:
        MissingEntryError: if there is none.
    """
    split, _, row = sample.rpartition("/")
    if split in dataset.splits and row.isascii() and row.isdigit() and len(row) < 10:
        return dataset.entry(split, int(row))
    found = dataset.catalogue.find(sample)
    if found is None or found.row is None:
        raise MissingEntryError(f"There is no sample `{sample[:200]}` in this dataset.")
    return found


def _document(entry: Any, names: Sequence[str]) -> dict[str, Any]:
    number = entry.class_number
    label = names[number] if number is not None and 0 <= number < len(names) else None
    return {"split": entry.split, "row": entry.row, "key": entry.key, "label": label}


def _reason(dataset: Dataset, found: DatasetMap, number: int, which: str) -> dict[str, Any]:
    place = found.place(number)
    if place is None:
        raise JobError(f"The map {found.id} belongs to another dataset.")
    if which == "near-duplicates":
        other = int(found.numbers[found.array("neighbor")[place]])
        (entry,) = dataset.catalogue.entries([other])
        cosine = float(found.array("neighbor_cosine")[place])
        return {"neighbor": f"{entry.split}/{entry.row}", "similarity": round(cosine, 4)}
    predicted = int(found.array("predicted")[place])
    return {
        "predicted": dataset.schema.class_names[predicted],
        "score": round(float(found.array("score")[place]), 4),
        "label_score": round(float(found.array("own_score")[place]), 4),
    }


def _within(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return which points (N, 2) are inside of a polygon (M, 2): a ray from them crosses it an odd number of times."""
    is_inside = np.zeros(len(points), bool)
    x, y = points[:, 0], points[:, 1]
    for (x1, y1), (x2, y2) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        if y1 != y2:
            is_between = (y1 > y) != (y2 > y)
            is_inside ^= is_between & (x < (x2 - x1) * (y - y1) / (y2 - y1) + x1)
    return is_inside
