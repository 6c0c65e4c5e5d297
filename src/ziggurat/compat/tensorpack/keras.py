"""Models of Keras 2 (``tf_keras``) in towers: Tensorpack's ``contrib.keras``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import tf_keras

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import ScalarStats
from ziggurat.compat.tensorpack.training import SimpleTrainer, apply_default_prefetch
from ziggurat.errors import ConfigurationError
from ziggurat.tf.callback import Callback
from ziggurat.tf.data_parallel import SyncMultiGPUTrainerParameterServer
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.models import regularize_cost_from_collection
from ziggurat.tf.scopes import backup_collection, restore_collection
from ziggurat.tf.sessions import visible_gpus
from ziggurat.tf.summary import add_moving_summary
from ziggurat.tf.tower import get_current_tower_context

__all__ = ["KerasModel", "KerasModelCaller", "KerasPhaseCallback", "setup_keras_trainer"]

_TOTAL: Final = "total_loss"
_keras: Any = tf_keras
_backend: Any = _keras.src.backend
_phase_of_graph: Callable[[], Any] = _backend.learning_phase


def _phase_of_tower() -> Any:
    """Return whether layers train: as the tower says that is built; as Keras says outside of towers."""
    context = get_current_tower_context()
    return _phase_of_graph() if context is None else int(context.is_training)


_backend.learning_phase = _phase_of_tower


class _WholeModel:
    """A model that was built outside of towers, as Tensorpack 0.8 takes it; called once a tower.

    Args:
        model: a ``tf_keras.Model``.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.input_signature = [tf.TensorSpec(each.shape, each.dtype, each.op.name) for each in model.inputs]
        self.target_signature = [
            tf.TensorSpec(each.shape, each.dtype, f"target_{number}") for number, each in enumerate(model.outputs)
        ]

    def __call__(self, *input_tensors: Any) -> Any:
        """Return the output of the model for one tower; a list where it has several."""
        outputs = self._model(input_tensors[0] if len(input_tensors) == 1 else list(input_tensors))
        for update in self._model.updates:
            tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
        for loss in self._model.losses:
            tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, loss)
        return outputs


class KerasPhaseCallback(Callback):
    """Does nothing: layers of Keras know from the tower that they are built in whether they train.

    Args:
        isTrain: not used.
    """

    def __init__(self, isTrain: bool) -> None:
        self._is_train = isTrain


class KerasModelCaller:
    """Makes a model with the first tower, and calls it for the others: Keras does not share variables by name.

    Args:
        get_model: takes one tensor an input and returns a ``tf_keras.Model`` over them.
    """

    def __init__(self, get_model: Callable[..., Any]) -> None:
        self._get_model = get_model
        self._model: Any = None

    def __call__(self, *input_tensors: Any) -> Any:
        """Return the output of the model for one tower; a list where it has several."""
        if tf.get_variable_scope().reuse and self._model is not None:
            found = self._model.call(input_tensors[0] if len(input_tensors) == 1 else list(input_tensors))
        else:
            before = backup_collection([tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.UPDATE_OPS])
            model = self._get_model(*input_tensors)
            if not isinstance(model, tf_keras.Model):
                raise ConfigurationError(
                    f"The function of a Keras model returned a {type(model).__name__}, not a Keras model."
                )
            restore_collection(before)
            # What Keras adds to the collections is not always what the model trains.
            for variable in model.trainable_weights:
                tf.add_to_collection(tf.GraphKeys.TRAINABLE_VARIABLES, variable)
            for update in model.updates:
                tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
            for loss in model.losses:
                tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, loss)
            self._model, found = model, model.outputs
        if isinstance(found, list | tuple) and len(found) == 1:
            return found[0]
        return found


