"""Decoding: every usual kind of image file gives the right pixels, and every bad one a clear error."""

import io
import struct
import threading
import zlib

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from ziggurat.dataflow.images import decode_image, encode_image, read_image
from ziggurat.errors import DatapointError, UnknownNameError, UsageError

SMOOTH = cv2.resize(
    np.random.RandomState(0).randint(0, 255, (5, 7, 3), dtype=np.uint8), (56, 40), interpolation=cv2.INTER_CUBIC
)
"""(40, 56, 3) uint8: changes slowly, so that lossy formats keep it nearly."""
GRAY = cv2.cvtColor(SMOOTH, cv2.COLOR_RGB2GRAY)


def encoded(image, file_format, **options):
    buffer = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(buffer, file_format, **options)
    return buffer.getvalue()


def by_opencv(image, suffix, *options):
    return cv2.imencode(suffix, image, list(options))[1].tobytes()


def assert_close(image, expected, tolerance):
    assert image.dtype == np.uint8
    assert image.shape == expected.shape
    assert np.abs(image.astype(int) - expected).max() <= tolerance


LOSSLESS = {
    "png": encoded(SMOOTH, "PNG"),
    "interlaced png": by_opencv(SMOOTH[..., ::-1], ".png"),
    "bmp": encoded(SMOOTH, "BMP"),
    "tiff": encoded(SMOOTH, "TIFF"),
    "compressed tiff": encoded(SMOOTH, "TIFF", compression="tiff_lzw"),
    "lossless webp": encoded(SMOOTH, "WEBP", lossless=True),
    "ppm": encoded(SMOOTH, "PPM"),
}
LOSSY = {
    "jpeg": encoded(SMOOTH, "JPEG", quality=98, subsampling=0),
    "progressive jpeg": encoded(SMOOTH, "JPEG", quality=98, subsampling=0, progressive=True),
    "jpeg with restart markers": by_opencv(
        SMOOTH[..., ::-1],
        ".jpg",
        *(cv2.IMWRITE_JPEG_QUALITY, 98, cv2.IMWRITE_JPEG_RST_INTERVAL, 1),
        *(cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444),
    ),
    "webp": encoded(SMOOTH, "WEBP", quality=98),
    "cmyk jpeg": encoded(Image.fromarray(SMOOTH).convert("CMYK"), "JPEG", quality=98, subsampling=0),
    "ycbcr tiff": encoded(Image.fromarray(SMOOTH).convert("YCbCr"), "TIFF"),
}


@pytest.mark.parametrize("kind", LOSSLESS)
def test_lossless_files_give_their_pixels(kind):
    image = decode_image(LOSSLESS[kind])
    assert (image == SMOOTH).all()
    assert image.flags.writeable
    assert image.flags.c_contiguous


@pytest.mark.parametrize("kind", LOSSY)
def test_lossy_files_give_nearly_their_pixels(kind):
    assert_close(decode_image(LOSSY[kind]), SMOOTH, 24 if kind == "webp" else 8)


@pytest.mark.parametrize("kind", [*LOSSLESS, *LOSSY])
def test_gray_and_alpha_on_request(kind):
    data = {**LOSSLESS, **LOSSY}[kind]
    assert_close(decode_image(data, channels=1), GRAY[:, :, None], 24 if kind == "webp" else 8)
    with_alpha = decode_image(data, channels=4)
    assert (with_alpha[:, :, :3] == decode_image(data)).all()
    assert (with_alpha[:, :, 3] == 255).all()


@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "BMP", "TIFF", "GIF"])
def test_gray_files(file_format):
    data = encoded(GRAY, file_format, **({"quality": 98} if file_format == "JPEG" else {}))
    assert_close(decode_image(data), np.dstack([GRAY] * 3), 4 if file_format == "JPEG" else 0)
    assert_close(decode_image(data, channels=1), GRAY[:, :, None], 4 if file_format == "JPEG" else 0)


def test_two_level_and_low_depth_files():
    bits = (GRAY > 128).astype(np.uint8) * 255
    for file_format in ("PNG", "BMP", "TIFF"):
        data = encoded(Image.fromarray(bits).convert("1", dither=Image.Dither.NONE), file_format)
        assert (decode_image(data, channels=1)[:, :, 0] == bits).all()
    four_colors = Image.fromarray(SMOOTH).quantize(4)
    data = encoded(four_colors, "PNG", bits=2)
    assert (decode_image(data) == np.array(four_colors.convert("RGB"))).all()


