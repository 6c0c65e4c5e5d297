"""Links in a source: followed for the user of a shell, and for people of a studio only below the offered folders."""

import os

import cv2
import numpy as np
import pytest
from small_datasets_for_checks import jpeg, picture

from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.errors import DataError, DatapointError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.offered_folders import offer_folders, only_offered
from ziggurat.worker.commands.dataset_previews import preview_dataset

SECRET = b"the target's first bytes"


@pytest.fixture(autouse=True)
def own_rights():
    yield
    offer_folders(None)


@pytest.fixture
def places(tmp_path):
    """An offered folder with a source of two classes, and a folder beside it that is not offered."""
    source, outside = tmp_path / "offered/pets", tmp_path / "outside"
    for name in ("cat", "dog"):
        (source / name).mkdir(parents=True)
        for number in range(4):
            (source / name / f"{number}.jpg").write_bytes(jpeg(picture(number + len(name) * ord(name[0]))))
    (outside / "folder").mkdir(parents=True)
    (outside / "folder/in.jpg").write_bytes(jpeg(picture(77)))
    (outside / "good.jpg").write_bytes(jpeg(picture(78)))
    (outside / "text").write_bytes(SECRET)
    return source, outside


def made(source, folder, *, workers=0, form="original", **options):
    request = CreationRequest(
        name="pets",
        source=str(source),
        format="class_folders",
        workers=workers,
        image=ImageForm(encoding=form),
        **options,
    )
    create_dataset(request, folder)
    return Dataset(folder)


def keys(dataset):
    return {entry.key for entry in dataset.catalogue.walk()}


def said(dataset):
    return " ".join(f"{each.key}: {each.reason}" for each in dataset.catalogue.problems(limit=1000))


@pytest.mark.parametrize("workers", [0, 2])
def test_links_out_of_the_offered_folders_are_problems(places, tmp_path, workers):
    source, outside = places
    (source / "cat/good.jpg").symlink_to(outside / "good.jpg")
    (source / "cat/text.jpg").symlink_to(outside / "text")
    (source / "dog/folder").symlink_to(outside / "folder")
    offer_folders([str(tmp_path / "offered")])
    with made(source, tmp_path / "set", workers=workers) as dataset:
        assert keys(dataset) == {f"{name}/{number}.jpg" for name in ("cat", "dog") for number in range(4)}
        reasons = said(dataset)
    for name in ("cat/good.jpg", "cat/text.jpg", "dog/folder"):
        assert f"{name}: " in reasons
    assert "leads out of the folders that this studio offers" in reasons
    assert "first bytes" not in reasons
    assert "the targ" not in reasons


def test_links_are_followed_for_the_user_of_a_shell(places, tmp_path):
    source, outside = places
    (source / "cat/good.jpg").symlink_to(outside / "good.jpg")
    (source / "dog/folder").symlink_to(outside / "folder")
    with made(source, tmp_path / "set") as dataset:
        assert keys(dataset) >= {"cat/good.jpg", "dog/folder/in.jpg"}


def test_a_farm_of_links_to_an_offered_folder_works(places, tmp_path):
    source, outside = places
    farm = tmp_path / "offered/farm"
    for name in ("cat", "dog"):
        (farm / name).mkdir(parents=True)
        for number in range(4):
            (farm / name / f"{number}.jpg").symlink_to(source / name / f"{number}.jpg")
    (farm / "cat/good.jpg").symlink_to(outside / "good.jpg")
    offer_folders([str(farm), str(source)])
    with made(farm, tmp_path / "set") as dataset:
        assert len(dataset) == 8
    offer_folders([str(farm), str(source), str(outside)])
    with made(farm, tmp_path / "other") as dataset:
        assert len(dataset) == 9


def test_a_link_into_a_hidden_folder_is_not_followed(places, tmp_path):
    source, _ = places
    hidden = tmp_path / "offered/.keys"
    hidden.mkdir()
    (hidden / "key.jpg").write_bytes(jpeg(picture(3)))
    (source / "cat/key.jpg").symlink_to(hidden / "key.jpg")
    offer_folders([str(tmp_path / "offered")])
    with made(source, tmp_path / "set") as dataset:
        assert "cat/key.jpg" not in keys(dataset)


