"""Metadata of ILSVRC12: the classes, the class of each file, and the mean image.

O. Russakovsky et al., "ImageNet large scale visual recognition challenge", IJCV 115, 2015. The lists are those that
Caffe published (``caffe_ilsvrc12.tar.gz``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ziggurat.dataflow.dataset.files import find_files, require_split, set_folder
from ziggurat.errors import DataError

__all__ = ["ILSVRCMeta"]

_SPLITS = ("train", "val", "test")
_SOURCE = "Caffe's `caffe_ilsvrc12.tar.gz`"
_CHANNELS, _HEIGHT, _WIDTH, _DATA = 2, 3, 4, 5


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
