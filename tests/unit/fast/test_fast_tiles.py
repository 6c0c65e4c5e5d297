"""Tiled JPEG files: any program reads them, and a part that is cut out has the pixels of the whole."""

import io

import numpy as np
import pytest
from fast_photographs import encoded, smooth_image
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ziggurat.dataflow.fast import tiled_jpeg
from ziggurat.dataflow.fast.boxes import denominators, grid_boxes
from ziggurat.dataflow.fast.engines import open_engine
from ziggurat.dataflow.fast.tiles import cut, read_jpeg_header, tile_units
from ziggurat.dataflow.image_codec import decode_image

IMAGE = smooth_image(230, 390)
FILES = {
    "4:2:0": tiled_jpeg(encoded(IMAGE, subsampling="4:2:0")),
    "4:4:4": tiled_jpeg(encoded(IMAGE, subsampling="4:4:4")),
    "gray": tiled_jpeg(encoded(Image.fromarray(IMAGE).convert("L"))),
    "a prime number of units in a row": tiled_jpeg(encoded(IMAGE[:, : 23 * 16 - 5], subsampling="4:2:0")),
}


def crop(data, box, denominator=1):
    out = np.zeros((1, 30, 40, 3), np.uint8)
    plan = np.array([(0, *box, denominator, 0)], np.int32)
    assert open_engine().decode([data], plan, out) == [""]
    return out[0]


@pytest.mark.parametrize("data", FILES.values(), ids=FILES.keys())
@settings(max_examples=60, deadline=None)
@given(st.tuples(*[st.floats(0, 1)] * 4))
def test_a_cut_has_the_pixels_of_the_whole(data, numbers):
    header = read_jpeg_header(data)
    size = np.array([(header.width, header.height)])
    corner = (np.array(numbers[:2]) * (size[0] - 1)).astype(int)
    length = 1 + (np.array(numbers[2:]) * (size[0] - corner - 1)).astype(int)
    boxes = np.array([[*corner, *length]], np.int32)
    denominator = denominators(boxes, (30, 40))
    (box,) = grid_boxes(boxes, size, denominator).tolist()
    part, left, top = cut(data, header, tuple(box))
    shifted = [box[0] - left, box[1] - top, *box[2:]]
    assert np.array_equal(crop(data, box, denominator[0]), crop(part, shifted, denominator[0]))


def test_a_cut_of_a_small_box_is_small():
    data = FILES["4:2:0"]
    part, left, top = cut(data, read_jpeg_header(data), (200, 100, 30, 30))
    assert len(part) < len(data) / 3
    assert decode_image(part).shape == (48, 80, 3)
    assert (left, top) == (160, 96)


def test_any_program_reads_the_file():
    whole = np.asarray(Image.open(io.BytesIO(FILES["4:4:4"])))
    assert np.abs(whole.astype(int) - IMAGE).mean() < 3


def test_tiling_keeps_the_pixels_of_a_file():
    data = encoded(IMAGE, subsampling="4:2:0")
    assert np.abs(decode_image(tiled_jpeg(data)).astype(int) - decode_image(data)).mean() < 1.0


def test_tiles_of_a_row_are_equally_long():
    assert [tile_units(count) for count in (40, 25, 21, 26, 49, 29, 1)] == [4, 5, 3, 2, 7, 29, 1]


def test_a_list_that_does_not_fit_the_file_is_not_used():
    data = bytearray(FILES["4:2:0"])
    data[30] ^= 1
    header = read_jpeg_header(bytes(data))
    assert cut(bytes(data), header, (0, 0, 50, 50)) == (bytes(data), 0, 0)
