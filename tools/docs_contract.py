"""Reference pages of the network contracts of both frameworks, read from the source: no framework is imported.

The members of ``Tower``, the functions of ``digits`` and the tables of older names come from the code. What tf-slim and
TensorFlow bring is named here, and ``tests/tensorflow`` looks each name up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from tools.reference.describe import code
from tools.reference.markdown import cell, documented_arguments, render, table
from tools.reference.source import (
    assigned_in,
    attributes_in,
    call_text,
    class_in,
    functions_in,
    table_in,
    text_of,
    tree_of,
)

__all__ = ["GIVEN_NAMES", "IMPORTS", "OLDER_NAMES", "PROMISED", "TORCH_NAMES", "contract_page", "torch_contract_page"]

_BACKEND: Final = "ziggurat.backends.tensorflow"
_NO_MEMBERS: Final = frozenset({"newest_x"})
"""Attributes of the class that the backend needs and a network file does not."""

GIVEN_NAMES: Final = {
    "tf": "TensorFlow with the meaning of version 1, whichever version is installed",
    "slim": "tf-slim, repaired, with a dropout whose masks follow from seed and step",
    "digits": "the helper functions below",
    "Tower": "the class that `UserModel` inherits",
    "model_property": "the decorator of `inference` and `loss`",
    "np": "NumPy",
}
"""Name that stands in every network file → what it is."""

IMPORTS: Final = (
    "from model import Tower",
    "from utils import model_property",
    "import tensorflow as tf",
    "import tensorflow.contrib.slim as slim",
    "import utils as digits",
    "import tensorflow.compat.v1 as tf",
    "import tf_slim as slim",
    "import digits",
    "from digits import classification_loss",
    "from tensorflow.contrib import layers",
    "from tensorflow.contrib.layers import batch_norm, xavier_initializer",
    "from tensorflow.python.framework import graph_util",
)
"""Import forms that give a network file the names of Ziggurat; the first five are those of the DIGITS guides."""

PROMISED: Final = {
    "tf": "Session Variable add add_n argmax cast concat constant div expand_dims get_variable matmul maximum multiply "
    "one_hot ones_like placeholder random_normal reduce_mean reduce_sum reshape shape split square to_float to_int32 "
    "trainable_variables transpose truncated_normal_initializer variable_scope zeros_like",
    "tf.nn": "avg_pool bias_add conv2d conv2d_transpose dropout elu local_response_normalization max_pool relu "
    "sigmoid sigmoid_cross_entropy_with_logits softmax sparse_softmax_cross_entropy_with_logits tanh dynamic_rnn",
    "tf.nn.rnn_cell": "BasicLSTMCell BasicRNNCell DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell",
    "tf.layers": "average_pooling2d batch_normalization conv2d conv2d_transpose dense dropout flatten max_pooling2d "
    "separable_conv2d Conv2D Dense Dropout",
    "tf.train": "AdamOptimizer GradientDescentOptimizer MomentumOptimizer RMSPropOptimizer Saver "
    "get_or_create_global_step",
    "tf.summary": "FileWriter histogram image merge scalar",
    "tf.image": "per_image_standardization random_flip_left_right resize_bilinear resize_image_with_crop_or_pad",
    "slim": "arg_scope avg_pool2d batch_norm bias_add conv2d conv2d_transpose dropout flatten fully_connected "
    "l2_regularizer layer_norm losses max_pool2d one_hot_encoding repeat separable_conv2d softmax stack",
    "tf.contrib.layers": "batch_norm conv2d dropout flatten fully_connected l1_regularizer l2_regularizer max_pool2d "
    "variance_scaling_initializer xavier_initializer",
}
"""Module, as a network file writes it → names in it that DIGITS's networks and their like use; there are more."""

