"""Conversion of DIGITS's form for a classification dataset to a spec."""

from __future__ import annotations

from typing import Any

from ziggurat.api.digits.fields import Fields
from ziggurat.errors import UsageError
from ziggurat.workspace.studio.paths import Paths

__all__ = ["dataset_spec"]

_ENCODINGS = {"png": "png", "jpg": "jpeg", "none": "raw"}


def dataset_spec(fields: Fields, paths: Paths) -> dict[str, Any]:
    """Return the spec of a classification dataset; what is wrong is noted in the fields.

    Args:
        fields: of the form; the methods ``folder`` and ``textfile`` (with files of the server) are known.
        paths: that may be named.
    """
    spec: dict[str, Any] = {"kind": "dataset", "version": 1, "name": fields.text("dataset_name", required=True)}
    method = fields.choice("method", "folder", ("folder", "textfile"))
    spec |= _pictures(fields)
    spec |= _folder(fields, paths) if method == "folder" else _textfile(fields, paths)
    return spec


def _pictures(fields: Fields) -> dict[str, Any]:
    if fields.choice("backend", "lmdb", ("lmdb", "hdf5")) == "hdf5":
        fields.refuse("backend", "Records are stored as `lmdb`; export the dataset as DIGITS's HDF5 when it is made.")
    encoding = fields.choice("encoding", "png", tuple(_ENCODINGS))
    if fields.choice("compression", "none", ("none", "gzip")) == "gzip":
        fields.refuse("compression", "Records are stored without compression here; leave it `none`.")
    return {
        "size": [fields.whole("resize_height", 256, 1, 65536), fields.whole("resize_width", 256, 1, 65536)],
        "resize_mode": fields.choice("resize_mode", "squash", ("squash", "crop", "fill", "half_crop")),
        "channels": 1 if fields.choice("resize_channels", "3", ("1", "3")) == "1" else 3,
        "encoding": _ENCODINGS[encoding],
        "store": "lmdb",
    }


def _folder(fields: Fields, paths: Paths) -> dict[str, Any]:
    for name in ("has_val_folder", "has_test_folder"):
        if fields.flag(name):
            fields.refuse(name, "Put the folders `train`, `val` and `test` side by side, and name the one above them.")
    val, test = fields.real("folder_pct_val", 25.0, 0, 100), fields.real("folder_pct_test", 0.0, 0, 100)
    if val + test >= 100:
        fields.refuse("folder_pct_test", "Validation and test together must leave something for training.")
        val = test = 0.0
    least = fields.whole("folder_train_min_per_class", 2, 1)
    most = fields.maybe_whole("folder_train_max_per_class")
    if most is not None and most < least:
        fields.refuse("folder_train_max_per_class", "Must not be less than the minimum per class.")
    return {
        "source": _place(fields, "folder_train", paths),
        "format": "class_folders",
        "options": {"min_per_class": 1},
        "splits": {
            "method": "share",
            "val_share": val / 100,
            "test_share": test / 100,
            "min_per_class": least,
            "max_per_class": most if most is None or most >= least else None,
        },
    }


def _textfile(fields: Fields, paths: Paths) -> dict[str, Any]:
    if not fields.flag("textfile_use_local_files"):
        fields.refuse("textfile_train_images", "Send the lists, or name files of the server.")
        return {"source": ""}
    source = _place(fields, "textfile_local_train_images", paths)
    options = {"train": source, "labels": _place(fields, "textfile_local_labels_file", paths)}
    for split, default in (("val", True), ("test", False)):
        if fields.flag(f"textfile_use_{split}", default):
            options[split] = _place(fields, f"textfile_local_{split}_images", paths)
    folder = fields.text("textfile_train_folder")
    if folder:
        options["folder"] = _place(fields, "textfile_train_folder", paths)
    return {
        "source": source.rpartition("/")[0],
        "format": "text_list",
        "options": {**options, "kind": "image-classification"},
        "splits": {"method": "source", "val_share": 0.0},
    }


def _place(fields: Fields, name: str, paths: Paths) -> str:
    text = fields.text(name, required=True)
    if not text:
        return ""
    try:
        return str(paths.allowed(text))
    except UsageError as error:
        fields.refuse(name, str(error))
        return ""
