"""Synthetic photographs that need no download: noise as in nature with shapes, identical on every run.

The amplitude of noise in natural images falls with its frequency: Field, "Relations between the statistics of natural
images and the response properties of cortical cells" (JOSA A, 1987). The generator adds octaves of noise, each weaker
than the last; the rate of decay determines the bits per pixel.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import cv2
import numpy as np

from ziggurat.dataflow.fast.tiles import read_jpeg_header

__all__ = ["DETAILS", "describe", "equal_photographs", "photograph", "photographs"]

DETAILS = {"smooth": (0.30, 0.42), "usual": (0.48, 0.68), "rich": (0.65, 0.85)}
"""How strong an octave of noise is, as a share of the last one: about 0.6, 1.2 and 2.4 bits a pixel."""

_COUNT = 512
_CLASSES = 8
_EQUAL_COUNT = 5120
_EQUAL_SIDE_PX = 500
_VERSION = 1


def photographs(detail: str) -> Path:
    """Return a folder with 512 JPEG files in 8 class folders, 400 to 888 pixels a side; it is made once and kept."""
    folder = Path(tempfile.gettempdir(), f"ziggurat-bench-{_VERSION}-{detail}")
    done = folder / "done"
    if not done.exists():
        for number in range(_COUNT):
            place = folder / "files" / f"class{number % _CLASSES}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:04d}.jpg").write_bytes(photograph(number, detail))
        done.touch()
    return folder / "files"


def equal_photographs(detail: str) -> tuple[Path, int]:
    """Return a folder with 5,120 JPEG files of 500 x 500 px in 8 class folders, and their number; made once and kept.

    They are parts of the 512 photographs, each of which gives ten.
    """
    source = sorted(photographs(detail).rglob("*.jpg"))
    folder = Path(tempfile.gettempdir(), f"ziggurat-bench-{_VERSION}-{detail}-{_EQUAL_SIDE_PX}")
    done = folder / "done"
    if not done.exists():
        for number in range(_EQUAL_COUNT):
            place = folder / "files" / f"class{number % _CLASSES}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:04d}.jpg").write_bytes(_part(source[number % len(source)], number))
        done.touch()
    return folder / "files", _EQUAL_COUNT


def _part(path: Path, number: int) -> bytes:
    """Return a part of a photograph, mirrored at its borders where it is too small, with its quality."""
    rng = np.random.default_rng(number)
    picture = cv2.imread(str(path))
    assert picture is not None
    height, width = (max(0, _EQUAL_SIDE_PX - side) for side in picture.shape[:2])
    picture = cv2.copyMakeBorder(picture, 0, height, 0, width, cv2.BORDER_REFLECT_101)
    top, left = (int(rng.integers(side - _EQUAL_SIDE_PX + 1)) for side in picture.shape[:2])
    part = np.ascontiguousarray(picture[top : top + _EQUAL_SIDE_PX, left : left + _EQUAL_SIDE_PX])
    done, data = cv2.imencode(".jpg", part, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(85, 96))])
    assert done
    return data.tobytes()


def photograph(number: int, detail: str = "usual") -> bytes:
    """Return one JPEG file (4:2:0, quality 85 to 95); the same for the same number."""
    rng = np.random.default_rng(number)
    height, width = rng.integers(400, 889, 2).tolist()
    falloff = rng.uniform(*DETAILS[detail])
    light = _noise(rng, height, width, 1, falloff) * 55
    colour = _noise(rng, height, width, 3, falloff * 0.8) * 14
    picture = np.clip(light + colour + rng.uniform(80, 170, 3), 0, 255).astype(np.uint8)
    for _ in range(rng.integers(3, 9)):
        picture = _with_shape(rng, picture)
    done, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, int(rng.integers(85, 96))])
    assert done
    return data.tobytes()


def describe(folder: Path) -> str:
    """Return a sentence about the files, reading them all: they are in the page cache then."""
    files = sorted(folder.rglob("*.jpg"))
    sizes = [file.read_bytes() for file in files]
    headers = [header for header in map(read_jpeg_header, sizes) if header is not None]
    pixels = sum(header.width * header.height for header in headers)
    total = sum(map(len, sizes))
    return (
        f"{len(files)} JPEG files of 400 to 888 px, {total / len(files) / 1000:.0f} KB and "
        f"{8 * total / pixels:.2f} bits a pixel on average, all in the page cache"
    )


def _noise(rng: np.random.Generator, height: int, width: int, channels: int, falloff: float) -> np.ndarray:
    """Return octaves of noise, (height, width, channels) float32, of about unit variance."""
    total = np.zeros((height, width, channels), np.float32)
    strength, cells, power = 1.0, 4, 0.0
    while cells < 2 * max(height, width):
        coarse = rng.standard_normal((min(cells, height), min(cells, width), channels), np.float32)
        octave = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).reshape(height, width, channels)
        total += strength * octave
        power += strength**2
        strength *= falloff
        cells *= 2
    return total / np.sqrt(power)


def _with_shape(rng: np.random.Generator, picture: np.ndarray) -> np.ndarray:
    height, width = picture.shape[:2]
    layer = picture.copy()
    colour = tuple(int(value) for value in rng.integers(0, 256, 3))
    centre = (int(rng.integers(width)), int(rng.integers(height)))
    axes = (int(rng.integers(10, width // 3)), int(rng.integers(10, height // 3)))
    if rng.random() < 0.5:
        cv2.ellipse(layer, centre, axes, float(rng.uniform(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
    else:
        cv2.rectangle(layer, centre, (centre[0] + axes[0], centre[1] + axes[1]), colour, -1)
    share = float(rng.uniform(0.3, 0.9))
    return cv2.addWeighted(layer, share, picture, 1 - share, 0)
