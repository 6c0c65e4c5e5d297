"""Sources of image files: what they yield, in which order, from where they resume, and what bad files do."""

import json
import logging
import pickle

import cv2
import numpy as np
import pytest

from ziggurat.dataflow.images import ImageFolder, ImageFromFile, ImageList, decode_image, encode_image
from ziggurat.dataflow.policy import ErrorPolicy
from ziggurat.errors import DataError, DatapointError, UsageError


def picture(number):
    """(6, 8, 3) uint8: red holds the number."""
    return np.full((6, 8, 3), (number, 50, 200), np.uint8)


@pytest.fixture
def files(tmp_path):
    paths = []
    for number in range(10):
        paths.append(tmp_path / f"{number}.png")
        paths[-1].write_bytes(encode_image(picture(number), "png"))
    return paths


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "flowers"
    names = ["rose/b.PNG", "rose/a.png", "aster/deep/er/z.png", "aster/x.png", "tulip 2/1.png"]
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(encode_image(picture(number), "png"))
    for left_out in ("rose/Thumbs.db", "rose/.hidden.png", "readme.txt", ".cache/a.png", "zinnia/notes.md"):
        (root / left_out).parent.mkdir(exist_ok=True)
        (root / left_out).write_bytes(b"text")
    return root


def numbers(flow):
    return [int(dp[0][0, 0, 0]) for dp in flow]


def test_files_are_decoded_in_order(files):
    flow = ImageFromFile(files)
    images = [dp[0] for dp in flow]
    assert len(flow) == 10
    assert all((image == picture(number)).all() for number, image in enumerate(images))
    assert numbers(flow) == list(range(10))


def test_files_are_resized_and_made_gray(files):
    assert [dp[0].shape for dp in ImageFromFile(files[:2], resize=(3, 5))] == [(3, 5, 3)] * 2
    assert [dp[0].shape for dp in ImageFromFile(files[:2], channel=1, resize=4)] == [(4, 4, 1)] * 2
    (gray,) = next(iter(ImageFromFile(files[2:3], channel=1)))
    assert (gray == cv2.cvtColor(picture(2), cv2.COLOR_RGB2GRAY)[:, :, None]).all()


def test_shuffling_is_new_each_pass_and_the_same_by_seed(files):
    given = list(files)
    flow = ImageFromFile(given, shuffle=True).seed(3)
    first, second = numbers(flow), numbers(flow)
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    again = ImageFromFile(files, shuffle=True).seed(3)
    assert [numbers(again), numbers(again)] == [first, second]
    assert numbers(ImageFromFile(files, shuffle=True).seed(4)) != first
    assert given == files


def test_content_can_be_left_encoded(files):
    data, path = [next(iter(ImageFromFile(files[3:], content=content)))[0] for content in ("bytes", "path")]
    assert data == files[3].read_bytes()
    assert path == str(files[3])
    assert (decode_image(data) == picture(3)).all()
    with pytest.raises(UsageError, match='"image", "bytes" and "path"'):
        ImageFromFile(files, content="pixels")


def test_a_folder_of_classes(folder):
    flow = ImageFolder(folder)
    assert flow.class_names == ["aster", "rose", "tulip 2", "zinnia"]
    assert [(int(image[0, 0, 0]), label) for image, label in flow] == [(2, 0), (3, 0), (1, 1), (0, 1), (4, 2)]
    assert [label for _path, label in ImageFolder(folder, content="path")] == [0, 0, 1, 1, 2]


def test_a_folder_linked_into_itself_is_read_once(folder):
    (folder / "rose" / "again").symlink_to(folder / "rose")
    assert len(ImageFolder(folder)) == 5


def test_folders_without_images_are_refused(tmp_path):
    with pytest.raises(DataError, match="has 0 class folders and no image"):
        ImageFolder(tmp_path)
    with pytest.raises(DataError, match="No such file or directory"):
        ImageFolder(tmp_path / "nowhere")


def test_pairs_and_list_files(folder, tmp_path):
    (folder / "list.txt").write_text("rose/a.png 7\n\n  tulip 2/1.png\t-1 \n", encoding="utf-8")
    for flow in (
        ImageList(folder / "list.txt"),
        ImageList([("rose/a.png", 7), ("tulip 2/1.png", -1)], folder=folder),
        ImageList(((folder / "rose/a.png", 7), (folder / "tulip 2/1.png", -1))),
    ):
        assert [(int(image[0, 0, 0]), label) for image, label in flow] == [(1, 7), (4, -1)]


