"""Headers of JPEG files: size, orientation, and which files the engines do not get."""

import pytest
from fast_photographs import encoded, smooth_image
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ziggurat.dataflow.fast.tiles import read_jpeg_header


def test_size_and_coding_unit():
    header = read_jpeg_header(encoded(smooth_image(41, 67), subsampling="4:2:2"))
    assert (header.width, header.height, header.unit_width, header.unit_height) == (67, 41, 16, 8)
    assert header.orientation == 1
    assert header.tiles_end == 0


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["II", "MM"])
def test_orientation(orientation, order):
    exif = Image.Exif()
    exif.endian = "<" if order == "II" else ">"
    exif[0x010F] = "maker"
    exif[0x0112] = orientation
    assert read_jpeg_header(encoded(smooth_image(20, 30), exif=exif)).orientation == orientation


def test_bytes_behind_the_end_do_no_harm():
    assert read_jpeg_header(encoded(smooth_image(20, 30)) + bytes(20)).width == 30


def test_what_the_engines_do_not_get():
    data = encoded(smooth_image(20, 30))
    others = {
        "nothing": b"",
        "a PNG file": encoded(smooth_image(20, 30), "PNG"),
        "CMYK": encoded(Image.fromarray(smooth_image(20, 30)).convert("CMYK")),
        "cut off": data[:-20],
        "only a start": b"\xff\xd8\xff\xd9",
        "no size": data.replace(b"\x00\x14\x00\x1e", b"\x00\x00\x00\x1e"),
    }
    assert {name: read_jpeg_header(value) for name, value in others.items()} == dict.fromkeys(others)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_header_or_none(content):
    read_jpeg_header(b"\xff\xd8\xff" + content + b"\xff\xd9")


@given(st.binary(min_size=1, max_size=60))
def test_any_exif_gives_an_orientation(content):
    segment = b"Exif\0\0II" + content
    data = encoded(smooth_image(8, 8))
    with_exif = data[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2) + segment + data[2:]
    assert 1 <= read_jpeg_header(with_exif).orientation <= 8
