"""ILSVRC12 in both structures of folders, its lists, and fetching files."""

import hashlib
import io
import os
import struct

import numpy as np
import pytest

from ziggurat.dataflow.dataset import ILSVRC12, ILSVRC12Files, ILSVRCMeta
from ziggurat.dataflow.dataset.files import Download, fetch, find_files
from ziggurat.dataflow.images import encode_image
from ziggurat.errors import DataError, StorageError, UnknownNameError, UsageError

SYNSETS = ["n01440764", "n01443537", "n01484850"]


def picture(number):
    return np.full((4, 6, 3), (number, 90, 200), np.uint8)


@pytest.fixture
def images(tmp_path):
    """Two training images a class; three validation images in one folder."""
    for label, synset in enumerate(SYNSETS):
        (tmp_path / "images/train" / synset).mkdir(parents=True)
        for number in range(2):
            name = tmp_path / "images/train" / synset / f"{synset}_{number}.JPEG"
            name.write_bytes(encode_image(picture(10 * label + number), "png"))
    (tmp_path / "images/val").mkdir()
    for number in range(3):
        path = tmp_path / f"images/val/ILSVRC2012_val_0000000{number}.JPEG"
        path.write_bytes(encode_image(picture(100 + number), "png"))
    return tmp_path / "images"


@pytest.fixture
def meta(tmp_path):
    folder = tmp_path / "meta"
    folder.mkdir()
    (folder / "synsets.txt").write_text("\n".join(SYNSETS) + "\n")
    (folder / "synset_words.txt").write_text("".join(f"{synset} fish, animal\n" for synset in SYNSETS))
    lines = [f"{synset}/{synset}_{number}.JPEG {label}" for label, synset in enumerate(SYNSETS) for number in (1, 0)]
    (folder / "train.txt").write_text("\n".join(lines))
    (folder / "val.txt").write_text("".join(f"ILSVRC2012_val_0000000{n}.JPEG {2 - n}\n" for n in range(3)))
    return folder


def test_the_lists(meta):
    lists = ILSVRCMeta(meta)
    assert lists.get_synset_1000()[1] == "n01443537"
    assert lists.get_synset_words_1000()[2] == "n01484850 fish, animal"
    assert lists.get_image_list("train")[0] == ("n01440764/n01440764_1.JPEG", 0)
    assert lists.get_image_list("val")[0] == ("ILSVRC2012_val_00000000.JPEG", 2)
    assert lists.get_image_list("val", "train")[0] == ("n01484850/ILSVRC2012_val_00000000.JPEG", 2)
    with pytest.raises(DataError, match=r"has no `test.txt`.*Caffe"):
        lists.get_image_list("test")
    (meta / "test.txt").write_text("a.JPEG\n")
    with pytest.raises(DataError, match=r"received: 'a.JPEG' in .*test.txt:1"):
        lists.get_image_list("test")
    with pytest.raises(UnknownNameError):
        lists.get_image_list("validation")


def test_training_files_need_no_lists(images, meta):
    for flow in (ILSVRC12Files(images, "train", shuffle=False), ILSVRC12Files(images, "train", meta, shuffle=False)):
        points = list(flow)
        assert len(flow) == 6
        assert {os.path.relpath(name, images / "train") for name, _label in points} == {
            f"{synset}/{synset}_{number}.JPEG" for synset in SYNSETS for number in range(2)
        }
        assert all(SYNSETS[label] in name for name, label in points)
    assert len({name for name, _label in ILSVRC12Files(images, "train")}) == 6


def test_images_are_rgb(images, meta):
    points = list(ILSVRC12(images, "val", meta))
    assert [(image[0, 0].tolist(), label) for image, label in points] == [
        ([100, 90, 200], 2),
        ([101, 90, 200], 1),
        ([102, 90, 200], 0),
    ]


def test_validation_files_in_class_folders(images, meta):
    for number, label in enumerate((2, 1, 0)):
        (images / "val" / SYNSETS[label]).mkdir()
        name = f"ILSVRC2012_val_0000000{number}.JPEG"
        (images / "val" / name).rename(images / "val" / SYNSETS[label] / name)
    assert ILSVRCMeta.guess_dir_structure(images / "val") == "train"
    with_lists = {(os.path.basename(name), label) for name, label in ILSVRC12Files(images, "val", meta)}
    without = {(os.path.basename(name), label) for name, label in ILSVRC12Files(images, "val")}
    assert with_lists == without == {(f"ILSVRC2012_val_0000000{n}.JPEG", 2 - n) for n in range(3)}
    with pytest.raises(DataError, match=r"`ILSVRC2012_val_00000000.JPEG` is not in"):
        ILSVRC12Files(images, "val", meta, dir_structure="original")
    with pytest.raises(UnknownNameError, match="structure of folders"):
        ILSVRC12Files(images, "val", meta, dir_structure="flat")


