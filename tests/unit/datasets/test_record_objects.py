"""Objects of TFRecord files and WebDataset shards are read one by one: those that cannot stay are counted."""

import io
import json
import tarfile

import pytest
from detection_sources import scan
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ziggurat.datasets.formats.tfrecord.importer import TFRecordImporter
from ziggurat.datasets.formats.tfrecord.records import pack_features
from ziggurat.datasets.formats.webdataset.importer import WebDatasetImporter
from ziggurat.protobuf_wire import tfrecord_frame

TFRECORD, WEBDATASET = TFRecordImporter(), WebDatasetImporter()
SIDES = ("xmin", "ymin", "xmax", "ymax")


def png(width=100, height=80, orientation=1):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = io.BytesIO()
    Image.new("RGB", (width, height)).save(content, "PNG", exif=exif)
    return content.getvalue()


def save_record(folder, objects, image=None, size=(100, 80), names="1:cat\n2:dog\n", **features):
    """Write one record; an object is (class number, left, top, right, bottom), the sides as shares of the image."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "labels.txt").write_text(names)
    record = {"image/encoded": [image or png()], "image/object/class/label": [each[0] for each in objects]}
    record |= {f"image/object/bbox/{side}": [float(each[at]) for each in objects] for at, side in enumerate(SIDES, 1)}
    record |= {} if size is None else {"image/width": [size[0]], "image/height": [size[1]]}
    (folder / "train.record").write_bytes(tfrecord_frame(pack_features(record | features)))


def save_shard(folder, objects, image=None, names="cat\ndog\n", **about):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "classes.txt").write_text(names)
    with tarfile.open(folder / "train.tar", "w") as shard:
        for name, content in (("0.png", image or png()), ("0.json", json.dumps({"label": objects, **about}).encode())):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            shard.addfile(member, io.BytesIO(content))


def only(found):
    (sample,) = found.samples.values()
    return [(each["class"], tuple(round(value, 3) for value in each["box"])) for each in sample.label]


def told(found):
    return [(each.kind, each.class_name, each.objects) for each in found.problems]


def lost(found):
    return sum(problem.objects for problem in found.problems)


def test_lost_objects_of_a_record_are_counted_one_by_one(tmp_path):
    wrong = [(9, 0.1, 0.1, 0.5, 0.5), (1, 0.1, 0.1, 0.1, 0.5), (2, float("nan"), 0, 1, 1), (2, 0.5, 0.5, 0.1, 0.25)]
    save_record(tmp_path, [(1, 0.1, 0.25, 0.5, 1), *wrong])
    found = scan(TFRECORD, tmp_path)
    assert only(found) == [(0, (10, 20, 50, 80)), (1, (10, 20, 50, 40))]
    assert told(found) == [
        ("unknown-class", "", 1), ("zero-size-box", "cat", 1), ("bad-box", "dog", 1), ("swapped-corners", "", 0),
    ]  # fmt: skip


def test_a_record_of_other_lengths_loses_its_objects_by_count(tmp_path):
    save_record(tmp_path, [(1, 0.1, 0.25, 0.5, 1)] * 3, **{"image/object/class/label": [1, 2]})
    found = scan(TFRECORD, tmp_path)
    assert (only(found), told(found)) == ([], [("bad-box", "", 3)])


def test_objects_of_a_shard_are_read_as_people_write_them(tmp_path):
    box = [10, 20, 30, 40]
    objects = [{"class": 1.0, "box": box}, {"class": "1", "box": box}, {"class": "dog", "box": ["30", "40", 10, 20]}]
    save_shard(tmp_path, objects)
    found = scan(WEBDATASET, tmp_path)
    assert only(found) == [(1, (10, 20, 30, 40))] * 3
    assert told(found) == [("swapped-corners", "", 0)]


def test_lost_objects_of_a_shard_are_counted_one_by_one(tmp_path):
    box = [10, 20, 30, 40]
    objects = [{"class": 0, "box": box}, {"class": 1, "box": box[:3]}, {"class": "owl", "box": box}, 7]
    save_shard(tmp_path, [*objects, {"class": 0, "box": [1, 2, 1, 4]}, {"class": 0}])
    found = scan(WEBDATASET, tmp_path)
    assert only(found) == [(0, (10, 20, 30, 40))]
    assert told(found) == [
        ("bad-box", "dog", 1), ("unknown-class", "", 1), ("unknown-class", "", 1), ("zero-size-box", "cat", 1),
        ("bad-box", "cat", 1),
    ]  # fmt: skip


def test_two_classes_of_one_name_are_one(tmp_path):
    save_record(tmp_path, [(3, 0.1, 0.25, 0.5, 1)], names="1:cat\n2:dog\n3:cat\n")
    found = scan(TFRECORD, tmp_path)
    assert (found.schema.class_names, only(found)[0][0], found.kinds()) == (("cat", "dog"), 0, ["same-name"])


@pytest.mark.parametrize(
    ("size", "frame", "box", "listed"),
    [
        ((100, 80), "upright", (40, 10, 60, 50), []),  # that of the stored pixels: turned
        ((80, 100), "stored", (8, 25, 40, 50), []),
        (None, "upright", (8, 25, 40, 50), ["exif-turned"]),
        (None, "stored", (40, 10, 60, 50), ["exif-turned"]),
        ((50, 40), "upright", (40, 10, 60, 50), ["other-size"]),  # shares are those of any size
    ],
)
def test_boxes_of_a_record_follow_an_image_that_exif_turns(tmp_path, size, frame, box, listed):
    save_record(tmp_path, [(1, 0.1, 0.25, 0.5, 0.5)], png(orientation=6), size)
    found = scan(TFRECORD, tmp_path, frame=frame)
    assert (only(found), found.kinds()) == ([(0, box)], listed)


def test_boxes_of_a_shard_follow_an_image_that_exif_turns(tmp_path):
    objects = [{"class": 0, "box": [10, 20, 50, 40]}]
    save_shard(tmp_path, objects, png(orientation=6), width=100, height=80)
    assert only(scan(WEBDATASET, tmp_path)) == [(0, (40, 10, 60, 50))]
    save_shard(tmp_path, objects, png(orientation=6), kind="detection")  # an export of ours
    found = scan(WEBDATASET, tmp_path)
    assert (only(found), found.problems) == ([(0, (10, 20, 50, 40))], [])


sides = st.sampled_from([0.0, 0.2, 0.5, 1.0, float("nan"), float("inf")])
written = st.lists(st.tuples(st.sampled_from([1, 2, 9]), sides, sides, sides, sides), min_size=1, max_size=5)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(objects=written)
def test_objects_in_are_objects_out_and_objects_lost(tmp_path_factory, objects):
    folder = tmp_path_factory.mktemp("records")
    save_record(folder / "record", objects)
    save_shard(folder / "shard", [{"class": each[0], "box": [*each[1:]]} for each in objects])
    for importer, name in ((TFRECORD, "record"), (WEBDATASET, "shard")):
        found = scan(importer, folder / name)
        assert found.count() + lost(found) == len(objects)
