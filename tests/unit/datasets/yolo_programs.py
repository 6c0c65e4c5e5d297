"""The rules by which YOLOv5 and Ultralytics read a dataset, written anew: what they would train on."""

import glob
import os
from pathlib import Path

import numpy as np
import yaml

SUFFIXES = {"bmp", "jpeg", "jpg", "png", "tif", "tiff", "webp"}
"""Those that both programs read; they pass over all other files without a word."""


def split_folder(description, entry):
    """Return where Ultralytics looks for a split: below `path`, else beside the YAML file."""
    root = Path(yaml.safe_load(description.read_text()).get("path") or description.parent)
    return (root / entry).resolve()


def images_in(folder):
    """Return the images of a split, at any depth; folders and files that begin with a dot are not seen."""
    found = glob.glob(f"{glob.escape(str(folder))}/**/*.*", recursive=True)
    return sorted(path for path in found if path.rpartition(".")[2].lower() in SUFFIXES)


def label_of(image):
    """Return the label file of an image: of its last `/images/` and of its suffix, another word."""
    before, found, after = image.rpartition(f"{os.sep}images{os.sep}")
    path = f"{before}{os.sep}labels{os.sep}{after}" if found else image
    return f"{path.rpartition('.')[0]}.txt"


def rows_of(label, class_count):
    """Return the rows of a label file, (N, 5): class, middle, width and height; outlines by the box around them.

    Raises:
        ValueError: where the programs call the file damaged, and leave the image out.
    """
    lines = [line.split() for line in Path(label).read_text().strip().splitlines() if line]
    if any(len(words) > 6 for words in lines):
        return np.array([outline_row(words) for words in lines], np.float32)
    if any(len(words) != 5 for words in lines):
        raise ValueError("labels have 5 columns")
    rows = np.array(lines, np.float32).reshape(-1, 5)
    if rows.size and (rows.min() < 0 or rows[:, 1:].max() > 1 or rows[:, 0].max() >= class_count):
        raise ValueError("a number is out of range")
    return rows


def outline_row(words):
    points = np.array(words[1:], np.float32).reshape(-1, 2)
    if len(points) < 3:
        raise ValueError("an outline has 3 points")
    (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
    return [float(words[0]), (left + right) / 2, (top + bottom) / 2, right - left, bottom - top]


def trained_on(folder):
    """Return split → name of an image below its folder → rows of its labels, as `data.yaml` names them."""
    description = folder / "data.yaml"
    content = yaml.safe_load(description.read_text())
    found = {}
    for split in ("train", "val", "test"):
        if split in content:
            place = split_folder(description, content[split])
            assert place.is_dir(), f"{split} is not at {place}"
            found[split] = {
                os.path.relpath(image, place): rows_of(label_of(image), content["nc"]) for image in images_in(place)
            }
    return found