@pytest.mark.parametrize("file_format", ["PNG", "GIF", "BMP", "TIFF"])
def test_palettes(file_format):
    paletted = Image.fromarray(SMOOTH).quantize(30)
    assert (decode_image(encoded(paletted, file_format)) == np.array(paletted.convert("RGB"))).all()


# ---- transparency

HALF = np.dstack([SMOOTH, np.repeat(np.linspace(0, 255, 56).astype(np.uint8)[None], 40, axis=0)])


def laid_on(image, color):
    alpha = image[:, :, 3:] / 255.0
    return np.rint(image[:, :, :3] * alpha + np.array(color) * (1 - alpha)).astype(np.uint8)


@pytest.mark.parametrize("file_format", ["PNG", "WEBP", "TIFF"])
def test_transparency_is_laid_on_white_or_any_color_or_dropped(file_format):
    data = encoded(HALF, file_format, **({"lossless": True, "exact": True} if file_format == "WEBP" else {}))
    assert_close(decode_image(data), laid_on(HALF, (255, 255, 255)), 1)
    assert_close(decode_image(data, background=(10, 20, 30)), laid_on(HALF, (10, 20, 30)), 1)
    assert (decode_image(data, background=None) == SMOOTH).all()
    assert (decode_image(data, channels=4) == HALF).all()


def test_gray_with_transparency():
    data = encoded(Image.fromarray(np.dstack([GRAY, HALF[..., 3]]), "LA"), "PNG")
    expected = laid_on(np.dstack([GRAY, GRAY, GRAY, HALF[..., 3]]), (255, 255, 255))
    assert_close(decode_image(data), expected, 1)
    assert_close(decode_image(data, channels=1), expected[:, :, :1], 1)


@pytest.mark.parametrize("file_format", ["PNG", "GIF"])
def test_a_transparent_palette_entry(file_format):
    indices = np.repeat(np.arange(4, dtype=np.uint8), 4).reshape(4, 4)
    image = Image.fromarray(indices, "P")
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
    data = encoded(image, file_format, transparency=0)
    assert decode_image(data)[:, 0].tolist() == [[255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert decode_image(data, background=None)[0, 0].tolist() == [0, 0, 0]
    assert decode_image(data, channels=4)[:, 0, 3].tolist() == [0, 255, 255, 255]


def test_a_transparent_color_of_a_png():
    data = encoded(np.array([[[1, 2, 3], [9, 9, 9]]], np.uint8), "PNG", transparency=(1, 2, 3))
    assert decode_image(data).tolist() == [[[255, 255, 255], [9, 9, 9]]]


# ---- 16 bits

DEEP = (np.arange(40 * 56).reshape(40, 56) * 29 % 65536).astype(np.uint16)


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".pgm"])
def test_16_bit_gray_keeps_its_upper_8_bits(suffix):
    data = by_opencv(DEEP, suffix)
    assert (decode_image(data, channels=1)[:, :, 0] == DEEP >> 8).all()
    assert (decode_image(data) == (DEEP >> 8)[:, :, None]).all()


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".ppm"])
def test_16_bit_color_keeps_its_upper_8_bits(suffix):
    color = np.dstack([DEEP, DEEP[::-1], DEEP[:, ::-1]])
    # A PPM file has a maximum of its own, and its samples are scaled by that.
    assert_close(decode_image(by_opencv(color[..., ::-1], suffix)), (color >> 8).astype(np.uint8), suffix == ".ppm")


def test_16_bit_color_with_alpha():
    color = np.dstack([DEEP, DEEP[::-1], DEEP[:, ::-1], np.full_like(DEEP, 65535)])
    data = by_opencv(cv2.cvtColor(color, cv2.COLOR_RGBA2BGRA), ".png")
    assert (decode_image(data) == color[..., :3] >> 8).all()


def test_samples_of_unknown_range_are_refused():
    data = encoded(Image.fromarray(np.zeros((4, 4), np.float32)), "TIFF")
    with pytest.raises(DatapointError, match="32 bits, whose range is unknown"):
        decode_image(data)


# ---- orientation

