"""Images under Tensorpack's names: their channels are blue, green and red, as its programs expect."""

import cv2
import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.compat.tensorpack.augmentors import Grayscale
from ziggurat.compat.tensorpack.datasets import ILSVRC12, ILSVRC12Files, ILSVRCMeta
from ziggurat.compat.tensorpack.flows import ImageFromFile

BLUE, GREEN, RED = 250, 100, 10


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A tree of ILSVRC12 with one image a split, and its lists where programs have them."""
    monkeypatch.setenv("TENSORPACK_DATASET", str(tmp_path))
    image = np.full((8, 6, 3), (BLUE, GREEN, RED), np.uint8)
    lists = tmp_path / "ilsvrc_metadata"
    lists.mkdir()
    (lists / "synsets.txt").write_text("n0\n", "utf-8")
    for split, name in (("train", "n0/a.png"), ("val", "b.png")):
        (tmp_path / split / name).parent.mkdir(parents=True)
        assert cv2.imwrite(str(tmp_path / split / name), image)
        (lists / f"{split}.txt").write_text(f"{name} 0\n", "utf-8")
    plane = np.repeat(np.asarray([BLUE, GREEN, RED], "<f4"), 4).tobytes()
    (lists / "imagenet_mean.binaryproto").write_bytes(b"\x10\x03\x18\x02\x20\x02\x2a" + bytes([len(plane)]) + plane)
    return tmp_path


def test_files_of_images_are_read_as_opencv_reads_them(folder) -> None:
    path = str(folder / "val" / "b.png")
    ((image,),) = list(ImageFromFile([path]))
    np.testing.assert_array_equal(image, cv2.imread(path))
    ((resized,),) = list(ImageFromFile([path], resize=4))
    assert resized[0, 0].tolist() == [BLUE, GREEN, RED]
    ((gray,),) = list(ImageFromFile([path], channel=1))
    assert gray.shape == (8, 6, 1)


@pytest.mark.parametrize("split", ["train", "val"])
def test_images_of_ilsvrc_are_those_of_their_files(folder, split) -> None:
    ((image, label),) = list(ILSVRC12(str(folder), split))
    ((path, other),) = list(ILSVRC12Files(str(folder), split))
    assert (label, other) == (0, 0)
    np.testing.assert_array_equal(image, cv2.imread(path))


def test_the_mean_image_of_ilsvrc_begins_with_blue(folder) -> None:
    assert ILSVRCMeta().get_per_pixel_mean()[0, 0].tolist() == [BLUE, GREEN, RED]
    assert ILSVRCMeta().get_per_pixel_mean((4, 5)).shape == (4, 5, 3)


def test_gray_images_are_made_of_blue_green_and_red() -> None:
    image = np.full((2, 2, 3), (BLUE, GREEN, RED), np.uint8)
    np.testing.assert_array_equal(Grayscale().augment(image)[:, :, 0], cv2.cvtColor(image, cv2.COLOR_BGR2GRAY))
    np.testing.assert_array_equal(
        Grayscale(keepdims=False, rgb=True).augment(image), cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    )
