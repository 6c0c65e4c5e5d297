"""The script that an export has reads, fits and finishes images as the training did, with OpenCV or with Pillow."""

import json
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from ziggurat.dataflow import standalone_prediction as standalone
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.preprocessing import Preprocessing

rng = np.random.default_rng(2)
SMOOTH = cv2.GaussianBlur(rng.integers(0, 256, (45, 64, 3), dtype=np.uint8), (0, 0), 3)

# Reads and scales every image of a folder without one of the two packages; prints the pixels.
WITHOUT = """
import json, sys
sys.modules[{missing!r}] = None
import importlib.util
from pathlib import Path
spec = importlib.util.spec_from_file_location("predict", {script!r})
predict = importlib.util.module_from_spec(spec)
spec.loader.exec_module(predict)
found = {{}}
for path in sorted(Path({folder!r}).iterdir()):
    for channels in (1, 3):
        picture = predict.read_picture(path.read_bytes(), channels)
        found[f"{{path.name}} {{channels}}"] = [picture.tolist(), predict.fit(picture, (20, 20), "fill").tolist()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of the kinds that decoders treat differently."""
    folder = tmp_path_factory.mktemp("files")
    rgb = Image.fromarray(SMOOTH)
    rgb.save(folder / "rgb.png")
    rgb.save(folder / "rgb.jpg", quality=90)
    rgb.convert("L").save(folder / "grey.png")
    rgb.convert("L").save(folder / "grey.jpg", quality=90)
    turned = Image.Exif()
    turned[0x0112] = 6
    rgb.save(folder / "turned.jpg", exif=turned)
    rgb.quantize(16).save(folder / "palette.png")
    alpha = np.dstack([SMOOTH, rng.integers(0, 256, (45, 64), dtype=np.uint8)])
    Image.fromarray(alpha).save(folder / "alpha.png")
    cv2.imwrite(str(folder / "deep.png"), rng.integers(0, 65536, (45, 64), dtype=np.uint16))
    return folder


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures_are_read_as_in_training(files: Path, channels: int) -> None:
    for path in sorted(files.iterdir()):
        data = path.read_bytes()
        expected = decode_image(data, channels=channels, key=path.name)
        np.testing.assert_array_equal(standalone.read_picture(data, channels), expected, err_msg=path.name)


@pytest.mark.parametrize("missing", ["cv2", "PIL"])
def test_one_of_the_two_packages_is_enough(files: Path, missing: str) -> None:
    code = WITHOUT.format(missing=missing, script=standalone.__file__, folder=str(files))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 2 * len(list(files.iterdir()))
    for name, (picture, fitted) in found.items():
        path, channels = name.split()
        expected = decode_image((files / path).read_bytes(), channels=int(channels), key=path)
        np.testing.assert_array_equal(picture, expected, err_msg=name)
        scaled = Preprocessing(size=(20, 20), channels=int(channels), resize_mode="fill").fit(expected)
        np.testing.assert_allclose(fitted, scaled, atol=0 if missing == "PIL" else 1, err_msg=name)


@pytest.mark.parametrize("mode", ["squash", "crop", "fill", "half_crop"])
@pytest.mark.parametrize("shape", [(45, 64), (64, 45), (20, 20), (9, 31), (28, 28), (1, 200)])
def test_every_resize_mode_is_that_of_the_training(mode: str, shape: tuple[int, int]) -> None:
    for channels in (1, 3):
        picture = rng.integers(0, 256, (*shape, channels), dtype=np.uint8)
        for size in ((28, 28), (24, 40), (7, 5)):
            expected = Preprocessing(size=size, channels=channels, resize_mode=mode).fit(picture)  # pyright: ignore
            np.testing.assert_array_equal(standalone.fit(picture, size, mode), expected)


@pytest.mark.parametrize("mean", ["none", "pixel", "image"])
@pytest.mark.parametrize("crop", [None, 9])
@pytest.mark.parametrize("whitening", [False, True])
def test_pictures_are_finished_as_in_training(mean: str, crop: int | None, whitening: bool, tmp_path: Path) -> None:
    shapes = {"none": None, "pixel": (3,), "image": (12, 15, 3)}
    shape = shapes[mean]
    values = None if shape is None else rng.uniform(0, 255, shape).astype(np.float32)
    options = {"mean": mean, "crop": crop, "whitening": whitening, "mean_values": values}
    preprocessing = Preprocessing(size=(12, 15), channels=3, **options)  # pyright: ignore
    preprocessing.save(tmp_path)
    pictures = rng.integers(0, 256, (4, 12, 15, 3), dtype=np.uint8)
    content = json.loads((tmp_path / "preprocessing.json").read_text())
    np.testing.assert_array_equal(
        standalone.finish(pictures, content, tmp_path), preprocessing.finish(pictures), strict=True
    )
