"""Frames of a video that takes too long: the error speaks of the video."""

from __future__ import annotations

from pathlib import Path

import pytest

from ziggurat.errors import DataError
from ziggurat.settings import load_settings
from ziggurat.workspace.studio import videos
from ziggurat.workspace.tasks import Tasks


def test_a_video_that_takes_too_long_is_to_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "clip.mp4"
    file.write_bytes(b"never read")
    monkeypatch.setattr(videos, "_TIME_LIMIT_S", 0.01)
    with pytest.raises(DataError, match=r"within 0\.01 seconds") as caught:
        videos.frames_of_file(Tasks(load_settings({})), "clip.mp4", file)
    shape = caught.value.as_dict()
    assert "clip.mp4" in shape["rule"]
    assert "Cut a part" in shape["advice"]
