"""Map of a dataset as a job: features of its samples, where each stands by them, and what they say of labels.

Its folder of results (see ``ziggurat.worker.results``) has ``summary.json`` and arrays of N samples, in catalog order:

- ``numbers`` (N) int64: catalog numbers; ``features`` (N, D) float32
- ``pca`` and, where it was asked for, ``tsne`` (N, 2) float32: places
- ``neighbor`` (N) int32 and ``neighbor_cosine`` (N) float32: place of the most similar other sample
- ``near`` (M) int32: places of near duplicates, the most similar first
- of datasets with classes ``predicted`` (N) int32, ``score`` and ``own_score`` (N) float32: class number, its
  probability and that of the label, by heads that did not see the sample
- ``candidates`` (M) int32, likewise: places whose label is probably wrong, the least probable first
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.embeddings.label_candidates import label_candidates
from ziggurat.datasets.embeddings.neighbors import near_pairs, nearest_of_each
from ziggurat.datasets.embeddings.own_features import (
    OWN_WORDS,
    features_of_pixels,
    features_of_rows,
    features_of_texts,
    small_pixels,
)
from ziggurat.datasets.embeddings.projections import (
    check_tsne,
    fitting_perplexity,
    principal_components,
    tsne,
    unit_rows,
)
from ziggurat.engine.arithmetic import arithmetic_of, usable_cores
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.capabilities import GivesFeatures, SupportsInference
from ziggurat.engine.linear_head import held_out_probabilities
from ziggurat.errors import ConfigurationError, DataError, DatapointError
from ziggurat.formatting import plural
from ziggurat.layout import FEATURES_FOLDER, JobFolder, workspace_of
from ziggurat.records.feature_store import FeatureKey, FeatureStore
from ziggurat.settings import load_settings
from ziggurat.specs import EmbedSpec
from ziggurat.worker.commands.trained import open_network, open_trained_job, provider_of
from ziggurat.worker.event_watch import EventWatch
from ziggurat.worker.pretrained_weights import read_weights, weights_folders
from ziggurat.worker.results import write_results
from ziggurat.zoo.backends import backend_for
from ziggurat.zoo.public_weights import public_weights

__all__ = ["embed_dataset"]

_BLOCK: Final = 256
_TSNE_COMPONENTS: Final = 50
_HEAD_COMPONENTS: Final = 256
"""Components that heads are fitted to where there are many samples: more change few predictions."""

_MANY: Final = 10_000
_FEW: Final = 2000
_SAMPLES_A_COMPONENT: Final = 10


class _StoppedError(Exception):
    """A stop was requested."""


@dataclass(frozen=True, kw_only=True)
class _Network:
    """What gives the features of a sample, opened.

    Args:
        decode: makes an array of the first part of a sample; its key names it in errors.
        features: of a batch, (N, …) decoded → (N, D) float32.
        key: of the features, without the samples.
        about: of the features, for people.
    """

    decode: Callable[[Any, Any], np.ndarray]
    features: Callable[[np.ndarray], np.ndarray]
    key: Mapping[str, Any]
    about: Mapping[str, Any]


def embed_dataset(spec: EmbedSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Make a map, from the beginning in each attempt: features of a network that were computed before are found again.

    Args:
        spec: what was asked.
        folder: the job folder, which gets the results.
        watch: is told of progress, and asked whether to stop.

    Returns:
        What is to be said; None for an end that was requested.

    Raises:
        ZigguratError: if dataset or network cannot be used, or a package is missing.
    """
    watch.progress("load", 0, 0)
    if spec.tsne:
        check_tsne()  # before the work
    try:
        with Dataset(Path(spec.dataset)) as dataset:
            return _made(spec, folder, dataset, watch)
    except _StoppedError:
        return None


