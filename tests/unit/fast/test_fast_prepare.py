"""Prepared records: written once, and read by JpegCropBatches like the files that they came from."""

import pickle

import numpy as np
import pytest
from fast_photographs import encoded, smooth_image
from PIL import Image

from ziggurat.dataflow.fast import JpegCropBatches, PixelFlow, PixelWriter, RandomResizedCrop, prepare_pixels
from ziggurat.dataflow.fast import prepare_records as prepare
from ziggurat.dataflow.formats.serializers import LMDBSerializer
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.sources import DataFromList
from ziggurat.errors import DataError, DatapointError, StorageError, UsageError

CROP = RandomResizedCrop(32)


def listed(files):
    return DataFromList([[data, number, f"name {number}"] for number, data in enumerate(files)], shuffle=False)


def batches(flow):
    return list(JpegCropBatches(flow, 5, CROP).seed(1))


def test_tiled_records_give_the_crops_of_the_files(photographs, tmp_path):
    assert prepare(listed(photographs), tmp_path / "tiled.lmdb") == 20
    stored = LMDBSerializer.load(tmp_path / "tiled.lmdb", shuffle=False)
    for (images, labels, names), (expected, *others) in zip(batches(stored), batches(listed(photographs)), strict=True):
        assert np.abs(images.astype(int) - expected).mean() < 1.5
        assert np.array_equal(labels, others[0])
        assert names.tolist() == others[1].tolist()


def test_records_may_be_reduced(photographs, tmp_path):
    prepare(listed(photographs), tmp_path / "small.lmdb", short_side=50, quality=80)
    sizes = [decode_image(image).shape[:2] for image, *_ in LMDBSerializer.load(tmp_path / "small.lmdb")]
    assert {min(size) for size in sizes} == {50}


def test_all_kinds_of_images_become_upright_jpeg_files(tmp_path):
    picture = smooth_image(60, 90)
    exif = Image.Exif()
    exif[0x0112] = 6
    (tmp_path / "turned.jpg").write_bytes(encoded(np.rot90(picture), exif=exif))
    points = [[tmp_path / "turned.jpg"], [encoded(picture, "PNG")], [picture], [picture[:, :, :1]]]
    prepare(DataFromList(points, shuffle=False), tmp_path / "mixed.lmdb")
    images = [decode_image(image) for (image,) in LMDBSerializer.load(tmp_path / "mixed.lmdb", shuffle=False)]
    assert all(image.shape == (60, 90, 3) for image in images)
    assert all(np.abs(image.astype(int) - picture).mean() < 6 for image in images[:3])


def test_pixels_are_read_without_decoding(photographs, tmp_path):
    assert prepare_pixels(listed(photographs), tmp_path / "all.pixels", short_side=None) == 20
    flow = PixelFlow(tmp_path / "all.pixels")
    for index in (0, 7, 19):
        image, label, name = flow.datapoint(index)
        assert np.array_equal(image, decode_image(photographs[index]))
        assert (label, name) == (index, f"name {index}")
        assert not image.flags.writeable
    for (images, *_), (expected, *_) in zip(batches(flow), batches(listed(photographs)), strict=True):
        assert np.abs(images.astype(int) - expected).mean() < 1.5


def test_a_file_of_pixels_crosses_processes_and_is_opened_again(photographs, tmp_path):
    prepare_pixels(listed(photographs[:3]), tmp_path / "few.pixels", short_side=40)
    flow = pickle.loads(pickle.dumps(PixelFlow(tmp_path / "few.pixels")))
    first = flow.datapoint(0)[0]
    flow.close()
    assert np.array_equal(flow.datapoint(0)[0], first)
    assert min(first.shape[:2]) == 40


def test_an_empty_or_cut_off_file_of_pixels_is_refused(photographs, tmp_path):
    path = tmp_path / "whole.pixels"
    prepare_pixels(listed(photographs[:2]), path)
    (tmp_path / "cut.pixels").write_bytes(path.read_bytes()[:-9])
    (tmp_path / "empty.pixels").write_bytes(b"")
    for name in ("cut", "empty", "missing"):
        with pytest.raises(DataError, match=r"A file of pixels is read as `prepare_pixels` wrote it \(received: `"):
            PixelFlow(tmp_path / f"{name}.pixels")


def test_nothing_is_written_over_and_nothing_half_is_left(photographs, tmp_path):
    path = tmp_path / "once.pixels"
    prepare_pixels(listed(photographs[:2]), path)
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        prepare_pixels(listed(photographs[:2]), path)
    with pytest.raises(DatapointError, match="it is no image of a known format"):
        prepare_pixels(listed([photographs[0], b"no image"]), tmp_path / "bad.pixels")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["once.pixels"]


def test_bad_images_may_be_left_out(photographs, tmp_path):
    files = [photographs[0], b"no image", photographs[1]]
    assert prepare(listed(files), tmp_path / "good.lmdb", on_error="skip") == 2
    labels = [label for _image, label, _name in LMDBSerializer.load(tmp_path / "good.lmdb", shuffle=False)]
    assert labels == [0, 2]


def test_impossible_options(photographs, tmp_path):
    with pytest.raises(UsageError, match=", not from 1 to 100"):
        prepare(listed(photographs), tmp_path / "q.lmdb", quality=0)
    with pytest.raises(UsageError, match=r"`short_side` is a number of pixels, or None \(received: -1"):
        prepare_pixels(listed(photographs), tmp_path / "s.pixels", short_side=-1)
    with (
        pytest.raises(UsageError, match=r"An image is \(H, W, 3\) uint8"),
        PixelWriter(tmp_path / "wrong.pixels") as writer,
    ):
        writer.append(np.zeros((4, 4), np.uint8))