OLDER_NAMES: Final = {
    "tf.image_summary": "tf.summary.image",
    "tf.scalar_summary": "tf.summary.scalar",
    "tf.histogram_summary": "tf.summary.histogram",
    "tf.train.SummaryWriter": "tf.summary.FileWriter",
}
"""Name from before TensorFlow 1.0 that moved → where it is now; those that were only renamed stand in the backend."""

TORCH_NAMES: Final = {
    "torch": "PyTorch",
    "nn": "`torch.nn`",
    "F": "`torch.nn.functional`",
    "digits": "the helper functions below",
    "Tower": "a class that `UserModel` may inherit",
    "model_property": "the decorator of `inference` and `loss` of a tower",
    "np": "NumPy",
}
"""Name that stands in every network file for PyTorch → what it is."""

_TORCH_INTRO: Final = """What a network file for PyTorch may rely on; the tutorial
[Your first PyTorch network](../tutorials/your-first-pytorch-network.md) begins with it. `UserModel` has one of two
forms: a plain module, or a tower as on [the TensorFlow side](network-contract.md).

```python
# not run: by Python itself, for a worker gives it its names
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        self.conv1 = nn.Conv2d(channels, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * (height // 2) * (width // 2), nclasses)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x / 255.0)), 2)
        return self.fc1(x.flatten(1))
```"""

_PLAIN: Final = """`__init__` takes `nclasses` and `input_shape`, and whichever of `target_shape`, `target_mean`,
`target_std`, `categories` and `vocabulary_size` it names; they are what the attributes of a tower are. `forward(self,
x)` returns a tensor or a list of tensors, in the forms that the table of a tower gives. A network whose class has
another name fits by a class below it, `class UserModel(Net):`, whose `__init__` passes on what the network takes. The
error says these lines, and *Add these lines* writes them in the studio's editor. These methods are optional:"""

_PLAIN_METHODS: Final = {
    "loss(self, output, y)": "what is minimized: a scalar tensor, or a list of "
    '`{"loss": scalar tensor, "vars": [parameters]}`. Without it, the loss follows from the target: softmax '
    "cross-entropy for classes and masks, sigmoid cross-entropy for several labels at once, the mean squared "
    "difference for numbers and for images (divided by 255), the contrastive loss for pairs",
    "scalars(self, output, y)": "name → scalar tensor: the curves beside the cost. Without it: `accuracy`, "
    "`pixel_accuracy`, `label_accuracy` or `mean_absolute_error`",
    "fineTuneHook(self, net)": "as in a tower",
    "gradientUpdate(self, grads)": "as in a tower",
}

_PLAIN_NAMES: Final = """Weights stand in checkpoints under the keys of `state_dict()`, with `model/` before them:
`model/conv1.weight`."""

_TORCH_DIFFERENCES: Final = """- Images come channels first, `(N, C, H, W)`, and so do masks and what a network gives;
  in memory the channels lie last, which is faster.
- Layers are made once, in `build` or `__init__`. PyTorch begins them uniformly in ±1/√(fan in), as DIGITS's networks
  for Torch began; Caffe and the TensorFlow networks of Ziggurat use Xavier's range. `nn.init.xavier_uniform_` gives it.
- `x` and `y` are on the job's device already. `cuda()` of a tower does nothing and says so.
- What is drawn at random in a step, such as dropout, follows from the job's seed and the number of the step: a resumed
  job draws what it would have drawn.
- Optimizers are those of PyTorch: `adam` and `rmsprop` add epsilon in another place than TensorFlow. `ftrl` and
  `adagrad_da`, which PyTorch has not, are Ziggurat's and take TensorFlow's steps."""

_TORCH_ERRORS: Final = """A file that fails is a `NetworkCodeError`: it names the user's own file and line, the layer
with both shapes where shapes do not fit, and for a name that does not exist the nearest one. The network is run once on
two samples of zeros before anything is trained. `import tensorflow` is refused; `torchvision` and `timm` work where
they are installed for the same PyTorch, and nothing here needs them."""

