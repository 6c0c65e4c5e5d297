"""First epoch of a training that fits the last layer: features of the training split, and the head for them."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from ziggurat.engine.arithmetic import arithmetic_of
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.callback import Callback
from ziggurat.engine.capabilities import TakesLinearHead
from ziggurat.engine.interruption import LeaveLoop
from ziggurat.engine.linear_head import fit_linear_head
from ziggurat.engine.monitor import say
from ziggurat.engine.program import Program
from ziggurat.entities.pretrained_weights import no_head_to_fit
from ziggurat.errors import ConfigurationError, DataError, DatapointError
from ziggurat.events import Progress
from ziggurat.records.feature_store import FeatureKey, FeatureStore
from ziggurat.tasks import TaskContext
from ziggurat.tasks.preprocessing import InputPreprocessing
from ziggurat.worker.oversampling import repeat_factors
from ziggurat.worker.pipeline import DataOptions, Pipeline
from ziggurat.worker.source import DataSource, labels_of

__all__ = ["FitHead", "HeadSamples", "check_class_numbers", "check_head_fit", "features_key", "weights_digest"]

_LOG: Final = logging.getLogger(__name__)
_TRAIN: Final = "train"
_SAY_EVERY_S: Final = 0.5
_LOG_EVERY_S: Final = 10.0
_SCOPE: Final = "model/"
_ACCURACY, _ERROR = "accuracy", "error"


@dataclass(frozen=True, kw_only=True)
class HeadSamples:
    """Samples that a head is fitted to.

    Args:
        open: opens the data of the job anew.
        options: of its data.
        context: of the job.
        class_weights: factor of each class in the loss; empty for equal ones.
    """

    open: Callable[[], DataSource]
    options: DataOptions
    context: TaskContext
    class_weights: tuple[float, ...] = ()


def check_class_numbers(context: TaskContext) -> None:
    """Refuse the fit of a head where a sample has not one class.

    Raises:
        ConfigurationError: with the task.
    """
    target = context.task.target(context)
    if target is None or not target.is_class_number or target.classes is None:
        raise no_head_to_fit(context.task.title)


def check_head_fit(program: Program, backend: str) -> None:
    """Refuse the fit of a head where the backend has none.

    Args:
        program: of the training.
        backend: name of its backend.

    Raises:
        ConfigurationError: if it does not give the features of a network.
    """
    if not isinstance(program, TakesLinearHead):
        raise ConfigurationError(
            f"The backend `{backend}` cannot fit the last layer of a network.",
            received="`fine_tuning.fit_head`",
            advice="Leave it out, or use another backend.",
        )


class FitHead(Callback):
    """Fits the head of a pretrained network to its features in place of the steps of the first epoch.

    The features of the training split are computed once, in its order and without augmentation, and kept in a store,
    where the same backbone and samples find them again. The strength of the regularization is chosen by
    cross-validation inside the split.

    Args:
        samples: of the training split.
        request: of the program.
        backend: name of the backend.
        seed: decides the folds of the cross-validation.
        store: of features; None to keep none.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        samples: HeadSamples,
        request: ProgramRequest,
        backend: str,
        seed: int,
        store: FeatureStore | None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._samples = samples
        self._request = request
        self._backend = backend
        self._seed = seed
        self._store = store
        self._clock = clock
        self._began_s = self._said_s = self._logged_s = 0.0

    def before_epoch(self) -> None:
        """Do the work of the first epoch.

        Raises:
            ConfigurationError: if the last layer is not one fully connected layer.
            DataError: if the samples are of fewer than two classes.
            MissingDependencyError: if SciPy is not installed.
        """
        if self.epoch_num != 1:
            return
        program = self._program
        self._began_s = self._logged_s = self._clock()
        program.head_names()  # of a network that has no such head, nothing is computed
        context = self._samples.context
        with closing(_Split(self._samples)) as split:
            features, labels, weights = self._features(split.pipeline, split.flow), split.labels, split.weights
            is_read = np.isfinite(features[:, 0]) & (labels >= 0)
            if not is_read.any():
                raise DataError("No sample of the training split can be used.", received=f"{len(labels)} samples")
            head = fit_linear_head(
                features[is_read],
                labels[is_read],
                len(context.class_names),
                seed=self._seed,
                sample_weights=None if weights is None else weights[is_read],
                note=lambda done, total: self._tell("Fit", done, total),
            )
        program.set_head(head.weights, head.bias)
        right = float(np.mean(head.probabilities(features[is_read]).argmax(axis=1) == labels[is_read]))
        self.trainer.pass_over_epoch()
        for name, value in ((_ACCURACY, right), (_ERROR, 1.0 - right)):
            if name in self.trainer.program.names():
                self.trainer.put(name, value)
        say(
            self.trainer,
            f"The last layer was fitted to {np.count_nonzero(is_read):,} samples with L2 strength {head.strength:g}, "
            "chosen by cross-validation.",
        )

    @property
    def _program(self) -> Any:
        return self.trainer.program

    def _features(self, pipeline: Pipeline, flow: Any) -> np.ndarray:
        """Return (N, D) float32 features of the split; NaN for samples that cannot be read."""
        if self._store is None:
            return np.concatenate(list(self._blocks(pipeline, len(flow))))
        context = self._samples.context
        key = features_key(
            samples=samples_digest(flow),
            weights=weights_digest(self._program.state(), self._program.head_names()),
            network=self._request.network_text or self._request.network,
            preprocessing=context.preprocessing,
            backend=self._backend,
            arithmetic=arithmetic_of(self.trainer.program),
        )
        found = self._store.find(key)
        if found is not None and len(found) == len(flow):
            _LOG.info("The features of %s samples are in the store.", len(flow))
            return np.asarray(found)
        return np.asarray(self._store.write(key, self._blocks(pipeline, len(flow)), len(flow)))

    def _blocks(self, pipeline: Pipeline, count: int) -> Iterator[np.ndarray]:
        """Yield features in the order of the split."""
        done, width = 0, 0
        with pipeline.evaluation(_TRAIN, numbered=True) as batches:
            for batch in batches:
                if self.trainer.stop_reason is not None:
                    raise LeaveLoop
                rows = np.asarray(batch[-1], np.int64)
                features = self._program.features(batch[0])
                width = features.shape[1]
                block = np.full((int(rows[-1]) + 1 - done, width), np.nan, np.float32)
                block[rows - done] = features
                done = int(rows[-1]) + 1
                self._tell("Features", done, count)
                yield block
        if done < count:
            yield np.full((count - done, max(1, width)), np.nan, np.float32)

    def _tell(self, what: str, done: int, total: int) -> None:
        """Say how far it is, and that it goes on."""
        trainer, now = self.trainer, self._clock()
        trainer.note_progress()
        text = f"{what} {done:,} of {total:,}"
        if now - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now
            _LOG.info("%s", text)
        if now - self._said_s < _SAY_EVERY_S and done < total:
            return
        self._said_s = now
        trainer.monitors.put_event(
            Progress(
                time=trainer.monitors.now(),
                epoch=trainer.epoch_num,
                global_step=trainer.global_step,
                total_steps=trainer.max_epoch * trainer.steps_per_epoch,
                remaining_s=(now - self._began_s) * (total - done) / done if done and what == "Features" else None,
                stage=text,
            )
        )


