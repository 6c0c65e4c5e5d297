"""DIGITS's and Caffe's LMDB stores: those of jobs, those made elsewhere, and our own out and back."""

import lmdb
import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, kinds_of, read_back
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.image_codec import decode_image, encode_image
from ziggurat.datasets.formats.digits_lmdb.exporter import export_digits_lmdb
from ziggurat.datasets.formats.digits_lmdb.importer import DigitsLMDBImporter
from ziggurat.datasets.formats.shared.digits_files import Datum, pack_blob, pack_datum, unpack_blob, unpack_datum
from ziggurat.errors import DataError, UnknownNameError, UsageError
from ziggurat.protobuf_wire import WireFormatError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

RNG = np.random.default_rng(0)
RGB = RNG.integers(0, 256, (4, 6, 3), np.uint8)
PNG = encode_image(RGB, "png")


def store(folder, records):
    folder.mkdir(parents=True)
    environment = lmdb.open(str(folder), map_size=1 << 22)
    with environment.begin(write=True) as transaction:
        for key, datum in records.items():
            transaction.put(key.encode(), pack_datum(datum) if isinstance(datum, Datum) else datum)
    environment.close()
    return folder


def raw(rgb, label=0):
    bgr = np.ascontiguousarray(rgb[:, :, ::-1].transpose(2, 0, 1))
    channels, height, width = bgr.shape
    return Datum(data=bgr.tobytes(), channels=channels, height_px=height, width_px=width, label=label)


def encoded(rgb, label=0):
    height, width, channels = rgb.shape
    return Datum(
        data=encode_image(rgb, "png"), encoded=True, channels=channels, height_px=height, width_px=width, label=label
    )


def floats(values, label=0):
    values = np.asarray(values, np.float32)
    channels, height, width = values.shape
    return Datum(values=values, channels=channels, height_px=height, width_px=width, label=label)


# ---- jobs of DIGITS


def test_a_job_with_classes(tmp_path):
    store(tmp_path / "train_db", {"00000000_1": raw(RGB, 1), "00000001_0": encoded(RGB, 0)})
    store(tmp_path / "val_db", {"00000000_0": raw(RGB[:, :, :1], 0)})
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert guessed(tmp_path) == ("digits_lmdb", "image-classification")
    found = read_back(DigitsLMDBImporter(), tmp_path, force_same_shape=False)
    assert [(key, split, label) for key, (split, _parts, label) in found.samples.items()] == [
        ("train_db/00000000_1", "train", 1),
        ("train_db/00000001_0", "train", 0),
        ("val_db/00000000_0", "val", 0),
    ]
    assert (found.samples["train_db/00000000_1"][1][0] == RGB).all()  # RGB, though BGR is stored
    assert found.samples["train_db/00000001_0"][1][0] == PNG
    assert (found.samples["val_db/00000000_0"][1][0] == RGB[:, :, :1]).all()
    assert found.schema.class_names == ("cat", "dog")


def test_a_job_of_an_extension_has_features_and_labels(tmp_path):
    mask = RNG.integers(0, 3, (4, 6, 1), np.uint8)
    store(tmp_path / "train_db/features", {"000000000": encoded(RGB), "000000001": encoded(RGB)})
    store(tmp_path / "train_db/labels", {"000000000": raw(mask), "000000001": encoded(mask)})
    assert guessed(tmp_path) == ("digits_lmdb", "generic")
    found = read_back(DigitsLMDBImporter(), tmp_path)
    assert found.schema == Schema(kind="generic", parts=("array", "label"), details={"shape": [4, 6, 3]})
    for _split, (picture, label), _number in found.samples.values():
        assert (picture == RGB).all()
        assert (label == mask).all()


# ---- stores that were made elsewhere


