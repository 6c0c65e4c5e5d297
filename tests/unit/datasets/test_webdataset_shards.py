"""WebDataset shards: those of others, damaged ones, and our own out and back."""

import gzip
import io
import json
import tarfile

import numpy as np
import pytest
from exported_datasets import dataset_with, expected, guessed, kinds_of, read_back

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.formats.webdataset.exporter import export_webdataset
from ziggurat.datasets.formats.webdataset.importer import WebDatasetImporter
from ziggurat.errors import ConfigurationError, DataError, DatapointError
from ziggurat.records.schema import Schema

JPEG = encode_image(np.full((8, 10, 3), 90, np.uint8), "jpeg")
PNG = encode_image(np.full((8, 10, 3), 9, np.uint8), "png")


def shard(path, members):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, content in members:
            content = content.encode() if isinstance(content, str) else content
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return path


# ---- what others wrote


def test_pictures_with_classes(tmp_path):
    shard(tmp_path / "data-train-000000.tar", [("./a/0.JPG", JPEG), ("./a/0.cls", "1\n"), ("./a/1.v2.cls", "0")])
    shard(tmp_path / "data-train-000001.tar", [("2.cls", "0"), ("2.txt", "a caption"), ("2.png", PNG)])
    shard(tmp_path / "val/000000.tar", [("0.jpg", JPEG), ("0.cls", "dog")])
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    assert guessed(tmp_path) == ("webdataset", "image-classification")
    found = read_back(WebDatasetImporter(), tmp_path)
    assert found.samples == {
        "data-train-000000.tar/a/0": ("train", (JPEG,), 1),
        "data-train-000001.tar/2": ("train", (PNG,), 0),
        "val/000000.tar/0": ("val", (JPEG,), 1),
    }
    assert found.schema.class_names == ("cat", "dog")
    assert kinds_of(found.problems) == {"data-train-000000.tar/a/1": "no-label"}


@pytest.mark.parametrize(
    ("about", "kind", "label"),
    [
        ({"label": 3}, "image-classification", 3),
        ({"cls": 2, "caption": "x"}, "image-classification", 2),
        ({"label": [0.5, 1]}, "image-regression", [0.5, 1]),
        ({"label": [{"class": 0, "box": [1, 2, 3, 4]}]}, "detection", [{"class": 0, "box": [1, 2, 3, 4]}]),
    ],
)
def test_labels_in_json(tmp_path, about, kind, label):
    shard(tmp_path / "x.tar", [("1.jpg", JPEG), ("1.json", json.dumps(about))])
    found = read_back(WebDatasetImporter(), tmp_path / "x.tar")
    assert (found.schema.kind, found.samples["x.tar/1"][2]) == (kind, label)


def test_masks_and_texts(tmp_path):
    shard(tmp_path / "masks/0.tar", [("1.jpg", JPEG), ("1.seg.png", PNG)])
    shard(tmp_path / "texts/0.tar", [("1.txt", "Grüße"), ("1.cls", "1"), ("2.txt", b"\xff\xfe"), ("2.cls", "0")])
    masks = read_back(WebDatasetImporter(), tmp_path / "masks")
    assert (masks.schema.kind, masks.samples["0.tar/1"][1]) == ("segmentation", (JPEG, PNG))
    texts = read_back(WebDatasetImporter(), tmp_path / "texts")
    assert texts.samples == {"0.tar/1": ("", ("Grüße".encode(),), 1)}
    assert kinds_of(texts.problems) == {"0.tar/2": "unreadable"}


@pytest.mark.parametrize(
    "members",
    [
        [("2.json", "{"), ("2.jpg", JPEG)],
        [("2.cls", "-1"), ("2.jpg", JPEG)],
        [("2.cls", "zebra"), ("2.jpg", JPEG)],
        [("2.json", '{"label": [1]}'), ("2.jpg", JPEG)],
        [("2.json", "[" * 100_000), ("2.jpg", JPEG)],
        [("2.jpg", JPEG)],
    ],
)
def test_bad_labels_are_listed(tmp_path, members):
    shard(tmp_path / "0.tar", [("1.jpg", JPEG), ("1.cls", "0"), *members])
    found = read_back(WebDatasetImporter(), tmp_path)
    assert list(found.samples) == ["0.tar/1"]
    assert kinds_of(found.problems) == {"0.tar/2": "no-label"}


