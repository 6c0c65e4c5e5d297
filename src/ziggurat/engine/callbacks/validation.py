"""Validation during training: the runner, and the statistics that it computes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.adapting import method_of
from ziggurat.engine.callbacks.batches import batch_size, plain_array
from ziggurat.engine.callbacks.periods import Recurring
from ziggurat.errors import ConfigurationError, DataError
from ziggurat.tasks import Metric
from ziggurat.tasks.base import named_targets
from ziggurat.tasks.weighted_mean import WeightedMean, WeightedSum

__all__ = [
    "BinaryClassificationStats",
    "ClassificationError",
    "InferenceRunner",
    "Inferencer",
    "MetricStats",
    "ScalarStats",
]

_logger = logging.getLogger(__name__)

_WEIGHTING: Final = "weighting"
"""Key of a checkpoint's state that older versions did not write: they averaged every loss by samples."""

_OVER_SPLIT: Final = "over the split"


class InferenceRunner(Recurring):
    """Runs the network in validation mode over a data flow and puts what the inferencers make of it.

    It runs until the flow ends, so a smaller last batch counts too: batch with ``BatchData(..., remainder=True)``. What
    stands after it in the list, and every saver wherever it stands, sees the new numbers.

    Args:
        input: batches that can be iterated again.
        infs: an inferencer, or several.
        every_k_epochs: after every k-th epoch; None for not.
        every_k_steps: after every k-th step; None for not.
        before_train: also before the first step of the job.

    Raises:
        ConfigurationError: without an inferencer.
        DataError: from the training, where the flow has no batch.
    """

    def __init__(
        self,
        input: Iterable[Any],  # noqa: A002 - Tensorpack's name
        infs: Inferencer | Sequence[Inferencer],
        *,
        every_k_epochs: float | None = 1,
        every_k_steps: int | None = None,
        before_train: bool = False,
    ) -> None:
        super().__init__(every_k_steps=every_k_steps, every_k_epochs=every_k_epochs)
        self._flow = input
        self._inferencers = [infs] if isinstance(infs, Inferencer) else list(infs)
        if not self._inferencers:
            raise ConfigurationError(
                "An `InferenceRunner` has inferencers.", received="none", advice="Give it `ScalarStats('cost')`."
            )
        self._at_start = before_train
        self._is_resumed_by_weights = False
        self._has_told_change = False

    def declares(self) -> Sequence[str]:
        """Return the names of all inferencers."""
        return tuple(dict.fromkeys(name for inferencer in self._inferencers for name in inferencer.names()))

    def before_train(self) -> None:
        """Run at the start of the job where that was asked for."""
        self._has_told_change = self.global_step == 0 or self._is_resumed_by_weights
        if self._at_start and self.global_step == 0:
            self.trigger()

    def trigger(self) -> None:
        """Run over all batches and put the results."""
        for inferencer in self._inferencers:
            inferencer.before_inference()
        batches = 0
        for values, batch in self._evaluated():
            if not self._has_told_change:
                self._tell_change(values)
            for inferencer in self._inferencers:
                inferencer.on_values(values, batch)
            batches += 1
            self.trainer.note_progress()
        if not batches:
            raise DataError(
                "A validation set has at least one batch.",
                received="none",
                advice="Keep the remainder (`BatchData(..., remainder=True)`), and give a source that can be iterated "
                "again, not a generator object.",
            )
        for inferencer in self._inferencers:
            for tag, value in inferencer.after_inference().items():
                self.trainer.put(tag, value)

    def _evaluated(self) -> Iterator[tuple[Mapping[str, Any], Any]]:
        """Yield the values of each batch, with the batch itself."""
        names, evaluate = self.declares(), self.trainer.program.evaluate
        for batch in self._flow:
            yield evaluate(batch, names), batch

    def _tell_change(self, values: Mapping[str, Any]) -> None:
        """Say once that the curve of a job of an older version follows another rule from here on."""
        changed = [name for name, value in values.items() if isinstance(value, WeightedMean)]
        if changed:
            _logger.warning(
                "From epoch %d on, the validation value of %s is the weighted mean over the whole split. Before, it was"
                " the mean of the batches, and depended on the batch size.",
                self.trainer.epoch_num,
                ", ".join(changed),
            )
        self._has_told_change = True

    def state(self) -> Any:
        """Return the position of the flow: a shuffled or augmented one is another in each pass."""
        state = method_of(self._flow, "state")
        return {_WEIGHTING: _OVER_SPLIT, "flow": None if state is None else state()}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave, also that of older versions: the position of the flow alone."""
        self._is_resumed_by_weights = isinstance(state, Mapping) and state.get(_WEIGHTING) == _OVER_SPLIT
        position = state["flow"] if self._is_resumed_by_weights else state
        load = method_of(self._flow, "load_state")
        if position is not None and load is not None:
            load(position)

    def after_train(self) -> None:
        """Free the flow's workers."""
        close = method_of(self._flow, "close")
        if close is not None:
            close()


