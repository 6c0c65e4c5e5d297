"""The native engine is built where that is possible, and left out with a reason where it is not."""

from pathlib import Path

import pytest

import hatch_build

ROOT = Path(hatch_build.__file__).parent


def test_it_is_built_or_the_reason_is_told(tmp_path):
    library = tmp_path / "libziggurat_jpeg.so"
    reason = hatch_build.build(ROOT, library)
    assert library.exists() == (reason == "")
    if reason:
        assert reason.startswith(
            ("it is built on Linux only", "there is no C compiler", "the headers of libjpeg-turbo")
        )


def test_a_source_that_does_not_compile_leaves_nothing(tmp_path):
    library = tmp_path / "libziggurat_jpeg.so"
    assert hatch_build.build(tmp_path, library)
    assert list(tmp_path.iterdir()) == []


def test_a_release_with_a_part_left_out_fails():
    left_out = {"scripts of the pages": "there is no Node 18 or newer;", "native JPEG engine": ""}
    hatch_build.check_complete(left_out, {})
    hatch_build.check_complete(dict.fromkeys(left_out, ""), {"ZIGGURAT_RELEASE": "1"})
    with pytest.raises(RuntimeError, match=r"missing. scripts of the pages: there is no Node"):
        hatch_build.check_complete(left_out, {"ZIGGURAT_RELEASE": "1"})