def _made(spec: EmbedSpec, folder: JobFolder, dataset: Dataset, watch: EventWatch) -> str:
    seconds: dict[str, float] = {}
    with _timed(seconds, "features"):
        numbers = _chosen(dataset, spec)
        features, about = _features(spec, folder, dataset, numbers, watch)
        is_known = np.isfinite(features[:, 0])
        if not is_known.all():
            features, numbers = np.asarray(features)[is_known], numbers[is_known]
        if len(numbers) < 2:
            raise DataError(
                f"The map has {plural(len(numbers), 'sample')} that can be read; it needs two.", advice="Add some."
            )
    arrays: dict[str, np.ndarray] = {"numbers": numbers}
    notes: dict[str, Any] = {"features": {**about, "dimension": features.shape[1]}}
    with _timed(seconds, "pca"):
        components, shares = principal_components(features, _HEAD_COMPONENTS)
        arrays["pca"] = components[:, :2] if components.shape[1] > 1 else np.pad(components, ((0, 0), (0, 1)))
        notes["pca"] = {"variance": shares[:2].tolist()}
    with _timed(seconds, "near"):
        notes["near"] = _add_neighbors(features, arrays, watch)
    with _timed(seconds, "labels"):
        notes["labels"] = _add_labels(spec, dataset, features, components, arrays)
    if spec.tsne and len(numbers) > 3:
        with _timed(seconds, "tsne"):
            notes["tsne"] = _add_tsne(spec, features, components, about, arrays, watch)
    watch.progress("place", 1, 1)
    summary = {
        "kind": spec.kind,
        "data": spec.dataset,
        "dataset_id": dataset.manifest.id,
        "count": len(numbers),
        "total": len(dataset),
        "skipped": int(np.count_nonzero(~is_known)),
        "seed": spec.seed,
        "seconds": {name: round(each, 3) for name, each in seconds.items()},
        **notes,
    }
    links = {"features": Path(str(features.filename))} if isinstance(features, np.memmap) else {}
    write_results(folder.results, summary, {**arrays, **({} if links else {"features": features})}, links=links)
    return _sentence(summary)


def _sentence(summary: Mapping[str, Any]) -> str:
    parts = [f"{plural(summary['count'], 'sample')}, {summary['features']['dimension']} features"]
    if summary["labels"]:
        parts.append(plural(summary["labels"]["candidates"], "label-error candidate"))
    parts.append(plural(summary["near"]["count"], "near duplicate"))
    if summary["skipped"]:
        parts.append(f"{summary['skipped']} could not be read")
    return "; ".join(parts)


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    before = time.monotonic()
    yield
    seconds[stage] = time.monotonic() - before


def _goes_on(watch: EventWatch, stage: str, done: int, total: int) -> None:
    watch.progress(stage, done, total)
    if watch.stop_requested():
        raise _StoppedError


def _noting(watch: EventWatch, stage: str) -> Callable[[int, int], None]:
    return lambda done, total: _goes_on(watch, stage, done, total)


def _chosen(dataset: Dataset, spec: EmbedSpec) -> np.ndarray:
    """Return the catalog numbers of the samples, in order."""
    count = len(dataset)
    if not spec.limit or count <= spec.limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(spec.seed).permutation(count)[: spec.limit])


# ---- features


