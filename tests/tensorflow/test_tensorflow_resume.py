"""A TensorFlow job that is killed and resumed ends exactly as one that was left alone, dropout included."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorflow_networks import SMALL

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from tests.waiting import wait_until
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState
from ziggurat.entities import Heartbeat, read_heartbeat
from ziggurat.events import effective_scalars, read_events
from ziggurat.specs import RENAMED

FLAGS = """
--framework tensorflow --data digits --set data.options.size=8 --epochs 12 --batch-size 32 --schedule cosine
--learning-rate 0.05 --set checkpoints.every_steps=17 --set heartbeat_s=0.05 --set augmentation.noise=0.05
--monitors events
"""
AVERAGED = ["--ema-decay", "0.99", "--gradient-accumulation-steps", "2", "--set", "batch_size=16"]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ziggurat", *arguments]


def ended(folder: Path) -> tuple[RunState, list[tuple[str, int, float]]]:
    newest = CheckpointStore(folder / "checkpoints", writable=False).latest()
    assert newest is not None
    scalars = effective_scalars(read_events(folder / "events.jsonl")[0])
    timed = ("Throughput", "StepTime")  # times differ from run to run
    return newest[1], [(each.tag, each.step, each.value) for each in scalars if not each.tag.startswith(timed)]


def train_and_kill(folder: Path, network: Path, flags: list[str], stops: list[int]) -> None:
    for attempt, stop in enumerate(stops):
        start = (
            ["train", *flags, "--network", str(network), "--out", str(folder)]
            if attempt == 0
            else ["resume", str(folder)]
        )
        process = subprocess.Popen(command(*start), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def arrived(process: subprocess.Popen[bytes] = process, stop: int = stop) -> Heartbeat | None:
            beat = read_heartbeat(folder / "heartbeat.json")
            if beat is not None and beat.phase == "training" and beat.global_step >= stop:
                return beat
            assert process.poll() is None, "the worker ended before it was killed"
            return None

        beat = wait_until(arrived, 90, what=f"step {stop}")
        os.kill(beat.pid, signal.SIGKILL)
        process.wait(timeout=60)
        say_as_0_1(folder / "spec.json")


def say_as_0_1(path: Path) -> None:
    """Give the fields of a stored spec the names that release 0.1 wrote."""
    text = path.read_text()
    for old, new in RENAMED["train"].items():
        old, new = old.rpartition(".")[2], new.rpartition(".")[2]
        text = text.replace(f'"{new}": ', f'"{old}": ')
        assert f'"{old}": ' in text
    path.write_text(text)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "further",
    [pytest.param([], id="plain"), pytest.param(AVERAGED, id="averaged weights", marks=pytest.mark.nightly)],
)
def test_killed_three_times_and_resumed_equals_uninterrupted(tmp_path: Path, further: list[str]) -> None:
    network = tmp_path / "network.py"
    network.write_text(SMALL)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    flags = [*FLAGS.split(), *further]
    subprocess.run(command("train", *flags, "--network", str(network), "--out", str(whole)), check=True)
    train_and_kill(killed, network, flags, stops=sorted(random.Random(4).sample(range(40, 400), 3)))
    subprocess.run(command("resume", str(killed)), check=True)
    (first, curves), (second, resumed_curves) = ended(whole), ended(killed)
    assert list(first.arrays) == list(second.arrays)
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
    assert first.meta["batches"] == second.meta["batches"]
    assert curves == resumed_curves
