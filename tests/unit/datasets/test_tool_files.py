"""Files of labeling tools and tables of boxes: what they say is read, and what does not come is counted."""

import base64
import csv
import io
import json
import os
import sys
import zlib
from collections import Counter

import cv2
import numpy as np
import pytest
from detection_sources import save_picture, save_text, scan
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.datasets import guess_format, recognize
from ziggurat.datasets.format_registry import importer, importers
from ziggurat.errors import DataError
from ziggurat.records.run_lengths import mask_pixels

TOOLS = ("boxes_csv", "createml", "cvat", "label_studio", "labelme", "supervisely", "via")


def read(name, folder, **options):
    return scan(importer(name), folder, **options)


def lost(found):
    counts = Counter()
    for each in found.problems:
        counts[each.kind, each.why, each.class_name] += each.objects
    return {key: count for key, count in counts.items() if count}


def near(box, *expected):
    assert box == pytest.approx(expected, abs=0.51)


def labelme(folder, *shapes, name="a", **fields):
    content = {"version": "4.5.6", "shapes": list(shapes), "imagePath": f"{name}.jpg", "imageData": None, **fields}
    save_text(folder / f"{name}.json", json.dumps({"imageHeight": 80, "imageWidth": 100, **content}))


def shape(form, *points, label="owl", **fields):
    return {"label": label, "points": [list(point) for point in points], "shape_type": form, **fields}


def png(pixels):
    return cv2.imencode(".png", pixels)[1].tobytes()


# ---- LabelMe


def test_shapes_of_labelme_become_boxes_outlines_and_masks(tmp_path):
    save_picture(tmp_path / "a.jpg")
    mask = base64.b64encode(png(np.array([[0, 255, 0], [255, 255, 0]], np.uint8))).decode()
    labelme(
        tmp_path,
        shape("rectangle", (50, 60), (10, 20)),
        shape("polygon", (1, 2), (30, 2), (30, 40)),
        shape("circle", (50, 40), (60, 40)),
        shape("mask", (5, 6), (8, 8), mask=mask),
    )
    found = read("labelme", tmp_path)
    rectangle, polygon, circle, drawn = found.objects("a.jpg")
    assert rectangle.box == (10, 20, 50, 60)
    assert (polygon.box, polygon.polygons) == ((1, 2, 30, 40), ((1, 2, 30, 2, 30, 40),))
    near(circle.box, 40, 30, 60, 50)
    assert drawn.box == (5, 6, 7, 8)
    assert np.argwhere(mask_pixels(drawn.mask)).tolist() == [[6, 6], [7, 5], [7, 6]]
    assert found.problems == []


def test_shapes_without_area_or_name_are_counted(tmp_path):
    save_picture(tmp_path / "a.jpg")
    labelme(
        tmp_path,
        shape("point", (1, 2)),
        shape("linestrip", (1, 2), (3, 4), label="road"),
        shape("rectangle", (1, 2), (3, 4), label=""),
        shape("rectangle", (1, 2)),
        shape("rectangle", (1, 2), (30, 4), label="fox"),
    )
    found = read("labelme", tmp_path)
    assert found.names("a.jpg") == ["fox"]
    assert found.schema.class_names == ("fox", "owl", "road")
    assert lost(found) == {
        ("no-box", "they are points", "owl"): 1,
        ("no-box", "they are lines", "road"): 1,
        ("unknown-class", "they have no name", ""): 1,
        ("bad-box", "", "owl"): 1,
    }


def test_images_are_found_by_paths_of_other_machines(tmp_path):
    for name in ("a", "b"):
        save_picture(tmp_path / f"photos/{name}.jpg")
        path = rf"C:\Users\me\photos\{name}.jpg"
        labelme(tmp_path / "labels", shape("rectangle", (1, 2), (3, 4)), name=name, imagePath=path)
    found = read("labelme", tmp_path)
    assert sorted(found.samples) == ["photos/a.jpg", "photos/b.jpg"]
    assert found.kinds() == ["other-name"]


