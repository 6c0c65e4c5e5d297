"""The images of ILSVRC12 (ImageNet), which users must obtain themselves."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.dataflow.dataset.files import require_split
from ziggurat.dataflow.dataset.ilsvrc_meta import ILSVRCMeta
from ziggurat.dataflow.images import ImageFolder, ImageList
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["ILSVRC12", "ILSVRC12Files"]

_SPLITS = ("train", "val", "test")
_CHECKED_FILES = 10


class ILSVRC12Files(ImageList):
    """The files of ILSVRC12: datapoints ``[file name, label]``, text and int.

    Args:
        dir: folder with the folders ``train``, ``val`` and ``test``.
        name: "train", "val" or "test".
        meta_dir: folder with the lists of ``ILSVRCMeta``; they are not needed where there is a folder for each class,
            as their order is that of the class numbers.
        shuffle: a new random order in every pass; None shuffles the training set only.
        dir_structure: "original", where the files of "val" and "test" stand in one folder; "train", where there is a
            folder for each class; None looks.

    Raises:
        DataError: where images or lists are missing.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the name of Tensorpack's argument
        name: str,
        meta_dir: str | os.PathLike[str] | None = None,
        shuffle: bool | None = None,
        dir_structure: str | None = None,
        **options: Any,
    ) -> None:
        require_split("ILSVRC12", name, _SPLITS)
        folder = Path(dir) / name
        pairs = _pairs(folder, name, meta_dir, dir_structure)
        shuffled = name == "train" if shuffle is None else shuffle
        super().__init__(pairs, folder, shuffled, **{"content": "path", **options})


class ILSVRC12(ILSVRC12Files):
    """The images of ILSVRC12: datapoints ``[image, label]``, (H, W, 3) uint8 **RGB** and int (Tensorpack gave BGR).

    Args:
        dir: folder with the folders ``train``, ``val`` and ``test``.
        name: "train", "val" or "test".
        meta_dir: see ``ILSVRC12Files``.
        shuffle: a new random order in every pass; None shuffles the training set only.
        dir_structure: see ``ILSVRC12Files``.
        on_error: what happens with a file that cannot be used: "raise", "skip", "log", or an ``ErrorPolicy``.

    Raises:
        DataError: where images or lists are missing.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str],  # noqa: A002 - the name of Tensorpack's argument
        name: str,
        meta_dir: str | os.PathLike[str] | None = None,
        shuffle: bool | None = None,
        dir_structure: str | None = None,
        *,
        on_error: OnError | ErrorPolicy = "raise",
    ) -> None:
        super().__init__(dir, name, meta_dir, shuffle, dir_structure, content="image", on_error=on_error)

    @staticmethod
    def get_training_bbox(
        bbox_dir: str | os.PathLike[str], imglist: Iterable[tuple[str, int]]
    ) -> list[np.ndarray | None]:
        """Return the first bounding box of each training image.

        Args:
            bbox_dir: folder with an XML file for each image, in a folder for each class.
            imglist: what ``ILSVRCMeta.get_image_list("train")`` returns.

        Returns:
            for each image (4,) float32, (x1, y1, x2, y2) as fractions of width and height, or None where it has none.
        """
        return [_first_box(Path(bbox_dir) / Path(name).with_suffix(".xml")) for name, _label in imglist]


def _pairs(
    folder: Path, name: str, meta_dir: str | os.PathLike[str] | None, structure: str | None
) -> Iterable[tuple[str, int]]:
    if not folder.is_dir():
        raise DataError(
            "ILSVRC12 stands in the folders `train`, `val` and `test`.",
            received=f"`{folder}`, which is not there",
            advice="Get the images from https://image-net.org, and pass the folder that holds these three.",
        )
    if structure is None:
        structure = "original" if name == "train" else ILSVRCMeta.guess_dir_structure(folder)
    if structure not in ("original", "train"):
        raise UnknownNameError("structure of folders", structure, ("original", "train"))
    if meta_dir is None and (name == "train" or structure == "train"):
        classes = ImageFolder(folder, content="path")
        return [
            (os.path.relpath(path, folder), label) for path, label in zip(classes.files, classes.labels, strict=True)
        ]
    pairs = ILSVRCMeta(meta_dir).get_image_list(name, structure)
    missing = [file for file, _label in pairs[:_CHECKED_FILES] if not (folder / file).is_file()]
    if missing:
        raise DataError(
            f'With the structure "{structure}", the files of the list stand in `{folder}`.',
            received=f"no {missing[0]}",
            advice="Check `dir` and `dir_structure`.",
        )
    return pairs


def _first_box(path: Path) -> np.ndarray | None:
    if not path.is_file():
        return None
    try:
        root = ElementTree.parse(path).getroot()
        numbers = [float(root.findtext(f"size/{side}", "")) for side in ("width", "height")]
        box = root.find("object/bndbox")
        if box is None:
            return None
        corners = [float(box.findtext(corner, "")) for corner in ("xmin", "ymin", "xmax", "ymax")]
    except (ElementTree.ParseError, ValueError) as error:
        raise DataError("A bounding box is an XML file of ImageNet.", received=f"`{path}`: {error}") from error
    return np.clip(np.array(corners, np.float32) / np.array(numbers * 2, np.float32), 0, 1)
