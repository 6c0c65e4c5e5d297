"""Import, export and import again give the same labels, also of images that EXIF turns; sizes are the upright ones."""

import json
from pathlib import Path

import pytest
from detection_sources import imported, save_text, scan
from hypothesis import given, settings
from hypothesis import strategies as st
from test_coordinate_frames import COCO, KITTI, SIZE, VOC, YOLO, encoded, save, upright_box

from tests.unit.datasets.small_sources import request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.format_registry import export_dataset
from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.tfrecord.importer import TFRecordImporter
from ziggurat.datasets.formats.tfrecord.records import frames_of, unpack_features
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.webdataset.importer import WebDatasetImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.splitting import SplitRule
from ziggurat.records.manifest import ImageForm

FORMATS = {
    "coco": (COCO, export_coco), "voc": (VOC, export_voc), "kitti": (KITTI, export_kitti), "yolo": (YOLO, export_yolo),
}  # fmt: skip


def label_of(found):
    """Return what a scan found in its one image: class and box of each object."""
    (key,) = found.samples
    rounded = [tuple(round(value, 4) for value in box) for box in found.boxes(key)]
    return list(zip(found.names(key), rounded, strict=True))


def made(source, folder, **fields):
    create_dataset(request(source, format="coco", rule=SplitRule(val_share=0), **fields), folder)
    return Dataset(folder)


@pytest.mark.parametrize("encoding", ["", "reference", "png"])
def test_the_catalog_has_the_size_of_the_image_as_it_is_shown(tmp_path: Path, encoding: str) -> None:
    save(tmp_path, 6)
    with made(tmp_path / "coco", tmp_path / "set", image=ImageForm(encoding=encoding)) as dataset:
        sample = dataset.sample("train", 0)
        entry = dataset.entry("train", 0)
    assert (entry.width_px, entry.height_px) == SIZE[::-1]
    assert tuple(sample.label[0]["box"]) == upright_box(6)


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_tensorflow_records_have_the_size_of_the_upright_image(tmp_path: Path, orientation: int) -> None:
    save(tmp_path, orientation, said=None)
    options = {"frame": "stored"}
    with made(tmp_path / "coco", tmp_path / "set", options=options) as dataset:
        report = export_dataset(dataset, "tfrecord", tmp_path / "records")
        export_dataset(dataset, "webdataset", tmp_path / "shards")
    [record] = frames_of(tmp_path / "records/train-00000-of-00001")
    features = unpack_features(record.content or b"")
    width, height = SIZE[::-1] if orientation in (6, 8) else SIZE
    assert (features["image/width"], features["image/height"]) == ([width], [height])
    sides = [features[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")]
    want = upright_box(orientation)
    assert sides == pytest.approx([want[0] / width, want[1] / height, want[2] / width, want[3] / height])
    assert any("turned by EXIF" in note for note in report.notes)
    for importer, name in ((TFRecordImporter(), "records"), (WebDatasetImporter(), "shards")):
        found = scan(importer, tmp_path / name)
        assert (label_of(found), found.problems) == ([("cat", want)], [])


def test_exports_say_that_images_are_turned(tmp_path: Path) -> None:
    save(tmp_path, 6)
    data, _ = imported(COCO, tmp_path / "coco")
    for name, (_, export) in FORMATS.items():
        assert any("turned by EXIF" in note for note in export(data, tmp_path / f"out-{name}").notes)


corners = st.tuples(*[st.integers(-3, 50)] * 4)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    orientation=st.integers(1, 8),
    frame=st.sampled_from(["upright", "stored"]),
    said=st.sampled_from([None, SIZE, SIZE[::-1]]),
    objects=st.lists(st.tuples(st.sampled_from(["cat", "dog"]), corners), min_size=1, max_size=4),
)
def test_import_export_import_gives_the_same(tmp_path_factory, orientation, frame, said, objects) -> None:
    """Whatever frame a source is in, its export is in the upright one, in each format."""
    folder = tmp_path_factory.mktemp("formats")
    (folder / "source").mkdir()
    (folder / "source/a.png").write_bytes(encoded(orientation))
    about = {} if said is None else {"width": said[0], "height": said[1]}
    content = {
        "images": [{"id": "1", "file_name": "A.PNG", **about}],
        "categories": [{"id": 1.0, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "cat"}],
        "annotations": [
            {"image_id": 1.0, "category_id": 1 + (name == "dog"), "bbox": [a, b, c - a, d - b]}
            for name, (a, b, c, d) in objects
        ],
    }
    save_text(folder / "source/train.json", json.dumps(content))
    data, first = imported(COCO, folder / "source", frame=frame)
    for name, (importer, export) in FORMATS.items():
        export(data, folder / name)
        again = scan(importer, folder / name)
        assert label_of(again) == label_of(first), name
        assert not any(problem.objects or problem.left_out for problem in again.problems)