def test_a_damaged_file_is_no_image_without_objects(tmp_path):
    for name in ("a", "b", "c"):
        save_picture(tmp_path / f"{name}.jpg")
    labelme(tmp_path, shape("rectangle", (1, 2), (3, 4)))
    save_text(tmp_path / "b.json", '{"shapes": [{"label": "owl", ')
    found = read("labelme", tmp_path)
    assert {key: len(sample.label) for key, sample in found.samples.items()} == {"a.jpg": 1, "c.jpg": 0}
    assert [(each.kind, each.key, each.left_out) for each in found.problems] == [
        ("unreadable", "b.json", True),
        ("no-label", "c.jpg", False),
    ]


def test_a_size_that_is_not_the_images_is_told_or_scaled(tmp_path):
    save_picture(tmp_path / "a.jpg", 200, 160)
    labelme(tmp_path, shape("rectangle", (10, 20), (30, 40)))
    assert read("labelme", tmp_path).kinds() == ["other-size"]
    assert read("labelme", tmp_path, scale_boxes=True).boxes("a.jpg") == [(20, 40, 60, 80)]


# ---- CVAT


def cvat(folder, inner, name="a.jpg", meta="", **fields):
    fields = "".join(f' {key}="{value}"' for key, value in {"width": 100, "height": 80, **fields}.items())
    text = f'<annotations><version>1.1</version>{meta}<image id="0" name="{name}"{fields}>{inner}</image></annotations>'
    save_text(folder / "annotations.xml", text)


def test_shapes_of_cvat_become_boxes_outlines_and_masks(tmp_path):
    save_picture(tmp_path / "images/a.jpg")
    cvat(
        tmp_path,
        '<box label="fox" xtl="1.5" ytl="2" xbr="30" ybr="40" occluded="1"><attribute name="age">old</attribute></box>'
        '<box label="fox" xtl="20" ytl="30" xbr="60" ybr="40" rotation="90"/>'
        '<polygon label="owl" points="1,2;30,2;30,40"/>'
        '<ellipse label="owl" cx="50" cy="40" rx="20" ry="10" rotation="90"/>'
        '<mask label="owl" left="5" top="6" width="3" height="2" rle="1,1,1,2,1"/>',
        meta="<meta><task><labels><label><name>elk</name></label></labels></task></meta>",
        subset="Validation",
    )
    found = read("cvat", tmp_path)
    plain, turned, polygon, ellipse, mask = found.objects("images/a.jpg")
    assert found.schema.class_names == ("elk", "fox", "owl")
    assert plain.box == (1.5, 2, 30, 40)
    assert plain.details["attributes"] == {"age": "old"}
    near(turned.box, 35, 15, 45, 55)
    assert len(turned.polygons[0]) == 8
    assert polygon.box == (1, 2, 30, 40)
    near(ellipse.box, 40, 20, 60, 60)
    assert np.argwhere(mask_pixels(mask.mask)).tolist() == [[6, 6], [7, 5], [7, 6]]
    assert found.splits() == {"images/a.jpg": "val"}
    assert found.kinds() == ["box-of-outline"]


def test_shapes_of_cvat_that_no_task_learns_from_are_counted(tmp_path):
    save_picture(tmp_path / "a.jpg")
    cvat(
        tmp_path,
        '<box label="fox" xtl="1" ytl="2" xbr="x" ybr="40"/><points label="fox" points="1,2"/>'
        '<polyline label="road" points="1,2;3,4"/><cuboid label="box"/><tag label="day"/><mask label="fox" rle="9"/>',
    )
    found = read("cvat", tmp_path)
    assert (sum(lost(found).values()), found.count()) == (6, 0)


