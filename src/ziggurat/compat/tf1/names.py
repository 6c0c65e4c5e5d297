"""``tensorflow`` as a TensorFlow 1 script sees it; each name that is another one today is reported."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from types import ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.proxy import StandInModule, part_of
from ziggurat.backends.tensorflow.namespace.tensorflow import new_names, user_tensorflow
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.compat.tf1 import kmeans
from ziggurat.compat.tf1.estimator import estimator_module
from ziggurat.compat.tf1.flags import flags_module
from ziggurat.compat.tf1.mnist import mnist_module, tutorials_module
from ziggurat.compat.tf1.report import Report
from ziggurat.compat.tf1.whole_sizes import names_with_whole_sizes

__all__ = ["AdaptedModule", "script_tensorflow"]

_WITH_SESSION: Final = "Train with a session, or with a trainer of `ziggurat.tf`."
_CONTRIB_GONE: Final = {
    "crf": "Build it from `tf` operations.",
    "cudnn_rnn": "Use `tf.nn.rnn_cell`.",
    "estimator": f"TensorFlow dropped estimators. {_WITH_SESSION}",
    "seq2seq": "Use `tf.nn.dynamic_rnn` or `tf.while_loop`.",
    "tpu": f"TensorFlow dropped them with estimators. {_WITH_SESSION}",
}
_LEARN_GONE: Final[dict[str, str]] = dict.fromkeys(
    ("DNNClassifier", "DNNRegressor", "Estimator", "Experiment", "LinearClassifier", "LinearRegressor", "SKCompat"),
    f"TensorFlow dropped estimators. {_WITH_SESSION}",
)
_EAGER_GONE: Final = {"EagerVariableStore": "Use `tf.keras.layers`."}
_ELSEWHERE: Final = (
    *("nn", "layers", "train", "image", "losses", "math", "io", "random", "linalg", "summary", "initializers"),
    *("contrib.layers", "contrib.slim", "contrib.rnn", "contrib.framework"),
)
"""Modules in which a name is looked for that another one does not have."""

_VARIABLES: Final = ("Variable", "VariableV2", "VarHandleOp")
_PLACES: Final = (
    *("", "nn", "nn.rnn_cell", "train", "layers", "losses", "metrics", "gfile", "graph_util", "io", "data"),
    *("data.experimental", "distributions", "nest", "image", "summary", "saved_model"),
)
"""Public modules of TensorFlow in which what came from its inside, or from ``contrib``, may have the same name."""


class AdaptedModule(StandInModule):
    """A module like another one, which reports the names that a script takes from it.

    Args:
        name: the module's name, as the script writes it, beginning with ``tf``.
        inner: the module.
        report: hears of names that are others today.
        root: the whole ``tf``, for advice; this one if not given.
    """

    def __init__(self, name: str, inner: Any, report: Report, root: Any = None) -> None:
        super().__init__(name, inner)
        self.__dict__["_report"] = report
        self.__dict__["_root"] = self if root is None else root

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__["_behind"][0]
        if name == "__all__":  # for `from … import *`
            return [each for each in dir(inner) if not each.startswith("_")]
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"`{self.__name__}` has no `{name}`.", name=name, obj=self)
        try:
            value = part_of(inner, name)
        except AttributeError as error:
            explained = str(error) if isinstance(inner, StandInModule) else self._explain(name)
            raise AttributeError(explained + self._elsewhere(name), name=name, obj=self) from None
        path = f"{self.__name__}.{name}"
        if isinstance(value, ModuleType):
            value = AdaptedModule(path, value, self._report, self._root) if _is_adapted(value) else value
        elif new := _name_today(path, value):
            self._report.adapt(path, new, sys._getframe(1))
        self.__dict__[name] = value  # the first use is all that the report asks for
        return value

    def take_all(self) -> None:
        """Get every public name, for ``from … import *``; the report has one line for all of them."""
        for name in self.__all__:
            with contextlib.suppress(AttributeError):
                value = part_of(self.__dict__["_behind"][0], name)
                self.__dict__.setdefault(name, getattr(self, name) if isinstance(value, ModuleType) else value)
        self.__dict__["__all__"] = [name for name in self.__all__ if name in self.__dict__]
        self._report.adapt(f"from {self.__name__} import *", "names of TensorFlow 1", sys._getframe(1))

    def _elsewhere(self, name: str) -> str:
        """Return where else there is such a name."""
        root = self._root.__dict__["_behind"][0]
        for path in _ELSEWHERE:
            if f"tf.{path}" != self.__name__ and _at(root, path.split("."), name) is not None:
                return f" There is `tf.{path}.{name}`."
        return ""


def script_tensorflow(report: Report) -> AdaptedModule:
    """Return ``tensorflow`` for a script: version 1, ``contrib``, the inside, and the tutorials' reader of MNIST.

    Dropout is TensorFlow's own: a script counts its steps where it likes.

    Args:
        report: hears of adapted names.
    """
    base: Any = user_tensorflow(exact=False)
    compat = StandInModule("tf.compat", base.compat, names={})
    graph_util = StandInModule(
        "tf.graph_util", tf.graph_util, names={"convert_variables_to_constants": _variables_to_constants}
    )
    framework = StandInModule("tf.python.framework", base.python.framework, names={"graph_util": graph_util})
    names = {
        "app": StandInModule("tf.app", tf.app, names={"flags": flags_module("tf.app.flags")}),
        "compat": compat,
        "contrib": _contrib(base.contrib),
        "estimator": estimator_module(),
        "examples": tutorials_module(),
        "flags": flags_module("tf.flags"),
        "graph_util": graph_util,
        "models": StandInModule("tf.models", names={"rnn": _recurrent_models(base)}),
        **names_with_whole_sizes(base),
        "python": StandInModule("tf.python", base.python, names={"framework": framework}),
    }
    whole = StandInModule("tf", base, names=names)
    compat.__dict__["v1"] = whole
    return AdaptedModule("tf", whole, report)


@functools.wraps(tf.graph_util.convert_variables_to_constants)
def _variables_to_constants(sess: Any, input_graph_def: Any, *arguments: Any, **options: Any) -> Any:
    """Convert, and print how many variables were converted, as TensorFlow 1 did."""
    frozen = tf.graph_util.convert_variables_to_constants(sess, input_graph_def, *arguments, **options)
    variables = {node.name for node in input_graph_def.node if node.op in _VARIABLES}
    count = sum(node.op == "Const" and node.name in variables for node in frozen.node)
    sys.stdout.write(f"Converted {count} variables to const ops.\n")
    return frozen


def _contrib(base: Any) -> ModuleType:
    datasets = StandInModule(
        "tf.contrib.learn.datasets", names={"mnist": mnist_module("tf.contrib.learn.datasets.mnist")}
    )
    learn = StandInModule("tf.contrib.learn", names={"datasets": datasets}, gone=_LEARN_GONE)
    learn.__dict__["python"] = StandInModule("tf.contrib.learn.python", names={"learn": learn})
    experimental = tf.data.experimental
    data_names = {"batch_and_drop_remainder": _batch_and_drop_remainder, "Iterator": tf.data.Iterator}
    utilities = {name: getattr(tf, name) for name in ("make_ndarray", "make_tensor_proto")}
    staging = importlib.import_module("tensorflow.python.ops.data_flow_ops").StagingArea
    names = {
        "autograph": tf.autograph,
        "cluster_resolver": tf.distribute.cluster_resolver,
        "distribute": tf.distribute,
        "lookup": StandInModule("tf.contrib.lookup", tf.lookup),
        "nn": StandInModule("tf.contrib.nn", tf.nn),
        "signal": tf.signal,
        "staging": StandInModule("tf.contrib.staging", names={"StagingArea": staging}),
        "stateless": tf.random,
        "tfprof": tf.profiler,
        "util": StandInModule("tf.contrib.util", names={"constant_value": tf.get_static_value, **utilities}),
        "data": StandInModule("tf.contrib.data", experimental, tf.data, names=data_names),
        "eager": _eager(),
        "factorization": StandInModule(
            "tf.contrib.factorization", names={name: getattr(kmeans, name) for name in kmeans.__all__}
        ),
        "keras": tf.keras,
        "learn": learn,
    }
    return StandInModule("tf.contrib", base, names=names, gone=_CONTRIB_GONE)


def _recurrent_models(base: Any) -> ModuleType:
    """Return the place of recurrent networks before TensorFlow 1.0."""
    names = {"rnn": base.python.ops.rnn, "rnn_cell": tf.nn.rnn_cell}
    return StandInModule("tf.models.rnn", names=names, gone={"seq2seq": _CONTRIB_GONE["seq2seq"]})


def _batch_and_drop_remainder(batch_size: Any) -> Any:
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def _eager() -> ModuleType:
    backprop: Any = importlib.import_module("tensorflow.python.eager.backprop")
    names = {
        "Checkpoint": tf.train.Checkpoint,
        "Iterator": iter,
        "Network": _Network,
        "Saver": tf.train.Saver,
        "Variable": tf2.Variable,
        "defun": tf2.function,
        "gradients_function": backprop.gradients_function,
        "implicit_gradients": backprop.implicit_grad,
        "implicit_value_and_gradients": backprop.implicit_val_and_grad,
        "in_eager_mode": tf.executing_eagerly,
        "in_graph_mode": _in_graph_mode,
        "list_devices": _list_devices,
        "metrics": tf2.keras.metrics,
        "num_gpus": _num_gpus,
        "py_func": tf2.py_function,
        "value_and_gradients_function": backprop.val_and_grad_function,
    }
    return StandInModule("tf.contrib.eager", tf, names=names, gone=_EAGER_GONE)


class _Network(tf2.keras.Model):
    """Stand in for ``tfe.Network``, whose layers had to be told of."""

    def track_layer(self, layer: Any) -> Any:
        """Return the layer, which the model finds where it is made an attribute."""
        return layer


def _in_graph_mode() -> bool:
    return not tf.executing_eagerly()


def _list_devices() -> list[str]:
    return [device.name for device in tf2.config.list_logical_devices()]


def _num_gpus() -> int:
    return len(tf2.config.list_logical_devices("GPU"))


# ---- names of today


def _name_today(path: str, value: Any) -> str:
    """Return the whole name of what stands for a name, or an empty text where nothing had to be adapted."""
    *parents, name = path.split(".")[1:]
    if parents[:2] == ["compat", "v1"] or not callable(value):
        return ""
    function = getattr(value, "__wrapped__", value)  # what also takes an older order of arguments is still the same
    if any(_at(tf2, parents, name) is each for each in (value, function)):
        return ""
    old = ".".join([*parents, name])
    for place in (old, _RENAMED.get(old, old)):
        *modules, last = place.split(".")
        if any(_at(tf, modules, last) is each for each in (value, function)):
            return f"tf.{place}" if _at(tf2, modules, last) is value else f"tf.compat.v1.{place}"
    for start, whole in (("tf", tf2), ("tf.compat.v1", tf)):
        for module in _PLACES:
            found = _at(whole, module.split(".") if module else [], name)
            if any(found is each for each in (value, function)):
                return ".".join(part for part in (start, module, name) if part)
    home, own = getattr(value, "__module__", None) or "", getattr(value, "__qualname__", name)
    if home.startswith("ziggurat."):
        return f"Ziggurat's {name}"
    if home == "builtins":
        return own
    slim = sys.modules["tf_slim"]
    if home.startswith("tf_slim.") and getattr(slim, name, None) is value:
        home, own = "tf_slim", name
    return f"{home}.{own}" if home else own


def _at(module: Any, parents: list[str], name: str) -> Any:
    for part in [*parents, name]:
        module = getattr(module, part, None)
    return module


def _is_adapted(module: ModuleType) -> bool:
    return isinstance(module, StandInModule) or module.__name__.startswith(("tensorflow.", "tf_slim"))


_RENAMED: Final = new_names()
