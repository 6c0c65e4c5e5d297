"""MNIST and Fashion-MNIST, and the idx format of their files.

Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, "Gradient-based learning applied to document recognition", Proceedings of
the IEEE 86(11), 1998; H. Xiao, K. Rasul, R. Vollgraf, "Fashion-MNIST", arXiv:1708.07747, 2017.

An idx file has a magic number, the sizes of the dimensions, and the values, optionally gzip-compressed. The magic
number is two zero bytes, the code of the value type, and the number of dimensions; each size is a uint32. All numbers
are big-endian (http://yann.lecun.com/exdb/mnist describes it).
"""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import ClassVar

import numpy as np

from ziggurat.dataflow.dataset.files import Download, find_files, require_split, set_folder
from ziggurat.dataflow.indexed import ArraySet
from ziggurat.errors import DataError

__all__ = ["FashionMnist", "Mnist", "damaged_file", "read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"

_IMAGES = {"train": "train-images-idx3-ubyte", "test": "t10k-images-idx3-ubyte"}
_LABELS = {"train": "train-labels-idx1-ubyte", "test": "t10k-labels-idx1-ubyte"}


def _downloads(base: str, checksums: dict[str, str]) -> list[Download]:
    return [Download(f"{name}.gz", f"{base}/{name}.gz", checksum) for name, checksum in checksums.items()]


class Mnist(ArraySet):
    """Handwritten digits: datapoints ``[image, label]``, (28, 28) float32 from 0 to 1 and uint8.

    Args:
        train_or_test: "train" (60,000) or "test" (10,000).
        shuffle: a new random order in every pass; None shuffles the training set only.
        dir: folder with the four idx files, compressed by gzip or not.
        raw: give images as (28, 28, 1) uint8 instead.
        download: fetch missing files into ``dir``.

    Raises:
        DataError: where files are missing or damaged; the message names them.
    """

    names: ClassVar[tuple[str, ...]] = ("mnist", "mnist_data")
    downloads: ClassVar[list[Download]] = _downloads(
        "https://storage.googleapis.com/cvdf-datasets/mnist",
        {
            "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
    )

    def __init__(
        self,
        train_or_test: str,
        shuffle: bool | None = None,
        dir: str | os.PathLike[str] | None = None,  # noqa: A002 - the name of Tensorpack's argument
        *,
        raw: bool = False,
        download: bool = False,
    ) -> None:
        reader = type(self).__name__
        require_split(reader, train_or_test, ("train", "test"))
        self.split = train_or_test
        self.raw = raw
        names = (_IMAGES[self.split], _LABELS[self.split])
        wanted = [_spellings(name) for name in names]
        folder = set_folder(reader, dir, *self.names)
        self._paths = find_files(reader, folder, wanted, downloads=self.downloads, download=download)
        super().__init__(shuffle=train_or_test == "train" if shuffle is None else shuffle)

    def _load(self) -> tuple[np.ndarray, np.ndarray]:
        images, labels = read_idx(self._paths[0], dimensions=3), read_idx(self._paths[1], dimensions=1)
        if len(images) != len(labels):
            raise DataError(
                f"There are {len(images)} images in `{self._paths[0]}` and {len(labels)} labels in `{self._paths[1]}`."
            )
        return images, labels

    def _converted(self, images: np.ndarray) -> np.ndarray:
        if self.raw:
            return images[..., None].copy()
        converted = images.astype(np.float32)
        converted /= np.float32(255)
        return converted


class FashionMnist(Mnist):
    """Images of clothes, in the shapes of MNIST.

    Args:
        train_or_test: "train" (60,000) or "test" (10,000).
        shuffle: a new random order in every pass; None shuffles the training set only.
        dir: folder with the four idx files, compressed by gzip or not.
        raw: give images as (28, 28, 1) uint8 instead of (28, 28) float32.
        download: fetch missing files into ``dir``.

    Raises:
        DataError: where files are missing or damaged; the message names them.
    """

    names = ("fashion-mnist", "fashion_mnist_data")
    downloads = _downloads(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        {
            "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        },
    )

    @staticmethod
    def get_label_names() -> list[str]:
        """Return the names of the ten classes."""
        return [
            *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
            *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
        ]


def read_idx(path: Path, *, dimensions: int) -> np.ndarray:
    """Return the array in a file, in the machine's byte order; the file may be compressed by gzip.

    Args:
        path: the file.
        dimensions: how many dimensions it must have.

    Raises:
        DataError: where it is cut off, damaged, or no such file.
    """
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    except (OSError, EOFError, zlib.error) as error:
        raise damaged_file(path, f"it cannot be read ({error})") from error
    if len(data) < 4 or data[:2] != b"\x00\x00" or data[2] not in _TYPES:
        raise damaged_file(path, f"it starts with {data[:4]!r}")
    if data[3] != dimensions:
        raise damaged_file(path, f"it has {data[3]} dimensions instead of {dimensions}")
    start = 4 + 4 * dimensions
    shape = [int.from_bytes(data[place : place + 4]) for place in range(4, start, 4)]
    dtype = np.dtype(_TYPES[data[2]])
    if len(data) != start + math.prod(shape) * dtype.itemsize:
        raise damaged_file(path, f"{len(data) - start} bytes for values of shape {tuple(shape)}")
    values = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return values.astype(dtype.newbyteorder("="), copy=False)


def is_mnist_folder(folder: Path) -> bool:
    """Return whether a folder holds the files of MNIST, whatever images are in them."""
    return any(folder.glob("train-images*idx3*"))


def _spellings(name: str) -> list[str]:
    """Return the names that a file may have."""
    return [f"{name}.gz", name, name.replace("-idx", ".idx")]


def damaged_file(path: Path, received: str) -> DataError:
    """Return the error of an idx file that does not hold what its header says."""
    return DataError(
        "An idx file has a header and as many values as it says.",
        received=f"`{path}`: {received}",
        advice="It is damaged, cut off, or another kind of file: get it anew.",
        details={"path": str(path)},
    )