def _features(
    spec: EmbedSpec, folder: JobFolder, dataset: Dataset, numbers: np.ndarray, watch: EventWatch
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return (N, D) features, NaN for samples that cannot be read, and what they are of."""
    if spec.features == "own":
        word = OWN_WORDS.get(dataset.schema.parts[0], "values")
        return _own_features(dataset, numbers, watch), {"source": "own", "name": word}
    workspace = workspace_of(folder.path) or folder.path
    store = FeatureStore(workspace / FEATURES_FOLDER)
    with ExitStack() as opened:
        network = opened.enter_context(_model(spec) if spec.features == "model" else _backbone(spec, folder))
        choice = "all" if len(numbers) == len(dataset) else f"{spec.limit} by seed {spec.seed}"
        key = FeatureKey(samples=f"{dataset.manifest.id}: {choice}", arithmetic=arithmetic_of(), **network.key)
        found = store.find(key)
        if found is None:
            blocks = _network_features(spec, dataset, numbers, network, watch)
            found = store.write(key, blocks, len(numbers))
        return found, dict(network.about)


def _network_features(
    spec: EmbedSpec, dataset: Dataset, numbers: np.ndarray, network: _Network, watch: EventWatch
) -> Iterator[np.ndarray]:
    places = list(_places(dataset, numbers))

    flows = {split: dataset.flow(split, content="bytes") for split in dataset.splits}

    def read(place: tuple[str, int]) -> np.ndarray | None:
        flow, row = flows[place[0]], place[1]
        try:
            return network.decode(flow.datapoint(row)[0], flow.key(row))
        except DatapointError:
            return None

    width = 0
    pending = 0  # samples before the first one that can be read: how wide their rows are is not known yet
    with ThreadPoolExecutor(max_workers=min(4, usable_cores())) as pool:
        for start in range(0, len(places), spec.batch_size):
            _goes_on(watch, "embed", start, len(places))
            inputs = list(pool.map(read, places[start : start + spec.batch_size]))
            known = np.array([each is not None for each in inputs])
            if not known.any():
                if not width:
                    pending += len(inputs)
                else:
                    yield np.full((len(inputs), width), np.nan, np.float32)
                continue
            found = network.features(np.stack([each for each in inputs if each is not None]))
            width = found.shape[1]
            rows = np.full((len(inputs), width), np.nan, np.float32)
            rows[known] = found
            if pending:
                yield np.full((pending, width), np.nan, np.float32)
                pending = 0
            yield rows
    if pending:
        raise DataError("No sample of this dataset can be read.", received=plural(len(places), "sample"))
    _goes_on(watch, "embed", len(places), len(places))


def _places(dataset: Dataset, numbers: np.ndarray) -> Iterator[tuple[str, int]]:
    """Yield split and row of samples: their numbers go split by split, row by row."""
    ends = np.cumsum([note.count for note in dataset.manifest.splits.values()])
    splits = np.searchsorted(ends, numbers, side="right")
    for number, split in zip(numbers.tolist(), splits.tolist(), strict=True):
        yield dataset.splits[split], number - int(ends[split - 1] if split else 0)


@contextmanager
def _backbone(spec: EmbedSpec, folder: JobFolder) -> Iterator[_Network]:
    public = public_weights(spec.backbone)
    backend = backend_for(public.network)
    classes = public.classes or tuple(map(str, range(public.class_count)))
    weights = read_weights(
        f"weights:{public.name}",
        weights_folders(folder, load_settings()),
        network=public.network,
        classes=classes,
        backend=backend,
    )
    sides, is_gray = public.preprocessing["size"], public.preprocessing["color"] == "GRAY"
    fitted = Preprocessing(size=(sides[0], sides[1]), channels=1 if is_gray else 3)
    request = ProgramRequest(network=public.network, **class_arrays(fitted.shape, public.class_count))
    opener = provider_of(backend, SupportsInference, "open a network for its features")
    network = opener.open_trained(request, weights)
    try:
        yield _Network(
            decode=fitted.decode,
            features=_given(network, fitted.finish, public.title),
            key={
                "weights": public.sha256,
                "network": public.network,
                "preprocessing": {"size": list(sides), "channels": fitted.channels, "resize_mode": fitted.resize_mode},
                "framework": backend,
            },
            about={"source": "backbone", "name": public.name, "title": public.title, "framework": backend},
        )
    finally:
        network.close()


@contextmanager
def _model(spec: EmbedSpec) -> Iterator[_Network]:
    job = open_trained_job(Path(spec.model), spec.checkpoint or None)
    preparing = job.context.preprocessing
    with open_network(job) as network:
        name = job.spec.name or Path(spec.model).name
        yield _Network(
            decode=preparing.decode,
            features=_given(network, preparing.finish, name),
            key={
                "weights": _digest(job.state.arrays),
                "network": job.request.network_text or job.request.network,
                "preprocessing": {"model": str(spec.model)},
                "framework": job.spec.backend,
            },
            about={
                "source": "model",
                "name": name,
                "model": str(spec.model),
                "checkpoint": job.checkpoint,
                "framework": job.spec.backend,
            },
        )


def _given(
    network: object, finish: Callable[[np.ndarray], np.ndarray], name: str
) -> Callable[[np.ndarray], np.ndarray]:
    if not isinstance(network, GivesFeatures):
        raise ConfigurationError(
            f"The network `{name}` does not give the inputs of its head.",
            advice="Make the map by another model, by a backbone, or by the samples' own features.",
        )
    return lambda batch: network.features(finish(batch))


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _own_features(dataset: Dataset, numbers: np.ndarray, watch: EventWatch) -> np.ndarray:
    part = dataset.schema.parts[0]
    flows = {split: dataset.flow(split, content="bytes") for split in dataset.splits}
    read: list[Any] = []
    known = np.ones(len(numbers), bool)
    for place, (split, row) in enumerate(_places(dataset, numbers)):
        if place % _BLOCK == 0:
            _goes_on(watch, "embed", place, len(numbers))
        try:
            if dataset.manifest.image is not None:
                read.append(small_pixels(dataset.picture(split, row)))
            else:
                value = flows[split].datapoint(row)[0]
                read.append(value if part in ("text", "row") else np.asarray(value, np.float32).reshape(-1))
        except DatapointError:
            known[place] = False
    _goes_on(watch, "embed", len(numbers), len(numbers))
    if not read:
        raise DataError("No sample of this dataset can be read.", received=plural(len(numbers), "sample"))
    if part == "text":
        found = features_of_texts(read)
    elif part == "row":
        found = features_of_rows(dataset.schema, read)
    else:
        found = features_of_pixels(read)
    rows = np.full((len(numbers), found.shape[1]), np.nan, np.float32)
    rows[known] = found
    return rows


# ---- what follows from them


def _add_neighbors(features: np.ndarray, arrays: dict[str, np.ndarray], watch: EventWatch) -> dict[str, Any]:
    found = nearest_of_each(features, _noting(watch, "compare"))
    arrays["neighbor"], arrays["neighbor_cosine"] = found
    arrays["near"], least = near_pairs(*found)
    return {"count": len(arrays["near"]), "least": round(least, 4)}


def _add_labels(
    spec: EmbedSpec,
    dataset: Dataset,
    features: np.ndarray,
    components: np.ndarray,
    arrays: dict[str, np.ndarray],
) -> dict[str, Any]:
    """Predict classes by heads that did not see a sample; return what is to be noted, nothing without classes."""
    names = dataset.schema.class_names
    labels = dataset.catalogue.column("class")[arrays["numbers"]]
    known = np.flatnonzero((labels >= 0) & (labels < len(names)))
    used = np.unique(labels[known])
    if not spec.folds or not dataset.schema.class_names or len(used) < 2 or len(known) < 2 * len(used):
        return {}
    inputs = components if len(known) > _MANY else features
    if dataset.schema.parts[0] != "row" and spec.features == "own":
        # A head standardizes its inputs: of few samples, the last components are noise.
        inputs = components[:, : max(2, len(known) // _SAMPLES_A_COMPONENT)]
    codes = np.searchsorted(used, labels[known])
    probabilities = held_out_probabilities(
        np.asarray(inputs[known], np.float32), codes, len(used), seed=spec.seed, folds=spec.folds
    )
    right = int(np.count_nonzero(probabilities.argmax(axis=1) == codes))
    # A head that contradicts most labels says nothing about single ones: the features do not tell the classes apart.
    candidates = known[label_candidates(probabilities, codes)] if 2 * right >= len(codes) else known[:0]
    arrays["candidates"] = candidates.astype(np.int32)
    arrays["predicted"] = np.full(len(labels), -1, np.int32)
    arrays["predicted"][known] = used[probabilities.argmax(axis=1)]
    for name, values in (
        ("score", probabilities.max(axis=1)),
        ("own_score", probabilities[np.arange(len(codes)), codes]),
    ):
        arrays[name] = np.full(len(labels), np.nan, np.float32)
        arrays[name][known] = values
    return {"folds": spec.folds, "labeled": len(known), "right": right, "candidates": len(candidates)}


def _add_tsne(
    spec: EmbedSpec,
    features: np.ndarray,
    components: np.ndarray,
    about: Mapping[str, Any],
    arrays: dict[str, np.ndarray],
    watch: EventWatch,
) -> dict[str, Any]:
    if about["source"] != "own":  # the length of what a network gives is no property of what is in an image
        components, _ = principal_components(unit_rows(np.asarray(features)), _TSNE_COMPONENTS)
    inputs = np.ascontiguousarray(components[:, :_TSNE_COMPONENTS], np.float32)
    if inputs.shape[1] < 2:
        inputs = np.pad(inputs, ((0, 0), (0, 1)))
    perplexity = fitting_perplexity(spec.perplexity, len(inputs))
    threads = usable_cores() if len(inputs) > _FEW else 1  # of few samples, threads wait for each other only
    arrays["tsne"] = tsne(inputs, perplexity=perplexity, seed=spec.seed, threads=threads, note=_noting(watch, "place"))
    return {"perplexity": round(perplexity, 2), "components": inputs.shape[1], "threads": threads}
