"""Folders of killed processes go at the start of the studio; those of running ones stay."""

import subprocess
import sys

from ziggurat.entities.leftovers import owner_tag, remove_leftovers, temporary_folder
from ziggurat.settings import load_settings
from ziggurat.workspace.studio.bootstrap import open_studio

MAKE = """
import os, sys, tempfile
from pathlib import Path
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.zoo.weights_folder import WeightsFolder
tempfile.tempdir = sys.argv[1]
with temporary_folder("video"), WeightsFolder(Path(sys.argv[2])).adding():
    os._exit(0)
"""


def killed(tmp_path):
    """Return what a killed process left in the folder for temporary files and in that of weights."""
    folders = tmp_path / "temporary", tmp_path / "workspace" / "weights"
    folders[0].mkdir()
    subprocess.run([sys.executable, "-c", MAKE, *map(str, folders)], check=True)
    left = [path for folder in folders for path in folder.iterdir()]
    assert [path.name.partition("-")[0] for path in left] == ["ziggurat", ".partial"]
    return left


def test_studio_removes_leftovers_at_its_start(tmp_path, monkeypatch):
    left = killed(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    open_studio(load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace")}), start=False).close()

    assert [path for path in left if path.exists()] == []


def test_leftovers_of_running_processes_and_others_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    machine, number, began = owner_tag().split("-")
    elsewhere = f"{int(machine, 16) ^ 1:08x}"
    names = [f"ziggurat-video-{elsewhere}-{number}-{began}-a", "ziggurat-data-abc", "ziggurat-video-abc"]
    for name in names:
        (tmp_path / name).mkdir()
    (tmp_path / f"ziggurat-video-{machine}-{number}-{int(began) + 9}-a").mkdir()
    with temporary_folder("video") as mine:
        remove_leftovers(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, *names])
