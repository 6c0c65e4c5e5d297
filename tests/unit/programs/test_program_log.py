"""``ziggurat.log`` and ``ziggurat.log_image`` in processes of their own, as a program calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from ziggurat.events import ImageLogged, ScalarLogged, read_events
from ziggurat.program_log import FOLDER_VARIABLE


def run(text: str, folder: Path | None, **environment: str) -> str:
    """Run a program in a job, or outside of one; return its standard error."""
    variables = {name: value for name, value in os.environ.items() if name != FOLDER_VARIABLE} | environment
    if folder is not None:
        variables[FOLDER_VARIABLE] = str(folder / "program_log")
    done = subprocess.run(
        [sys.executable, "-c", text], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def logged(folder: Path, kind: type[Any] = ScalarLogged) -> list[Any]:
    """Return the events of all processes."""
    files = sorted((folder / "program_log").glob("*.jsonl"))
    return [each for path in files for each in read_events(path)[0] if isinstance(each, kind)]


def test_without_a_job_nothing_happens(tmp_path: Path) -> None:
    text = (
        "import sys, os\nos.chdir(sys.argv[0] if False else %r)\nimport ziggurat\n"
        "ziggurat.log(loss='no number', step='x')\nziggurat.log_image('a', None)\n"
        "print(sorted(os.listdir('.')), 'numpy' in sys.modules, file=sys.stderr)\n"
    )
    assert run(text % str(tmp_path), None) == "[] False\n"


def test_points_have_names_steps_and_epochs(tmp_path: Path) -> None:
    text = """
import ziggurat
import numpy as np
ziggurat.log(loss=1)
ziggurat.log(loss=np.float32(0.5), accuracy=np.array([0.25]))
ziggurat.log({"val/loss": 2.0, "train": {"kl": True}}, step=10, epoch=3)
ziggurat.log(loss=float("nan"))
"""
    assert run(text, tmp_path) == ""
    points = [(each.tag, each.value, each.step, each.epoch) for each in logged(tmp_path)]
    assert points[:-1] == [
        ("loss", 1.0, 1, 0),
        ("loss", 0.5, 2, 0),
        ("accuracy", 0.25, 2, 0),
        ("val/loss", 2.0, 10, 3),
        ("train/kl", 1.0, 10, 3),
    ]
    assert points[-1][0::2] == ("loss", 11)
    assert points[-1][1] != points[-1][1]


def test_bad_values_are_left_out_and_told_once(tmp_path: Path) -> None:
    text = """
import ziggurat
for _ in range(5):
    ziggurat.log(loss=1.0, name="adam", image=[[1, 2]], step=-1)
"""
    told = run(text, tmp_path).splitlines()
    assert told == [
        "ziggurat.log: `step` is a whole number from 0, and not -1; 1 is taken instead.",
        "ziggurat.log: 'name' is left out: str is no number.",
        "ziggurat.log: 'image' is left out: list is no number.",
    ]
    assert [(each.tag, each.step) for each in logged(tmp_path)] == [("loss", step) for step in range(1, 6)]


def test_many_fast_calls_keep_the_newest_value(tmp_path: Path) -> None:
    text = """
import ziggurat
ziggurat.log({"val": 0.5}, step=0)
for step in range(20000):
    ziggurat.log(loss=step, step=step)
"""
    assert "100 a second" in run(text, tmp_path)
    points = logged(tmp_path)
    assert 2000 <= len(points) < 6000
    assert (points[0].tag, points[-1].tag, points[-1].step, points[-1].value) == ("val", "loss", 19999, 19999.0)


def test_names_are_bounded_and_stay_apart(tmp_path: Path) -> None:
    text = """
import ziggurat
ziggurat.log({"x" * 1000: 1, "x" * 999: 2, "a\\nb": 3})
ziggurat.log({f"n{number}": number for number in range(1500)})
"""
    assert "more than 1000 names" in run(text, tmp_path)
    names = [each.tag for each in logged(tmp_path)]
    assert len(names) == len(set(names)) == 1000
    assert max(map(len, names)) == 200
    assert "a b" in names


@pytest.mark.parametrize("name", ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"])
def test_ranks_above_0_are_silent_unless_asked(tmp_path: Path, name: str) -> None:
    text = "import ziggurat\nziggurat.log(loss=1)\nziggurat.log(loss=2, every_rank=True)\n"
    run(text, tmp_path, **{name: "3"})
    assert [(each.tag, each.value) for each in logged(tmp_path)] == [("rank3/loss", 2.0)]


def test_each_process_has_a_file_of_its_own(tmp_path: Path) -> None:
    text = """
import os, ziggurat
ziggurat.log(parent=1)
child = os.fork()
if not child:
    ziggurat.log(child=2)
    os._exit(0)
os.waitpid(child, 0)
ziggurat.log(parent=3)
"""
    run(text, tmp_path)
    assert len(list((tmp_path / "program_log").iterdir())) == 2
    assert sorted((each.tag, each.value) for each in logged(tmp_path)) == [
        ("child", 2.0),
        ("parent", 1.0),
        ("parent", 3.0),
    ]


IMAGES = [
    ("np.zeros((4, 6), np.uint8)", (6, 4), "L"),
    ("np.ones((4, 6, 3))", (6, 4), "RGB"),
    ("np.random.randn(3, 4, 6)", (6, 4), "RGB"),
    ("np.ones((1, 4, 6), bool)", (6, 4), "L"),
    ("np.zeros((4000, 100), np.uint8)", (51, 2048), "L"),
    ("Image.new('P', (6, 4))", (6, 4), "RGBA"),
]


@pytest.mark.parametrize(("made", "size", "mode"), IMAGES)
def test_images_of_all_kinds_become_png_files(tmp_path: Path, made: str, size: tuple[int, int], mode: str) -> None:
    text = f"""
import ziggurat
import numpy as np
from PIL import Image
ziggurat.log(loss=1, step=7)
ziggurat.log_image("val/first", {made}, epoch=2)
"""
    assert run(text, tmp_path) == ""
    (event,) = logged(tmp_path, ImageLogged)
    assert (event.tag, event.path, event.step, event.epoch) == ("val/first", "images/val-first-00000007.png", 7, 2)
    with Image.open(tmp_path / event.path) as image:
        assert (image.size, image.mode) == (size, mode)


def test_floats_in_0_to_1_become_bytes(tmp_path: Path) -> None:
    run("import ziggurat\nimport numpy as np\nziggurat.log_image('a', np.array([[0.0, 0.5, 1.0]]))\n", tmp_path)
    with Image.open(tmp_path / "images/a-00000000.png") as image:
        assert np.asarray(image).tolist() == [[0, 128, 255]]


def test_what_is_no_image_is_told(tmp_path: Path) -> None:
    text = "import ziggurat\nimport numpy as np\nfor _ in range(3): ziggurat.log_image('a', np.zeros((2, 5, 5)))\n"
    assert run(text, tmp_path) == (
        "ziggurat.log: the image 'a' is left out: shape (2, 5, 5) has neither first nor last 1, 3 or 4 channels.\n"
    )
    assert logged(tmp_path, ImageLogged) == []


def test_images_are_bounded(tmp_path: Path) -> None:
    text = (
        "import ziggurat\nimport numpy as np\nfor n in range(300): ziggurat.log_image('a', np.zeros((2, 2)), step=n)\n"
    )
    assert "faster than one a second" in run(text, tmp_path)
    assert 100 <= len(logged(tmp_path, ImageLogged)) < 150
