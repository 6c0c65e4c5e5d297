"""What images of a dataset look like: size, channels, encoding; bad files are listed (DIGITS, 39 to 45)."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.unit.datasets.small_sources import class_folders, fitted, photo, request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.records.manifest import ImageForm


@pytest.mark.parametrize(("mode", "channels"), list(itertools.product(("squash", "crop", "fill", "half_crop"), (1, 3))))
def test_39_every_resize_mode_and_channel_gives_the_asked_shape(tmp_path: Path, mode: str, channels: int) -> None:
    source = class_folders(tmp_path / "source", 4, ("a", "b"))
    Image.fromarray(photo(9, 50, 10)).save(source / "a" / "tall.png")
    Image.fromarray(photo(8, 10, 50)).save(source / "b" / "wide.jpg")
    create_dataset(request(source, image=fitted(13, 17, mode, channels=channels)), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        shapes = {made.picture(sample.split, sample.row).shape for sample in made.samples()}
    assert shapes == {(13, 17, channels)}
    assert made.manifest.image == ImageForm(
        encoding="png", resize_mode=mode, height_px=13, width_px=17, channels=channels
    )


def test_fill_adds_a_black_frame_and_no_noise(tmp_path: Path) -> None:
    """DIGITS fills with random noise; here the same image always gives the same bytes."""
    source = tmp_path / "source"
    for name in ("a", "b"):
        (source / name).mkdir(parents=True)
        for number in range(2):
            Image.fromarray(np.full((10, 20, 3), 200, np.uint8)).save(source / name / f"wide{number}.png")
    create_dataset(request(source, format="class_folders", image=fitted(20, 20, "fill")), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        picture = made.picture("train", 0)
    assert picture[:5].max() == 0
    assert picture[15:].max() == 0
    assert picture[5:15].min() == 200


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_40_every_usual_kind_of_picture_becomes_grey_or_rgb(tmp_path: Path, mode: str) -> None:
    source = class_folders(tmp_path / "source", 4, ("a", "b"))
    file = {"CMYK": "odd.jpg", "YCbCr": "odd.jpg"}.get(mode, "odd.png")
    Image.fromarray(photo(3)).convert(mode).save(source / "a" / file)
    create_dataset(request(source, rule=SplitRule(val_share=0)), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        entry = made.catalogue.find(f"a/{file}")
        assert entry is not None
        assert entry.row is not None
        picture = made.picture("train", entry.row)
    assert picture.dtype == np.uint8
    assert picture.shape == (20, 24, 3)
    assert made.manifest.problems.get("unreadable") is None


def test_40_damaged_and_missing_pictures_are_listed_with_reason(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "source", 20)
    whole = (source / "cat" / "00000.png").read_bytes()
    (source / "cat" / "00000.png").write_bytes(whole[: len(whole) // 2])
    (source / "dog" / "00001.png").write_bytes(b"")
    (source / "owl" / "00002.png").write_bytes(b"this is no image")
    (source / "owl" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    manifest = create_dataset(request(source), tmp_path / "set")
    assert manifest.problems["unreadable"] >= 3
    with Dataset(tmp_path / "set") as made:
        found = {problem.key: problem for problem in made.catalogue.problems()}
        assert len(made) == 17
    assert "empty" in found["dog/00001.png"].reason
    assert all(found[key].left_out for key in ("cat/00000.png", "dog/00001.png", "owl/00002.png"))
    assert "owl/gone.png" in found


@pytest.mark.parametrize("store", ["lmdb", "tfrecord"])
def test_41_a_store_has_every_good_picture_in_order_of_files(tmp_path: Path, store: str) -> None:
    source = class_folders(tmp_path / "source", 30)
    (source / "dog" / "00001.png").write_bytes(b"")
    create_dataset(request(source, store=store, rule=SplitRule(val_share=0)), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        keys = [sample.key for sample in made.samples("train")]
        labels = [sample.label for sample in made.samples("train")]
    expected = sorted(str(path.relative_to(source)) for path in source.rglob("*.png") if path.stat().st_size)
    assert keys == expected
    assert labels == [("cat", "dog", "owl").index(key.partition("/")[0]) for key in expected]


@pytest.mark.parametrize("channels", [1, 3])
def test_42_the_mean_is_that_of_the_training_pictures(tmp_path: Path, channels: int) -> None:
    source = class_folders(tmp_path / "source", 40)
    create_dataset(request(source, image=fitted(8, 9, channels=channels)), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        pictures = np.stack([made.picture("train", row) for row in range(made.size("train"))])
        mean = made.mean()
        assert mean is not None
        np.testing.assert_allclose(mean, pictures.mean(axis=0), rtol=1e-6)
        np.testing.assert_allclose(made.manifest.pixel_mean, pictures.mean(axis=(0, 1, 2)), rtol=1e-9)


def test_there_is_no_mean_picture_of_pictures_of_several_sizes(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "source", 10)
    Image.fromarray(photo(1, 7, 9)).save(source / "cat" / "small.png")
    manifest = create_dataset(request(source, rule=SplitRule(val_share=0)), tmp_path / "set")
    assert manifest.mean == ""
    assert len(manifest.pixel_mean) == 3
    assert manifest.image is not None
    assert manifest.image.height_px is None


@pytest.mark.parametrize("encoding", ["original", "png", "jpeg", "raw", "reference"])
@pytest.mark.parametrize("store", ["lmdb", "tfrecord"])
def test_45_every_encoding_can_be_made_and_read(tmp_path: Path, encoding: str, store: str) -> None:
    source = class_folders(tmp_path / "source", 12)
    manifest = create_dataset(request(source, image=ImageForm(encoding=encoding), store=store), tmp_path / "set")
    assert manifest.image is not None
    assert manifest.image.encoding == encoding  # 44: the manifest says what was asked
    with Dataset(tmp_path / "set") as made:
        for sample in made.samples():
            picture = made.picture(sample.split, sample.row)
            with Image.open(source / sample.key) as expected:
                difference = np.abs(picture.astype(int) - np.asarray(expected).astype(int))
            assert difference.mean() < (12 if encoding == "jpeg" else 1e-9)


def test_pictures_that_stay_where_they_are_must_not_change(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "source", 12)
    create_dataset(request(source, image=ImageForm(encoding="reference")), tmp_path / "set")
    with Dataset(tmp_path / "set") as made:
        key = made.sample("train", 0).key
        (source / key).write_bytes((source / key).read_bytes() + b"x")
        with pytest.raises(Exception, match="when the dataset was made"):
            made.sample("train", 0)
        (source / key).unlink()
        with pytest.raises(Exception, match="No such file"):
            made.sample("train", 0)


def test_grey_pictures_among_coloured_ones_are_listed(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "source", 12)
    Image.fromarray(photo(99)).convert("L").save(source / "cat" / "grey.png")
    manifest = create_dataset(request(source), tmp_path / "set")
    assert manifest.problems == {"other-channels": 1}
    assert manifest.image is not None
    assert manifest.image.channels is None


def test_equal_files_are_listed_with_the_splits_they_are_in(tmp_path: Path) -> None:
    source = class_folders(tmp_path / "source", 12)
    (source / "dog" / "copy.png").write_bytes((source / "cat" / "00000.png").read_bytes())
    manifest = create_dataset(request(source, rule=SplitRule(val_share=0)), tmp_path / "set")
    assert manifest.problems["duplicate"] == 1
    with Dataset(tmp_path / "set") as made:
        (problem,) = made.catalogue.problems("duplicate")
    assert problem.key == "dog/copy.png"
    assert problem.reason == "It has the same content as `cat/00000.png` (both in train)."


def test_what_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="A resize mode and a size come together"):
        request(tmp_path, image=ImageForm(encoding="png", resize_mode="squash"))
    with pytest.raises(ConfigurationError, match="encoding reference stay as they are"):
        request(tmp_path, image=fitted(8, 8, encoding="reference"))
    with pytest.raises(UnknownNameError, match="lmbd"):
        request(tmp_path, store="lmbd")
    with pytest.raises(ConfigurationError, match="quality of JPEG"):
        request(tmp_path, image=ImageForm(encoding="jpeg", quality=0))