class _Split:
    """The training split of a job, opened anew.

    Args:
        samples: what to open.
    """

    def __init__(self, samples: HeadSamples) -> None:
        source = samples.open()
        self.pipeline = Pipeline(source, samples.options, samples.context)
        self.flow: Any = source.splits[_TRAIN]
        self._samples = samples
        self._raw = labels_of(self.flow)
        self.labels = np.array([self._class_of(label) for label in self._raw], np.int64)
        """(N,) class numbers; -1 for a sample without one."""

    @property
    def weights(self) -> np.ndarray | None:
        """(N,) factors of the loss: class weights, and how often a sample of a rare class is due; None for 1."""
        share, by_class = self._samples.options.oversample_below, self._samples.class_weights
        if not share and not by_class:
            return None
        weights = np.ones(len(self.labels))
        if by_class:
            weights *= np.asarray(by_class)[self.labels]
        if share:
            task = self._samples.context.task
            weights *= repeat_factors([task.classes_of(label) for label in self._raw], share)
        return weights

    def close(self) -> None:
        """Close the split."""
        self.flow.close()

    def _class_of(self, label: Any) -> int:
        context = self._samples.context
        try:
            return int(context.task.encode(context, label, ""))
        except DatapointError:
            return -1


def features_key(
    *,
    samples: str,
    weights: str,
    network: str,
    preprocessing: InputPreprocessing,
    backend: str,
    arithmetic: Mapping[str, Any],
) -> FeatureKey:
    """Return the key of the features of samples.

    Args:
        samples: digest of the samples in their order.
        weights: digest of the weights before the head.
        network: text of the network, or its name.
        preprocessing: of the samples.
        backend: name of the backend.
        arithmetic: of the process.
    """
    return FeatureKey(
        samples=samples,
        weights=weights,
        network=hashlib.sha256(network.encode()).hexdigest(),
        preprocessing=_plain(preprocessing),
        framework=backend,
        arithmetic=arithmetic,
    )


def samples_digest(flow: Any) -> str:
    """Return the SHA-256 of what the samples of a split are made of, in their order; labels do not count."""
    digest = hashlib.sha256()
    for row in range(len(flow)):
        try:
            parts = flow.datapoint(row)[:-1]
        except DatapointError:
            parts = [b""]
        for part in parts:
            content = part if isinstance(part, bytes | memoryview) else np.ascontiguousarray(part)
            shape = "" if isinstance(content, bytes | memoryview) else f"{content.dtype}{content.shape}"
            digest.update(f"{row} {shape or len(content)} ".encode())
            digest.update(content if isinstance(content, bytes | memoryview) else content.data)
    return digest.hexdigest()


def weights_digest(arrays: Mapping[str, np.ndarray], head: tuple[str, ...] = ()) -> str:
    """Return the SHA-256 of the weights of a network without its head and without the slots of an optimizer.

    Args:
        arrays: of a checkpoint.
        head: names of the arrays of the head.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        if name.startswith(_SCOPE) and name not in head and name.rsplit("/", 1)[0] not in arrays:
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {array.dtype} {array.shape} ".encode())
            digest.update(array.data)
    return digest.hexdigest()


def _plain(preprocessing: InputPreprocessing) -> dict[str, Any]:
    """Return preprocessing as JSON values; an array as its digest."""
    found: dict[str, Any] = {"kind": type(preprocessing).__name__}
    for each in fields(preprocessing):  # pyright: ignore[reportArgumentType]
        value = getattr(preprocessing, each.name)
        is_array = isinstance(value, np.ndarray)
        found[each.name] = hashlib.sha256(np.ascontiguousarray(value).data).hexdigest() if is_array else value
    return found
