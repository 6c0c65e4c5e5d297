"""Weights by name, outside of a training: read from and written to checkpoints and files of arrays."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callbacks.batches import write_arrays
from ziggurat.engine.checkpoints import AVERAGES
from ziggurat.engine.stored_weights import StoredWeights, is_training_name, open_plain_weights
from ziggurat.errors import CheckpointError, MissingCheckpointError, StateError, StorageError
from ziggurat.tf import logger

__all__ = [
    "SessionUpdate",
    "StoredWeights",
    "assign_variables",
    "dump_session_params",
    "fitted",
    "get_all_checkpoints",
    "get_checkpoint_path",
    "is_training_name",
    "load_checkpoint_vars",
    "load_chkpt_vars",
    "open_weights",
    "params_of_metagraph",
    "report_mismatches",
    "save_checkpoint_vars",
    "save_chkpt_vars",
]

# TensorFlow exports the class nowhere.
_VariableDef: Final = importlib.import_module("tensorflow.core.framework.variable_pb2").VariableDef

_STEP: Final = re.compile(r"-(\d+)$")
_PART: Final = re.compile(r"\.(?:index|meta|data-\d{5}-of-\d{5})$")


def open_weights(path: str | Path) -> StoredWeights:
    """Return the weights in a file or folder; where averages of weights are kept beside them, these.

    Args:
        path: a TensorFlow checkpoint by its prefix, its index, its ``checkpoint`` file or the folder of that; an npz
            file, or an npy file with a dict of arrays; a checkpoint of Ziggurat, or the folder of a job.

    Raises:
        MissingCheckpointError: where there is none.
        CheckpointError: where it is damaged.
    """
    plain = open_plain_weights(path)
    if plain is not None:
        return plain
    prefix = get_checkpoint_path(str(path))
    try:
        reader = tf.train.load_checkpoint(prefix)
    except tf.errors.OpError as error:
        raise CheckpointError(
            f"The checkpoint {prefix} must be whole.",
            received=str(error.message or "").splitlines()[0],
            advice="Use another one; its `.index` and all `.data-*` files belong together.",
        ) from error
    shapes = {name: tuple(shape) for name, shape in sorted(reader.get_variable_to_shape_map().items())}

    def get(name: str) -> np.ndarray:
        average = f"{AVERAGES}{name}"
        return np.asarray(reader.get_tensor(average if average in shapes else name))

    return StoredWeights(prefix, shapes, get)


def get_checkpoint_path(path: str) -> str:
    """Return the prefix of a TensorFlow checkpoint, whichever of its files was named.

    Args:
        path: the prefix, ``model-100.index``, ``model-100.data-00000-of-00001``, ``model-100.meta``, a ``checkpoint``
            file (the newest that it lists), or the folder of one.

    Raises:
        MissingCheckpointError: where there is none.
    """
    place = Path(path)
    if place.is_dir() or place.name == "checkpoint":
        folder = place if place.is_dir() else place.parent
        newest = tf.train.latest_checkpoint(str(folder))
        if newest is not None:
            return newest
    prefix = _PART.sub("", str(place))
    if place.is_dir() or not tf.train.checkpoint_exists(prefix):
        folder = place if place.is_dir() else Path(prefix).parent
        found = get_all_checkpoints(str(folder), "") if folder.is_dir() else []
        raise MissingCheckpointError(
            f"There is no TensorFlow checkpoint {path}.",
            advice=f"There are: {', '.join(Path(each).name for each in found[:10]) or 'none'}.",
        )
    return prefix


def get_all_checkpoints(dir: str, prefix: str = "model") -> list[str]:  # noqa: A002 - Tensorpack's name
    """Return the prefixes of the TensorFlow checkpoints of a folder, by step and then by name.

    Args:
        dir: the folder.
        prefix: start of their names.
    """
    found = [path.with_suffix("") for path in Path(dir).glob("*.index") if path.name.startswith(prefix)]
    return [str(path) for path in sorted(found, key=lambda path: (_step_of(path.name), path.name))]


def load_checkpoint_vars(path: str) -> dict[str, np.ndarray]:
    """Return name → array of everything that a checkpoint or file holds; see ``open_weights``."""
    return open_weights(path).all()


def save_checkpoint_vars(dic: Mapping[str, Any], path: str) -> None:
    """Write arrays by name to an npz file where the path ends so, and to a TensorFlow checkpoint otherwise.

    Args:
        dic: name → array; a name that ends in ``:0`` is written without it.
        path: ``weights.npz``, or a prefix such as ``dir/model``.

    Raises:
        StorageError: where it cannot be written.
    """
    arrays = {name.removesuffix(":0"): np.asarray(array) for name, array in dic.items()}
    if path.endswith(".npz"):
        write_arrays(Path(path), {name: array for name, array in arrays.items() if array.dtype != object})
        return
    Path(path).absolute().parent.mkdir(parents=True, exist_ok=True)
    try:
        with tf.Graph().as_default(), tf.device("/cpu:0"):
            fed = {tf.placeholder(tf.as_dtype(array.dtype), array.shape): array for array in arrays.values()}
            write = tf.raw_ops.SaveV2(
                prefix=path, tensor_names=list(arrays), shape_and_slices=[""] * len(arrays), tensors=list(fed)
            )
            with tf.Session(config=tf.ConfigProto(device_count={"GPU": 0})) as session:
                session.run(write, fed)
    except tf.errors.OpError as error:
        raise StorageError(
            f"A checkpoint must be written to {path}.",
            received=str(error.message or type(error).__name__).splitlines()[0],
            advice="Free space on the disk or fix the folder's rights.",
        ) from error


load_chkpt_vars = load_checkpoint_vars
save_chkpt_vars = save_checkpoint_vars


def dump_session_params(path: str) -> None:
    """Write what prediction needs of the default session to an npz file: trained variables and model variables.

    Raises:
        StateError: where there is no default session.
    """
    session = tf.get_default_session()
    if session is None:
        raise StateError("Parameters are those of a session.", advice="Call it while the training runs.")
    wanted = [*tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES), *tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)]
    values = session.run({variable.op.name: variable for variable in wanted})
    logger.info("%d variables are written to %s.", len(values), path)
    save_checkpoint_vars(values, path if path.endswith(".npz") else f"{path}.npz")


def params_of_metagraph(path: str | Path) -> list[str]:
    """Return the names of the variables that prediction needs, from a metagraph file: trained and model variables.

    The graph is not built, so its operations need not be known here.

    Raises:
        CheckpointError: where it is no metagraph, or has no such variables.
    """
    graph = tf.MetaGraphDef()
    try:
        graph.ParseFromString(Path(path).read_bytes())
    except OSError as error:
        raise MissingCheckpointError(f"The metagraph {path} must be readable ({error.strerror}).") from error
    except Exception as error:  # that of protocol buffers has no public name
        raise CheckpointError(f"`{path}` is no metagraph, or is damaged.") from error
    names: list[str] = []
    for key in (tf.GraphKeys.TRAINABLE_VARIABLES, tf.GraphKeys.MODEL_VARIABLES):
        for text in graph.collection_def[key].bytes_list.value if key in graph.collection_def else ():
            names.append(_VariableDef.FromString(text).variable_name.removesuffix(":0"))
    if not names:
        raise CheckpointError(f"The metagraph {path} names no variables that are trained.", advice="Use another file.")
    return list(dict.fromkeys(names))


def fitted(array: np.ndarray, variable: Any) -> np.ndarray | None:
    """Return an array with the dtype of a variable, and with its shape where the sizes agree; None where it fits not.

    Floating-point numbers become others and integers become numbers of any kind; nothing becomes an integer but them.
    """
    dtype = np.dtype(variable.dtype.base_dtype.as_numpy_dtype)
    shape = tuple(variable.shape.as_list()) if variable.shape.is_fully_defined() else array.shape
    if array.size != math.prod(shape):
        return None
    if array.dtype != dtype and not (_is_float(dtype) or np.can_cast(array.dtype, dtype, "same_kind")):
        return None
    return array.reshape(shape).astype(dtype, copy=False)


def assign_variables(session: Any, values: Mapping[Any, np.ndarray]) -> None:
    """Give variables values without another operation in the graph: through their initializers.

    Args:
        session: its graph may be final.
        values: variable → array of its dtype and shape.
    """
    feeds: dict[Any, np.ndarray] = {}
    operations: list[Any] = []
    alone: list[tuple[Any, Any, np.ndarray]] = []
    for variable, array in values.items():
        first_value = variable.initializer.inputs[1]
        if first_value in feeds:  # two variables with one initial value
            alone.append((variable.initializer, first_value, array))
            continue
        feeds[first_value] = array
        operations.append(variable.initializer)
    session.run(operations, feeds)
    for operation, first_value, array in alone:
        session.run(operation, {first_value: array})


class SessionUpdate:
    """Gives variables of a session other values by name.

    Args:
        sess: the session.
        vars_to_update: the variables.
        ignore_mismatch: leave a variable out, with a warning, whose array is of another size or type.
    """

    def __init__(self, sess: Any, vars_to_update: Iterable[Any], ignore_mismatch: bool = False) -> None:
        self.sess = sess
        self.name_map = {variable.op.name: variable for variable in vars_to_update}
        self.ignore_mismatch = ignore_mismatch

    def update(self, prms: Mapping[str, Any]) -> None:
        """Give the variables the arrays of their names; names of no variable are left out.

        Raises:
            CheckpointError: where an array does not fit and mismatches are not ignored; nothing is changed then.
        """
        values: dict[Any, np.ndarray] = {}
        problems: list[str] = []
        for name, value in prms.items():
            variable = self.name_map.get(name.removesuffix(":0"))
            if variable is None:
                continue
            array = np.asarray(value)
            fit = fitted(array, variable)
            if fit is None:
                problems.append(f"{variable.op.name}: {array.shape} {array.dtype} for {variable.shape}")
            else:
                values[variable] = fit
        report_mismatches(problems, self.ignore_mismatch)
        assign_variables(self.sess, values)


def report_mismatches(problems: Sequence[str], is_ignored: bool) -> None:
    """Warn of arrays that do not fit, or raise.

    Raises:
        CheckpointError: where they are not ignored.
    """
    if problems and not is_ignored:
        raise CheckpointError(
            "A variable takes an array of its own size and kind.",
            received="; ".join(problems[:10]),
            advice="Rename the layers that shall be trained anew, name them in `ignore`, or set `ignore_mismatch`.",
            details={"problems": list(problems)},
        )
    for problem in problems:
        logger.warning("Not loaded, since it is of another size or kind: %s.", problem)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def _step_of(name: str) -> int:
    found = _STEP.search(name)
    return int(found.group(1)) if found else -1