def test_pipes_and_devices_are_not_opened(places, tmp_path):
    source, _ = places
    os.mkfifo(source / "cat/pipe.jpg")
    (source / "cat/zero.jpg").symlink_to("/dev/zero")
    (source / "dog/pipe.jpg").symlink_to(source / "cat/pipe.jpg")
    offer_folders([str(tmp_path / "offered")])
    with made(source, tmp_path / "set") as dataset:
        assert len(dataset) == 8
        reasons = said(dataset)
    assert all(f"{name}: " in reasons for name in ("cat/pipe.jpg", "cat/zero.jpg", "dog/pipe.jpg"))


def test_label_files_behind_links_are_not_read(tmp_path):
    source = tmp_path / "offered/boxes"
    for folder in ("images/train", "labels/train"):
        (source / folder).mkdir(parents=True)
    for name in "ab":
        (source / f"images/train/{name}.png").write_bytes(cv2.imencode(".png", np.zeros((20, 20, 3), np.uint8))[1])
    (source / "labels/train/a.txt").write_text("0 0.5 0.5 0.2 0.2\n")
    (tmp_path / "secret.txt").write_text("0 0.1 0.1 0.1 0.1\n")
    (source / "labels/train/b.txt").symlink_to(tmp_path / "secret.txt")
    offer_folders([str(tmp_path / "offered")])
    create_dataset(CreationRequest(name="b", source=str(source), format="yolo", workers=0), tmp_path / "set")
    with Dataset(tmp_path / "set") as dataset:
        assert "images/train/b.png" not in keys(dataset)
        assert "labels/train/b.txt" in {each.key for each in dataset.catalogue.problems("link-outside")}


def test_a_list_names_no_files_outside(places, tmp_path):
    source, outside = places
    lines = [f"cat/{number}.jpg 0\ndog/{number}.jpg 1\n" for number in range(4)]
    (source / "list.txt").write_text("".join(lines) + f"{outside}/good.jpg 1\n")
    request = CreationRequest(name="l", source=str(source / "list.txt"), format="text_list", workers=0)
    offer_folders([str(tmp_path / "offered")])
    create_dataset(request, tmp_path / "set")
    with Dataset(tmp_path / "set") as dataset:
        assert len(dataset) == 8


def test_a_source_that_is_a_link_out_is_refused(places, tmp_path):
    _, outside = places
    (tmp_path / "offered/link").symlink_to(outside / "folder")
    offer_folders([str(tmp_path / "offered")])
    with pytest.raises(DataError, match="A source lies below one of the folders that this studio offers"):
        made(tmp_path / "offered/link", tmp_path / "set")


def test_a_preview_shows_nothing_behind_a_link_out(places, tmp_path):
    source, outside = places
    (source / "cat/good.jpg").symlink_to(outside / "good.jpg")
    (source / "cat/text.jpg").symlink_to(outside / "text")
    spec = {"kind": "dataset", "version": 1, "source": str(source), "format": "class_folders"}
    request = {"spec": spec, "samples": 100, "time_limit_s": 60.0, "at_most": 1000, "folder": str(tmp_path / "look")}
    (tmp_path / "look").mkdir()
    found = preview_dataset({**request, "offered": [str(tmp_path / "offered")]})
    assert {each["key"] for each in found["samples"]}.isdisjoint({"cat/good.jpg", "cat/text.jpg"})
    assert "the targ" not in str(found["problems"])
    assert "leads out" in str(found["problems"])


def test_a_referenced_file_that_became_a_link_is_not_read(places, tmp_path):
    source, outside = places
    with made(source, tmp_path / "set", form="reference") as dataset:
        entry = dataset.catalogue.find("cat/0.jpg")
        assert entry is not None
        assert entry.row is not None
        content = (source / "cat/0.jpg").read_bytes()
        (outside / "same.jpg").write_bytes(content)
        (source / "cat/0.jpg").unlink()
        (source / "cat/0.jpg").symlink_to(outside / "same.jpg")
        with only_offered([str(tmp_path / "offered")]), pytest.raises(DatapointError, match="leads out of the folders"):
            dataset.sample(entry.split, entry.row)
        assert dataset.sample(entry.split, entry.row).parts[0] == content
