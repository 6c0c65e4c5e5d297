"""Before a training, masks lie over their images as the network gets both, and mixed images have both classes."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.errors import DataError
from ziggurat.worker.commands.previews import augmented, loading


@pytest.fixture(scope="module")
def roads(tmp_path_factory):
    """A dataset of 8 images, each white where its mask has class 1, else black."""
    source = tmp_path_factory.mktemp("masks") / "roads"
    for name in ("images", "masks"):
        (source / name).mkdir(parents=True)
    for number in range(8):
        mask = np.zeros((24, 24), np.uint8)
        mask[2 + number : 12 + number, 3:9] = 1
        cv2.imwrite(str(source / "masks" / f"{number}.png"), mask)
        cv2.imwrite(str(source / "images" / f"{number}.png"), np.repeat(mask[:, :, None] * 255, 3, axis=2))
    folder = source.parent / "stored"
    create_dataset(CreationRequest(source=str(source), name="roads", rule=SplitRule(val_share=0.25), workers=0), folder)
    return folder


def request_of(roads, split, **fields):
    spec = {"kind": "train", "version": 1, "network": "unet_small", "data": str(roads), "batch_size": 2, **fields}
    return {"spec": spec, "row": None, "split": split, "count": 3}


def array_of(png):
    return cv2.imdecode(np.frombuffer(base64.b64decode(png), np.uint8), cv2.IMREAD_UNCHANGED)


@pytest.mark.parametrize(
    ("split", "fields"),
    [
        ("train", {"augmentation": {"flip": "fliplrud", "quad_rotation": "rotall"}}),
        ("train", {"preprocessing": {"crop": 16}}),
        ("val", {"preprocessing": {"crop": 16}}),
    ],
)
def test_a_mask_moves_with_its_image(roads, split, fields):
    found = augmented(request_of(roads, split, **fields))

    masks = []
    for each in found["pictures"]:
        assert len(each["mask_png"]) == len(each["augmented_png"]) >= 1
        for image, mask in zip(each["augmented_png"], each["mask_png"], strict=True):
            picture, colors = array_of(image), array_of(mask)
            assert picture.shape[:2] == colors.shape[:2]
            is_road = colors[:, :, :3].any(axis=2)
            np.testing.assert_array_equal(is_road, picture[:, :, 0] == 255)
            assert (colors[:, :, 3] == 255).all(), "each pixel has a class"
            masks.append(is_road.tobytes())
    assert len(set(masks)) > 1


def test_images_without_masks_have_none(tmp_path):
    spec = {"kind": "train", "version": 1, "network": "lenet", "data": "digits"}
    for split in ("train", "val"):
        found = augmented({"spec": spec, "row": None, "split": split, "count": 2})
        assert [each["mask_png"] for each in found["pictures"]] == [[], []]


@pytest.mark.parametrize("mixing", [{"mixup": 1.0}, {"cutmix": 1.0}, {"mixup": 0.4, "cutmix": 1.0}])
def test_mixed_images_come_with_both_classes(mixing):
    spec = {"kind": "train", "version": 1, "network": "lenet", "data": "digits", "batch_size": 16}
    request = {"spec": {**spec, "augmentation": mixing}, "row": None, "split": "train", "count": 4}
    found = augmented(request)
    assert found["varied"]
    two = 0
    for each in found["pictures"]:
        assert len(each["mixed"]) == len(each["augmented_png"]) == 4
        for shares in each["mixed"]:
            assert sum(part["share"] for part in shares) == pytest.approx(1)
            assert [part["label_name"] for part in shares] == [str(part["label"]) for part in shares]
            assert shares[0]["share"] >= 0.5
            assert each["label"] in [part["label"] for part in shares]
            two += len(shares) == 2
    assert two > 8
    assert augmented(request) == found
    assert [each["mixed"] for each in augmented({**request, "split": "val"})["pictures"]] == [[]] * 4
    plain = augmented({**request, "spec": spec})
    assert (plain["varied"], plain["pictures"][0]["mixed"]) == (False, [])


def test_masks_are_not_mixed(roads):
    with pytest.raises(DataError, match="image segmentation does not learn one class for each image"):
        augmented(request_of(roads, "train", augmentation={"mixup": 0.2}))


def test_the_rows_of_a_table_are_measured(tmp_path):
    rows = [f"{row * 7 % 20},{'ab'[row % 2]},{row * 2}" for row in range(40)]
    (tmp_path / "table.csv").write_text("\n".join(["size,kind,result", *rows]))
    rule = SplitRule(method="share", val_share=0.25, test_share=0)
    create_dataset(
        CreationRequest(source=str(tmp_path / "table.csv"), name="table", rule=rule, workers=0), tmp_path / "stored"
    )
    spec = {"kind": "train", "version": 1, "network": "table_mlp", "data": str(tmp_path / "stored"), "batch_size": 4}
    found = loading({"spec": spec})

    assert found["input_shape"] == [2]
    assert found["classes"] == 0
    assert found["records_per_s"] > 0


def _decoded(png):
    return cv2.imdecode(np.frombuffer(base64.b64decode(png), np.uint8), cv2.IMREAD_UNCHANGED)


@pytest.fixture(scope="module")
def shades(tmp_path_factory):
    """A dataset of two classes: images of 0 to 5 times 10, dark and bright."""
    source = tmp_path_factory.mktemp("shades") / "files"
    for name, base in (("dark", 0), ("bright", 150)):
        (source / name).mkdir(parents=True)
        for number in range(6):
            assert cv2.imwrite(str(source / name / f"{number}.png"), np.full((28, 28), base + 10 * number, np.uint8))
    folder = source.parent / "stored"
    rule = SplitRule(val_share=0.34)
    create_dataset(CreationRequest(source=str(source), name="shades", rule=rule, workers=0), folder)
    return folder


def test_pairs_of_classes_are_drawn_anew_in_each_epoch(shades):
    spec = {"kind": "train", "version": 1, "network": "siamese16", "data": str(shades), "batch_size": 2, "seed": 1}
    found = augmented({"spec": spec, "row": None, "split": "train", "count": 8})
    assert (found["second"], found["varied"]) == ("second", True)
    for each in found["pictures"]:
        firsts = {_decoded(png).tobytes() for png in each["augmented_png"]}
        assert len(firsts) == 1, "the first image of a pair is the sample itself"
        assert len(each["second_png"]) == len(each["augmented_png"])
    assert any(len(set(each["second_png"])) > 1 for each in found["pictures"])


def test_pairs_of_a_validation_split_are_shown_once(shades):
    spec = {"kind": "train", "version": 1, "network": "siamese16", "data": str(shades), "batch_size": 2}
    found = augmented({"spec": spec, "row": 0, "split": "val", "count": 4})
    (shown,) = found["pictures"]
    assert (len(shown["augmented_png"]), len(shown["second_png"])) == (1, 1)
    assert _decoded(shown["original_png"]).shape[:2] == _decoded(shown["second_png"][0]).shape[:2]


def test_an_image_as_its_own_target_has_no_second(shades):
    spec = {"kind": "train", "version": 1, "network": "autoencoder", "data": str(shades), "batch_size": 2}
    found = augmented({"spec": spec, "row": 0, "split": "train", "count": 2})
    assert (found["second"], found["pictures"][0]["second_png"]) == ("", [])
    varied = augmented({"spec": {**spec, "augmentation": {"noise": 0.2}}, "row": 0, "split": "train", "count": 2})
    assert (varied["second"], len(varied["pictures"][0]["second_png"])) == ("target", 2)