def setup_keras_trainer(
    trainer: Any,
    get_model: Callable[..., Any],
    input_signature: Sequence[Any],
    target_signature: Sequence[Any],
    input: Any,  # noqa: A002 - Tensorpack's name
    optimizer: Any,
    loss: Sequence[str],
    metrics: Sequence[str],
) -> None:
    """Set a trainer up for a model of Keras.

    Args:
        trainer: of one cost.
        get_model: takes one tensor an input and returns a ``tf_keras.Model`` over them.
        input_signature: a ``tf.TensorSpec`` for each input.
        target_signature: a ``tf.TensorSpec`` for each target.
        input: the input source, with inputs and targets.
        optimizer: a ``tf.train.Optimizer``.
        loss: for each output, the name of a loss of Keras.
        metrics: for each output, the name of a metric of Keras; none at all is fine too.

    Raises:
        ConfigurationError: where outputs, targets and losses are not of one number.
    """
    model = get_model if isinstance(get_model, _WholeModel) else KerasModelCaller(get_model)
    count = len(input_signature)

    def cost_of(*tensors: Any) -> Any:
        outputs, targets = model(*tensors[:count]), tensors[count:]
        outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        if not len(outputs) == len(targets) == len(loss):
            raise ConfigurationError(
                f"There are {len(outputs)} outputs, {len(targets)} targets and {len(loss)} losses, not one of each."
            )
        # Outside of the scopes of the loss: callbacks find the values by these names.
        parts = [
            _mean(_keras.losses.get(name)(target, output), name)
            for name, target, output in zip(loss, targets, outputs, strict=True)
        ]
        regularization = regularize_cost_from_collection()
        total = tf.add_n([*parts, *([] if regularization is None else [regularization])], name=_TOTAL)
        values = [
            _mean(_metric(name, target)(target, output), name)
            for name, target, output in zip(metrics, targets, outputs, strict=False)
        ]
        add_moving_summary(total, *parts, *values)
        return total

    trainer.setup_graph([*input_signature, *target_signature], input, cost_of, lambda: optimizer)


class KerasModel:
    """A model of Keras with a trainer: ``compile``, then ``fit``.

    Tensorpack 0.8 has another form: ``KerasModel(model, input, trainer=None)``, with a model that was built before.

    Args:
        get_model: takes one tensor an input and returns a ``tf_keras.Model`` over them.
        input_signature: a ``tf.TensorSpec`` for each input.
        target_signature: a ``tf.TensorSpec`` for each target.
        input: an input source or a data flow, with inputs and targets.
        trainer: one tower on one device, or one on each GPU, where it is None.
        inputs_desc: older name of ``input_signature``.
        targets_desc: older name of ``target_signature``.
    """

    def __init__(
        self,
        get_model: Any,
        input_signature: Any = None,
        target_signature: Any = None,
        input: Any = None,  # noqa: A002 - Tensorpack's name
        trainer: Any = None,
        *,
        inputs_desc: Any = None,
        targets_desc: Any = None,
    ) -> None:
        input_signature, target_signature = inputs_desc or input_signature, targets_desc or target_signature
        if isinstance(get_model, tf_keras.Model):
            input, trainer = input or input_signature, trainer or target_signature  # noqa: A001
            get_model = _WholeModel(get_model)
            input_signature, target_signature = get_model.input_signature, get_model.target_signature
        gpus = len(visible_gpus())
        self.trainer = trainer or (SimpleTrainer() if gpus <= 1 else SyncMultiGPUTrainerParameterServer(gpus))
        self.get_model = get_model
        self.input_signature = input_signature
        self.target_signature = target_signature
        self.input = apply_default_prefetch(input, self.trainer)
        self._tested: list[str] = []

    def compile(self, optimizer: Any, loss: str | Sequence[str], metrics: str | Sequence[str] | None = None) -> None:
        """Build the graph.

        Args:
            optimizer: a ``tf.train.Optimizer``.
            loss: names of losses of Keras, one an output.
            metrics: names of metrics of Keras.
        """
        losses = [loss] if isinstance(loss, str) else list(loss)
        others = [metrics] if isinstance(metrics, str) else list(metrics or ())
        self._tested = [*losses, *others, _TOTAL]
        setup_keras_trainer(
            self.trainer,
            self.get_model,
            self.input_signature,
            self.target_signature,
            self.input,
            optimizer,
            losses,
            others,
        )

    def fit(self, validation_data: Any = None, **kwargs: Any) -> None:
        """Train.

        Args:
            validation_data: a data flow or an input source that is evaluated after each epoch, before the callbacks.
            kwargs: arguments of ``Trainer.train_with_defaults``.
        """
        callbacks: list[Any] = list(kwargs.pop("callbacks", None) or ())
        if validation_data is not None:
            callbacks.insert(0, InferenceRunner(validation_data, ScalarStats(self._tested)))
        self.trainer.train_with_defaults(callbacks=callbacks, **kwargs)


def _metric(name: str, target: Any) -> Any:
    if name in ("accuracy", "acc"):
        name = "categorical_accuracy" if target.dtype.is_floating else "sparse_categorical_accuracy"
    return _keras.metrics.get(name)


def _mean(values: Any, name: str) -> Any:
    return tf.reduce_mean(values, name=name)