class Inferencer:
    """Gathers values over all batches of one pass.

    A subclass overrides the four methods. Tensorpack's ``_before_inference``, ``_get_fetches``,
    ``_on_fetches(results)`` and ``_after_inference`` work too.
    """

    def names(self) -> Sequence[str]:
        """Return the values of the program that it needs from every batch."""
        return self._legacy("_get_fetches") or ()

    def before_inference(self) -> None:
        """Begin a pass."""
        self._legacy("_before_inference")

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Take the values of one batch.

        Args:
            values: name → number or array; ``names()`` and those of other inferencers.
            batch: the batch itself, as the data flow gave it.
        """
        self._legacy("_on_fetches", [values[name] for name in self.names()])

    def after_inference(self) -> Mapping[str, float]:
        """End the pass; return tag → number for the monitors."""
        return self._legacy("_after_inference") or {}

    def _legacy(self, name: str, *arguments: Any) -> Any:
        method = getattr(self, name, None)
        return None if method is None else method(*arguments)


class ScalarStats(Inferencer):
    """Means over all *samples* of the set, put as ``<prefix>_<name>``; of a graph's ``cost:0`` as ``<prefix>_cost``.

    A single number of a batch counts as often as the batch has samples (``batch_size(batch)``: the length of its first
    component), so a smaller last batch weighs less; an array with one row a sample is averaged over its rows. A loss
    that is divided by something else than samples, as the weights of their classes, is a ``WeightedMean``: its sums and
    its weights are added up over the set.

    Args:
        names: values of the program, or one of them.
        prefix: before the names; empty for none.
    """

    def __init__(self, names: Sequence[str] | str, prefix: str = "validation") -> None:
        self._names = (names,) if isinstance(names, str) else tuple(names)
        self._prefix = prefix
        self._sums: dict[str, float] = {}
        self._weighted: dict[str, list[WeightedSum]] = {}
        self._samples = 0

    def names(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_inference(self) -> None:
        """Begin at zero."""
        self._sums = dict.fromkeys(self._names, 0.0)
        self._weighted = {}
        self._samples = 0

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Add what the batch has."""
        samples = batch_size(batch)
        self._samples += samples
        for name in self._names:
            value = values[name]
            if isinstance(value, WeightedMean):
                before = self._weighted.get(name) or [WeightedSum()] * len(value.sums)
                self._weighted[name] = [one + other for one, other in zip(before, value.sums, strict=True)]
            else:
                self._sums[name] += samples * float(np.mean(plain_array(value), dtype=np.float64))

    def after_inference(self) -> Mapping[str, float]:
        """Return the means."""
        prefix = f"{self._prefix}_" if self._prefix else ""
        means = {name: total / self._samples for name, total in self._sums.items()}
        means |= {name: sum(each.mean for each in sums) for name, sums in self._weighted.items()}
        return {f"{prefix}{name.removesuffix(':0')}": mean for name, mean in means.items()}