MARKED = np.zeros((16, 32, 3), np.uint8)
MARKED[:8, :8] = 250  # the upper left corner is white
CORNER = {1: (0, 0), 2: (0, -1), 3: (-1, -1), 4: (-1, 0), 5: (0, 0), 6: (0, -1), 7: (-1, -1), 8: (-1, 0)}


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", CORNER)
def test_orientation_is_applied(file_format, orientation, channels):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"tiffinfo": {0x0112: orientation}} if file_format == "TIFF" else {"exif": exif}
    image = decode_image(encoded(MARKED, file_format, **options), channels=channels)
    assert image.shape == ((16, 32, channels) if orientation < 5 else (32, 16, channels))
    row, column = CORNER[orientation]
    assert image[row, column, 0] > 200
    assert image[-1 - row, -1 - column, 0] < 50


# ---- CMYK and YCCK


def test_a_ycck_jpeg():
    # A JPEG of four components whose Adobe marker says YCCK: the first three are luma and chroma of R, G, B.
    stored = np.full((16, 16, 4), (200, 100, 160, 255), np.uint8)
    data = encoded(Image.fromarray(255 - stored, "CMYK"), "JPEG", quality=100, subsampling=0)
    marker = data.index(b"Adobe") + 11
    assert data[marker] == 0
    data = data[:marker] + b"\x02" + data[marker + 1 :]
    y, cb, cr = 200, 100 - 128, 160 - 128
    rgb = [y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb]
    expected = np.full((16, 16, 3), 255 - np.clip(rgb, 0, 255).astype(np.uint8))  # Adobe's files store inks inverted
    assert_close(decode_image(data), expected, 3)


# ---- bad files


@pytest.mark.parametrize("kind", [*LOSSLESS, *LOSSY])
@pytest.mark.parametrize("part", [0.02, 0.3, 0.6, 0.95])
def test_a_file_that_is_cut_off_is_refused(kind, part):
    data = {**LOSSLESS, **LOSSY}[kind]
    with pytest.raises(DatapointError, match=r"Datapoint 'a\.jpg' cannot be used: (it|the JPEG data) "):
        decode_image(data[: int(len(data) * part)], key="a.jpg")


def test_a_cut_off_jpeg_says_so_though_its_thumbnail_is_whole():
    exif = b"Exif\x00\x00" + encoded(GRAY[:8, :8], "JPEG")
    data = LOSSY["jpeg"]
    data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + data[2:]
    assert_close(decode_image(data), SMOOTH, 8)
    for length in (len(data) - 1, len(data) - 2, len(data) // 2, len(exif) + 6):
        with pytest.raises(DatapointError, match=f"the JPEG data is cut off: {length} bytes without an end"):
            decode_image(data[:length])


def test_bytes_behind_the_end_do_no_harm():
    for data in (LOSSY["jpeg"], LOSSY["progressive jpeg"], LOSSLESS["png"]):
        assert decode_image(data + bytes(100)).shape == (40, 56, 3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", r"it is empty \(0 bytes\)"),
        (b"<!DOCTYPE html><html>404</html>", r"no image of a known format; it starts with b'<!DOCTYP'"),
        (bytes(1000), "no image of a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "no image of a known format"),
        (b"\xff\xd8\xff", "the JPEG data is cut off: 3 bytes without an end"),
        (b"\x89PNG\r\n\x1a\n", "cannot be decoded|no image"),
        (b"GIF89a", "cannot be decoded|no image"),
        (b"BM" + bytes(10), "cannot be decoded|no image"),
    ],
)
def test_what_is_no_image_is_refused(data, reason):
    with pytest.raises(DatapointError, match=reason):
        decode_image(data)


def test_a_png_with_a_changed_byte_is_refused():
    data = bytearray(LOSSLESS["png"])
    data[len(data) // 2] ^= 255
    with pytest.raises(DatapointError, match="cannot be decoded"):
        decode_image(bytes(data))


def png_of_size(width, height):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


def test_huge_images_are_refused_before_they_are_decoded():
    with pytest.raises(DatapointError, match="it has 100000 x 90000 pixels, and 178956970 are allowed"):
        decode_image(png_of_size(100_000, 90_000))
    for data in (LOSSY["jpeg"], LOSSLESS["png"], LOSSLESS["tiff"]):
        with pytest.raises(DatapointError, match=r"it has 56 x 40 pixels, and 2239 are allowed. Raise `max_pixels`"):
            decode_image(data, max_pixels=2239)
        assert decode_image(data, max_pixels=2240).shape == (40, 56, 3)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted({**LOSSLESS, **LOSSY})), st.integers(0, 10**6), st.integers(1, 255))
