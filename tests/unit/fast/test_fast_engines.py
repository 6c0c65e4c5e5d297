"""Engines decode, reduce, resize and mirror the box of a JPEG file as a full decode would, within rounding."""

import cv2
import numpy as np
import pytest
from fast_photographs import encoded, smooth_image
from PIL import Image

from ziggurat.dataflow import fast
from ziggurat.dataflow.fast.engines import open_engine
from ziggurat.dataflow.image_codec import decode_image
from ziggurat.errors import DataError, UnknownNameError

KINDS = {
    "4:2:0": {"subsampling": "4:2:0"},
    "4:2:2": {"subsampling": "4:2:2"},
    "4:4:4": {"subsampling": "4:4:4"},
    "progressive": {"progressive": True},
    "restart markers": {"restart_marker_blocks": 3},
}


def plans(*rows):
    return np.array(rows, np.int32)


def decode_one(engine, data, box, denominator=1, *, flip=False, shape=(24, 32)):
    out = np.zeros((1, *shape, 3), np.uint8)
    assert engine.decode([data], plans((0, *box, denominator, flip)), out) == [""]
    return out[0]


def difference(one, other):
    return np.abs(one.astype(int) - other.astype(int)).mean()


@pytest.mark.parametrize("options", KINDS.values(), ids=KINDS.keys())
def test_a_box_is_what_a_full_decode_and_a_bilinear_resize_give(engine, options):
    data = encoded(smooth_image(141, 203), **options)
    x, y, width, height = box = (50, 33, 77, 61)
    expected = cv2.resize(decode_image(data)[y : y + height, x : x + width], (32, 24), interpolation=cv2.INTER_LINEAR)
    assert difference(decode_one(engine, data, box), expected) < 0.5


@pytest.mark.parametrize("denominator", [2, 4, 8])
def test_a_reduced_box_is_near_the_best_resize(engine, denominator):
    data = encoded(smooth_image(300, 400))
    box = (32, 16, 296, 256)
    shape = (256 // denominator, 296 // denominator)
    whole = Image.fromarray(decode_image(data)).crop((32, 16, 328, 272))
    best = np.asarray(whole.resize(shape[::-1], Image.Resampling.BOX))
    assert difference(decode_one(engine, data, box, denominator, shape=shape), best) < 1.5


def test_flip_mirrors_left_and_right(engine):
    data = encoded(smooth_image(80, 90))
    plain = decode_one(engine, data, (8, 8, 64, 48))
    mirrored = decode_one(engine, data, (8, 8, 64, 48), flip=True)
    assert difference(plain[:, ::-1], mirrored) < 0.5


def test_gray_files_become_color(engine):
    data = encoded(Image.fromarray(smooth_image(60, 70)).convert("L"))
    crop = decode_one(engine, data, (0, 0, 70, 60))
    assert (crop == crop[:, :, :1]).all()


@pytest.mark.parametrize("box", [(0, 0, 1, 1), (202, 140, 1, 1), (0, 140, 203, 1), (202, 0, 1, 141), (0, 0, 203, 141)])
def test_boxes_at_the_edges(engine, box):
    data = encoded(smooth_image(141, 203))
    x, y, width, height = box
    expected = cv2.resize(decode_image(data)[y : y + height, x : x + width], (32, 24), interpolation=cv2.INTER_LINEAR)
    assert difference(decode_one(engine, data, box), expected) < 1


def test_boxes_at_the_edge_of_a_reduced_image_whose_size_is_odd(engine):
    data = encoded(smooth_image(141, 203))
    crop = decode_one(engine, data, (96, 64, 107, 77), 4, shape=(20, 27))
    whole = Image.fromarray(decode_image(data)).crop((96, 64, 204, 144))
    assert difference(crop[:-1, :-1], np.asarray(whole.resize((27, 20), Image.Resampling.BOX))[:-1, :-1]) < 2


def test_what_cannot_be_decoded_is_named_and_others_decoded(engine):
    good = encoded(smooth_image(64, 64))
    damaged = bytearray(good)
    damaged[100:] = bytes(len(good) - 100)
    out = np.zeros((4, 16, 16, 3), np.uint8)
    files = [good, bytes(damaged), b"\xff\xd8\xff", good]
    reasons = engine.decode(files, plans(*((slot, 0, 0, 64, 64, 1, 0) for slot in range(4))), out)
    assert [bool(reason) for reason in reasons] == [False, True, True, False]
    assert np.array_equal(out[0], out[3])
    assert out[0].any()


def test_a_box_beyond_the_image_is_refused(engine):
    out = np.zeros((1, 16, 16, 3), np.uint8)
    data = encoded(smooth_image(64, 64))
    assert engine.decode([data], plans((0, 40, 0, 30, 64, 1, 0)), out) == ["the box does not lie in the image"]


def test_all_engines_agree_within_rounding(engine):
    best = open_engine("opencv")
    data = encoded(smooth_image(141, 203))
    for denominator, box in ((1, (33, 20, 100, 90)), (2, (16, 0, 187, 141))):
        crops = [decode_one(one, data, box, denominator) for one in (engine, best)]
        assert np.abs(crops[0].astype(int) - crops[1]).max() <= 3


def test_garbage_never_brings_the_process_down(engine):
    rng = np.random.default_rng(0)
    good = encoded(smooth_image(48, 64))
    out = np.zeros((1, 16, 16, 3), np.uint8)
    for _ in range(300):
        data = bytearray(good[: rng.integers(4, len(good) + 1)])
        for place in rng.integers(0, len(data), 6):
            data[place] = rng.integers(256)
        assert len(engine.decode([bytes(data)], plans((0, 8, 8, 40, 32, 1, 0)), out)) == 1


def test_the_report_names_the_engine_and_why_no_better_one():
    report = fast.engine()
    assert report.name in ("native", "opencv")
    better = {"native": [], "opencv": ["native"]}[report.name]
    assert list(report.passed_over) == better
    assert all(report.passed_over.values())
    assert fast.engine("opencv").version.startswith("OpenCV ")


def test_an_engine_that_nobody_knows():
    with pytest.raises(UnknownNameError, match=r"`nativ` is not a known JPEG engine\. Did you mean `native`"):
        fast.engine("nativ")


def test_an_engine_that_is_asked_for_and_not_there_says_why():
    missing = [*fast.engine().passed_over]
    if not missing:
        pytest.skip("every better engine is there")
    with pytest.raises(DataError, match=rf"The JPEG engine `{missing[0]}` is used where it is installed \(received: "):
        fast.engine(missing[0])