class MetricStats(Inferencer):
    """The single numbers of a task's metrics, put as ``<prefix>_<name>``.

    Args:
        metrics: makes new metrics, for each pass.
        outputs: values of the program that they need.
        prefix: before the names.
    """

    def __init__(
        self, metrics: Callable[[], Sequence[Metric]], outputs: Sequence[str], prefix: str = "validation"
    ) -> None:
        self._make = metrics
        self._outputs = tuple(outputs)
        self._prefix = prefix
        self._metrics: Sequence[Metric] = ()

    def names(self) -> Sequence[str]:
        """Return the outputs."""
        return self._outputs

    def before_inference(self) -> None:
        """Begin with new metrics."""
        self._metrics = self._make()

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Update the metrics with a batch ``[x, y]``, or ``[x]``."""
        outputs = {name: plain_array(values[name]) for name in self._outputs}
        targets = named_targets(batch)
        for metric in self._metrics:
            metric.update(outputs, targets)

    def after_inference(self) -> Mapping[str, float]:
        """Return the numbers that are defined."""
        found = {name: value for metric in self._metrics for name, value in metric.compute().items()}
        return {
            f"{self._prefix}_{name}": float(value)
            for name, value in found.items()
            if isinstance(value, int | float) and not isinstance(value, bool)
        }


class ClassificationError(Inferencer):
    """The share of wrong samples, from a vector with one 0 or 1 a sample.

    Args:
        wrong_tensor_name: the vector; 1 where the sample was classified wrongly.
        summary_name: tag of the result.
    """

    def __init__(self, wrong_tensor_name: str = "incorrect_vector", summary_name: str = "validation_error") -> None:
        self._name = wrong_tensor_name
        self._tag = summary_name
        self._wrong = 0.0
        self._samples = 0

    def names(self) -> Sequence[str]:
        """Return the name of the vector."""
        return (self._name,)

    def before_inference(self) -> None:
        """Begin at zero."""
        self._wrong, self._samples = 0.0, 0

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Count."""
        vector = _vector(self._name, values[self._name])
        self._wrong += float(vector.sum(dtype=np.float64))
        self._samples += len(vector)

    def after_inference(self) -> Mapping[str, float]:
        """Return the share."""
        return {self._tag: self._wrong / self._samples}


class BinaryClassificationStats(Inferencer):
    """Precision and recall of a classifier with two classes, put as ``<prefix>_precision`` and ``<prefix>_recall``.

    The ratio of nothing is NaN: no sample was called positive, or none is.

    Args:
        pred_tensor_name: vector with the predicted class of each sample, 0 or 1.
        label_tensor_name: vector with the true class of each sample, 0 or 1.
        prefix: before the tags.
    """

    def __init__(self, pred_tensor_name: str, label_tensor_name: str, prefix: str = "val") -> None:
        self._predicted_name = pred_tensor_name
        self._label_name = label_tensor_name
        self._prefix = prefix
        self._both = self._predicted = self._true = 0

    def names(self) -> Sequence[str]:
        """Return the two names."""
        return (self._predicted_name, self._label_name)

    def before_inference(self) -> None:
        """Begin at zero."""
        self._both = self._predicted = self._true = 0

    def on_values(self, values: Mapping[str, Any], batch: Any) -> None:
        """Count."""
        predicted = _vector(self._predicted_name, values[self._predicted_name]).astype(bool)
        true = _vector(self._label_name, values[self._label_name]).astype(bool)
        self._both += int((predicted & true).sum())
        self._predicted += int(predicted.sum())
        self._true += int(true.sum())

    def after_inference(self) -> Mapping[str, float]:
        """Return both ratios."""
        return {
            f"{self._prefix}_precision": self._both / self._predicted if self._predicted else float("nan"),
            f"{self._prefix}_recall": self._both / self._true if self._true else float("nan"),
        }


def _vector(name: str, value: Any) -> np.ndarray:
    array = plain_array(value)
    if array.ndim != 1:
        raise DataError(
            f"`{name}` must be a vector with one number a sample.",
            received=f"shape {array.shape}",
            advice="Do not average it in the network: the set is averaged over its samples, not over its batches.",
        )
    return array
