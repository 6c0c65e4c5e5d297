"""Import, export and import again give the same, up to the tables of the docs; the report says all else."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported_datasets import ReadBack, dataset_with, expected, read_back
from PIL import Image, ImageOps
from what_formats_hold import DATASETS

from ziggurat.datasets.format_registry import EXPORT_FORMATS, export_dataset, guess_format, importer
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "datasets" / "what-formats-hold.md"
YES, NO = "yes", "no"
NOT_HELD = (NO, "as 255")
"""Cells of what is lost, which the report of the export says."""

LINES, CLASSES = "line breaks in keys", "line breaks in classes"
AS_PIXELS = {
    "image files as they are": "pixels",
    "gray among color": "as color",
    "images of several sizes": NO,
    "16 bits": NO,
}
"""Cells of formats that hold one array of pixels."""

_TOOL: Mapping[str, str] = {
    **dict.fromkeys((LINES, CLASSES, "several outlines", "crowds", "difficult objects"), NO),
    **dict.fromkeys(("regions without a class", "further fields", "scores"), NO),
}
"""Cells of most labeling tools."""

PLACES: Mapping[str, str] = {"labelme": "{split}/", "supervisely": "{split}/img/"}
"""Formats that put something before the names of images."""

EXCEPTIONS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("image-classification", "text_list"): {CLASSES: NO},
    ("image-classification", "idx"): {**AS_PIXELS, CLASSES: NO},
    ("image-classification", "tfrecord"): {CLASSES: NO},
    ("image-classification", "webdataset"): {CLASSES: NO},
    ("image-classification", "digits_lmdb"): {
        "images of several sizes": "with `force_same_shape=false`",
        "gray among color": "with `force_same_shape=false`",
        CLASSES: NO,
    },
    ("image-classification", "digits_hdf5"): {**AS_PIXELS, CLASSES: NO},
    ("detection", "coco"): {"regions without a class": NO},
    ("detection", "voc"): {
        **dict.fromkeys(("outlines", "outlines and boxes together", "several outlines", "masks", "crowds"), NO),
        **dict.fromkeys(("regions without a class", "scores", CLASSES), NO),
    },
    ("detection", "yolo"): {
        "boxes": "to a millionth of a pixel",
        **dict.fromkeys(("outlines and boxes together", "several outlines", "masks", "crowds"), NO),
        **dict.fromkeys(("difficult objects", "regions without a class", "further fields", "scores"), NO),
    },
    ("detection", "kitti"): {
        **dict.fromkeys(("outlines", "outlines and boxes together", "several outlines", "masks", "crowds"), NO),
        **dict.fromkeys(("difficult objects", "further fields", CLASSES), NO),
    },
    ("detection", "labelme"): {**_TOOL, "classes without objects": NO},
    ("detection", "cvat"): _TOOL,
    ("detection", "label_studio"): {
        **_TOOL,
        "boxes": "to a millionth of a pixel",
        **dict.fromkeys(("masks", "classes without objects"), NO),
    },
    ("detection", "boxes_csv"): {
        **dict.fromkeys(("outlines", "outlines and boxes together", "several outlines", "masks"), NO),
        **dict.fromkeys(("regions without a class", "further fields", "scores", LINES, CLASSES), NO),
        "classes without objects": NO,
    },
    ("detection", "via"): {**_TOOL, **dict.fromkeys(("masks", "classes without objects"), NO)},
    ("detection", "createml"): {
        **_TOOL,
        "boxes": "to a millionth of a pixel",
        **dict.fromkeys(("outlines", "outlines and boxes together", "masks", "classes without objects"), NO),
    },
    ("detection", "supervisely"): _TOOL,
    ("detection", "tfrecord"): {CLASSES: NO},
    ("detection", "webdataset"): {CLASSES: NO},
    ("segmentation", "voc"): {"another number to ignore": "as 255", "numbers above 255": NO, CLASSES: NO},
    ("segmentation", "masks"): {LINES: NO, CLASSES: NO},
    ("segmentation", "tfrecord"): {CLASSES: NO},
    ("segmentation", "webdataset"): {CLASSES: NO},
    ("image-to-image", "image_pairs"): {LINES: NO},
    ("text-classification", "text"): {"zero signs": "with `file_format=jsonl`"},
    ("table", "table"): {"zero signs": "with `file_format=parquet`"},
}
"""(Kind, format) → the cells of its column that are not ``yes``."""

TITLES = {
    "image-classification": "Images with classes",
    "image-regression": "Images with numbers",
    "detection": "Objects",
    "segmentation": "Masks",
    "image-to-image": "Images to images",
    "image-pairs": "Pairs of images",
    "text-classification": "Texts",
    "table": "Tables",
}
PAIRS = [(kind, name) for name, kinds in EXPORT_FORMATS.items() for kind in kinds]


def cell(kind: str, name: str, feature: str) -> str:
    """Return what the table says of a format and a dataset."""
    return EXCEPTIONS.get((kind, name), {}).get(feature, YES)


def pixels(part: Any) -> np.ndarray:
    """Return an image as it is shown, (H, W, 3)."""
    found = part if isinstance(part, np.ndarray) else np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(part))))
    found = found if found.ndim == 3 else found[:, :, None]
    return found.repeat(3, 2) if found.shape[2] == 1 else found


def are_alike(first: bytes, second: Any, *, by_pixels: bool) -> bool:
    """Return whether two parts are the same: files byte by byte, or pixels, or rows of a table."""
    if isinstance(second, bytes) and first == second:
        return True
    if first[:1] == b"[":
        return json.loads(first) == json.loads(second)
    return by_pixels and np.array_equal(pixels(first), pixels(second))


def rounded(label: Any) -> Any:
    """Return a label with its numbers rounded to a millionth."""
    if isinstance(label, dict):
        return {name: rounded(value) for name, value in label.items()}
    if isinstance(label, list):
        return [rounded(value) for value in label]
    return round(label, 6) if isinstance(label, float) else label


def is_same_label(want: Any, found: Any) -> bool:
    """Return whether two labels are the same; formats may add further details to objects."""
    if not (isinstance(want, list) and isinstance(found, list) and all(isinstance(each, dict) for each in want)):
        return want == found
    plain, details = (
        [[each.get("details", {}) if only else {**each, "details": {}} for each in label] for label in (want, found)]
        for only in (False, True)
    )
    return plain[0] == plain[1] and all(one.items() <= other.items() for one, other in zip(*details, strict=True))


def is_held(kind: str, name: str, content: tuple[Schema, Any], back: ReadBack) -> bool:
    """Return whether everything of a dataset came back."""
    schema, splits = content
    fields = ("class_names", "colours", "ignore_class", "columns", "target")
    wanted = [field for field in fields if getattr(schema, field) not in ((), "", None)]
    if any(getattr(back.schema, field) != getattr(schema, field) for field in ("kind", *wanted)):
        return False
    samples = expected(splits)
    if name in PLACES:
        samples = {_placed(name, split, key): (split, *rest) for key, (split, *rest) in samples.items()}
    if samples.keys() != back.samples.keys():
        return False
    change = rounded if cell(kind, name, "boxes") != YES else list
    by_pixels = kind == "segmentation" or cell(kind, name, "image files as they are") != YES
    for key, (split, parts, label) in samples.items():
        found_split, found_parts, found = back.samples[key]
        label, found = (change(each) if isinstance(each, list) else each for each in (label, found))
        if (split, len(parts)) != (found_split, len(found_parts)) or not is_same_label(label, found):
            return False
        if not all(are_alike(*pair, by_pixels=by_pixels) for pair in zip(parts, found_parts, strict=True)):
            return False
    return True


def _placed(name: str, split: str, key: str) -> str:
    """Return the key of a sample after an import; Supervisely has no folders below those of the splits."""
    return PLACES[name].format(split=split) + (key.replace("/", "_") if name == "supervisely" else key)


def exported(folder: Path, name: str, content: tuple[Schema, Any], **options: Any) -> ExportReport:
    """Make a dataset and export it to ``out`` in a folder."""
    schema, splits = content
    with dataset_with(folder / "set", splits, schema, form=ImageForm(encoding="original")) as dataset:
        return export_dataset(dataset, name, folder / "out", options)


def texts_of(report: ExportReport) -> set[str]:
    """Return what a report says, without its counts."""
    said = [*report.notes, *(f"{problem.kind} {problem.reason}" for problem in report.problems)]
    return {re.sub(r"\d+", "N", text) for text in said}


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_exports_hold_what_the_tables_say(tmp_path, kind, name):
    usual: set[str] | None = None
    for number, (feature, content) in enumerate(DATASETS[kind].items()):
        folder, says = tmp_path / str(number), cell(kind, name, feature)
        read = importer(name)
        option, _, value = says.removeprefix("with `").rstrip("`").partition("=")
        is_for_import = option in {each.name for each in read.options}
        with_option = {option: {"false": False}.get(value, value)} if value else {}
        report = exported(folder, name, content, **({} if is_for_import else with_option))
        usual = texts_of(report) if usual is None else usual
        if feature == "Unicode names":
            assert guess_format(folder / "out").format == name, "an export is recognized"
        options = {"task": "segmentation"} if (kind, name) == ("segmentation", "voc") else {}
        if says in NOT_HELD:
            said = texts_of(report) if feature == LINES else texts_of(report) - usual
            assert said, f"{feature}: the report says what was lost"
            if not any(report.counts.values()):
                continue
        back = read_back(read, folder / "out", **options, **(with_option if is_for_import else {}))
        assert is_held(kind, name, content, back) == (says not in NOT_HELD), feature
        assert not any(problem.left_out or problem.objects for problem in back.problems), feature


def tables() -> str:
    """Return the tables of the page."""
    text = ""
    for kind, features in DATASETS.items():
        names = [name for name, kinds in EXPORT_FORMATS.items() if kind in kinds]
        text += (
            f"## {TITLES[kind]}\n\n| | {' | '.join(f'`{name}`' for name in names)} |\n{'|---' * (len(names) + 1)}|\n"
        )
        for feature in features:
            cells = (cell(kind, name, feature) for name in names)
            text += f"| {feature} | {' | '.join(cells)} |\n"
        text += "\n"
    return text


def test_the_page_has_these_tables():
    assert PAGE.read_text("utf-8").endswith(tables().rstrip() + "\n"), "put what `tables` returns into the page"
