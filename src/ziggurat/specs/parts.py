"""Parts of specs: network, data, loading, images, validation, checkpoints, early stopping, plugins."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import Options, SpecModel, bare_text, spec_field

__all__ = [
    "Augmentation",
    "BestRule",
    "Checkpoints",
    "Data",
    "EarlyStopping",
    "FileNetwork",
    "FineTuning",
    "Loading",
    "Network",
    "PluginUse",
    "PluginUses",
    "Preprocessing",
    "Validation",
    "ZooNetwork",
    "image_size",
]


Mode = Literal["auto", "min", "max"]
_LOADING: Final = "Data loading"


class ZooNetwork(SpecModel):
    """A standard network of the backend."""

    source: Literal["zoo"] = "zoo"
    name: str = spec_field(
        title="Name", help="Name of a standard network, such as `mlp`.", group="Network", min_length=1
    )


class FileNetwork(SpecModel):
    """A network file of the user's own."""

    source: Literal["file"] = "file"
    path: str = spec_field(
        title="File", help="Python file that defines `UserModel`; errors name it.", group="Network", min_length=1
    )
    text: str | None = spec_field(
        None,
        title="Text",
        help="The file's content, stored at the start of the job, so that later edits have no effect.",
        group="Network",
    )


Network = Annotated[
    ZooNetwork | FileNetwork, Field(discriminator="source"), BeforeValidator(lambda value: _network(value))
]
"""A bare text is a file where it ends in ``.py`` or holds a slash, else a name in the zoo."""