_INTRO: Final = """What a network file for TensorFlow may rely on. How an old file is brought here, and what is better
on purpose, is in [Bring a DIGITS network](../how-to/bring-a-digits-network.md); which test holds which behavior, in
[DIGITS's behaviors](../explanation/digits-behaviours.md).

```python
# not run: by Python itself, for a worker gives it its names
class UserModel(Tower):
    @model_property
    def inference(self):
        net = slim.conv2d(self.x / 255.0, 32, [3, 3], scope="conv1")
        net = slim.flatten(slim.max_pool2d(net, [2, 2], scope="pool1"))
        return slim.fully_connected(net, self.nclasses, activation_fn=None, scope="fc1")

    @model_property
    def loss(self):
        accuracy = digits.classification_accuracy(self.inference, self.y)
        self.summaries.append(tf.summary.scalar(accuracy.op.name, accuracy))
        return digits.classification_loss(self.inference, self.y)
```"""

_ERRORS: Final = """A file that fails, or that defines no class named exactly `UserModel` with `inference` and `loss`,
is a `NetworkCodeError`: it names the user's own file and line, and for a name that does not exist the nearest one.
`import keras` is refused: layers of Keras 3 are silently wrong in a graph. `tf.keras` and `tf_keras` are the older
Keras, which knows graphs."""

_BATCH_NORM: Final = """`batch_norm` is that of tf-slim in all its forms, also as a `normalizer_fn`, although tf-slim
1.1 alone cannot run it on TensorFlow of today; its moving averages are updated in training without any further line.
`tf.layers` and `tf.nn.rnn_cell`, which Keras 3 takes away, are those of the older Keras. Dropout, under each of its
names, draws its masks from the job's seed and the step, so that a resumed job gets the masks that it would have had."""


def contract_page() -> str:
    """Return the page: names, imports, ``Tower``, ``digits``, and what stands for TensorFlow 1."""
    tower, helpers = tree_of(f"{_BACKEND}.tower"), tree_of(f"{_BACKEND}.digits")
    parts = ["# The contract of a network file", _INTRO, *_names(), *_tower(tower), *_digits(helpers), *_tensorflow()]
    return "\n\n".join(part for part in parts if part)


def torch_contract_page() -> str:
    """Return the page for PyTorch: names, both forms of ``UserModel``, ``digits``, and what differs."""
    home = "ziggurat.backends.torch"
    tower, helpers = tree_of(f"{home}.tower"), tree_of(f"{home}.digits")
    methods = table(("method", "meaning"), [(f"`{name}`", cell(said)) for name, said in _PLAIN_METHODS.items()])
    plain = ["## `UserModel(nn.Module)`", _PLAIN, methods, _PLAIN_NAMES]
    differences = ["## What differs from TensorFlow, and from DIGITS", _TORCH_DIFFERENCES]
    names = ["## Names", _given(TORCH_NAMES), _TORCH_ERRORS]
    parts = ["# The contract of a network file for PyTorch", _TORCH_INTRO, *names, *plain, *_tower(tower)]
    return "\n\n".join(part for part in (*parts, *differences, *_digits(helpers)) if part)


def _given(names: Mapping[str, str]) -> str:
    rows = table(("name", "what it is"), [(f"`{name}`", meaning) for name, meaning in names.items()])
    return f"These names are there without any import:\n\n{rows}"


def _names() -> Iterator[str]:
    yield "## Names and imports"
    yield _given(GIVEN_NAMES)
    yield "These imports work in a network file, and nowhere else; they give the same things:"
    yield "```text\n" + "\n".join(IMPORTS) + "\n```"
    yield "Every other import is Python's own."
    yield _ERRORS


