"""Layers of a ``.prototxt``: the present form and both old ones, and those that take part in a phase.

``read_network`` gives all of them in the present form. ``select`` keeps those that a state of the network includes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.kinds import LayerKind
from ziggurat.compat.caffe.text import Entry, Message, Scalar, parse_text

__all__ = ["DATA_KINDS", "LOSS_KINDS", "Layer", "NetworkText", "ParameterRule", "read_network", "select", "stages_of"]

DATA_KINDS: Final = ("Data", "ImageData", "HDF5Data", "MemoryData", "DummyData", "WindowData", "AnnotatedData", "Input")
LOSS_KINDS: Final = (
    "SoftmaxWithLoss",
    "EuclideanLoss",
    "L1Loss",
    "SigmoidCrossEntropyLoss",
    "ContrastiveLoss",
    "HingeLoss",
    "InfogainLoss",
    "MultinomialLogisticLoss",
)

_MOST_LAYERS: Final = 5000
_MOST_BLOBS: Final = 500
_FILLER: Final = ("type", "value", "min", "max", "mean", "std", "sparse", "variance_norm")
_SPATIAL: Final = ("pad", "kernel_size", "stride", "pad_h", "pad_w", "kernel_h", "kernel_w", "stride_h", "stride_w")
_CONVOLUTION: Final = (
    *_SPATIAL,
    *("num_output", "bias_term", "dilation", "group", "weight_filler", "bias_filler", "engine", "axis"),
    "force_nd_im2col",
)
_OPTIONS: Final = {
    "Convolution": ("convolution_param", _CONVOLUTION),
    "Deconvolution": ("convolution_param", _CONVOLUTION),
    "Pooling": ("pooling_param", (*_SPATIAL, "pool", "engine", "global_pooling", "ceil_mode", "round_mode")),
    "InnerProduct": (
        "inner_product_param",
        ("num_output", "bias_term", "weight_filler", "bias_filler", "axis", "transpose"),
    ),
    "LRN": ("lrn_param", ("local_size", "alpha", "beta", "norm_region", "k", "engine")),
    "BatchNorm": ("batch_norm_param", ("use_global_stats", "moving_average_fraction", "eps")),
    "Scale": ("scale_param", ("axis", "num_axes", "filler", "bias_term", "bias_filler")),
    "Bias": ("bias_param", ("axis", "num_axes", "filler")),
    "ReLU": ("relu_param", ("negative_slope", "engine")),
    "PReLU": ("prelu_param", ("filler", "channel_shared")),
    "ELU": ("elu_param", ("alpha",)),
    "Sigmoid": ("sigmoid_param", ("engine",)),
    "TanH": ("tanh_param", ("engine",)),
    "AbsVal": ("absval_param", ()),
    "Power": ("power_param", ("power", "scale", "shift")),
    "Dropout": ("dropout_param", ("dropout_ratio", "scale_train")),
    "Concat": ("concat_param", ("axis", "concat_dim")),
    "Slice": ("slice_param", ("axis", "slice_point", "slice_dim")),
    "Eltwise": ("eltwise_param", ("operation", "coeff", "stable_prod_grad")),
    "Flatten": ("flatten_param", ("axis", "end_axis")),
    "Reshape": ("reshape_param", ("shape", "axis", "num_axes")),
    "Crop": ("crop_param", ("axis", "offset")),
    "Softmax": ("softmax_param", ("engine", "axis")),
    "SoftmaxWithLoss": ("softmax_param", ("engine", "axis")),
    "ContrastiveLoss": ("contrastive_loss_param", ("margin", "legacy_version")),
    "EuclideanLoss": ("euclidean_loss_param", ()),
    "L1Loss": ("l1_loss_param", ()),
    "SigmoidCrossEntropyLoss": ("sigmoid_cross_entropy_loss_param", ()),
    "Split": ("split_param", ()),
}
"""Kind of layer that an import knows → its field with options, and the names of these."""

_DEPTHWISE: Final = ("ConvolutionDepthwise", "DepthwiseConvolution")
"""Names under which other Caffes have a convolution with a group for each channel."""

_OF_LAYERS: Final = (
    *("name", "type", "bottom", "top", "phase", "loss_weight", "param", "blobs", "include", "exclude"),
    *("propagate_down", "device", "buffer", "blobs_lr", "weight_decay", "blob_share_mode", "layer"),
)
_PARAMETERS: Final = tuple(f"{field_name.removesuffix('_param')}" for field_name, _ in _OPTIONS.values()) + (
    *("transform", "loss", "accuracy", "argmax", "data", "dummy_data", "embed", "exp", "hdf5_data", "hdf5_output"),
    *("hinge_loss", "image_data", "infogain_loss", "input", "log", "memory_data", "mvn", "parameter", "python"),
    *("recurrent", "reduction", "spp", "threshold", "tile", "window_data"),
)
"""Names of the options of all layers, without ``_param``; Caffe leaves those of another type alone."""

_RULES: Final = ("phase", "min_level", "max_level", "stage", "not_stage")
_PHASES: Final = ("TRAIN", "TEST")

_V1_KINDS: Final = {
    **dict(zip(("ABSVAL", "ACCURACY", "ARGMAX", "CONCAT"), ("AbsVal", "Accuracy", "ArgMax", "Concat"))),
    "BNLL": "BNLL",
    "CONTRASTIVE_LOSS": "ContrastiveLoss",
    "CONVOLUTION": "Convolution",
    "DATA": "Data",
    "DECONVOLUTION": "Deconvolution",
    "DROPOUT": "Dropout",
    "DUMMY_DATA": "DummyData",
    "ELTWISE": "Eltwise",
    "EUCLIDEAN_LOSS": "EuclideanLoss",
    "EXP": "Exp",
    "FLATTEN": "Flatten",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "HINGE_LOSS": "HingeLoss",
    "IM2COL": "Im2col",
    "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss",
    "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN",
    "MVN": "MVN",
    "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss",
    "POOLING": "Pooling",
    "POWER": "Power",
    "RELU": "ReLU",
    "SIGMOID": "Sigmoid",
    "SILENCE": "Silence",
    "SLICE": "Slice",
    "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SOFTMAX": "Softmax",
    "SPLIT": "Split",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "TANH": "TanH",
    "THRESHOLD": "Threshold",
    "WINDOW_DATA": "WindowData",
}
_V0_KINDS: Final = {
    "accuracy": "Accuracy",
    "bnll": "BNLL",
    "concat": "Concat",
    "conv": "Convolution",
    "data": "Data",
    "dropout": "Dropout",
    "euclidean_loss": "EuclideanLoss",
    "flatten": "Flatten",
    "hdf5_data": "HDF5Data",
    "hdf5_output": "HDF5Output",
    "im2col": "Im2col",
    "images": "ImageData",
    "infogain_loss": "InfogainLoss",
    "innerproduct": "InnerProduct",
    "lrn": "LRN",
    "multinomial_logistic_loss": "MultinomialLogisticLoss",
    "pool": "Pooling",
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "softmax": "Softmax",
    "split": "Split",
    "softmax_loss": "SoftmaxWithLoss",
    "tanh": "TanH",
    "window_data": "WindowData",
    "padding": "padding",
}
_V0_NAMES: Final = {
    "biasterm": "bias_term",
    "kernelsize": "kernel_size",
    "meanfile": "mean_file",
    "cropsize": "crop_size",
}
_V0_TRANSFORM: Final = ("scale", "mean_file", "crop_size", "mirror")


@dataclass(frozen=True)
class ParameterRule:
    """What a file says of an array of a layer.

    Args:
        name: by which layers share it; empty for none.
        rate: factor of the learning rate.
        decay: factor of the weight decay.
    """

    name: str = ""
    rate: float = 1.0
    decay: float = 1.0


@dataclass(frozen=True)
class Layer:
    """A layer in the present form.

    Args:
        name: of the layer.
        kind: its type, such as ``Convolution``.
        bottoms: names of what it takes.
        tops: names of what it gives.
        options: the fields of its kind.
        rules: of its arrays, as far as the file has any.
        loss_weights: of its tops, as far as the file has any.
        line: where it begins.
        message: all of its fields.
        transform: what is done to the images that it reads.
        definition: of a kind that Caffe has not.
    """

    name: str
    kind: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    options: Message
    rules: tuple[ParameterRule, ...]
    loss_weights: tuple[float, ...]
    line: int
    message: Message
    transform: Message
    definition: LayerKind | None = None

    def rule(self, place: int) -> ParameterRule:
        """Return what the file says of an array."""
        return self.rules[place] if place < len(self.rules) else ParameterRule()

    @property
    def is_source(self) -> bool:
        """Whether it reads the data; so do layers of other Caffes that take nothing, such as ``DenseImageData``."""
        is_other = self.kind not in (*_OPTIONS, *LOSS_KINDS, "Parameter")
        return self.kind in DATA_KINDS or (is_other and bool(self.tops) and not self.bottoms)


@dataclass(frozen=True)
class NetworkText:
    """What a ``.prototxt`` holds.

    Args:
        name: of the network.
        layers: in their order.
        inputs: blob → shape, with the batch first, of those that the file names without a layer; None if unknown.
        text: of the file.
    """

    name: str
    layers: tuple[Layer, ...]
    inputs: dict[str, tuple[int, ...] | None] = field(default_factory=dict)
    text: str = ""


def read_network(text: str) -> NetworkText:
    """Return the network of a text.

    Raises:
        CaffeError: if it is not in the text format, or is no network; names the line.
    """
    root = parse_text(text)
    if not root.has("layer") and not root.has("layers"):
        is_solver = root.has("base_lr") or root.has("net")
        raise CaffeError(
            "The file has no layers.",
            received="a solver" if is_solver else "",
            advice="Give the network, such as `train_val.prototxt`; a solver is given beside it with --solver.",
        )
    if root.has("layer") and root.has("layers"):
        raise CaffeError("A network has `layer` or `layers`, not both.", line=root.line_of("layers"))
    messages = [*root.messages("layer"), *root.messages("layers")]
    if len(messages) > _MOST_LAYERS:
        raise CaffeError(f"The network has {len(messages):,} layers; {_MOST_LAYERS:,} is the most.")
    is_old = root.has("layers")
    layers = _padded([_layer(_upgraded(each) if is_old else each, is_old) for each in messages])
    return NetworkText(root.text("name"), tuple(layers), _inputs(root), text)


def select(network: NetworkText, phase: str, stages: Sequence[str] = ()) -> NetworkText:
    """Return the network with the layers that a state includes.

    Args:
        network: all layers.
        phase: ``TRAIN`` or ``TEST``.
        stages: names that rules may ask for.
    """
    return replace(network, layers=tuple(each for each in network.layers if _is_included(each, phase, stages)))


def stages_of(network: NetworkText) -> set[str]:
    """Return the stages that rules of a network name."""
    rules = [
        rule for layer in network.layers for name in ("include", "exclude") for rule in layer.message.messages(name)
    ]
    return {stage for rule in rules for name in ("stage", "not_stage") for stage in rule.texts(name)}


def _inputs(root: Message) -> dict[str, tuple[int, ...] | None]:
    """Return the inputs that a file names without a layer."""
    names, dims = root.texts("input"), root.integers("input_dim", 0, 1 << 20)
    shapes = [_shape(each) for each in root.messages("input_shape")]
    if dims and len(dims) != 4 * len(names):
        raise CaffeError(
            f"There are {len(dims)} `input_dim`, not four for each `input`.",
            line=root.line_of("input_dim"),
        )
    if shapes and len(shapes) != len(names):
        raise CaffeError("Each `input` has one `input_shape`.", line=root.line_of("input_shape"))
    if dims:
        shapes = [tuple(dims[place : place + 4]) for place in range(0, len(dims), 4)]
    return {name: shapes[place] if shapes else None for place, name in enumerate(names)}


def _shape(message: Message) -> tuple[int, ...]:
    return tuple(message.integers("dim", 0, 1 << 20))


def _layer(message: Message, is_old: bool) -> Layer:
    name = message.text("name")
    kind = message.text("type")
    if not kind:
        raise CaffeError(
            f"The layer `{name[:60]}` has no `type`.",
            line=message.line,
        )
    is_depthwise = kind in _DEPTHWISE
    kind = "Convolution" if is_depthwise else kind
    bottoms, tops = message.texts("bottom"), message.texts("top")
    if len(bottoms) > _MOST_BLOBS or len(tops) > _MOST_BLOBS:
        raise CaffeError(f"A layer has at most {_MOST_BLOBS} bottoms and tops.", line=message.line)
    message.kind = f"the layer `{name[:60]}`"
    options = Message(message.line)
    if kind in _OPTIONS:
        field_name, known = _OPTIONS[kind]
        for entry in message.entries:
            if entry.name not in _OF_LAYERS and entry.name.removesuffix("_param") not in _PARAMETERS:
                message.only(*_OF_LAYERS, field_name, "transform_param", "loss_param")
        options = message.message(field_name)
        options.only(*known)
        for entry in options.entries:
            if entry.name.endswith("filler") and isinstance(entry.value, Message):
                entry.value.only(*_FILLER)
        if is_depthwise and not options.has("group"):
            count = Entry("group", Scalar(str(options.integer("num_output", 1, 1))), message.line)
            options = Message(options.line, [*options.entries, count], options.kind)
    return Layer(
        name or f"layer{message.line}",
        kind,
        tuple(bottoms),
        tuple(tops),
        options,
        tuple(_old_rules(message) if is_old else map(_rule, message.messages("param"))),
        tuple(message.numbers("loss_weight")),
        message.line,
        message,
        _transform(message, kind),
    )


def _rule(message: Message) -> ParameterRule:
    message.only("name", "share_mode", "lr_mult", "decay_mult")
    return ParameterRule(message.text("name"), message.number("lr_mult", 1.0), message.number("decay_mult", 1.0))


def _old_rules(message: Message) -> list[ParameterRule]:
    names, rates, decays = message.texts("param"), message.numbers("blobs_lr"), message.numbers("weight_decay")
    return [
        ParameterRule(
            names[place] if place < len(names) else "",
            rates[place] if place < len(rates) else 1.0,
            decays[place] if place < len(decays) else 1.0,
        )
        for place in range(min(64, max(len(names), len(rates), len(decays))))
    ]


def _transform(message: Message, kind: str) -> Message:
    """Return what is done to images; very old files say it with the data."""
    found = message.message("transform_param")
    if not found.entries and kind in ("Data", "ImageData", "WindowData"):
        names = {"Data": "data_param", "ImageData": "image_data_param", "WindowData": "window_data_param"}
        old = message.message(names[kind])
        return Message(old.line, [entry for entry in old.entries if entry.name in _V0_TRANSFORM], "`transform_param`")
    return found


# ---- old forms


def _upgraded(message: Message) -> Message:
    """Return a layer of the form ``layers`` with the type of today; of the oldest one, with its options too."""
    if not message.has("layer"):
        word = message.text("type")
        if word not in _V1_KINDS:
            line = message.line_of("type")
            raise CaffeError(f"`{word[:60]}` is not a type of the old form `layers`.", line=line)
        kept = [entry for entry in message.entries if entry.name != "type"]
        return Message(message.line, [*kept, Entry("type", Scalar(_V1_KINDS[word], True), message.line_of("type"))])
    inner = message.message("layer")
    word = inner.text("type")
    if word not in _V0_KINDS:
        raise CaffeError(f"`{word[:60]}` is not a type of the oldest form of layers.", line=inner.line_of("type"))
    kind = _V0_KINDS[word]
    entries = [entry for entry in message.entries if entry.name in ("bottom", "top")]
    options, transform = [], []
    for entry in inner.entries:
        name = _V0_NAMES.get(entry.name, entry.name)
        changed = Entry(name, entry.value, entry.line)
        if name in ("name", "blobs_lr", "weight_decay", "blobs"):
            entries.append(changed)
        elif kind in DATA_KINDS:
            (transform if name in _V0_TRANSFORM else options).append(changed)
        elif name != "type":
            options.append(changed)
    entries.append(Entry("type", Scalar(kind, True), inner.line))
    if transform:
        entries.append(Entry("transform_param", Message(inner.line, transform, "`layer`"), inner.line))
    if options and kind in _OPTIONS:
        entries.append(Entry(_OPTIONS[kind][0], Message(inner.line, options, "`layer`"), inner.line))
    if kind == "padding":
        entries.append(Entry("padding_param", Message(inner.line, options, "`layer`"), inner.line))
    return Message(message.line, entries)


def _padded(layers: Iterable[Layer]) -> list[Layer]:
    """Return layers without those that only pad: the layer behind one pads instead."""
    found, pads = [], {}
    for layer in layers:
        if layer.kind == "padding":
            pads[layer.tops[0] if layer.tops else ""] = layer
            continue
        pad = pads.get(layer.bottoms[0]) if layer.bottoms else None
        if pad is not None:
            if layer.kind != "Convolution" or layer.options.has("pad") or not pad.bottoms:
                raise CaffeError("Behind a layer `padding` comes a convolution without `pad`.", line=layer.line)
            entries = [*layer.options.entries, *pad.message.message("padding_param").all("pad")]
            options = Message(layer.options.line, entries, layer.options.kind)
            layer = replace(layer, bottoms=(pad.bottoms[0], *layer.bottoms[1:]), options=options)
        found.append(layer)
    return found


# ---- states


def _is_included(layer: Layer, phase: str, stages: Sequence[str]) -> bool:
    includes, excludes = layer.message.messages("include"), layer.message.messages("exclude")
    if includes and excludes:
        raise CaffeError(
            "A layer has `include` or `exclude`, not both.", line=layer.line, received=f"`{layer.name[:60]}`"
        )
    if layer.message.has("phase") and layer.message.choice("phase", _PHASES, phase) != phase:
        return False
    if includes:
        return any(_holds(rule, phase, stages) for rule in includes)
    return not any(_holds(rule, phase, stages) for rule in excludes)


def _holds(rule: Message, phase: str, stages: Sequence[str]) -> bool:
    rule.only(*_RULES)
    return (
        rule.choice("phase", _PHASES, phase) == phase
        and rule.integer("min_level", 0, -(1 << 31)) <= 0 <= rule.integer("max_level", 0, -(1 << 31))
        and all(stage in stages for stage in rule.texts("stage"))
        and not any(stage in stages for stage in rule.texts("not_stage"))
    )