def test_a_shard_that_is_cut_off_keeps_what_is_whole(tmp_path):
    path = shard(tmp_path / "0.tar", [("1.jpg", JPEG), ("1.cls", "0"), ("2.jpg", JPEG), ("2.cls", "0")])
    shard(tmp_path / "1.tar", [("3.jpg", JPEG), ("3.cls", "0")])
    path.write_bytes(path.read_bytes()[:2800])
    found = read_back(WebDatasetImporter(), tmp_path)
    assert list(found.samples) == ["0.tar/1", "1.tar/3"]
    assert kinds_of(found.problems) == {"0.tar": "unreadable"}


def test_a_shard_that_changed_after_the_scan_is_refused(tmp_path):
    path = shard(tmp_path / "0.tar", [("1.jpg", JPEG), ("1.cls", "0")])
    importer = WebDatasetImporter()
    [sample] = importer.scan(tmp_path, importer.checked_options({}))
    path.write_bytes(path.read_bytes()[:600])
    with importer.reader(tmp_path, {}) as reader, pytest.raises(DatapointError, match="its shard is cut off"):
        reader.read(sample.parts[0])


@pytest.mark.parametrize("name", ["0.tar.gz", "0.tgz", "0.tar"])
def test_compressed_shards_are_refused_with_advice(tmp_path, name):
    path = shard(tmp_path / "plain", [("1.jpg", JPEG), ("1.cls", "0")])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_bytes(gzip.compress(path.read_bytes()))
    assert WebDatasetImporter().guess(tmp_path / "in") is None
    with pytest.raises(DataError, match=r"compressed.*Unpack it first"):
        read_back(WebDatasetImporter(), tmp_path / "in")


def test_links_in_a_shard_and_other_tars_are_not_followed(tmp_path):
    with tarfile.open(tmp_path / "0.tar", "w") as archive:
        link = tarfile.TarInfo("1.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        archive.addfile(link)
    assert WebDatasetImporter().guess(tmp_path) is None
    with pytest.raises(DataError, match="whose first sample has nothing"):
        read_back(WebDatasetImporter(), tmp_path)
    with pytest.raises(DataError, match="has no shards"):
        read_back(WebDatasetImporter(), shard(tmp_path / "other/readme.txt", []))


# ---- out and back

BOX = {"class": 1, "box": [1.1, 2.0, 7.3, 8.0], "details": {"id": 7}}
KINDS = {
    "image-classification": ((JPEG,), 2),
    "detection": ((JPEG,), [BOX]),
    "segmentation": ((JPEG, PNG), None),
    "image-to-image": ((JPEG, PNG), None),
    "image-pairs": ((JPEG, PNG), 1),
    "image-regression": ((PNG,), [0.1, 2.5]),
    "text-classification": (("Grüße\n",), 0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_comes_back(tmp_path, kind):
    parts, label = KINDS[kind]
    splits = {
        "train": [(f"a {number}.b/ä.jpg", parts, label) for number in range(5)],
        "val": [],
        "test": [("/b.jpg", parts, label)],
    }
    names = ("x", "y: z", 'q"') if "classification" in kind or kind == "detection" else ()
    schema = Schema(kind=kind, class_names=names)
    with dataset_with(tmp_path / "set", splits, schema) as dataset:
        report = export_webdataset(dataset, tmp_path / "out", samples_per_shard=2)
    assert report.counts == {"train": 5, "val": 0, "test": 1}
    assert sorted(path.name for path in (tmp_path / "out").glob("*.tar")) == [
        "test-000000.tar",
        "train-000000.tar",
        "train-000001.tar",
        "train-000002.tar",
    ]
    assert guessed(tmp_path / "out") == ("webdataset", kind)
    found = read_back(WebDatasetImporter(), tmp_path / "out")
    whole = {
        key: (split, tuple(part.encode() if isinstance(part, str) else part for part in each), label)
        for key, (split, each, label) in expected(splits).items()
    }
    assert found.samples == whole
    assert found.problems == []
    assert found.schema == schema


def test_same_data_gives_same_bytes_and_shards_have_samples(tmp_path):
    with dataset_with(tmp_path / "set", {"train": [("a", (PNG,), 0)]}, "image-classification") as dataset:
        for name in ("one", "two"):
            export_webdataset(dataset, tmp_path / name)
        with pytest.raises(ConfigurationError, match="at least one sample"):
            export_webdataset(dataset, tmp_path / "three", samples_per_shard=0)
    assert (tmp_path / "one/train-000000.tar").read_bytes() == (tmp_path / "two/train-000000.tar").read_bytes()