def _tower(tree: ast.Module) -> Iterator[str]:
    tower = class_in(tree, "Tower")
    decorator = class_in(tree_of("ziggurat.engine.network_files"), "model_property")
    said = documented_arguments(text_of(tower))
    said |= {name: text for name, text in attributes_in(tower) if name not in _NO_MEMBERS}
    first = [name for name in ("inference", "loss") if name in said]
    members = [*first, *(name for name in said if name not in first)]
    yield "## `UserModel(Tower)`"
    yield render(text_of(tower).split("\n\nArgs:")[0])
    yield table(("member", "meaning"), [(f"`{name}`", cell(said[name])) for name in members])
    for method in functions_in(tower):
        if not method.name.startswith("_"):
            yield f"### `{method.name}`"
            yield f"```text\n{call_text(method)}\n```"
            yield render(text_of(method))
    yield f"### `@{decorator.name}`"
    yield render(text_of(decorator).split("\n\nArgs:")[0])


def _digits(tree: ast.Module) -> Iterator[str]:
    public = next(value for name, value in assigned_in(tree) if name == "__all__")
    names = sorted(ast.literal_eval(public), key=str.lower)
    functions = {each.name: each for home in (*_imported(tree), tree) for each in functions_in(home)}
    other_names = {name: value.id for name, value in assigned_in(tree) if isinstance(value, ast.Name)}
    yield "## `digits`"
    for name in names:
        if name in functions:
            yield f"### `digits.{name}`"
            yield f"```text\n{call_text(functions[name])}\n```"
            yield render(text_of(functions[name]))
        elif name in other_names:
            yield f"### `digits.{name}`"
            yield f"Another name of `{other_names[name]}`."
    constants = [
        (name, value) for name, value in assigned_in(tree) if name in names and isinstance(value, ast.Constant)
    ]
    yield "### Constants"
    if any(isinstance(each, ast.ClassDef) and each.name == "GraphKeys" for each in tree.body):
        keys = class_in(tree, "GraphKeys")
        constants += [(f"{keys.name}.{name}", value) for name, value in assigned_in(keys)]
        yield render(text_of(keys))
    yield table(("name", "value"), [(f"`digits.{name}`", f"`{ast.unparse(value)}`") for name, value in constants])


def _imported(tree: ast.Module) -> Iterator[ast.Module]:
    """Yield the modules of a backend that the helper module takes functions from."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ziggurat.backends."):
            yield tree_of(str(node.module))


def _tensorflow() -> Iterator[str]:
    names, contrib = tree_of(f"{_BACKEND}.namespace.tensorflow"), tree_of(f"{_BACKEND}.namespace.contrib")
    yield "## TensorFlow as version 1 had it"
    yield "The names that DIGITS's networks use are there, and what stands beside them in TensorFlow and tf-slim:"
    rows = [(f"`{module}`", ", ".join(f"`{name}`" for name in text.split())) for module, text in PROMISED.items()]
    yield table(("module", "names"), rows)
    yield _BATCH_NORM
    yield "### `tf.contrib`"
    yield "It has " + ", ".join(f"`{name}`" for name in table_in(contrib, "parts")) + "."
    yield "### Names from before TensorFlow 1.0"
    older = {f"tf.{old}": f"tf.{new}" for old, new in table_in(names, "_RENAMED").items()}
    older |= {f"tf.nn.{old}": f"tf.nn.{new}" for old, new in table_in(names, "_RENAMED_NN").items()} | OLDER_NAMES
    yield table(("name", "is"), [(code(old), code(new)) for old, new in older.items()])
    yield "### Gone for good"
    yield "These raise an error that says what to use:"
    gone = [(f"tf.{name}", said) for name, said in table_in(names, "_GONE").items()]
    gone += [(f"tf.contrib.{name}", said) for name, said in table_in(contrib, "_GONE").items()]
    gone += [(f"tf.contrib.layers.{name}", said) for name, said in table_in(contrib, "_LAYERS_GONE").items()]
    rows = [(code(name), cell(said)) for name, said in gone]
    yield table(("name", "what instead"), rows)
