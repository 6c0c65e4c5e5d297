"""Input of the dataset benchmarks: many photographs in class folders, and a dataset created from them."""

from __future__ import annotations

import shutil
from pathlib import Path

from bench.parts.photographs import photographs
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.records.manifest import ImageForm

__all__ = ["COUNT", "SIDE_PX", "WORKERS", "creation_request", "dataset", "many_photographs"]

COUNT = 2048
SIDE_PX = 256
WORKERS = 2
_QUALITY = 90
_VERSION = 2


def many_photographs(detail: str) -> Path:
    """Return a folder with 2048 JPEG files in 8 class folders; it is made once and kept.

    Each photograph is there four times, with another comment in its header, so that no two files are equal.
    """
    source = photographs(detail)
    folder = source.parent / f"many-{_VERSION}"
    done = folder.parent / f"{folder.name}.done"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        files = sorted(source.rglob("*.jpg"))
        for number in range(COUNT):
            file = files[number % len(files)]
            place = folder / file.parent.name
            place.mkdir(parents=True, exist_ok=True)
            comment = b"\xff\xfe\x00\x0a%08d" % number
            content = file.read_bytes()
            (place / f"{number:05d}.jpg").write_bytes(content[:2] + comment + content[2:])
        done.touch()
    return folder


def dataset(detail: str) -> Path:
    """Return a dataset of these files, JPEG of 256 px in LMDB, a quarter for validation; it is made once and kept."""
    source = many_photographs(detail)
    folder = source.parent / f"records-{_VERSION}" / "set"
    folder.parent.mkdir(exist_ok=True)
    create_dataset(creation_request(source, "jpeg"), folder)
    for file in folder.iterdir():
        file.read_bytes()  # into the page cache
    return folder


def creation_request(source: Path, encoding: str) -> CreationRequest:
    """Return what is asked for: images in LMDB, a quarter for validation, as a person gets it who says nothing."""
    return CreationRequest(
        name="photographs", source=str(source), format="class_folders", image=_form(encoding), workers=WORKERS
    )


def _form(encoding: str) -> ImageForm:
    """Return the form of the images with an encoding: 256 x 256 pixels, or the files as they are."""
    if encoding == "original":
        return ImageForm(encoding=encoding)
    return ImageForm(encoding=encoding, resize_mode="squash", height_px=SIDE_PX, width_px=SIDE_PX, quality=_QUALITY)
