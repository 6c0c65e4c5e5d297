"""``tf.estimator`` of TensorFlow 1: estimators with a ``model_fn``, and their inputs."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.errors import UsageError

__all__ = ["Estimator", "EstimatorSpec", "ModeKeys", "RunConfig", "estimator_module", "numpy_input_fn"]

_OWN: Final = "Write a `model_fn` for `tf.estimator.Estimator`, or train with a session."
_GONE: Final = {
    **{
        f"{kind}{name}": f"Ready-made estimators are not among what Ziggurat brings back. {_OWN}"
        for kind in ("DNN", "Linear", "DNNLinearCombined", "BoostedTrees", "Baseline")
        for name in ("Classifier", "Regressor", "Estimator")
    },
    **dict.fromkeys(("TrainSpec", "EvalSpec", "train_and_evaluate"), "Call `train` and `evaluate` by turns."),
    **dict.fromkeys(
        ("Exporter", "BestExporter", "FinalExporter", "LatestExporter"), "Write models with `tf.train.Saver`."
    ),
    "WarmStartSettings": "Restore variables in a hook, or in the `scaffold` of the `EstimatorSpec`.",
}


class ModeKeys:
    """What a ``model_fn`` builds its graph for."""

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"


class EstimatorSpec(NamedTuple):
    """What a ``model_fn`` returns.

    Args:
        mode: one of ``ModeKeys``.
        predictions: a tensor, or name → tensor; the first axis is that of the samples.
        loss: mean over the batch, a scalar.
        train_op: makes one step.
        eval_metric_ops: name → (value, update), as ``tf.metrics`` returns them.
        export_outputs: for exports; not used here.
        training_chief_hooks: run in training.
        training_hooks: run in training.
        scaffold: of the session.
        evaluation_hooks: run in evaluation.
        prediction_hooks: run in prediction.
    """

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metric_ops: Mapping[str, tuple[Any, Any]] | None = None
    export_outputs: Any = None
    training_chief_hooks: Sequence[Any] | None = None
    training_hooks: Sequence[Any] | None = None
    scaffold: Any = None
    evaluation_hooks: Sequence[Any] | None = None
    prediction_hooks: Sequence[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class _Fields:
    model_dir: str | None = None
    tf_random_seed: int | None = None
    save_summary_steps: int = 100
    save_checkpoints_steps: int | None = None
    save_checkpoints_secs: int | None = None
    session_config: Any = None
    keep_checkpoint_max: int = 5
    log_step_count_steps: int = 100


class RunConfig(_Fields):
    """How an estimator runs; without a distance of checkpoints, one is saved every 600 seconds.

    Raises:
        UsageError: for other fields of TensorFlow's class.
    """

    def __init__(self, model_dir: str | None = None, **fields: Any) -> None:
        for name in fields:
            if name not in _Fields.__dataclass_fields__:
                known = ", ".join(_Fields.__dataclass_fields__)
                raise UsageError(f"`tf.estimator.RunConfig` has no `{name}` here.", advice=f"It has {known}.")
        super().__init__(model_dir=model_dir, **fields)

    def replace(self, **fields: Any) -> RunConfig:
        """Return a copy with other fields."""
        return RunConfig(**{**{name: getattr(self, name) for name in _Fields.__dataclass_fields__}, **fields})


class Estimator:
    """Trains, evaluates and predicts with the graphs that a ``model_fn`` builds.

    Args:
        model_fn: ``(features, labels, mode, params, config)``, of which it takes those that it names; returns an
            ``EstimatorSpec``.
        model_dir: folder of checkpoints and summaries; a temporary one if neither this nor ``config`` names one.
        config: how it runs.
        params: given to ``model_fn`` and ``input_fn``.

    Raises:
        UsageError: for ``warm_start_from``, and for two different folders.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        if warm_start_from is not None:
            raise UsageError(
                "`tf.estimator.Estimator` takes no `warm_start_from` here.", advice=_GONE["WarmStartSettings"]
            )
        config = config or RunConfig()
        if model_dir and config.model_dir and model_dir != config.model_dir:
            raise UsageError(f"`model_dir` is `{model_dir}`, and that of `config` is `{config.model_dir}`.")
        self.model_dir = str(model_dir or config.model_dir or tempfile.mkdtemp())
        self.config = config.replace(model_dir=self.model_dir)
        self.model_fn = model_fn
        self.params = {} if params is None else params

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`tf.estimator.Estimator` has no `{name}` here. {_OWN}", name=name, obj=self)

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Any = None,
    ) -> Estimator:
        """Train until the input ends, for some steps more, or up to a step; goes on from the newest checkpoint.

        Raises:
            UsageError: for ``saving_listeners``, and for both ``steps`` and ``max_steps``.
        """
        if saving_listeners:
            raise UsageError("`Estimator.train` takes no `saving_listeners` here.", advice="Use a hook.")
        if steps is not None and max_steps is not None:
            raise UsageError("`steps` and `max_steps` are both given.", advice="Leave one of them out.")
        with self._graph() as graph:
            spec = self._built(input_fn, ModeKeys.TRAIN)
            if spec.train_op is None or spec.loss is None:
                raise UsageError("The `EstimatorSpec` of a training has no `train_op` or no `loss`.")
            tf.summary.scalar("loss", spec.loss)
            step = tf.train.get_global_step(graph)
            told = tf.train.LoggingTensorHook({"loss": spec.loss, "step": step}, every_n_iter=100)
            found = [*(hooks or ()), *(spec.training_hooks or ()), *(spec.training_chief_hooks or ())]
            found += [tf.train.NanTensorHook(spec.loss), told]
            if steps is not None or max_steps is not None:
                found.append(tf.train.StopAtStepHook(num_steps=steps, last_step=max_steps))
            config = self.config
            seconds = config.save_checkpoints_secs
            if seconds is None and config.save_checkpoints_steps is None:
                seconds = 600
            if max_steps is not None and (newest := self.latest_checkpoint()) and _step_of(newest) >= max_steps:
                tf.logging.info("No step is left: the checkpoint has reached max_steps, %d.", max_steps)
                return self
            with tf.train.MonitoredTrainingSession(
                checkpoint_dir=self.model_dir,
                scaffold=spec.scaffold
                or tf.train.Scaffold(saver=tf.train.Saver(max_to_keep=config.keep_checkpoint_max)),
                hooks=found,
                save_checkpoint_secs=seconds,
                save_checkpoint_steps=config.save_checkpoints_steps,
                save_summaries_steps=config.save_summary_steps,
                config=config.session_config,
                log_step_count_steps=config.log_step_count_steps,
            ) as session:
                loss = None
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
            tf.logging.info("The loss of the last step is %s.", loss)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Return the metrics over the input, or over its first ``steps`` batches, with ``loss`` and ``global_step``."""
        checkpoint = checkpoint_path or self._trained()
        with self._graph() as graph:
            spec = self._built(input_fn, ModeKeys.EVAL)
            if spec.loss is None:
                raise UsageError("The `EstimatorSpec` of an evaluation has no `loss`.")
            metrics = {**(spec.eval_metric_ops or {}), "loss": tf.metrics.mean(spec.loss)}
            updates = [update for _, update in metrics.values()]
            values = {key: value for key, (value, _) in metrics.items()}
            last = tf.train.FinalOpsHook({**values, "global_step": tf.train.get_global_step(graph)})
            with self._session(spec, checkpoint, [*(hooks or ()), *(spec.evaluation_hooks or ()), last]) as session:
                done = 0
                while not session.should_stop() and (steps is None or done < steps):
                    session.run(updates)
                    done += 1
        found = dict(last.final_ops_values)
        tf.logging.info("Evaluated at step %d: %s", found["global_step"], _text(found))
        writer = tf.summary.FileWriterCache.get(str(Path(self.model_dir) / (f"eval_{name}" if name else "eval")))
        numbers = {key: value for key, value in found.items() if key != "global_step" and np.ndim(value) == 0}
        summary = [tf.Summary.Value(tag=key, simple_value=float(value)) for key, value in numbers.items()]
        writer.add_summary(tf.Summary(value=summary), found["global_step"])
        writer.flush()
        return found

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: str | Sequence[str] | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """Yield the predictions of each sample, or of each batch."""
        checkpoint = checkpoint_path or self._trained()
        with self._graph():
            spec = self._built(input_fn, ModeKeys.PREDICT)
            predictions = spec.predictions
            if predict_keys is not None:
                keys = [predict_keys] if isinstance(predict_keys, str) else predict_keys
                predictions = {key: value for key, value in predictions.items() if key in keys}
                if not predictions:
                    raise UsageError(f"`predict_keys` {list(keys)} are none of {sorted(spec.predictions)}.")
            with self._session(spec, checkpoint, [*(hooks or ()), *(spec.prediction_hooks or ())]) as session:
                while not session.should_stop():
                    found = session.run(predictions)
                    if not yield_single_examples:
                        yield found
                    elif isinstance(found, dict):
                        for row in range(len(next(iter(found.values())))):
                            yield {key: value[row] for key, value in found.items()}
                    else:
                        yield from found

    def latest_checkpoint(self) -> str | None:
        """Return the newest checkpoint; None before the first."""
        return tf.train.latest_checkpoint(self.model_dir)

    def get_variable_names(self) -> list[str]:
        """Return the names of the variables in the newest checkpoint."""
        return [name for name, _ in tf.train.list_variables(self._trained())]

    def get_variable_value(self, name: str) -> np.ndarray:
        """Return a variable in the newest checkpoint."""
        return tf.train.load_variable(self._trained(), name)

    def _trained(self) -> str:
        found = self.latest_checkpoint()
        if found is None:
            # TensorFlow's type: scripts catch it.
            raise ValueError(f"`{self.model_dir}` has no checkpoint: call `train` first, or give `checkpoint_path`.")
        return found

    def _graph(self) -> Any:
        graph = tf.Graph()
        with graph.as_default():
            tf.set_random_seed(1 if self.config.tf_random_seed is None else self.config.tf_random_seed)
            tf.train.create_global_step(graph)
        return graph.as_default()

    def _built(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        values = {"mode": mode, "params": self.params, "config": self.config}
        features, labels = _features_and_labels(_called(input_fn, values))
        names = _parameters(self.model_fn)
        if labels is not None and "labels" not in names:
            raise UsageError("`model_fn` takes no `labels`, and the input has some.")
        given = {**values, **({"labels": labels} if "labels" in names else {})}
        spec = _called(self.model_fn, given, features)
        if not isinstance(spec, EstimatorSpec):
            raise UsageError(f"`model_fn` returned {type(spec).__name__}, not a `tf.estimator.EstimatorSpec`.")
        return spec

    def _session(self, spec: EstimatorSpec, checkpoint: str, hooks: Sequence[Any]) -> Any:
        creator = tf.train.ChiefSessionCreator(
            scaffold=spec.scaffold, config=self.config.session_config, checkpoint_filename_with_path=checkpoint
        )
        return tf.train.MonitoredSession(session_creator=creator, hooks=list(hooks))


def numpy_input_fn(
    x: Any,
    y: Any = None,
    batch_size: int = 128,
    num_epochs: int | None = 1,
    shuffle: bool | None = None,
    queue_capacity: int = 1000,
    num_threads: int = 1,
) -> Callable[[], Any]:
    """Return an ``input_fn`` over arrays with the samples along their first axis.

    Batches go on over the end of an epoch; only the very last one is smaller.

    Args:
        x: features: an array, or name → array.
        y: labels: an array, name → array, or None.
        batch_size: samples of a batch.
        num_epochs: passes over the arrays; None for no end.
        shuffle: whether each pass has its own order; it must be given.
        queue_capacity: not used here.
        num_threads: not used here.

    Raises:
        ValueError: as in TensorFlow: without ``shuffle``, without features, and for arrays of different lengths.
    """
    if shuffle not in (True, False):
        raise ValueError(f"`shuffle` is {shuffle}: write True, as for a training, or False.")
    columns = {("x", key): value for key, value in (x.items() if isinstance(x, Mapping) else [(None, x)])}
    if not columns:
        raise ValueError("`x` has no features: it is an empty dict.")
    if y is not None:
        columns |= {("y", key): value for key, value in (y.items() if isinstance(y, Mapping) else [(None, y)])}
    arrays = {key: np.asarray(value) for key, value in columns.items()}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise ValueError(f"The arrays of `x` and `y` have different lengths: {sorted(lengths)}.")

    def input_fn() -> Any:
        (count,) = lengths
        rows = tf.data.Dataset.range(count)
        if shuffle:
            rows = rows.shuffle(max(count, 1), reshuffle_each_iteration=True)
        places = _next_of(rows.repeat(num_epochs).batch(batch_size))
        tensors = {}
        for key, array in arrays.items():
            # The arrays stay outside of the graph, which may have 2 GB at most.
            tensors[key] = tf.numpy_function(lambda at, array=array: array[at], [places], array.dtype)
            tensors[key].set_shape([None, *array.shape[1:]])
        sides = {side: {key: tensor for (of, key), tensor in tensors.items() if of == side} for side in ("x", "y")}
        features, labels = (found.get(None, found) for found in sides.values())
        return features if y is None else (features, labels)

    return input_fn


def estimator_module() -> ModuleType:
    """Return ``tf.estimator`` for a script; a name that is not here is refused by name."""
    inputs = StandInModule(
        "tf.estimator.inputs",
        names={"numpy_input_fn": numpy_input_fn},
        gone={"pandas_input_fn": "Give its columns to `numpy_input_fn`."},
    )
    names = {
        "Estimator": Estimator,
        "EstimatorSpec": EstimatorSpec,
        "ModeKeys": ModeKeys,
        "RunConfig": RunConfig,
        "inputs": inputs,
    }
    return StandInModule("tf.estimator", names=names, gone=_GONE)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def _called(function: Callable[..., Any], values: Mapping[str, Any], *first: Any) -> Any:
    """Return what a function returns for those of the values that it takes."""
    names = _parameters(function)
    return function(*first, **{name: value for name, value in values.items() if name in names})


def _features_and_labels(given: Any) -> tuple[Any, Any]:
    found = _next_of(given) if isinstance(given, tf2.data.Dataset) else given
    if isinstance(found, (tuple, list)):
        if len(found) != 2:
            raise UsageError(f"`input_fn` returned {len(found)} parts: features and labels are two.")
        return found[0], found[1]
    return found, None


def _next_of(dataset: Any) -> Any:
    iterator = tf.data.make_initializable_iterator(dataset)
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)  # a session runs these at its start
    return iterator.get_next()


def _step_of(checkpoint: str) -> int:
    return int(tf.train.load_variable(checkpoint, tf.GraphKeys.GLOBAL_STEP))


def _text(found: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in sorted(found.items()))
