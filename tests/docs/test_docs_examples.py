"""The programs in ``examples`` run as they stand, and so does what the tutorial on feeding shows for TensorFlow."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TUTORIAL = REPOSITORY / "docs/tutorials/feed-a-training.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def needs(*packages):
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


WITH_TORCH = [pytest.mark.torch, needs("torch", "sklearn")]
WITH_TENSORFLOW = [pytest.mark.tensorflow, needs("tensorflow", "sklearn")]


def run(*command, folder):
    """Run Python in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize(
    "program",
    [
        pytest.param("feed_torch.py", marks=WITH_TORCH),
        pytest.param("feed_tensorflow.py", marks=WITH_TENSORFLOW),
    ],
)
def test_an_example_learns_and_says_what_its_stages_did(program, tmp_path):
    lines = run(REPOSITORY / "examples" / program, "--epochs", 3, folder=tmp_path).splitlines()
    accuracies = [float(line.rpartition(" ")[2]) for line in lines if line.startswith("epoch ")]
    assert len(accuracies) == 3
    assert accuracies[-1] > 0.6
    assert lines[-1].startswith("SklearnDigits: ")


def section(text, title):
    """Return a chapter of a page, up to the next one."""
    return text.split(f"\n## {title}\n")[1].split("\n## ")[0]


@pytest.mark.nightly
@pytest.mark.tensorflow
@needs("tensorflow", "sklearn")
def test_the_tensorflow_chapter_runs_after_those_before_torch(tmp_path):
    text = TUTORIAL.read_text()
    before, _, _ = text.partition("\n## Feed a PyTorch loop\n")
    program = tmp_path / "tutorial.py"
    program.write_text("\n".join(BLOCK.findall(before + section(text, "Feed a TensorFlow loop"))))
    assert "train_step(batch_images, batch_labels)" in program.read_text()
    run(program, folder=tmp_path)


def test_every_example_is_named_on_a_page():
    pages = [page.read_text() for page in (REPOSITORY / "docs").rglob("*.md") if "_build" not in page.parts]
    examples = [f"examples/{path.name}" for path in (REPOSITORY / "examples").glob("*.py")]
    assert len(examples) >= 2
    assert [name for name in examples if not any(name in page for page in pages)] == []