def test_48_prebuilt_stores_are_named_by_options(tmp_path):
    store(tmp_path / "images", {"a": floats(np.full((2, 3, 4), 0.5)), "b": floats(np.zeros((2, 3, 4)))})
    store(tmp_path / "targets", {"a": floats([[[0.25]], [[1]]]), "b": floats([[[2]], [[3]]])})
    options = {"train_images": "images", "train_labels": "targets"}
    found = read_back(DigitsLMDBImporter(), tmp_path, **options)
    assert [(split, label) for split, _parts, label in found.samples.values()] == [
        ("train", [0.25, 1]),
        ("train", [2, 3]),
    ]
    assert found.samples["images/a"][1][0].shape == (3, 4, 2)  # (H, W, C)
    assert found.schema == Schema(kind="generic", details={"shape": [3, 4, 2]})


@pytest.mark.parametrize("options", [{"train_images": "nowhere"}, {}])
def test_48_a_bad_path_is_refused(tmp_path, options):
    with pytest.raises(DataError, match=r"has no LMDB store of Caffe's `Datum`|folder with the file `data\.mdb`"):
        read_back(DigitsLMDBImporter(), tmp_path, **options)
    with pytest.raises(UsageError, match="belongs to a store of samples"):
        read_back(DigitsLMDBImporter(), tmp_path, train_labels="x")


def test_47_one_shape_passes_and_mixed_ones_only_where_allowed(tmp_path):
    store(tmp_path / "same", {"a": raw(RGB), "b": encoded(RGB)})
    store(tmp_path / "mixed", {"a": raw(RGB), "b": encoded(RGB[:2])})
    assert len(read_back(DigitsLMDBImporter(), tmp_path / "same").samples) == 2
    with pytest.raises(DataError, match=r"\(2, 6, 3\) at `mixed/b`, \(4, 6, 3\) at `mixed/a`"):
        read_back(DigitsLMDBImporter(), tmp_path / "mixed")
    found = read_back(DigitsLMDBImporter(), tmp_path / "mixed", force_same_shape=False)
    assert len(found.samples) == 2
    assert found.schema.details == {}


def test_labels_and_samples_are_as_many(tmp_path):
    store(tmp_path / "x", {"a": raw(RGB), "b": raw(RGB)})
    store(tmp_path / "y", {"a": floats([[[1]]])})
    with pytest.raises(DataError, match="`x` has more"):
        read_back(DigitsLMDBImporter(), tmp_path, train_images="x", train_labels="y")


def test_bad_records_are_listed_and_other_stores_not_claimed(tmp_path):
    cut = Datum(data=b"123", channels=3, height_px=4, width_px=6)
    bad = {"b": cut, "c": b"\xff\xff", "d": Datum(data=b"<html>", encoded=True)}
    store(tmp_path / "train_db", {"a": raw(RGB), **bad})
    found = read_back(DigitsLMDBImporter(), tmp_path)
    assert list(found.samples) == ["train_db/a"]
    assert kinds_of(found.problems) == dict.fromkeys(["train_db/b", "train_db/c", "train_db/d"], "unreadable")
    store(tmp_path / "others/train", {"a": b"\x93\x01\x02\x03", "__keys__": b"x"})
    assert DigitsLMDBImporter().guess(tmp_path / "others") is None
    (tmp_path / "text").mkdir()
    (tmp_path / "text/data.mdb").write_bytes(b"no store")
    assert DigitsLMDBImporter().guess(tmp_path / "text") is None


def test_more_records_than_one_block_come_in_order(tmp_path):
    store(tmp_path / "db", {f"{number:08d}_0": raw(RGB[:1, :1]) for number in range(2500)})
    keys = list(read_back(DigitsLMDBImporter(), tmp_path / "db").samples)
    assert keys == [f"db/{number:08d}_0" for number in range(2500)]


# ---- the wire


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.integers(-5, 2**31 - 1), st.booleans())
def test_a_datum_comes_back(channels, height, width, label, with_floats):
    values = np.arange(channels * height * width).reshape(channels, height, width)
    if with_floats:
        datum = floats(values / 7, label)
    else:
        data = values.astype(np.uint8).tobytes()
        datum = Datum(data=data, channels=channels, height_px=height, width_px=width, label=label)
    back = unpack_datum(pack_datum(datum))
    assert back.label == label
    assert (back.array() == datum.array()).all()


