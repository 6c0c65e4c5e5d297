"""TFRecord files of ``tf.train.Example``: those of TensorFlow's tools, damaged ones, and our own out and back."""

import gzip
import json
from contextlib import suppress

import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, kinds_of, read_back
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.tfrecord.exporter import export_tfrecord
from ziggurat.datasets.formats.tfrecord.importer import TFRecordImporter
from ziggurat.datasets.formats.tfrecord.records import frames_of, pack_features, unpack_features
from ziggurat.errors import ConfigurationError, DataError, DatapointError
from ziggurat.protobuf_wire import WireFormatError, tfrecord_frame
from ziggurat.records.schema import Schema

JPEG = encode_image(np.full((8, 10, 3), 90, np.uint8), "jpeg")
PNG = encode_image(np.full((8, 10, 3), 9, np.uint8), "png")


def write(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(tfrecord_frame(pack_features(record)) for record in records))


def classified(number, text=b"", **more):
    features = {"image/encoded": [JPEG], "image/class/label": [number], **more}
    return features | ({"image/class/text": [text]} if text else {})


# ---- what others wrote


def test_classes_by_number_and_name(tmp_path):
    write(tmp_path / "train-00000-of-00002", classified(1, b"dog"), classified(0, b"cat"))
    write(tmp_path / "train-00001-of-00002", classified(1, b"dog"))
    write(tmp_path / "validation-00000-of-00001", classified(0, b"cat"))
    assert guessed(tmp_path) == ("tfrecord", "image-classification")
    found = read_back(TFRecordImporter(), tmp_path)
    assert found.samples == {
        "train-00000-of-00002/000000": ("train", (JPEG,), 1),
        "train-00000-of-00002/000001": ("train", (JPEG,), 0),
        "train-00001-of-00002/000000": ("train", (JPEG,), 1),
        "validation-00000-of-00001/000000": ("val", (JPEG,), 0),
    }
    assert found.schema.class_names == ("cat", "dog")


def test_labels_that_begin_at_one_and_a_file_of_names(tmp_path):
    write(tmp_path / "flowers_test_00000-of-00001.tfrecord", classified(2), classified(1))
    assert [label for _, _, label in read_back(TFRecordImporter(), tmp_path, first_class=1).samples.values()] == [1, 0]
    (tmp_path / "labels.txt").write_text("1:rose\n2:tulip\n")
    found = read_back(TFRecordImporter(), tmp_path)
    assert [(split, label) for split, _, label in found.samples.values()] == [("test", 1), ("test", 0)]
    assert found.schema.class_names == ("rose", "tulip")


def test_objects_are_pixels_with_classes_of_a_label_map(tmp_path):
    sides = {"xmin": [0.1], "ymin": [0.25], "xmax": [0.5], "ymax": [1.0]}
    record = {f"image/object/bbox/{side}": values for side, values in sides.items()}
    write(
        tmp_path / "coco_val.record-00000-of-00010.tfrecord",
        record | {"image/encoded": [JPEG], "image/object/class/label": [7]},
    )
    items = 'item {\n  id: 3\n  name: \'cat\'\n}\nitem {\n  name: "n0"\n  id: 7\n  display_name: "dog"\n}\n'
    (tmp_path / "map.pbtxt").write_text(items)
    found = read_back(TFRecordImporter(), tmp_path)
    [(split, _parts, label)] = found.samples.values()
    assert split == "val"
    assert found.schema.class_names == ("cat", "dog")
    assert label[0]["class"] == 1
    assert label[0]["box"] == pytest.approx([1.0, 2.0, 5.0, 8.0], rel=1e-6)


def test_bad_records_are_listed(tmp_path):
    path = tmp_path / "train-00000-of-00001"
    write(
        path,
        classified(0),
        {"image/encoded": [JPEG]},
        {"image/class/label": [0]},
        classified(0) | {"image/class/label": [1, 2]},
        classified(-1),
    )
    content = bytearray(
        path.read_bytes() + tfrecord_frame(b"\xff\xff\xff") + tfrecord_frame(pack_features(classified(0)))
    )
    content[20] ^= 1  # in the first record
    path.write_bytes(content + b"\0" * 5)
    with pytest.raises(DataError, match="A source of TFRecord files has records"):  # the first record says the kind
        read_back(TFRecordImporter(), tmp_path)
    content[20] ^= 1
    path.write_bytes(content + b"\0" * 5)
    found = read_back(TFRecordImporter(), tmp_path)
    name = path.name
    assert list(found.samples) == [f"{name}/000000", f"{name}/000006"]
    assert kinds_of(found.problems) == {
        f"{name}/000001": "no-label",
        f"{name}/000002": "no-picture",
        f"{name}/000003": "no-label",
        f"{name}/000004": "no-label",
        f"{name}/000005": "unreadable",
        name: "unreadable",
    }
    assert "cut off at byte" in found.problems[-1].reason


