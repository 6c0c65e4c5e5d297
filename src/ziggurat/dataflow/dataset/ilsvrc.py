"""ILSVRC12 (ImageNet): its images, which users must obtain themselves, and its metadata.

O. Russakovsky et al., "ImageNet large scale visual recognition challenge", IJCV 115, 2015. The lists of classes and
files and the mean image are those that Caffe published (``caffe_ilsvrc12.tar.gz``).
"""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ziggurat.dataflow.dataset.files import find_files, require_split, set_folder
from ziggurat.dataflow.images import ImageFolder, ImageList
from ziggurat.dataflow.policy import ErrorPolicy, OnError
from ziggurat.errors import DataError, UnknownNameError

__all__ = ["ILSVRC12", "ILSVRC12Files", "ILSVRCMeta"]

_SPLITS = ("train", "val", "test")
_SOURCE = "Caffe's `caffe_ilsvrc12.tar.gz`"
_CHANNELS, _HEIGHT, _WIDTH, _DATA = 2, 3, 4, 5

_CHECKED_FILES = 10


class ILSVRCMeta:
    """The lists in one folder.

    Args:
        dir: folder with ``synsets.txt``, ``synset_words.txt``, ``train.txt``, ``val.txt``, ``test.txt`` and
            ``imagenet_mean.binaryproto``, as far as they are used.

    Raises:
        DataError: from every method, where its file is missing or damaged.
    """

    def __init__(self, dir: str | os.PathLike[str] | None = None) -> None:  # noqa: A002 - Tensorpack's name
        self.dir = set_folder("ILSVRCMeta", dir, "ilsvrc_metadata")

    def get_synset_words_1000(self) -> dict[int, str]:
        """Return class number → line such as "n01440764 tench, Tinca tinca"."""
        return dict(enumerate(self._lines("synset_words.txt")))

    def get_synset_1000(self) -> dict[int, str]:
        """Return class number → synset such as "n01440764"."""
        return dict(enumerate(self._lines("synsets.txt")))

    def get_image_list(self, name: str, dir_structure: str = "original") -> list[tuple[str, int]]:
        """Return file names, relative to the folder of the split, and class numbers.

        Args:
            name: "train", "val" or "test".
            dir_structure: "original", where the files of "val" and "test" stand in one folder, or "train", where they
                stand in a folder for each class.
        """
        require_split("ILSVRCMeta", name, _SPLITS)
        folders = self.get_synset_1000() if name != "train" and dir_structure == "train" else None
        pairs = []
        for number, line in enumerate(self._lines(f"{name}.txt"), start=1):
            file, _blank, label = line.rpartition(" ")
            if not file or not label.isdigit():
                raise DataError(
                    "Each line of an image list is a file and a class number.",
                    received=f"{line!r} in {self.dir / name}.txt:{number}",
                )
            pairs.append((file if folders is None else os.path.join(folders[int(label)], file), int(label)))
        return pairs

    def get_per_pixel_mean(self, size: Sequence[int] | None = None) -> np.ndarray:
        """Return the mean training image, (256, 256, 3) float32 **RGB**, from 0 to 255 (Tensorpack gave BGR).

        Args:
            size: (height, width) to resize it to.
        """
        path = find_files("ILSVRCMeta", self.dir, [["imagenet_mean.binaryproto"]], source=_SOURCE)[0]
        mean = np.ascontiguousarray(_read_blob(path).transpose(1, 2, 0)[:, :, ::-1])
        return mean if size is None else cv2.resize(mean, (size[1], size[0]))

    @staticmethod
    def guess_dir_structure(dir: str | os.PathLike[str]) -> str:  # noqa: A002 - Tensorpack's name
        """Return "train" where a folder has a folder for each class, and "original" otherwise."""
        with os.scandir(dir) as entries:
            return "train" if any(entry.is_dir() and entry.name.startswith("n") for entry in entries) else "original"

    def _lines(self, name: str) -> list[str]:
        path = find_files("ILSVRCMeta", self.dir, [[name]], source=_SOURCE)[0]
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _read_blob(path: Path) -> np.ndarray:
    """Return the array in a file of Caffe's message BlobProto, (C, H, W) float32."""
    fields: dict[int, int] = {}
    values = np.empty(0, np.float32)
    data = path.read_bytes()
    place = 0
    try:
        while place < len(data):
            tag, place = _varint(data, place)
            number, kind = tag >> 3, tag & 7
            length, place = (4, place) if kind == 5 else _varint(data, place)
            if kind == 0:
                fields[number] = length
                continue
            if number == _DATA:  # packed in one field, or a field for each value
                values = np.concatenate([values, np.frombuffer(data[place : place + length], "<f4")])
            place += length
        return values.reshape(fields[_CHANNELS], fields[_HEIGHT], fields[_WIDTH])
    except (IndexError, KeyError, ValueError) as error:
        raise DataError(
            "The mean image is a BlobProto of Caffe.", received=f"`{path}`: {error}", advice="Get it anew."
        ) from error


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


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
            f"The folder `{folder}` of ILSVRC12 does not exist.",
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
            f"`{missing[0]}` is not in `{folder}`, where the list has it with the structure {structure!r}.",
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
        raise DataError(
            f"`{path}` is no XML file of ImageNet with bounding boxes: {str(error).rstrip('.')}."
        ) from error
    return np.clip(np.array(corners, np.float32) / np.array(numbers * 2, np.float32), 0, 1)
