"""Labels of stored pixels follow an image that EXIF turns; sizes decide, and where they cannot, it is told."""

import io
import json

import numpy as np
import pytest
from detection_sources import save_text, scan
from PIL import Image, ImageOps

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.imgaug.resize import Resize
from ziggurat.datasets.creation.images import fit_objects
from ziggurat.datasets.formats.coco.importer import CocoImporter
from ziggurat.datasets.formats.kitti.importer import KittiImporter
from ziggurat.datasets.formats.voc.importer import VocImporter
from ziggurat.datasets.formats.yolo.importer import YoloImporter
from ziggurat.datasets.image_size import encoded_size, image_size, size_of, stored_size
from ziggurat.records.objects import ImageObject
from ziggurat.records.run_lengths import mask_pixels, run_lengths

COCO, VOC, YOLO, KITTI = CocoImporter(), VocImporter(), YoloImporter(), KittiImporter()
BOX = (10, 20, 40, 30)  # left, top, right, bottom in the stored pixels
SIZE = (60, 44)
SQUARE = (60, 60)


def pixels(size=SIZE):
    image = np.zeros((size[1], size[0], 3), np.uint8)
    image[BOX[1] : BOX[3], BOX[0] : BOX[2]] = 255
    return Image.fromarray(image)


def encoded(orientation, size=SIZE, file_format="PNG"):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = io.BytesIO()
    more = {"tiffinfo": exif} if file_format == "TIFF" else {"exif": exif}
    pixels(size).save(content, file_format, **more)
    return content.getvalue()


def upright_box(orientation, size=SIZE):
    """Return where the object is in the image as it is shown, found by its pixels."""
    shown = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(encoded(orientation, size)))))[..., 0] > 0
    rows, columns = np.flatnonzero(shown.any(1)), np.flatnonzero(shown.any(0))
    return (columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)


def save(folder, orientation, size=SIZE, said=SIZE, box=BOX, **fields):
    """Write one image in each format, with a box of the stored pixels; `said` is the size that labels give."""
    for path in ("coco/a.png", "voc/images/a.png", "kitti/training/image_2/a.png", "yolo/images/a.png"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(encoded(orientation, size))
    left, top, right, bottom = box
    about = {} if said is None else {"width": said[0], "height": said[1]}
    content = {
        "images": [{"id": 1, "file_name": "a.png", **about}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"image_id": 1, "category_id": 1, "bbox": [left, top, right - left, bottom - top], **fields}],
    }
    save_text(folder / "coco/train.json", json.dumps(content))
    corners = "".join(
        f"<{name}>{value}</{name}>" for name, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    )
    part = f"<part><name>head</name><bndbox>{corners}</bndbox></part>"
    tag = "" if said is None else f"<size><width>{said[0]}</width><height>{said[1]}</height></size>"
    thing = f"<object><name>cat</name><bndbox>{corners}</bndbox>{part}</object>"
    save_text(folder / "voc/annotations/a.xml", f"<annotation>{tag}{thing}</annotation>")
    save_text(folder / "kitti/training/label_2/a.txt", f"Car 0 0 0 {left} {top} {right} {bottom} 1 1 1 1 1 1 0")
    width, height = size
    middle = (
        f"{(left + right) / 2 / width} {(top + bottom) / 2 / height} {(right - left) / width} {(bottom - top) / height}"
    )
    save_text(folder / "yolo/labels/a.txt", f"0 {middle}")


def box_of(importer, source, **options):
    found = scan(importer, source, **options)
    (sample,) = found.samples
    return tuple(round(value, 6) for value in found.boxes(sample)[0]), found


@pytest.mark.parametrize("orientation", range(1, 9))
def test_boxes_follow_where_the_size_is_of_the_stored_pixels(tmp_path, orientation):
    save(tmp_path, orientation)
    for importer, name in ((COCO, "coco"), (VOC, "voc")):
        box, found = box_of(importer, tmp_path / name)
        if orientation in (1, 5, 6, 7, 8):
            assert (box, found.problems) == (upright_box(orientation), [])
        else:
            assert (box, found.kinds()) == (BOX, ["exif-turned"])


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("size", [SIZE, SQUARE])
def test_where_no_size_tells_it_the_option_does(tmp_path, orientation, size):
    save(tmp_path, orientation, size, said=None)
    for importer, name in ((COCO, "coco"), (VOC, "voc"), (KITTI, "kitti"), (YOLO, "yolo")):
        box, found = box_of(importer, tmp_path / name, frame="stored")
        assert (box, found.kinds()) == (upright_box(orientation, size), ["exif-turned"]), name
        if name != "yolo":
            box, found = box_of(importer, tmp_path / name)
            assert box == BOX
            assert "exif-turned" in found.kinds()
            assert f"orientation {orientation}" in found.problems[0].reason


