"""What is exported comes back: keys, splits, sizes, classes and boxes, for any images with objects."""

import tempfile
from pathlib import Path

import pytest
from detection_sources import box, dataset, scan
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ziggurat.datasets.formats.coco.exporter import export_coco
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.exporter import export_kitti
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.exporter import export_voc
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.exporter import export_yolo
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.datasets.image_size import image_size

ANY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PARTS = st.text("abc é日.-_&<'\"%", min_size=1, max_size=6).filter(lambda text: text.strip(". ") == text)
NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8) | st.sampled_from(
    ["traffic light", "DontCare", "dontcare", "null", "12", "person?", "&amp;", "a: b", "#x", "- y"]
)
NUMBERS = (
    st.floats(0, 60, allow_subnormal=False)
    | st.integers(0, 60).map(float)
    | st.floats(-20, 200).map(lambda x: round(x, 2))
)


@st.composite
def spans(draw):
    low, high = sorted((draw(NUMBERS), draw(NUMBERS)))
    return low, high if high > low else low + 1.0


@st.composite
def objects(draw, classes):
    (left, right), (top, bottom) = draw(spans()), draw(spans())
    corners = st.tuples(*[NUMBERS] * 6)
    return box(
        draw(st.integers(-1, classes - 1)), left, top, right, bottom,
        polygons=tuple(draw(st.lists(corners, max_size=2))), crowd=draw(st.booleans()), difficult=draw(st.booleans()),
        details=draw(st.sampled_from([{}, {"id": 7, "area": 3.5}, {"pose": "Left", "truncated": 1}])),
    )  # fmt: skip


@st.composite
def datasets(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    folders = st.sampled_from(
        ["", "train/", "images/train/", "JPEGImages/", "training/image_2/", "Annotations/", "../x/"]
    )
    key = st.builds("{}{}{}".format, folders, PARTS, st.sampled_from([".png", ".jpg", ".JPG", ".gif", ""]))
    keys = draw(st.lists(key, min_size=1, max_size=5, unique=True))
    pictures = {split: {} for split in draw(st.sampled_from([("train",), ("train", "val"), ("train", "val", "test")]))}
    for each in keys:
        size = draw(st.tuples(st.integers(1, 40), st.integers(1, 40)))
        pictures[draw(st.sampled_from(list(pictures)))][each] = (size, draw(st.lists(objects(len(names)), max_size=3)))
    return names, pictures


def there_and_back(export, importer, names, pictures, **options):
    """Return the images by key, and what the importer found; sizes and keys are compared here."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "new"
        report = export(dataset(names, pictures), target, **options)
        found = scan(importer, target)
        sizes = {key: image_size(target / str(sample.parts[0])) for key, sample in found.samples.items()}
    assert report.counts == {split: len(content) for split, content in pictures.items()}
    assert sizes == {key: size for content in pictures.values() for key, (size, _) in content.items()}
    assert found.splits() == {key: split for split, content in pictures.items() for key in content}
    assert set(found.kinds()) <= {"box-outside", "no-label"}
    return {key: listed for content in pictures.values() for key, (_, listed) in content.items()}, found, report


def with_class(listed):
    return [each for each in listed if each.class_number >= 0]


@ANY
@given(datasets())
def test_coco_gives_everything_back(content):
    given_objects, found, report = there_and_back(export_coco, CocoImporter(), *content)
    assert list(found.schema.class_names) == content[0]
    for key, listed in given_objects.items():
        assert [
            (each.class_number, each.box, each.polygons, each.crowd, each.difficult) for each in found.objects(key)
        ] == [(each.class_number, each.box, each.polygons, each.crowd, each.difficult) for each in with_class(listed)]
        listed_here = [problem.key for problem in report.problems]
        assert (key in listed_here) == (len(with_class(listed)) < len(listed))


@ANY
@given(datasets())
def test_voc_gives_back_classes_boxes_and_marks(content):
    given_objects, found, _ = there_and_back(export_voc, VocImporter(), *content)
    assert list(found.schema.class_names) == content[0]
    for key, listed in given_objects.items():
        assert [(each.class_number, each.box, each.difficult) for each in found.objects(key)] == [
            (each.class_number, each.box, each.difficult) for each in with_class(listed)
        ]


@ANY
@example((["0"], {"train": {"a.png": ((1, 1), []), "b.png": ((9, 9), [box(0, 0.0, 0.0, 4.0, 4.0)])}}))
@given(datasets())
def test_kitti_gives_back_classes_boxes_and_plain_regions(content):
    given_objects, found, _ = there_and_back(export_kitti, KittiImporter(), *content)
    assert list(found.schema.class_names) == content[0]
    for key, listed in given_objects.items():
        assert [(each.class_number, each.box) for each in found.objects(key)] == [
            (each.class_number, each.box) for each in listed
        ]


@ANY
@given(datasets(), st.booleans())
def test_yolo_gives_back_classes_and_boxes_to_a_millionth(content, outlines):
    given_objects, found, _ = there_and_back(export_yolo, YoloImporter(), *content, outlines=outlines)
    assert list(found.schema.class_names) == content[0]
    for key, listed in given_objects.items():
        expected = with_class(listed)
        assert [each.class_number for each in found.objects(key)] == [each.class_number for each in expected]
        for each, original in zip(found.objects(key), expected, strict=True):
            if not (outlines and original.polygons):
                assert each.box == pytest.approx(original.box, rel=1e-6, abs=1e-6)
