"""Dataset spec, version 1: the source of the samples, and how they are split, stored and resized."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import Options, SpecModel, bare_text, is_stored, spec_field
from ziggurat.specs.parts import image_size

__all__ = ["DatasetSpec", "Split"]

_SOURCE, _SPLITS, _IMAGES, _STORING = "Source", "Splits", "Images", "Storing"


def _present_store(value: Any, info: ValidationInfo) -> Any:
    """Return ``lmdb`` in the place of a store that only release 0.1 made, and refuse that one in a new request."""
    if value not in ("hdf5", "npz"):
        return value
    if is_stored(info):
        return "lmdb"
    raise PydanticCustomError(
        "wrong",
        "must be `lmdb` or `tfrecord`; for files in HDF5, export the dataset when it is made, "
        "with: ziggurat dataset export --format digits_hdf5",
    )


class Split(SpecModel):
    """How samples are divided into training, validation and test."""

    method: Literal["source", "share", "group", "stem", "time", "cluster", "list"] = spec_field(
        "source",
        title="Method",
        help="`source` keeps the source's own splits and takes missing ones by share; `group`, `stem` and "
        "`cluster` keep related samples together; `time` tests on the newest.",
        group=_SPLITS,
    )
    val_share: float = spec_field(
        0.25, title="Validation share", help="Share of the samples for validation; typical: 0.1 to 0.25.",
        group=_SPLITS, ge=0, lt=1,
    )  # fmt: skip
    test_share: float = spec_field(
        0.0, title="Test share", help="Share of the samples for the test; typical: 0.1 to 0.2.", group=_SPLITS,
        ge=0, lt=1,
    )  # fmt: skip
    stratify: bool = spec_field(True, title="Stratify", help="Whether splits are stratified by class.", group=_SPLITS)
    pattern: str = spec_field(
        "",
        title="Pattern",
        help="For `stem`: regular expression whose first group identifies related samples, as in `(.+)_[0-9]+`.",
        group=_SPLITS,
    )
    lists: dict[str, str] = spec_field(
        factory=dict,
        title="Lists",
        help="For `list`: split and text file with the names of its samples, one per line.",
        group=_SPLITS,
    )
    max_distance: int = spec_field(
        6,
        title="Maximum distance",
        help="For `cluster`: maximum number of different bits between hashes of similar images; typical: 4 to 8.",
        unit="bits",
        group=_SPLITS,
        ge=0,
        le=16,
    )  # fmt: skip
    min_per_class: int = spec_field(
        0, title="Minimum per class", help="Smaller classes are excluded and listed; 0 keeps all.",
        group=_SPLITS, ge=0,
    )  # fmt: skip
    max_per_class: int | None = spec_field(
        None, title="Maximum per class", help="Maximum, chosen at random; default: all.", group=_SPLITS, ge=1
    )

    @model_validator(mode="after")
    def _leave_something(self) -> Split:
        if self.val_share + self.test_share >= 1:
            raise PydanticCustomError(
                "rule",
                "rule",
                {
                    "field": "splits.test_share",
                    "rule": "and `val_share` must leave something for training",
                    "received": f"{self.val_share} and {self.test_share}",
                    "advice": "Make them smaller.",
                },
            )
        return self


class DatasetSpec(SpecModel):
    """What a dataset was asked to become."""

    kind: Literal["dataset"] = "dataset"
    version: Literal[1] = 1

    name: str = spec_field("", title="Name", help="Name of the dataset; any text.", group="Dataset", max_length=200)
    seed: int = spec_field(0, title="Seed", help="Determines the random split.", group="Dataset", ge=0, lt=2**32)
    heartbeat_s: float = spec_field(
        1.0, title="Heartbeat", help="Seconds between heartbeats; typical: 1 to 5.", unit="s", group="Dataset",
        gt=0, le=10,
    )  # fmt: skip
    hung_after_s: float = spec_field(
        600.0, title="Hung after", help="Longest time without progress before it is reported.", unit="s",
        group="Dataset", gt=0,
    )  # fmt: skip

    again_of: str = spec_field(
        "", title="Again of", help="Id and name of the dataset that is created again, for the history.",
        group="Dataset", max_length=300,
    )  # fmt: skip

    source: str = spec_field(
        title="Source", help="Folder, file, archive (zip, tar) or URL (http, s3, …).", group=_SOURCE, min_length=1
    )
    format: str = spec_field(
        "", title="Format", help="Format of the source; guessed and shown by default.", group=_SOURCE
    )
    options: Options = spec_field(
        factory=dict, title="Options", help="Options of the format, as NAME=VALUE.", group=_SOURCE
    )

    splits: Annotated[Split, bare_text("method")] = spec_field(
        factory=Split, title="Splits", short_form="method", help="How samples are split.", group=_SPLITS
    )

    size: Annotated[list[int], BeforeValidator(image_size)] | None = spec_field(
        None,
        title="Size",
        help="Height and width of the stored images, as in 256 or 240x320; default: unchanged.",
        unit="px",
        group=_IMAGES,
        min_length=2,
        max_length=2,
    )
    resize_mode: Literal["squash", "crop", "fill", "half_crop"] = spec_field(
        "squash",
        title="Resize mode",
        help="How images are resized: `squash` ignores the aspect ratio, `crop` cuts, `fill` adds a frame.",
        group=_IMAGES,
    )
    channels: Literal[1, 3] | None = spec_field(
        None, title="Channels", help="1 for gray, 3 for color; default: as in each image.", group=_IMAGES
    )
    encoding: Literal["auto", "original", "png", "jpeg", "raw", "reference"] = spec_field(
        "auto",
        title="Encoding",
        help="`original` keeps the bytes of the files, `reference` leaves the files where they are; "
        "`auto` is `original` if nothing is changed, else `png`.",
        group=_IMAGES,
    )
    quality: int = spec_field(
        90, title="JPEG quality", help="From 1 to 100; typical: 85 to 95.", group=_IMAGES, ge=1, le=100
    )
    check: Literal["auto", "decode", "header", "none"] = spec_field(
        "auto",
        title="Check",
        help="How unchanged images are verified: `decode` finds every damaged one, `header` most, `none` none; "
        "`auto` is `decode`, or `header` for references.",
        group=_IMAGES,
    )
    near_duplicates: bool = spec_field(
        True,
        title="Near-duplicates",
        help="Whether similar images are detected, to warn of leaks between splits.",
        group=_IMAGES,
    )

    losses: Literal["none", "some", "any"] = spec_field(
        "some",
        title="Losses",
        help="What of the source may be lost: `none` refuses any loss, `some` only that of all labels of a split or a "
        "class, `any` nothing.",
        group=_SOURCE,
    )

    store: Annotated[Literal["lmdb", "tfrecord"], BeforeValidator(_present_store)] = spec_field(
        "lmdb", title="Store", help="Kind of file that holds the records; `lmdb` is the fastest.", group=_STORING
    )
    mean: bool = spec_field(
        True, title="Mean image", help="Whether the mean of the training images is computed.", group=_STORING
    )
    workers: int | None = spec_field(
        None, title="Workers", help="Processes that read images; default: one per CPU.", group=_STORING, ge=0
    )