def test_a_record_that_changed_after_the_scan_is_refused(tmp_path):
    path = tmp_path / "train.tfrecord"
    write(path, classified(0))
    importer = TFRecordImporter()
    complete = importer.checked_options({})
    [sample] = importer.scan(tmp_path, complete)
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    path.write_bytes(content)
    with importer.reader(tmp_path, complete) as reader, pytest.raises(DatapointError, match="its checksum is wrong"):
        reader.read(sample.parts[0])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (gzip.compress(tfrecord_frame(pack_features(classified(0)))), "Decompress it first|compressed file"),
        (tfrecord_frame(pack_features({"x": [1]})), "has the features x"),
        (b"", "has the features"),
        (b"no records at all", "no record at byte 0"),
    ],
)
def test_other_files_are_not_claimed(tmp_path, content, text):
    (tmp_path / "train.tfrecord").write_bytes(content)
    assert TFRecordImporter().guess(tmp_path) is None
    with pytest.raises(DataError, match=text):
        read_back(TFRecordImporter(), tmp_path)


# ---- the wire


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.one_of(
    st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
    st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4),
)


@settings(deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_features_come_back(features):
    assert unpack_features(pack_features(features)) == features


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_features_or_an_error(message):
    with suppress(WireFormatError):
        assert isinstance(unpack_features(message), dict)


def test_the_bytes_are_those_of_tensorflow():
    # What TensorFlow's SerializeToString(deterministic=True) gives for these features.
    message = bytes.fromhex(
        "0a370a140a0161120f1a0d0a0b01ffffffffffffffffff010a110a0162120c120a0a080000003f000000c0"
        "0a0c0a016312070a050a01780a00"
    )
    features = {"a": [1, -1], "b": [0.5, -2.0], "c": [b"x", b""]}
    assert unpack_features(message) == features
    assert pack_features(features) == message


def test_numbers_without_packing_are_read_too():
    old_float = b"\x0a\x0c\x0a\x01b\x12\x07\x12\x05\x0d\x00\x00\x00\x3f"
    old_integer = b"\x0a\x09\x0a\x01c\x12\x04\x1a\x02\x08\x07"
    body = old_float + old_integer
    assert unpack_features(b"\x0a" + bytes([len(body)]) + body) == {"b": [0.5], "c": [7]}


# ---- out and back

BOX = {"class": 1, "box": [1.1, 2.0, 7.3, 8.0], "polygons": [[1, 2, 3, 4, 5, 6]], "difficult": True}
KINDS = {
    "image-classification": (("b",), 2),
    "detection": (("b",), [BOX, {"class": -1, "box": [0, 0, 1, 1]}]),
    "segmentation": (("b", "m"), None),
    "image-to-image": (("b", "m"), None),
    "image-pairs": (("b", "m"), 1),
    "image-regression": (("b",), [0.1, 2.5]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_comes_back(tmp_path, kind):
    roles, label = KINDS[kind]
    parts = tuple({"b": JPEG, "m": PNG}[role] for role in roles)
    splits = {
        "train": [(f"a {number}/ä.jpg", parts, label) for number in range(5)],
        "val": [],
        "test": [("b.jpg", parts, label)],
    }
    names = ("x", "y: z", 'q"') if kind in ("image-classification", "detection") else ()
    schema = Schema(kind=kind, class_names=names)
    with dataset_with(tmp_path / "set", splits, schema) as dataset:
        report = export_tfrecord(dataset, tmp_path / "out", records_per_shard=2)
    assert report.counts == {"train": 5, "val": 0, "test": 1}
    assert (tmp_path / "out/train-00002-of-00003").is_file()
    assert guessed(tmp_path / "out") == ("tfrecord", kind)
    found = read_back(TFRecordImporter(), tmp_path / "out")
    assert found.samples == expected(splits)
    assert found.problems == []
    assert found.schema == schema


def test_others_find_their_features(tmp_path):
    schema = Schema(kind="detection", class_names=("cat", "dog"))
    with dataset_with(tmp_path / "set", {"train": [("a.jpg", (JPEG,), [BOX])]}, schema) as dataset:
        export_tfrecord(dataset, tmp_path / "out")
    [record] = frames_of(tmp_path / "out/train-00000-of-00001")
    features = unpack_features(record.content)
    assert features["image/object/class/label"] == [2]
    assert features["image/object/class/text"] == [b"dog"]
    assert features["image/object/bbox/xmax"] == pytest.approx([0.73])
    assert features["image/object/difficult"] == [1]
    assert (features["image/width"], features["image/height"], features["image/format"]) == ([10], [8], [b"jpeg"])
    assert json.loads(features["ziggurat/label"][0]) == [BOX]
    assert 'id: 2\n  name: "dog"' in (tmp_path / "out/label_map.pbtxt").read_text()


def test_pictures_that_are_none_and_shards_of_nothing(tmp_path):
    splits = {"train": [("bad", (b"<html>",), 0), ("good", (PNG,), 0)]}
    with dataset_with(tmp_path / "set", splits, Schema(kind="image-classification", class_names=("x",))) as dataset:
        report = export_tfrecord(dataset, tmp_path / "out")
        assert report.counts == {"train": 1}
        assert kinds_of(report.problems) == {"bad": "unreadable"}
        with pytest.raises(ConfigurationError, match="at least one record"):
            export_tfrecord(dataset, tmp_path / "new", records_per_shard=0)


# ---- the object-detection API


def detected(label_features, **more):
    sides = {"xmin": [0.1], "ymin": [0.25], "xmax": [0.5], "ymax": [1.0]}
    boxes = {f"image/object/bbox/{side}": values for side, values in sides.items()}
    return {"image/encoded": [JPEG], "image/filename": [b"r.jpg"], "image/height": [8], "image/width": [10]} | boxes | {
        f"image/object/class/{name}": values for name, values in label_features.items()
    } | more  # fmt: skip


def test_records_of_the_object_detection_api_are_read(tmp_path):
    both = {"text": [b"raccoon"], "label": [1]}
    write(tmp_path / "train.record", detected(both), detected(both))
    write(tmp_path / "test.record", detected(both))
    (tmp_path / "label_map.pbtxt").write_text("item {\n id: 1\n name: 'raccoon'\n}\n")
    assert guessed(tmp_path) == ("tfrecord", "detection")
    found = read_back(TFRecordImporter(), tmp_path)
    assert [split for split, _, _ in found.samples.values()] == ["test", "train", "train"]
    assert found.schema.class_names == ("raccoon",)
    first = found.samples["train.record/000000"][2][0]
    assert (first["class"], first["box"]) == (0, pytest.approx([1.0, 2.0, 5.0, 8.0], rel=1e-6))


def test_one_record_file_is_a_source(tmp_path):
    write(tmp_path / "train.record", detected({"text": [b"cat"], "label": [1]}))
    assert guessed(tmp_path / "train.record") == ("tfrecord", "detection")


def test_objects_without_numbers_have_the_names_they_come_with(tmp_path):
    write(tmp_path / "train.record", *(detected({"text": [name]}) for name in (b"dog", b"cat", b"dog")))
    found = read_back(TFRecordImporter(), tmp_path)
    assert found.schema.class_names == ("dog", "cat")
    assert [label[0]["class"] for _, _, label in found.samples.values()] == [0, 1, 0]
    assert found.problems == []


def test_a_label_map_beside_the_records_counts(tmp_path):
    write(tmp_path / "train/pets.tfrecord", detected({"label": [2]}))
    (tmp_path / "train/pets_label_map.pbtxt").write_text('item { name: "cat" id: 1 }\nitem { name: "dog" id: 2 }\n')
    found = read_back(TFRecordImporter(), tmp_path)
    assert found.schema.class_names == ("cat", "dog")
    assert [label[0]["class"] for _, _, label in found.samples.values()] == [1]
