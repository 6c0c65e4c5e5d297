"""The hash of an image stays when it is resized or compressed, and differs from that of every other image."""

import io

import cv2
import numpy as np
import pytest
from PIL import Image
from small_datasets_for_checks import frames, jpeg, picture, shared_files

from ziggurat.dataflow.image_codec import decode_image, read_image
from ziggurat.datasets.hashing import NEAR_DISTANCE, NO_HASH, picture_hash
from ziggurat.errors import UsageError


def distance(one, other):
    return ((one ^ other) & (2**64 - 1)).bit_count()


def test_a_hash_is_a_signed_number_of_64_bits():
    hashes = [picture_hash(picture(seed)) for seed in range(40)]
    assert all(-(2**63) <= each < 2**63 for each in hashes)
    assert len(set(hashes)) == 40
    assert NO_HASH not in hashes


@pytest.mark.parametrize(
    "change",
    [
        lambda image: cv2.resize(image, (320, 240)),
        lambda image: cv2.resize(image, (100, 70), interpolation=cv2.INTER_AREA),
        lambda image: decode_image(jpeg(image, 30)),
        lambda image: cv2.convertScaleAbs(image, alpha=0.8, beta=20),
        lambda image: cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[:, :, None],
    ],
    ids=["larger", "smaller", "jpeg", "paler", "grey"],
)
def test_a_changed_copy_is_near_and_another_picture_is_far(change):
    for seed in range(10):
        image = picture(seed, (192, 256))
        assert distance(picture_hash(image), picture_hash(change(image))) <= NEAR_DISTANCE
        assert (
            distance(picture_hash(picture(seed + 1, (192, 256))), picture_hash(change(image))) > 3 * NEAR_DISTANCE / 2
        )


def test_frames_of_a_video_are_near():
    hashes = [picture_hash(frame) for frame in frames(3, 8)]
    assert max(distance(hashes[0], each) for each in hashes) <= NEAR_DISTANCE


def test_a_picture_that_the_camera_turned_is_hashed_upright():
    image = picture(5, (300, 400))
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    file = io.BytesIO()
    Image.fromarray(np.rot90(image).copy()).save(file, "jpeg", quality=95, exif=exif)
    assert distance(picture_hash(decode_image(file.getvalue())), picture_hash(image)) <= 2


def test_small_pictures_are_near_only_where_they_are_equal():
    digit = np.zeros((28, 28, 1), np.uint8)
    digit[8:20, 12:15] = 255
    other = digit.copy()
    other[8, 12] = 250
    assert picture_hash(digit) == picture_hash(digit.copy())
    assert distance(picture_hash(digit), picture_hash(other)) > NEAR_DISTANCE


def test_pictures_without_structure_are_told_by_their_colour():
    white, black, red = (np.full((80, 90, 3), colour, np.uint8) for colour in (255, 0, (200, 0, 0)))
    hashes = {picture_hash(white), picture_hash(black), picture_hash(red)}
    assert len(hashes) == 3
    assert picture_hash(cv2.resize(white, (300, 300))) == picture_hash(white)
    assert picture_hash(decode_image(jpeg(cv2.resize(red, (300, 300))))) == picture_hash(red)


def test_gentle_slopes_are_not_taken_for_each_other():
    across = np.tile(np.linspace(0, 255, 128, dtype=np.uint8), (96, 1))
    down = np.tile(np.linspace(0, 255, 96, dtype=np.uint8)[:, None], (1, 128))
    assert distance(picture_hash(across), picture_hash(down)) > NEAR_DISTANCE
    assert distance(picture_hash(across), picture_hash(across[:, ::-1])) > NEAR_DISTANCE


def test_what_is_no_picture_is_refused():
    with pytest.raises(UsageError, match=r"An image is \(H, W, C\) uint8 \(received: float64 of shape \(4, 4\)"):
        picture_hash(np.zeros((4, 4)))


def test_different_photographs_are_far():
    files = shared_files("clothing-small/val/*/*.jpg")
    hashes = [picture_hash(read_image(file)) for file in files]
    bits = [distance(one, other) for place, one in enumerate(hashes) for other in hashes[:place]]
    assert len(files) == 146
    assert min(bits) > NEAR_DISTANCE
    assert 30 < np.mean(bits) < 34


def test_the_pictures_that_raccoon_has_twice_are_found():
    files = shared_files("raccoon-voc/images/*.jpg")
    hashes = {file.stem.removeprefix("raccoon-"): picture_hash(read_image(file)) for file in files}
    names = sorted(hashes)
    near = {
        (one, other)
        for place, one in enumerate(names)
        for other in names[place + 1 :]
        if distance(hashes[one], hashes[other]) <= NEAR_DISTANCE
    }
    twice = {("11", "116"), ("120", "83"), ("21", "45"), ("65", "98")}
    assert near == twice | {("50", "52"), ("50", "74"), ("52", "74")} | {("51", "85")}