def test_missing_folders_and_lists_are_named(images):
    with pytest.raises(DataError, match=r"test` of ILSVRC12 does not exist.*image-net\.org"):
        ILSVRC12Files(images, "test")
    with pytest.raises(UsageError, match="`ILSVRCMeta` was given no folder to read its files from"):
        ILSVRC12Files(images, "val")


def test_bounding_boxes(tmp_path):
    (tmp_path / SYNSETS[0]).mkdir()
    (tmp_path / SYNSETS[0] / "a.xml").write_text(
        "<annotation><size><width>100</width><height>50</height></size>"
        "<object><bndbox><xmin>10</xmin><ymin>5</ymin><xmax>110</xmax><ymax>25</ymax></bndbox></object></annotation>"
    )
    (tmp_path / SYNSETS[0] / "b.xml").write_text("<annotation><size>")
    boxes = ILSVRC12.get_training_bbox(tmp_path, [(f"{SYNSETS[0]}/a.JPEG", 0), (f"{SYNSETS[0]}/none.JPEG", 0)])
    assert np.allclose(boxes[0], [0.1, 0.1, 1.0, 0.5])
    assert boxes[1] is None
    with pytest.raises(DataError, match=r"b\.xml"):
        ILSVRC12.get_training_bbox(tmp_path, [(f"{SYNSETS[0]}/b.JPEG", 0)])


def test_the_mean_image(tmp_path):
    bgr = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
    shape = bytes([0x08, 1, 0x10, 3, 0x18, 4, 0x20, 5])
    packed = bytes([0x2A, 240, 1]) + bgr.tobytes()
    one_by_one = b"".join(b"\x2d" + struct.pack("<f", value) for value in bgr.ravel())
    for content in (shape + packed, shape + one_by_one):
        (tmp_path / "imagenet_mean.binaryproto").write_bytes(content)
        mean = ILSVRCMeta(tmp_path).get_per_pixel_mean()
        assert mean.shape == (4, 5, 3)
        assert (mean == bgr.transpose(1, 2, 0)[:, :, ::-1]).all()
        assert ILSVRCMeta(tmp_path).get_per_pixel_mean((8, 10)).shape == (8, 10, 3)
        (tmp_path / "imagenet_mean.binaryproto").write_bytes(content[:-7])
        with pytest.raises(DataError, match="a BlobProto of Caffe"):
            ILSVRCMeta(tmp_path).get_per_pixel_mean()


# ---- fetching

CONTENT = b"digits" * 1000
ITEM = Download("digits.gz", "https://example.org/digits.gz", hashlib.sha256(CONTENT).hexdigest())


def giving(content):
    def opener(url, timeout):
        assert url == ITEM.url
        assert timeout > 0
        return io.BytesIO(content)

    return opener


def test_a_file_is_fetched_and_checked(tmp_path):
    path = fetch(ITEM, tmp_path, opener=giving(CONTENT))
    assert path == tmp_path / "digits.gz"
    assert path.read_bytes() == CONTENT
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        fetch(ITEM, tmp_path, opener=giving(CONTENT))


def test_a_file_with_another_checksum_is_not_kept(tmp_path):
    with pytest.raises(DataError, match=rf"`digits.gz` from https.* has the SHA-256 .*, not {ITEM.sha256}"):
        fetch(ITEM, tmp_path, opener=giving(CONTENT[:-1]))
    assert list(tmp_path.iterdir()) == []


class Broken(io.BytesIO):
    def read(self, *_size):
        raise ConnectionResetError("the line is dead")


def test_a_broken_connection_leaves_nothing(tmp_path):
    def unreachable(_url, timeout):
        raise OSError(f"no route, not in {timeout} s")

    def dying(_url, timeout):
        return Broken()

    for opener, reason in ((dying, "the line is dead"), (unreachable, "no route, not in 60 s")):
        with pytest.raises(
            DataError, match=f"could not be fetched from .*: {reason}. Try again later, or bring the file"
        ):
            fetch(ITEM, tmp_path, opener=opener)
    assert list(tmp_path.iterdir()) == []


def test_only_https_is_spoken(tmp_path):
    with pytest.raises(UsageError, match="HTTPS only"):
        fetch(Download("a", "http://example.org/a", ""), tmp_path, opener=giving(b""))


def test_nothing_is_fetched_unless_that_is_asked_for(tmp_path):
    with pytest.raises(DataError, match="or fetch them with `download=True`"):
        find_files("Reader", tmp_path / "new", [["digits.gz"]], downloads=[ITEM])
    assert not (tmp_path / "new").exists()