def test_cvat_for_video_is_refused_by_name(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save_text(tmp_path / "annotations.xml", '<annotations><track id="0" label="fox"><box/></track></annotations>')
    with pytest.raises(DataError, match=r"`annotations.xml` is of CVAT for video"):
        guess_format(tmp_path)


def test_an_entity_in_a_file_of_cvat_is_refused(tmp_path):
    save_picture(tmp_path / "a.jpg")
    text = '<!DOCTYPE a [<!ENTITY b "bbbb">]><annotations><image name="a.jpg"/><x>&b;</x></annotations>'
    save_text(tmp_path / "annotations.xml", text)
    assert read("cvat", tmp_path).kinds()[0] == "unreadable"


# ---- Label Studio


def region(form, value, label="fox", identity="r", **fields):
    size = {"original_width": 100, "original_height": 80}
    return {"id": identity, "type": form, **size, "value": {**value, form: [label]}, **fields}


def rectangle(x=10, y=10, width=50, height=50, rotation=0):
    return {"x": x, "y": y, "width": width, "height": height, "rotation": rotation}


def task(*regions, image="/data/upload/3/0123abcd-a.jpg", others=()):
    annotations = [{"completed_by": 1, "result": list(each)} for each in (regions, *others)]
    return {"id": 1, "data": {"image": image}, "annotations": annotations}


def test_regions_of_label_studio_are_shares_in_percent(tmp_path):
    save_picture(tmp_path / "images/a.jpg")
    regions = [
        region("rectanglelabels", rectangle(), identity="1"),
        region("rectanglelabels", rectangle(50, 50, 20, 10, 90), identity="2"),
        region("polygonlabels", {"points": [[10, 10], [20, 10], [20, 50]]}, identity="3"),
        region("ellipselabels", {"x": 50, "y": 50, "radiusX": 10, "radiusY": 20}, identity="4"),
        region("keypointlabels", {"x": 50, "y": 50}, identity="5"),
        region("brushlabels", {"rle": [1]}, identity="6"),
    ]
    save_text(tmp_path / "tasks.json", json.dumps([task(*regions, others=[[regions[0]]])]))
    found = read("label_studio", tmp_path)
    plain, turned, polygon, ellipse = found.objects("images/a.jpg")
    assert plain.box == (10, 8, 60, 48)
    near(turned.box, 42, 40, 50, 60)
    assert polygon.box == (10, 8, 20, 40)
    near(ellipse.box, 40, 24, 60, 56)
    assert lost(found) == {
        ("bad-line", "they are of a further annotation of their image", ""): 1,
        ("no-box", "they are points", "fox"): 1,
        ("no-box", "they are masks of a brush", "fox"): 1,
    }


def test_the_short_form_of_label_studio_is_read(tmp_path):
    save_picture(tmp_path / "a.jpg")
    one = {**rectangle(), "rectanglelabels": ["fox"], "original_width": 100, "original_height": 80}
    content = [{"image": "http://localhost:8080/data/local-files/?d=a.jpg", "id": 1, "label": [one], "annotator": 1}]
    save_text(tmp_path / "min.json", json.dumps(content))
    assert guess_format(tmp_path).format == "label_studio"
    assert read("label_studio", tmp_path).boxes("a.jpg") == [(10, 8, 60, 48)]


# ---- tables of boxes


def test_a_table_of_boxes_has_a_box_a_line(tmp_path):
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        save_picture(tmp_path / "images" / name)
    head = "filename;width;height;class;xmin;ymin;xmax;ymax\n"
    save_text(tmp_path / "train.csv", head + "a.jpg;100;80;fox;1;2;30;40\nb.jpg;;;;;;;\na.jpg;100;80;owl;5;5;9.5;9\n")
    save_text(
        tmp_path / "all.csv", head + "a.jpg;100;80;fox;1;2;30;40\na.jpg;100;80;elk;x;2;30;40\nz.jpg;1;1;fox;1;2\n"
    )
    found = read("boxes_csv", tmp_path)
    assert found.names("images/a.jpg") == ["fox", "owl"]
    assert found.splits() == {"images/a.jpg": "train", "images/b.jpg": "train", "images/c.jpg": ""}
    assert lost(found) == {("bad-box", "", "elk"): 1, ("bad-line", "", ""): 1}


def test_boxes_of_open_images_are_shares_with_ids_for_classes(tmp_path):
    save_picture(tmp_path / "train/0001.jpg")
    save_text(tmp_path / "class-descriptions-boxable.csv", "/m/01,Fox\n/m/02,Owl\n")
    head = "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsOccluded,IsGroupOf\n"
    rows = (
        "0001,xclick,/m/02,1,0.1,0.5,0.25,1,0,0\n0001,xclick,/m/01,1,0,1,0,1,0,1\n0002,xclick,/m/01,1,0,1,0,0.5,0,0\n"
    )
    save_text(tmp_path / "train-annotations-bbox.csv", head + rows)
    assert guess_format(tmp_path).format == "boxes_csv"
    found = read("boxes_csv", tmp_path)
    assert found.names("train/0001.jpg") == ["Owl", "Fox"]
    assert found.boxes("train/0001.jpg") == [(10, 20, 50, 80), (0, 0, 100, 80)]
    assert [each.crowd for each in found.objects("train/0001.jpg")] == [False, True]
    assert [(each.kind, each.key, each.objects, each.left_out) for each in found.problems] == [
        ("no-picture", "0002.jpg", 1, True)
    ]


def test_a_table_in_an_asian_encoding_is_a_question(tmp_path):
    save_picture(tmp_path / "a.jpg")
    text = "filename,class,xmin,ymin,xmax,ymax\n" + "a.jpg,红色的汽车,1,2,3,4\na.jpg,绿色的自行车,1,2,3,4\n" * 20
    save_text(tmp_path / "boxes.csv", text, "gbk")
    with pytest.raises(DataError) as caught:
        read("boxes_csv", tmp_path)
    assert caught.value.details["field"] == "options.encoding"
    assert read("boxes_csv", tmp_path, encoding="gb18030").schema.class_names == ("红色的汽车", "绿色的自行车")


# ---- VIA


def via(*regions, name="a.jpg"):
    return {f"{name}1": {"filename": name, "size": 1, "regions": list(regions), "file_attributes": {}}}


def via_region(form, label="fox", attribute="kind", **fields):
    return {"shape_attributes": {"name": form, **fields}, "region_attributes": {attribute: label}}


VIA_SHAPES = (
    via_region("rect", x=1, y=2, width=10, height=20),
    via_region("polygon", {"fox": True}, all_points_x=[1, 30, 30], all_points_y=[2, 2, 40]),
    via_region("circle", cx=50, cy=40, r=10),
    via_region("ellipse", cx=50, cy=40, rx=20, ry=10, theta=1.5707963),
    via_region("polyline", all_points_x=[1, 3], all_points_y=[2, 4]),
    via_region("rect", {"fox": True, "owl": True}, x=1, y=2, width=10, height=20),
)


@pytest.mark.parametrize("form", ["regions", "project", "csv"])
def test_regions_of_via_are_read(tmp_path, form):
    save_picture(tmp_path / "a.jpg")
    if form == "csv":
        text = io.StringIO()
        rows = csv.writer(text)
        rows.writerow(["filename", "file_size", "region_count", "region_shape_attributes", "region_attributes"])
        for each in VIA_SHAPES:
            rows.writerow(["a.jpg", 1, 6, json.dumps(each["shape_attributes"]), json.dumps(each["region_attributes"])])
        save_text(tmp_path / "via_export_csv.csv", text.getvalue())
    else:
        content = via(*VIA_SHAPES)
        content = {"_via_settings": {}, "_via_img_metadata": content} if form == "project" else content
        save_text(tmp_path / "via.json", json.dumps(content))
    assert guess_format(tmp_path).format == "via"
    found = read("via", tmp_path)
    boxes = found.boxes("a.jpg")
    assert boxes[:2] == [(1, 2, 11, 22), (1, 2, 30, 40)]
    near(boxes[2], 40, 30, 60, 50)
    near(boxes[3], 40, 20, 60, 60)
    assert lost(found) == {("no-box", "they are lines", "fox"): 1, ("unknown-class", "they have no name", ""): 1}


def test_the_attribute_with_the_class_is_asked_for(tmp_path):
    save_picture(tmp_path / "a.jpg")
    shapes = [via_region("rect", attribute=name, x=1, y=2, width=3, height=4) for name in ("colour", "kind")]
    save_text(tmp_path / "via.json", json.dumps(via(*shapes)))
    with pytest.raises(DataError, match="`attribute` to one of colour, kind") as caught:
        read("via", tmp_path)
    assert caught.value.details["field"] == "options.attribute"
    assert read("via", tmp_path, attribute="kind").names("a.jpg") == ["fox"]


# ---- CreateML and Supervisely


def test_boxes_of_createml_have_a_middle(tmp_path):
    save_picture(tmp_path / "valid/a.jpg")
    boxes = [{"label": "fox", "coordinates": {"x": 50, "y": 40, "width": 20, "height": 10}}, {"label": "fox"}]
    content = [
        {"image": "a.jpg", "annotations": boxes},
        {"image": "b.jpg", "annotations": boxes},
        {"annotations": boxes},
    ]
    save_text(tmp_path / "valid/_annotations.createml.json", json.dumps(content))
    found = read("createml", tmp_path)
    assert found.boxes("valid/a.jpg") == [(40, 35, 60, 45)]
    assert found.splits() == {"valid/a.jpg": "val"}
    assert sorted((each.kind, each.objects, each.left_out) for each in found.problems) == [
        ("bad-box", 1, False), ("bad-line", 2, True), ("no-picture", 2, True),
    ]  # fmt: skip


def test_a_project_of_supervisely_is_read(tmp_path):
    save_picture(tmp_path / "train/img/a.jpg")
    entries = [{"title": name, "shape": "any"} for name in ("owl", "fox", "elk")]
    save_text(tmp_path / "meta.json", json.dumps({"classes": entries}))
    alpha = np.zeros((2, 2, 4), np.uint8)
    alpha[1, 0, 3] = 255
    data = base64.b64encode(zlib.compress(png(alpha))).decode()
    square, hole = [[10, 10], [20, 10], [20, 20], [10, 20]], [[13, 13], [17, 13], [17, 17], [13, 17]]
    things = [
        {"geometryType": "rectangle", "points": {"exterior": [[30, 40], [10, 20]]}},
        {"geometryType": "polygon", "points": {"exterior": square, "interior": [hole]}},
        {"geometryType": "bitmap", "bitmap": {"origin": [5, 6], "data": data}},
        {"geometryType": "point", "points": {"exterior": [[1, 2]]}},
        {"geometryType": "bitmap", "bitmap": {"origin": [5, 6], "data": "?"}},
    ]
    content = {"size": {"width": 100, "height": 80}, "objects": [{"classTitle": "fox", **each} for each in things]}
    save_text(tmp_path / "train/ann/a.jpg.json", json.dumps(content))
    found = read("supervisely", tmp_path)
    plain, with_hole, bitmap = found.objects("train/img/a.jpg")
    assert found.schema.class_names == ("owl", "fox", "elk")
    assert plain.box == (10, 20, 30, 40)
    assert with_hole.box == (10, 10, 20, 20)
    pixels = mask_pixels(with_hole.mask)
    assert (pixels[11, 11], pixels[15, 15]) == (1, 0)
    assert bitmap.box == (5, 7, 6, 8)
    assert found.splits() == {"train/img/a.jpg": "train"}
    assert lost(found) == {("no-box", "they are points", "fox"): 1, ("bad-box", "", "fox"): 1}


# ---- all of them

NAMES = st.sampled_from(["fox", "owl", ""])
SIDES = st.one_of(st.integers(-5, 120), st.floats(0, 90).map(lambda each: round(each, 2)), st.just("x"))
BOXES = st.tuples(NAMES, SIDES, SIDES, SIDES, SIDES)
SOURCES = st.dictionaries(st.sampled_from(["a.jpg", "b.jpg", "gone.jpg"]), st.lists(BOXES, max_size=4), min_size=1)


def write_boxes(tool, folder, content):
    """Write image → (class, left, top, right, bottom) as a tool does."""
    if tool == "boxes_csv":
        rows = [f"{name},{','.join(map(str, box))}\n" for name, boxes in content.items() for box in boxes]
        save_text(folder / "boxes.csv", "filename,class,xmin,ymin,xmax,ymax\n" + "".join(rows))
    elif tool == "cvat":
        sides = ("label", "xtl", "ytl", "xbr", "ybr")
        text = ""
        for name, boxes in content.items():
            inner = (" ".join(f'{side}="{value}"' for side, value in zip(sides, box)) for box in boxes)
            text += f'<image id="0" name="{name}">{"".join(f"<box {each}/>" for each in inner)}</image>'
        save_text(folder / "annotations.xml", f"<annotations>{text}</annotations>")
    elif tool == "via":
        places = ("x", "y", "width", "height")
        entries = {}
        for name, boxes in content.items():
            regions = [via_region("rect", box[0], **dict(zip(places, box[1:]))) for box in boxes]
            entries.update(via(*regions, name=name))
        save_text(folder / "via.json", json.dumps(entries))
    elif tool == "createml":
        places = ("x", "y", "width", "height")
        boxes = {
            name: [{"label": box[0], "coordinates": dict(zip(places, box[1:]))} for box in boxes]
            for name, boxes in content.items()
        }
        entries = [{"image": name, "annotations": each} for name, each in boxes.items()]
        save_text(folder / "x.json", json.dumps(entries))
    elif tool == "label_studio":
        entries = []
        for name, boxes in content.items():
            values = [(box[0], {**rectangle(*box[1:])}) for box in boxes]
            regions = [region("rectanglelabels", value, each, str(at)) for at, (each, value) in enumerate(values)]
            entries.append(task(*regions, image=name))
        save_text(folder / "x.json", json.dumps(entries))
    else:
        write_each(tool, folder, content)


def write_each(tool, folder, content):
    """Write a file for each image."""
    for name, boxes in content.items():
        if tool == "labelme":
            shapes = [shape("rectangle", box[1:3], box[3:], label=box[0]) for box in boxes]
            labelme(folder, *shapes, name=name[:-4])
        else:
            points = [(box[0], {"exterior": [box[1:3], box[3:]]}) for box in boxes]
            things = [{"classTitle": each, "geometryType": "rectangle", "points": at} for each, at in points]
            save_text(folder / f"ann/{name}.json", json.dumps({"objects": things}))


@pytest.mark.parametrize("tool", TOOLS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(content=SOURCES)
def test_every_box_comes_or_is_counted(tmp_path_factory, tool, content):
    folder = tmp_path_factory.mktemp("boxes")
    for name in ("a.jpg", "b.jpg"):
        save_picture(folder / ("img" if tool == "supervisely" else "") / name)
    write_boxes(tool, folder, content)
    found = read(tool, folder)
    assert found.count() + sum(each.objects for each in found.problems) == sum(map(len, content.values()))


def test_what_two_files_say_alike_counts_once(tmp_path):
    save_picture(tmp_path / "a.jpg")
    save_text(
        tmp_path / "boxes_train.csv", "filename,class,xmin,ymin,xmax,ymax\na.jpg,fox,1,2,3,4\na.jpg,fox,1,2,3,4\n"
    )
    save_text(tmp_path / "boxes_test.csv", "filename,class,xmin,ymin,xmax,ymax\na.jpg,fox,1,2,3,4\n")
    found = read("boxes_csv", tmp_path)
    assert (found.count(), found.splits()) == (2, {"a.jpg": "test"})
    assert found.kinds() == ["two-splits", "duplicate-key"]


@pytest.mark.parametrize("text", ['{"objects": [{"geometry": 1}]}', '{"labels": [{"box2d": {"x1": 1}}]}'])
def test_labels_that_no_importer_reads_are_named(tmp_path, text):
    for number in range(4):
        for name in ("cat", "dog", "owl"):
            save_picture(tmp_path / f"{name}/{number}.jpg")
    assert guess_format(tmp_path).format == "class_folders"
    save_text(tmp_path / "labels.json", text)
    with pytest.raises(DataError, match=r"labels such as those in `labels.json`"):
        guess_format(tmp_path)


_looked: list[str] | None = None


def _see(event, arguments):
    if _looked is not None and event == "os.scandir":
        _looked.append(str(arguments[0]))


@pytest.mark.parametrize("names", [("cat/1.jpg", "dog/1.jpg"), ("a/1.jpg", "a/1.json"), ("a/1.jpg", "a.csv", "b.xml")])
def test_more_importers_cost_no_more_looks_at_the_disk(tmp_path, monkeypatch, names):
    global _looked
    for name in names:
        (save_picture if name.endswith(".jpg") else lambda path: save_text(path, "{}"))(tmp_path / name)
    sys.addaudithook(_see)
    stat, counts = os.stat, []
    every = importers()
    recognize(tmp_path)  # what is loaded for the first time looks around
    for asked in ([each for each in every if each.name not in TOOLS], every):
        stats = []
        with monkeypatch.context() as patched:
            patched.setattr("ziggurat.datasets.format_registry.importers", lambda asked=asked: asked)
            patched.setattr(os, "stat", lambda *all_, stats=stats, **named: stats.append(1) or stat(*all_, **named))
            _looked = []
            recognize(tmp_path)
        counts.append((len([each for each in _looked if each.startswith(str(tmp_path))]), len(stats)))
        _looked = None
    assert counts[1] <= counts[0]
    assert counts[1][0] <= counts[0][0]
