"""Datasets in the folders where Tensorpack's programs have them: below ``$TENSORPACK_DATASET``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.compat.tensorpack.flows import BlueFirst
from ziggurat.compat.tensorpack.utils.fs import get_dataset_path
from ziggurat.dataflow import DataFlow, RNGDataFlow, dataset
from ziggurat.dataflow.indexed import ArraySet
from ziggurat.errors import DataError, UnknownNameError

__all__ = [
    "BSDS500",
    "ILSVRC12",
    "Cifar10",
    "Cifar100",
    "CifarBase",
    "FashionMnist",
    "ILSVRC12Files",
    "ILSVRCMeta",
    "Mnist",
    "SVHNDigit",
]

_EDGES_SHAPE: Final = (321, 481)


class _Digits(ArraySet):
    """The attributes that Tensorpack's ``Mnist`` has."""

    split: str
    _float_images: np.ndarray | None = None

    @property
    def images(self) -> np.ndarray:
        """All images, (N, 28, 28, 1) float32 from 0 to 1."""
        if self._float_images is None:
            self._float_images = super().images[..., None] / np.float32(255)
        return self._float_images

    @property
    def train_or_test(self) -> str:
        """``train`` or ``test``."""
        return self.split

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_float_images": None}


class Mnist(_Digits, dataset.Mnist):
    """``ziggurat.dataflow.dataset.Mnist``, in ``mnist_data`` where no folder is given."""

    def __init__(self, train_or_test: str, shuffle: bool = True, dir: str | None = None) -> None:  # noqa: A002
        super().__init__(train_or_test, shuffle, dir or get_dataset_path("mnist_data"))


class FashionMnist(_Digits, dataset.FashionMnist):
    """``ziggurat.dataflow.dataset.FashionMnist``, in ``fashion_mnist_data`` where no folder is given."""

    def __init__(self, train_or_test: str, shuffle: bool = True, dir: str | None = None) -> None:  # noqa: A002
        super().__init__(train_or_test, shuffle, dir or get_dataset_path("fashion_mnist_data"))


class _Cifar(ArraySet):
    """The attributes that Tensorpack's ``Cifar10`` has."""

    split: str
    cifar_classnum: int

    @property
    def train_or_test(self) -> str:
        """``train`` or ``test``."""
        return self.split

    @property
    def data(self) -> list[list[Any]]:
        """All datapoints."""
        return [self.datapoint(index) for index in range(len(self))]


class Cifar10(_Cifar, dataset.Cifar10):
    """``ziggurat.dataflow.dataset.Cifar10``, in ``cifar10_data`` where no folder is given."""

    cifar_classnum = 10

    def __init__(self, train_or_test: str, shuffle: bool | None = None, dir: str | None = None) -> None:  # noqa: A002
        super().__init__(train_or_test, shuffle, dir or get_dataset_path("cifar10_data"))


class Cifar100(_Cifar, dataset.Cifar100):
    """``ziggurat.dataflow.dataset.Cifar100``, in ``cifar100_data`` where no folder is given."""

    cifar_classnum = 100

    def __init__(self, train_or_test: str, shuffle: bool | None = None, dir: str | None = None) -> None:  # noqa: A002
        super().__init__(train_or_test, shuffle, dir or get_dataset_path("cifar100_data"))


def CifarBase(  # noqa: N802 - Tensorpack's name
    train_or_test: str,
    shuffle: bool | None = None,
    dir: str | None = None,  # noqa: A002
    cifar_classnum: int = 10,
) -> DataFlow:
    """Return ``Cifar10`` or ``Cifar100``.

    Args:
        train_or_test: ``train`` or ``test``.
        shuffle: whether each pass has another order; of training data where it is None.
        dir: the folder.
        cifar_classnum: 10 or 100.
    """
    return (Cifar10 if cifar_classnum == 10 else Cifar100)(train_or_test, shuffle, dir)


class SVHNDigit(dataset.SVHNDigit):
    """``ziggurat.dataflow.dataset.SVHNDigit``, in ``svhn_data`` where no folder is given."""

    def __init__(self, name: str, data_dir: str | None = None, shuffle: bool = True) -> None:
        super().__init__(name, data_dir or get_dataset_path("svhn_data"), shuffle)

    @property
    def X(self) -> np.ndarray:  # noqa: N802 - Tensorpack's name
        """All images, (N, 32, 32, 3) uint8."""
        return self.images

    @property
    def Y(self) -> np.ndarray:  # noqa: N802 - Tensorpack's name
        """All labels, (N,)."""
        return self.labels

    @staticmethod
    def get_per_pixel_mean(  # pyright: ignore[reportIncompatibleMethodOverride]
        names: Any = ("train", "test", "extra"), data_dir: str | None = None
    ) -> np.ndarray:
        """Return the mean of each pixel, (32, 32, 3).

        Args:
            names: the splits.
            data_dir: the folder.
        """
        return dataset.SVHNDigit.get_per_pixel_mean(names, data_dir or get_dataset_path("svhn_data"))


