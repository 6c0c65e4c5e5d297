"""Batch normalization, and batch normalization with a rectifier.

Source: Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
Shift" (2015). Virtual batches: Hoffer, Hubara and Soudry, "Train longer, generalize better" (2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal
from weakref import WeakSet

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf import logger
from ziggurat.tf.models.arguments import ONES, ZEROS, channels_of, plain_data_format, to_channels_last
from ziggurat.tf.models.context import is_training_now
from ziggurat.tf.models.registry import VariableHolder, layer_register, older_arguments
from ziggurat.tf.models.tower_mean import process_count, process_mean, tower_mean
from ziggurat.tf.tower import TrainTowerContext, get_current_tower_context

__all__ = ["BNReLU", "BatchNorm"]

_UPDATES: Final = ("default", "collection", "internal", "skip")
_OVER_TOWERS: Final = ("towers", "nccl")
_OVER_PROCESSES: Final = ("processes", "collective", "horovod")
_FUSED_DTYPES: Final = (tf.float32, tf.float16)

_warned: WeakSet[Any] = WeakSet()


@dataclass(frozen=True)
class _Variables:
    """Variables of one layer, each (C,); ``gamma`` is 1 and ``beta`` 0 where the layer has none."""

    gamma: Any
    beta: Any
    mean: Any
    variance: Any


@layer_register()
@older_arguments(
    use_bias="center",
    use_scale="scale",
    gamma_init="gamma_initializer",
    decay="momentum",
    use_local_stat="training",
    internal_update=("ema_update", lambda is_internal: "internal" if is_internal else "collection"),
)
def BatchNorm(  # noqa: N802 - Tensorpack's name
    inputs: Any,
    axis: int | None = None,
    *,
    training: bool | None = None,
    momentum: float = 0.9,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = ZEROS,
    gamma_initializer: Any = ONES,
    virtual_batch_size: int | None = None,
    data_format: str = "channels_last",
    ema_update: Literal["default", "collection", "internal", "skip"] = "default",
    sync_statistics: str | bool | None = None,
) -> Any:
    """Normalize each channel to mean 0 and variance 1, then scale and shift it: ``BatchNorm(name, inputs)``.

    In training, the statistics are those of the batch; elsewhere they are the running averages
    a ← momentum · a + (1 − momentum) · s. For (N, H, W, C) the running variance takes s with Bessel's correction
    n / (n − 1), n = N · H · W, and for (N, C) without it: as the fused operation and ``tf.layers`` have it.

    Variables: ``gamma``, ``beta``, and the running averages ``mean/EMA`` and ``variance/EMA``, which are in
    ``MODEL_VARIABLES`` and not trainable; all (C,).

    Args:
        inputs: (N, C), (N, H, W, C), or (N, C, H, W) with ``data_format="channels_first"``.
        axis: of the channels, in place of ``data_format``.
        training: whether the statistics are those of the batch; as the ``TowerContext`` says where it is None.
        momentum: of the running averages, in [0, 1).
        epsilon: added to the variance.
        center: whether there is a ``beta``.
        scale: whether there is a ``gamma``.
        beta_initializer: of ``beta``.
        gamma_initializer: of ``gamma``.
        virtual_batch_size: samples that are normalized together, a divisor of N; None for the whole batch.
        data_format: ``channels_last`` or ``channels_first``.
        ema_update: ``default`` and ``collection``: the updates of the running averages are put into ``UPDATE_OPS``, for
            ``RunUpdateOps``. ``internal``: they happen whenever the result is computed. ``skip``: never. Only the main
            training tower updates.
        sync_statistics: ``towers`` (or ``nccl``, or True): statistics over the batches of all towers of the graph,
            which have the same size. ``processes`` (or ``collective``, ``horovod``): over all processes. None: of the
            tower's own batch.

    Raises:
        ConfigurationError: where the input has another number of axes, or an option is none of these.
        StateError: where ``training`` is None and there is no tower.
    """
    channel_axis = _channel_axis(inputs, axis, data_format)
    _check_options(ema_update, sync_statistics, virtual_batch_size)
    is_training = is_training_now(training, "BatchNorm")
    context = get_current_tower_context()
    if not is_training and context is not None and context.is_training:
        _warn_once()
    variables, holder = _variables(inputs, channel_axis, center, scale, beta_initializer, gamma_initializer)
    if is_training:
        average = _average(sync_statistics, context)
        result, mean, variance = _by_batch(inputs, channel_axis, variables, epsilon, virtual_batch_size, average)
        is_main = context is None or context.is_main_training_tower
        result = _update(result, variables, mean, variance, momentum, ema_update if is_main else "skip")
    else:
        result = _by_averages(inputs, channel_axis, variables, epsilon)
    outputs = tf.identity(result, name="output")
    outputs.variables = holder
    return outputs


@layer_register(use_scope=None)
def BNReLU(x: Any, name: str | None = None) -> Any:  # noqa: N802 - Tensorpack's name
    """Normalize by a ``BatchNorm`` named ``bn``, then set negative values to 0; also an ``activation`` of layers.

    Args:
        x: as ``BatchNorm`` takes it.
        name: of the operation, where the layer has no name.
    """
    return tf.nn.relu(BatchNorm("bn", x), name=name)


def _warn_once() -> None:
    graph = tf.get_default_graph()
    if graph not in _warned:
        _warned.add(graph)
        name = tf.get_variable_scope().name
        logger.warning("BatchNorm `%s`, and maybe others, uses its running averages in training.", name)


def _channel_axis(inputs: Any, axis: int | None, data_format: str) -> int:
    rank = inputs.shape.rank
    if rank not in (2, 4):
        raise ConfigurationError(
            f"`BatchNorm` got shape {inputs.shape}, not (N, C) or images.",
            advice="Reshape other inputs to one of them.",
        )
    if axis is None:
        return 1 if rank == 2 or plain_data_format(data_format) == "NCHW" else 3
    if axis not in (1, rank - 1, -1):
        raise ConfigurationError(
            f"`axis` of `BatchNorm` must be 1 or -1 for an input of shape {inputs.shape}, not {axis}.",
            advice="Leave it out for the one of `data_format`.",
        )
    return axis % rank


def _check_options(ema_update: str, sync_statistics: str | bool | None, virtual_batch_size: int | None) -> None:
    if ema_update not in _UPDATES:
        raise ConfigurationError(
            f"`ema_update` is one of {', '.join(_UPDATES)}.",
            received=ema_update,
            advice="`internal` needs no callback.",
        )
    if sync_statistics not in (None, False, True, *_OVER_TOWERS, *_OVER_PROCESSES):
        raise ConfigurationError(
            f"`sync_statistics` is None or one of {', '.join((*_OVER_TOWERS, *_OVER_PROCESSES))}.",
            received=sync_statistics,
            advice="`towers` is for the towers of one process.",
        )
    if sync_statistics and virtual_batch_size is not None:
        raise ConfigurationError(
            "Statistics are of a part of the batch, or of the batches of all towers.",
            received="`virtual_batch_size` and `sync_statistics`",
            advice="Leave one of them out.",
        )


def _variables(
    inputs: Any, channel_axis: int, center: bool, scale: bool, beta_initializer: Any, gamma_initializer: Any
) -> tuple[_Variables, VariableHolder]:
    shape = [channels_of(inputs, channel_axis, "BatchNorm")]
    # Sums of many small numbers: kept in float32 where the inputs are of half precision.
    dtype = tf.float32 if inputs.dtype.size == 2 else inputs.dtype
    found = {}
    if scale:
        found["gamma"] = tf.get_variable("gamma", shape, dtype, gamma_initializer)
    if center:
        found["beta"] = tf.get_variable("beta", shape, dtype, beta_initializer)
    kept = {
        "trainable": False,
        "collections": [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES],
    }
    mean = tf.get_variable("mean/EMA", shape, dtype, ZEROS, **kept)
    variance = tf.get_variable("variance/EMA", shape, dtype, ONES, **kept)
    gamma, beta = found.get("gamma", tf.ones(shape, dtype)), found.get("beta", tf.zeros(shape, dtype))
    holder = VariableHolder(**found, mean=mean, variance=variance, moving_mean=mean, moving_variance=variance)
    return _Variables(gamma, beta, mean, variance), holder


@dataclass(frozen=True)
class _Average:
    """What takes the mean of a statistic over towers or processes.

    Args:
        of: statistic and its name → mean.
        count: number of batches that it is over.
    """

    of: Callable[[Any, str], Any]
    count: int


def _average(sync_statistics: str | bool | None, context: Any) -> _Average | None:
    """Return what takes means over batches; None where the statistics are of one batch."""
    key = tf.get_variable_scope().name
    if not sync_statistics or not isinstance(context, TrainTowerContext):
        return None
    key = key.removeprefix(f"{context.vs_name}/") if context.vs_name else key

    def over_towers(value: Any, name: str) -> Any:
        return tower_mean(value, context, f"{key}/{name}")

    def over_processes(value: Any, name: str) -> Any:
        return process_mean(over_towers(value, name), f"{key}/{name}")

    if sync_statistics in _OVER_PROCESSES:
        return _Average(over_processes, context.total * process_count())
    return None if context.total == 1 else _Average(over_towers, context.total)


def _by_batch(
    inputs: Any,
    channel_axis: int,
    variables: _Variables,
    epsilon: float,
    virtual_batch_size: int | None,
    average: _Average | None,
) -> tuple[Any, Any, Any]:
    """Return the result with the statistics of the batch, and these, as they go into the running averages."""
    is_plain = virtual_batch_size is None and average is None
    if is_plain and inputs.shape.rank == 4 and inputs.dtype in _FUSED_DTYPES:
        return _fused(inputs, channel_axis, variables, epsilon)
    x = tf.cast(inputs, variables.mean.dtype)
    if virtual_batch_size is not None:
        sizes = tf.shape(x)
        x = tf.reshape(x, tf.concat([[-1, virtual_batch_size], sizes[1:]], 0))
        channel_axis += 1
    first = 0 if virtual_batch_size is None else 1
    axes = [axis for axis in range(first, inputs.shape.rank + first) if axis != channel_axis]
    mean = tf.reduce_mean(x, axes, keepdims=True)
    count = tf.cast(tf.size(x) / tf.size(mean), x.dtype)
    if average is not None:
        mean = average.of(mean, "mean")
    variance = tf.reduce_mean(tf.square(x - mean), axes, keepdims=True)
    if average is not None:
        variance = average.of(variance, "variance")
        count *= average.count
    spread = [1] * (inputs.shape.rank + first)
    spread[channel_axis] = -1
    gamma, beta = tf.reshape(variables.gamma, spread), tf.reshape(variables.beta, spread)
    result = (x - mean) * (tf.math.rsqrt(variance + epsilon) * gamma) + beta
    result = tf.cast(tf.reshape(result, tf.shape(inputs)), inputs.dtype)
    result.set_shape(inputs.shape)
    corrected = variance
    if inputs.shape.rank == 4:
        corrected = variance * (count / tf.maximum(count - 1, 1))
    return result, _of_channels(mean, variables), _of_channels(corrected, variables)


def _of_channels(statistic: Any, variables: _Variables) -> Any:
    """Return (C,) of a statistic with axes of length 1; the mean over virtual batches."""
    rows = tf.reshape(statistic, [-1, variables.mean.shape[0]])
    return tf.reduce_mean(rows, 0)


def _fused(inputs: Any, channel_axis: int, variables: _Variables, epsilon: float) -> tuple[Any, Any, Any]:
    form = "NHWC" if channel_axis == 3 else "NCHW"
    x, is_turned = to_channels_last(inputs, form)
    result, mean, variance = tf.nn.fused_batch_norm(
        x,
        variables.gamma,
        variables.beta,
        epsilon=epsilon,
        data_format="NHWC" if is_turned else form,
        is_training=True,
    )
    return tf.transpose(result, [0, 3, 1, 2]) if is_turned else result, mean, variance


def _by_averages(inputs: Any, channel_axis: int, variables: _Variables, epsilon: float) -> Any:
    factor = tf.math.rsqrt(tf.convert_to_tensor(variables.variance) + epsilon) * variables.gamma
    offset = variables.beta - variables.mean * factor
    spread = [1] * inputs.shape.rank
    spread[channel_axis] = -1
    x = tf.cast(inputs, factor.dtype)
    return tf.cast(x * tf.reshape(factor, spread) + tf.reshape(offset, spread), inputs.dtype)


def _update(result: Any, variables: _Variables, mean: Any, variance: Any, momentum: float, how: str) -> Any:
    """Let the running averages take the statistics; return the result."""
    if how == "skip":
        return result
    updates = [
        _moved(variables.mean, mean, momentum, "update_mean"),
        _moved(variables.variance, variance, momentum, "update_variance"),
    ]
    if how == "internal":
        with tf.control_dependencies(updates):
            return tf.identity(result)
    for each in updates:
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, each)
    return result


def _moved(average: Any, value: Any, momentum: float, name: str) -> Any:
    with tf.name_scope(name), tf.colocate_with(average):
        # The updates are no part of the cost.
        step = (average - tf.stop_gradient(value)) * (1 - momentum)
        return average.assign_sub(step, read_value=False)