def test_no_changed_byte_raises_anything_else(kind, place, change):
    data = bytearray({**LOSSLESS, **LOSSY}[kind])
    data[place % len(data)] ^= change
    try:
        image = decode_image(bytes(data), max_pixels=100_000)
    except DatapointError:
        return
    assert image.dtype == np.uint8
    assert image.shape[2] == 3


# ---- the rest


def test_any_buffer_is_accepted():
    data = LOSSLESS["png"]
    for form in (bytearray(data), memoryview(data), np.frombuffer(data, np.uint8)):
        assert (decode_image(form) == SMOOTH).all()


def test_the_number_of_channels_is_checked():
    with pytest.raises(UsageError, match="1, 3 or 4 channels"):
        decode_image(LOSSLESS["png"], channels=2)


def test_a_file_is_read_and_named(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(LOSSLESS["png"])
    assert (read_image(path) == SMOOTH).all()
    assert read_image(path, channels=1).shape == (40, 56, 1)
    path.write_bytes(b"")
    with pytest.raises(DatapointError, match=r"Datapoint '.*a\.png' cannot be used: it is empty"):
        read_image(path)
    with pytest.raises(DatapointError, match=r"it cannot be read \(No such file"):
        read_image(tmp_path / "b.png")
    with pytest.raises(DatapointError, match=r"it cannot be read \(Is a directory"):
        read_image(tmp_path)


@pytest.mark.parametrize("file_format", ["png", "bmp", "jpeg", "webp"])
def test_encoding_and_decoding(file_format):
    tolerance = {"jpeg": 16, "webp": 40}.get(file_format, 0)
    assert_close(decode_image(encode_image(SMOOTH, file_format)), SMOOTH, tolerance)
    for gray in (GRAY, GRAY[:, :, None]):
        assert_close(decode_image(encode_image(gray, file_format), channels=1), GRAY[:, :, None], tolerance)
    assert len(encode_image(SMOOTH, "jpeg", quality=30)) < len(encode_image(SMOOTH, "jpeg", quality=95))


def test_encoding_alpha():
    for file_format, quality in (("png", 95), ("webp", 101)):
        opaque = np.dstack([SMOOTH, np.full(GRAY.shape, 200, np.uint8)])
        assert (decode_image(encode_image(opaque, file_format, quality=quality), channels=4) == opaque).all()


@pytest.mark.parametrize(
    "image", [SMOOTH.astype(np.float32), HALF, SMOOTH[..., :2], SMOOTH[0, 0], SMOOTH[:0], SMOOTH[None]]
)
def test_what_a_jpeg_cannot_hold_is_refused(image):
    with pytest.raises(
        UsageError, match=r"cannot be written as jpeg: it is not uint8, \(H, W\), \(H, W, 1\) or \(H, W, 3\)"
    ):
        encode_image(image)


def test_unknown_formats_are_named():
    with pytest.raises(UnknownNameError, match="Did you mean `jpeg`"):
        encode_image(SMOOTH, "jpg")


def test_threads_decode_side_by_side():
    results = []

    def decode():
        results.extend((decode_image(data) == SMOOTH).all() for data in LOSSLESS.values())

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4 * len(LOSSLESS)


@pytest.mark.parametrize("comment", [b"#" * 5_000_000 + b"\n", b"# a\n" * 100_000, b"#" * 70_000])
def test_decode_refuses_a_ppm_with_long_comments(comment):
    with pytest.raises(DatapointError, match="the comments in its header are longer than 64 kB"):
        decode_image(b"P6\n" + comment + b"1 1\n255\nabc")


@pytest.mark.parametrize("header", [b"P6\n200 200\n255\n", b"P6 # made by hand\n200 200 # size\n255\n"])
def test_decode_reads_a_ppm_whose_pixels_look_like_comments(header):
    image = decode_image(header + b"#" * 120_000)
    assert image.shape == (200, 200, 3)
    assert (image == ord("#")).all()