def test_boxes_stay_where_the_size_is_that_of_the_upright_image(tmp_path):
    save(tmp_path, 6, said=SIZE[::-1], box=(5, 6, 7, 8))
    for importer, name in ((COCO, "coco"), (VOC, "voc")):
        box, found = box_of(importer, tmp_path / name, frame="stored")
        assert (box, found.problems) == ((5, 6, 7, 8), [])


@pytest.mark.parametrize(("said", "listed"), [((61, 43), []), ((59, 45), []), ((62, 44), ["other-size"])])
def test_a_pixel_more_or_less_is_the_same_size(tmp_path, said, listed):
    save(tmp_path, 6, said=said)
    for importer, name in ((COCO, "coco"), (VOC, "voc")):
        assert scan(importer, tmp_path / name).kinds() == listed


@pytest.mark.parametrize("orientation", [1, 6])
def test_another_size_is_listed_and_scaled_where_it_is_asked(tmp_path, orientation):
    save(tmp_path, orientation, said=(120, 88), box=tuple(2 * value for value in BOX))
    for importer, name in ((COCO, "coco"), (VOC, "voc")):
        box, found = box_of(importer, tmp_path / name)
        assert (box, found.kinds()) == (tuple(2 * value for value in BOX), ["other-size"])
        assert "scale_boxes" in found.problems[0].reason
        box, found = box_of(importer, tmp_path / name, scale_boxes=True)
        assert (box, found.kinds()) == (upright_box(orientation), ["other-size"])


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_outlines_masks_and_points_follow_too(tmp_path, orientation):
    left, top, right, bottom = BOX
    mask = np.zeros(SIZE[::-1], np.uint8)
    mask[top:bottom, left:right] = 1
    points = [left, top, 2, right, bottom, 1, 0, 0, 0]
    save(tmp_path, orientation, segmentation=run_lengths(mask), keypoints=points)
    want = upright_box(orientation)
    each = scan(COCO, tmp_path / "coco").objects("a.png")[0]
    turned = mask_pixels(each.mask)
    assert turned.shape == SIZE
    assert turned[want[1] : want[3], want[0] : want[2]].all()
    assert turned.sum() == mask.sum()
    x, y = each.details["keypoints"][:6:3], each.details["keypoints"][1:6:3]
    assert (min(x), min(y), max(x), max(y)) == want
    assert each.details["keypoints"][6:] == [0, 0, 0]
    save(tmp_path, orientation, segmentation=[[left, top, right, top, right, bottom, left, bottom]])
    outline = scan(COCO, tmp_path / "coco").objects("a.png")[0].polygons[0]
    assert (min(outline[::2]), min(outline[1::2]), max(outline[::2]), max(outline[1::2])) == want
    part = scan(VOC, tmp_path / "voc").objects("images/a.png")[0].details["part"]
    assert tuple(part["bndbox"][name] for name in ("xmin", "ymin", "xmax", "ymax")) == want


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_sizes_are_those_of_the_image_as_it_is_decoded(tmp_path, orientation, file_format):
    content = encoded(orientation, file_format=file_format)
    height, width = decode_image(content).shape[:2]
    (tmp_path / "a").write_bytes(content)
    assert encoded_size(content) == image_size(tmp_path / "a") == (width, height)
    assert size_of(content, "a") == (height, width)
    assert stored_size(content) == (*SIZE, orientation)


def test_points_of_details_follow_an_image_that_is_fitted():
    details = {"keypoints": [10, 20, 2, 0, 0, 0], "area": 9.0, "bbox": [1, 2, 3, 4], "note": "x"}
    each = ImageObject(class_number=0, box=BOX, details=details)
    resize = Resize((22, 120), mode="squash").get_transform(np.zeros((44, 60, 3), np.uint8))
    label, lost = fit_objects([each.as_json()], resize, (22, 120))
    assert lost == 0
    assert label[0]["details"] == {"keypoints": [20, 10, 2, 0, 0, 0], "note": "x"}