def test_a_datum_of_caffe():
    # channels 1, height 1, width 2, data "ab", label 3, encoded 0; and the floats 0.5 packed by newer programs
    assert unpack_datum(bytes.fromhex("080110011802220261622803")).array().tolist() == [[[97, 98]]]
    assert unpack_datum(bytes.fromhex("08011001180132040000003f")).array().tolist() == [[[0.5]]]
    assert pack_datum(floats([[[0.5]]])).endswith(bytes.fromhex("350000003f"))


def test_a_blob_comes_back_and_a_wrong_one_is_refused():
    values = RNG.random((1, 3, 2, 4)).astype(np.float32)
    assert (unpack_blob(pack_blob(values)) == values).all()
    with pytest.raises(WireFormatError, match="as many values as its shape says"):
        unpack_blob(pack_blob(values) + bytes.fromhex("0805"))


# ---- out and back

SCHEMA = Schema(kind="image-classification", class_names=("cat", "dog"))


def small(folder, **options):
    splits = {"train": [("x/ä.png", (PNG,), 1), ("y\n", (PNG,), 0)], "test": [("z", (PNG,), 1)]}
    return splits, dataset_with(folder, splits, SCHEMA, **options)


def test_what_was_written_comes_back(tmp_path):
    splits, dataset = small(tmp_path / "set")
    with dataset:
        report = export_digits_lmdb(dataset, tmp_path / "out")
    assert report.counts == {"train": 2, "test": 1}
    assert guessed(tmp_path / "out") == ("digits_lmdb", "image-classification")
    found = read_back(DigitsLMDBImporter(), tmp_path / "out")
    assert found.samples == expected(splits)
    assert found.schema.class_names == SCHEMA.class_names


def test_pixels_are_written_as_caffe_reads_them(tmp_path):
    _splits, dataset = small(tmp_path / "set")
    with dataset:
        export_digits_lmdb(dataset, tmp_path / "out", encoding="none")
        with pytest.raises(UnknownNameError, match="jpg"):
            export_digits_lmdb(dataset, tmp_path / "new", encoding="jpg")
    with lmdb.open(str(tmp_path / "out/train_db"), readonly=True) as environment, environment.begin() as transaction:
        records = {bytes(key): unpack_datum(bytes(value)) for key, value in transaction.cursor()}
    assert list(records) == [b"00000000_1", b"00000001_0"]
    first = records[b"00000000_1"]
    assert (first.label, first.encoded, first.array().shape) == (1, False, (3, 4, 6))
    assert (first.array()[0] == RGB[:, :, 2]).all()  # blue first
    assert (tmp_path / "out/labels.txt").read_text() == "cat\ndog\n"


@pytest.mark.parametrize("channels", [1, 3])
def test_42_the_mean_is_written_in_both_forms(tmp_path, channels):
    mean = RNG.random((4, 6, channels)) * 255
    form = ImageForm(encoding="png", channels=channels)
    _splits, dataset = small(tmp_path / "set", form=form, mean=mean)
    with dataset:
        export_digits_lmdb(dataset, tmp_path / "out")
    blob = unpack_blob((tmp_path / "out/mean.binaryproto").read_bytes())
    assert blob.shape == (1, channels, 4, 6)
    assert (blob[0].transpose(1, 2, 0)[:, :, ::-1] == np.rint(mean.astype(np.float32))).all()
    assert blob.sum() == np.rint(mean.astype(np.float32)).sum()
    picture = decode_image((tmp_path / "out/mean.jpg").read_bytes(), channels=channels)
    assert picture.shape == (4, 6, channels)
    assert picture.mean() == pytest.approx(mean.mean(), abs=3)


def test_without_a_mean_a_note_says_so(tmp_path):
    _splits, dataset = small(tmp_path / "set")
    with dataset:
        report = export_digits_lmdb(dataset, tmp_path / "out")
    assert report.notes == ["The dataset has no mean image, so `mean.binaryproto` is not written."]
