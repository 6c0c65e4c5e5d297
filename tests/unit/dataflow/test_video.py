"""Frames of short videos: which ones are taken, what names them, and what is refused."""

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.image_codec import decode_image
from ziggurat.dataflow.video import is_video, video_frames
from ziggurat.errors import DatapointError


def write_video(path, frames, rate=20, side=32, codec="MJPG"):
    """Write frames whose gray level is their number."""
    video = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*codec), rate, (side, side))
    for number in range(frames):
        video.write(np.full((side, side, 3), number % 256, np.uint8))
    video.release()
    return path


@pytest.mark.parametrize(("suffix", "codec"), [(".avi", "MJPG"), (".mp4", "mp4v"), (".mkv", "mp4v"), (".mov", "mp4v")])
def test_a_frame_is_taken_every_half_second(tmp_path, suffix, codec):
    found = list(video_frames(write_video(tmp_path / f"clip{suffix}", 45, codec=codec)))
    assert [frame.name("clip") for frame in found] == [
        "clip 0:00.00",
        "clip 0:00.50",
        "clip 0:01.00",
        "clip 0:01.50",
        "clip 0:02.00",
    ]
    levels = [decode_image(frame.content).mean() for frame in found]
    assert levels == pytest.approx([0, 10, 20, 30, 40], abs=3)


def test_a_longer_video_is_spread_over_fewer_frames(tmp_path):
    found = list(video_frames(write_video(tmp_path / "clip.avi", 200), most=4))
    assert [frame.time_s for frame in found] == [0.0, 2.5, 5.0, 7.5]
    assert found[-1].name("a/b.avi") == "a/b.avi 0:07.50"


def test_minutes_count_in_the_name(tmp_path):
    last = list(video_frames(write_video(tmp_path / "clip.avi", 130, rate=1)))[-1]
    assert last.name("clip") == "clip 2:09.00"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is no MPEG-4, QuickTime, Matroska, WebM, AVI or MPEG file."),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "it is no MPEG-4, QuickTime, Matroska, WebM, AVI or MPEG file."),
        (
            b"#EXTM3U\nAVI \n#EXTINF:1,\nfile:///x.mp4\n",
            "it is no MPEG-4, QuickTime, Matroska, WebM, AVI or MPEG file.",
        ),
        (b"ffconcat version 1.0\nfile x.mp4\n", "it is no MPEG-4, QuickTime, Matroska, WebM, AVI or MPEG file."),
        (b"\0\0\0\x18ftypmp42" + bytes(100), "it is no video that OpenCV's FFmpeg reads."),
    ],
    ids=["empty", "playlist", "playlist-avi", "list", "nothing"],
)
def test_what_is_no_video_is_refused(tmp_path, content, reason):
    (tmp_path / "clip.mp4").write_bytes(content)
    with pytest.raises(DatapointError) as caught:
        list(video_frames(tmp_path / "clip.mp4"))
    assert caught.value.reason == reason


def test_a_truncated_video_gives_its_first_frames(tmp_path):
    whole = write_video(tmp_path / "clip.avi", 100).read_bytes()
    (tmp_path / "half.avi").write_bytes(whole[: len(whole) // 2])
    found = list(video_frames(tmp_path / "half.avi"))
    assert 3 <= len(found) <= 6
    assert found[0].time_s == 0


def test_what_is_too_long_or_not_there_is_refused(tmp_path):
    write_video(tmp_path / "long.avi", 302, rate=1)
    with pytest.raises(DatapointError, match=r"it is longer than 5 minutes; cut a part out of it\."):
        next(video_frames(tmp_path / "long.avi"))
    with pytest.raises(DatapointError, match=r"it cannot be read: No such file or directory\."):
        next(video_frames(tmp_path / "gone.avi"))


@pytest.mark.parametrize(("name", "expected"), [("a.MP4", True), ("b.webm", True), ("c.gif", False), ("mp4", False)])
def test_the_ending_tells_a_video(name, expected):
    assert is_video(name) is expected