def _network(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.endswith(".py") or "/" in value:
        return {"source": "file", "path": value}
    return {"source": "zoo", "name": value}


class FineTuning(SpecModel):
    """How a training goes on from a pretrained model: its head learns first and fastest, its first layers least.

    The head is the last layer; the backbone is everything else.
    """

    fit_head: bool = spec_field(
        False,
        title="Fit the head",
        help="Whether the first epoch fits the last layer to features of the frozen backbone, at once and without a "
        "learning rate; for one class for each sample. Off by default.",
        group="Network",
    )
    frozen_epochs: int = spec_field(
        0,
        title="Frozen epochs",
        help="First epochs, in which only the last layer is trained; typical: 1 to 3, 0 for none.",
        unit="epochs",
        group="Network",
        ge=0,
    )
    backbone_rate: float = spec_field(
        1.0,
        title="Backbone rate",
        help="Factor of the learning rate of all layers but the last; typical: 0.1 to 0.3, 1 for the same rate.",
        group="Network",
        gt=0,
        le=1,
    )
    layer_decay: float = spec_field(
        1.0,
        title="Layer decay",
        help="Rate of each stage of the network, relative to the next one; typical: 0.6 to 0.9, 1 for equal rates.",
        group="Network",
        gt=0,
        le=1,
    )

    @model_serializer(mode="wrap")
    def _without_later_fields(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Releases before it can read a spec without it.
        content: dict[str, Any] = whole(self)
        if not content.get("fit_head", True):
            del content["fit_head"]
        return content


class _Data(SpecModel):
    source: str = spec_field(
        title="Source",
        help="`digits` (needs no download), the name of another dataset, or a folder.",
        group="Data",
        min_length=1,
    )
    options: Options = spec_field(
        factory=dict, title="Options", help="Options of the source, checked by it.", group="Data"
    )


Data = Annotated[_Data, bare_text("source")]
"""What it trains on; a bare text is the source."""


class Loading(SpecModel):
    """How the images of a training are read and decoded: it decides the speed, and `decode` the pixels of crops."""

    workers: int | None = spec_field(
        None,
        title="Workers",
        help="Threads or processes that decode and augment images; default: one per CPU, at most 16.",
        group=_LOADING,
        ge=1,
        le=256,
    )
    worker_kind: Literal["threads", "processes"] = spec_field(
        "threads",
        title="Kind of workers",
        help="`threads` for most jobs; `processes` for heavy augmentation on many CPUs. Crops are decoded by threads.",
        group=_LOADING,
    )
    prefetch: int = spec_field(
        2,
        title="Prefetch",
        help="Batches prepared ahead of the step; typical: 2 to 8.",
        unit="batches",
        group=_LOADING,
        ge=1,
        le=64,
    )
    decode: Literal["crop", "picture"] = spec_field(
        "crop",
        title="Decode",
        help="`crop` decodes only the part of a JPEG file that a random crop needs; `picture` decodes all of "
        "it, as release 0.1 did.",
        group=_LOADING,
    )


class Validation(SpecModel):
    """When the network is tested on the validation split."""

    every_epochs: float = spec_field(
        1.0,
        title="Validate every",
        help="Epochs between validations; typical: 1; 0.5 for two per epoch, 0 for none.",
        unit="epochs",
        group="Validation",
        ge=0,
    )


_HIGH_IS_GOOD: Final = (
    "accuracy",
    "precision",
    "recall",
    "f1",
    "map",
    "iou",
    "auc",
    "dice",
    "bleu",
    "score",
    "top1",
    "top5",
)


def _direction(mode: Mode, tag: str) -> Literal["min", "max"]:
    if mode != "auto":
        return mode
    words = tag.lower().replace("/", "_").replace("-", "_").split("_")
    return "max" if any(word in _HIGH_IS_GOOD for word in words) else "min"


class BestRule(SpecModel):
    """Which checkpoint is the best."""

    tag: str = spec_field(
        title="Curve",
        help="Deciding metric, such as `validation_error`; `auto`: the validation accuracy, else its loss.",
        group="Checkpoints",
        min_length=1,
    )
    mode: Mode = spec_field(
        "auto",
        title="Best is",
        help="Whether low or high values are good; `auto`: high for an accuracy and the like, else low.",
        group="Checkpoints",
    )

    @property
    def direction(self) -> Literal["min", "max"]:
        """Which values are good, decided."""
        return _direction(self.mode, self.tag)


class Checkpoints(SpecModel):
    """When checkpoints are written, and which are kept."""

    every_epochs: float = spec_field(
        1.0,
        title="Save every (epochs)",
        help="Epochs between checkpoints; typical: 1; 0 for only the last.",
        unit="epochs",
        group="Checkpoints",
        ge=0,
    )
    every_steps: int | None = spec_field(
        None,
        title="Save every (steps)",
        help="Steps between additional checkpoints; not set by default.",
        unit="steps",
        group="Checkpoints",
        ge=1,
    )
    every_minutes: float | None = spec_field(
        None,
        title="Save every (minutes)",
        help="Minutes between checkpoints, for long epochs; typical: 10 to 60, or not set.",
        unit="min",
        group="Checkpoints",
        gt=0,
    )
    keep_last: int | None = spec_field(
        5,
        title="Keep last",
        help="Newest checkpoints that are kept; typical: 3 to 10, null for all.",
        group="Checkpoints",
        ge=1,
    )
    keep_best: Annotated[BestRule, bare_text("tag")] | None = spec_field(
        factory=lambda: BestRule(tag="auto"),
        title="Keep best",
        short_form="tag",
        help="Metric whose best checkpoint is kept beside the newest; default `auto`, null for none.",
        group="Checkpoints",
    )
    keep_checkpoint_every_n_hours: float | None = spec_field(
        None,
        title="Keep one every",
        help="Hours of training between checkpoints that are kept permanently; typical: 1 to 24, or not set.",
        unit="h",
        group="Checkpoints",
        gt=0,
    )

    @property
    def best_rule(self) -> BestRule | None:
        """Which best checkpoint is kept; none by default where no checkpoint but the last is wanted."""
        wants_none = not self.every_epochs and self.every_steps is None and self.every_minutes is None
        is_default = self.keep_best is not None and self.keep_best.tag == "auto"
        return None if wants_none and is_default else self.keep_best


class EarlyStopping(SpecModel):
    """When training ends before its last epoch because it learns no more."""

    tag: str = spec_field(
        title="Curve",
        help="Metric that must improve, such as `validation_error`; `auto`: val accuracy, else error, else loss.",
        group="Duration",
        min_length=1,
    )
    patience: int = spec_field(
        10,
        title="Patience",
        help="Epochs without a better value; typical: 5 to 20.",
        unit="epochs",
        group="Duration",
        ge=1,
    )
    min_delta: float = spec_field(
        0.0, title="Smallest gain", help="Minimum improvement; typical: 0 to 0.01.", group="Duration", ge=0
    )
    mode: Mode = spec_field(
        "auto",
        title="Better is",
        help="Whether low or high values are good; `auto`: high for an accuracy and the like, else low.",
        group="Duration",
    )

    @property
    def direction(self) -> Literal["min", "max"]:
        """Which values are good, decided."""
        return _direction(self.mode, self.tag)


class PluginUse(SpecModel):
    """A callback or monitor by name."""

    name: str = spec_field(
        title="Name", help="Name as in `ziggurat plugins list`.", group="Callbacks and monitors", min_length=1
    )
    options: Options = spec_field(
        factory=dict, title="Options", help="Its own options; the plugin checks them.", group="Callbacks and monitors"
    )


PluginUses = list[Annotated[PluginUse, bare_text("name")]]
"""Plugins in their order; a bare text in the list is a name."""


_BEFORE = "Preprocessing"
_VARIED = "Augmentation"


def image_size(value: Any) -> Any:
    """Return ``28`` as ``[28, 28]`` and ``"240x320"`` as ``[240, 320]``; anything else that is no text as it is."""
    if isinstance(value, list) and len(value) == 1:  # how a flag says a single value
        return image_size(value[0])
    if isinstance(value, int) and not isinstance(value, bool):
        return [value, value]
    if isinstance(value, str):
        if not all(part.isdigit() for part in value.split("x")):
            raise PydanticCustomError("wrong", "must be a height and a width, as in 28 or 240x320")
        return [int(part) for part in value.split("x")]
    return value


class Preprocessing(SpecModel):
    """What is done to every input, in training, validation, prediction and exports alike."""

    size: Annotated[list[int], BeforeValidator(image_size)] | None = spec_field(
        None,
        title="Size",
        help="Height and width of the images, as in 28 or 240x320; default: that of the data.",
        unit="px",
        group=_BEFORE,
        min_length=2,
        max_length=2,
    )
    channels: Literal[1, 3] | None = spec_field(
        None, title="Channels", help="1 for gray, 3 for color; default: that of the data.", group=_BEFORE
    )
    resize_mode: Literal["squash", "crop", "fill", "half_crop"] = spec_field(
        "squash",
        title="Resize mode",
        help="How images of another size are resized; `squash` ignores the aspect ratio.",
        group=_BEFORE,
    )
    crop: int | None = spec_field(
        None,
        title="Crop",
        help="Side of a square crop, random in training, else centered; typical: 7/8 of the size.",
        unit="px",
        group=_BEFORE,
        ge=1,
    )
    mean: Literal["none", "pixel", "image"] = spec_field(
        "none",
        title="Mean subtraction",
        help="Subtracts nothing, one number per channel, or the mean image of the training split.",
        group=_BEFORE,
    )
    whitening: bool = spec_field(
        False,
        title="Whitening",
        help="Scales each image to mean 0 and standard deviation 1, also in prediction.",
        group=_BEFORE,
    )
    numbers: Literal["none", "standardize", "whiten"] = spec_field(
        "standardize",
        title="Numbers",
        help="Scaling of a table's numbers: none, mean 0 and deviation 1, or also without correlation.",
        group=_BEFORE,
    )
    text_length: int | None = spec_field(
        None,
        title="Text length",
        help="Tokens of a text that the network gets; default: what 95 % of the texts have, at most 256.",
        unit="tokens",
        group=_BEFORE,
        ge=1,
        le=100_000,
    )
    vocabulary_size: int = spec_field(
        20_000,
        title="Vocabulary",
        help="Different tokens of texts that are told apart; typical: 5,000 to 50,000.",
        unit="tokens",
        group=_BEFORE,
        ge=3,
        le=10_000_000,
    )


def _share(most: float, title: str, help: str) -> Any:  # noqa: A002
    return spec_field(0.0, title=title, help=help, group=_VARIED, ge=0, le=most)


class Augmentation(SpecModel):
    """Random changes of the images in training."""

    flip: Literal["none", "fliplr", "flipud", "fliplrud"] = spec_field(
        "none", title="Flip", help="Mirrors half of the images: left and right, up and down, or both.", group=_VARIED
    )
    quad_rotation: Literal["none", "rot90", "rot180", "rotall"] = spec_field(
        "none", title="Quarter turns", help="Random rotations by 0 and ±90 degrees, by 180, or by all.", group=_VARIED
    )
    rotation_deg: float = spec_field(
        0.0,
        title="Rotation",
        help="Random rotation by up to this angle in both directions; typical: 0 to 15.",
        unit="deg",
        group=_VARIED,
        ge=0,
        le=180,
    )
    scale: float = _share(1, "Rescale", "Standard deviation of the relative size; typical: 0.07.")
    noise: float = _share(1, "Noise", "Standard deviation of noise, as a fraction of white; typical: 0.03.")
    contrast: float = _share(5, "Contrast", "Contrast varies by up to this fraction; 0.8 is strong.")
    hue: float = _share(0.5, "Hue", "Hue varies by up to this fraction of the circle; typical: 0.02.")
    saturation: float = _share(0.5, "Saturation", "Saturation varies by up to this fraction; typical: 0.04.")
    value: float = _share(0.5, "Brightness", "Brightness varies by up to this fraction; typical: 0.06.")
    mixup: float = _share(
        10,
        "Mixup",
        "Blends the images of a batch in pairs, with their classes or boxes: alpha of the shares; typical: 0.2.",
    )
    cutmix: float = _share(
        10, "CutMix", "Pastes a part of another image, classes by area: alpha of the areas; typical: 1."
    )
    mosaic: float = _share(
        1, "Mosaic", "Share of images that become one of parts of four, with their boxes; typical: 0.5."
    )

    @property
    def swaps_sides(self) -> bool:
        """Whether some images change height for width, so that only square ones stay of one shape."""
        return self.quad_rotation in ("rot90", "rotall")