class ILSVRCMeta(dataset.ILSVRCMeta):
    """``ziggurat.dataflow.dataset.ILSVRCMeta``, in ``ilsvrc_metadata`` where no folder is given."""

    def __init__(self, dir: str | None = None) -> None:  # noqa: A002
        super().__init__(dir or get_dataset_path("ilsvrc_metadata"))

    def get_per_pixel_mean(self, size: Sequence[int] | None = None) -> np.ndarray:
        """Return the mean training image, (256, 256, 3) float32 BGR, from 0 to 255.

        Args:
            size: (height, width) to resize it to.
        """
        return np.ascontiguousarray(super().get_per_pixel_mean(size)[:, :, ::-1])


class ILSVRC12Files(dataset.ILSVRC12Files):
    """``ziggurat.dataflow.dataset.ILSVRC12Files``, with lists in ``ilsvrc_metadata`` where no folder is given."""

    def __init__(
        self,
        dir: str,  # noqa: A002
        name: str,
        meta_dir: str | None = None,
        shuffle: bool | None = None,
        dir_structure: str | None = None,
    ) -> None:
        super().__init__(dir, name, meta_dir or get_dataset_path("ilsvrc_metadata"), shuffle, dir_structure)


class ILSVRC12(BlueFirst, dataset.ILSVRC12):
    """``ziggurat.dataflow.dataset.ILSVRC12``, with lists in ``ilsvrc_metadata`` where no folder is given.

    The channels of its images are blue, green and red.
    """

    def __init__(
        self,
        dir: str,  # noqa: A002
        name: str,
        meta_dir: str | None = None,
        shuffle: bool | None = None,
        dir_structure: str | None = None,
    ) -> None:
        super().__init__(dir, name, meta_dir or get_dataset_path("ilsvrc_metadata"), shuffle, dir_structure)


class BSDS500(RNGDataFlow):
    """Images with the edges that people saw in them (Berkeley segmentation dataset, 500 images).

    A datapoint is [image (321, 481, 3) uint8 BGR, share of the people who drew an edge (321, 481) float32 in [0, 1]];
    images in portrait are turned.

    Args:
        name: ``train``, ``val`` or ``test``.
        data_dir: folder with ``BSR``; ``bsds500_data`` in the folder of datasets where it is None.
        shuffle: whether each pass has another order.

    Raises:
        UnknownNameError: for another split.
        DataError: where the files are missing.
    """

    def __init__(self, name: str, data_dir: str | None = None, shuffle: bool = True) -> None:
        if name not in ("train", "val", "test"):
            raise UnknownNameError("split of BSDS500", name, ["train", "val", "test"])
        root = Path(data_dir or get_dataset_path("bsds500_data")) / "BSR" / "BSDS500" / "data"
        self.shuffle = shuffle
        self._images = sorted((root / "images" / name).glob("*.jpg"))
        self._truth = root / "groundTruth" / name
        if not self._images:
            raise DataError(
                f"There are no images of BSDS500 in `{root}`: they are in `BSR/BSDS500/data/images`.",
                advice="Put them there.",
            )
        self._read: dict[int, list[np.ndarray]] = {}

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._images)

    def __iter__(self) -> Any:
        """Yield [image, edges]."""
        order = np.arange(len(self))
        if self.shuffle:
            self.rng.shuffle(order)
        for number in order.tolist():
            if number not in self._read:
                self._read[number] = self._datapoint(self._images[number])
            yield list(self._read[number])

    def _datapoint(self, path: Path) -> list[np.ndarray]:
        import cv2
        from scipy.io import loadmat

        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
        people = loadmat(str(self._truth / f"{path.stem}.mat"))["groundTruth"][0]
        edges = np.mean([each["Boundaries"][0][0] for each in people], axis=0, dtype=np.float32)
        if image is None or sorted(image.shape[:2]) != sorted(_EDGES_SHAPE) or edges.shape != image.shape[:2]:
            raise DataError(f"`{path}` is no image of BSDS500 with edges, 321 x 481 pixels.", advice="Fetch it again.")
        if image.shape[0] > image.shape[1]:
            image, edges = image.transpose(1, 0, 2), edges.T
        return [np.ascontiguousarray(image), np.ascontiguousarray(edges)]