@pytest.mark.parametrize("line", ["a.png", "a.png one", "a.png 1.5"])
def test_lines_that_are_no_path_and_label_are_named(tmp_path, line):
    (tmp_path / "list.txt").write_text(f"ok.png 0\n{line}\n")
    with pytest.raises(DataError, match=rf"received: '{line}' in .*list\.txt:2"):
        ImageList(tmp_path / "list.txt")


def test_a_list_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        ImageList(tmp_path / "list.txt")
    (tmp_path / "list.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read as text in UTF-8"):
        ImageList(tmp_path / "list.txt")


@pytest.mark.parametrize("content", ["image", "bytes", "path"])
@pytest.mark.parametrize("position", [0, 1, 4, 9, 10])
def test_every_source_resumes_exactly(files, content, position):
    def make():
        return ImageFromFile(files, shuffle=True, content=content).seed(1)

    whole = make()
    list(whole)
    items = [dp[0] for dp in whole]
    flow = make()
    list(flow)
    begun = iter(flow)
    for _ in range(position):
        next(begun)
    state = json.loads(json.dumps(flow.state()))
    resumed = ImageFromFile(files, shuffle=True, content=content)
    resumed.load_state(state)
    rest = [dp[0] for dp in resumed]
    expected = items[position:]
    assert len(rest) == len(expected)
    assert all(np.array_equal(a, b) for a, b in zip(rest, expected, strict=True))


# ---- bad files


@pytest.fixture
def some_bad(files):
    files[2].write_bytes(b"")
    files[5].write_bytes(files[5].read_bytes()[:-30])
    files[7].write_bytes(b"no image")
    files[8].unlink()
    return files


def test_a_bad_file_is_raised_with_its_path_and_reason(some_bad):
    flow = iter(ImageFromFile(some_bad))
    assert next(flow)
    assert next(flow)
    with pytest.raises(DatapointError, match=rf"Datapoint '{some_bad[2]}' cannot be used: it is empty") as caught:
        next(flow)
    assert caught.value.key == str(some_bad[2])


def test_bad_files_are_skipped_and_counted(some_bad):
    flow = ImageFromFile(some_bad, on_error="skip")
    assert numbers(flow) == [0, 1, 3, 4, 6, 9]
    counts = flow.policy.counts()
    assert counts.total == 4
    assert counts.by_kind == {"DatapointError": 4}
    assert [key for key, _reason in counts.first] == [str(some_bad[number]) for number in (2, 5, 7, 8)]
    assert counts.first[3][1] == "it cannot be read (No such file or directory)."


def test_bad_files_are_logged(some_bad, caplog):
    with caplog.at_level(logging.WARNING):
        assert len(numbers(ImageFromFile(some_bad, on_error="log"))) == 6
    assert len(caplog.records) == 4
    assert "7.png" in caplog.text
    assert "it starts with b'no image'" in caplog.text


def test_a_limit_of_bad_files_is_kept(some_bad):
    flow = ImageFromFile(some_bad, on_error=ErrorPolicy("skip", at_most=2))
    with pytest.raises(DatapointError, match=r"7\.png.* cannot be used: it is no image"):
        numbers(flow)


@pytest.mark.parametrize("position", range(7))
def test_a_flow_that_skips_resumes_exactly(some_bad, position):
    whole = ImageFromFile(some_bad, shuffle=True, on_error="skip").seed(2)
    expected = numbers(whole)
    flow = ImageFromFile(some_bad, shuffle=True, on_error="skip").seed(2)
    begun = iter(flow)
    for _ in range(position):
        next(begun)
    resumed = ImageFromFile(some_bad, shuffle=True, on_error="skip")
    resumed.load_state(json.loads(json.dumps(flow.state())))
    assert numbers(resumed) == expected[position:]
    assert resumed.policy.counts().total == 4


def test_sources_cross_process_borders(folder):
    flow = pickle.loads(pickle.dumps(ImageFolder(folder, shuffle=True).seed(5)))
    assert numbers(flow) == numbers(ImageFolder(folder, shuffle=True).seed(5))
