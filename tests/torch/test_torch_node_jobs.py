"""Jobs over several nodes, as their workers are started there: their curves are those of devices of one machine."""

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from test_torch_devices_ends import Workers, arrays_of, job, wait_for_step

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.errors import ConfigurationError
from ziggurat.events import ArithmeticRecorded, AttemptEnded, Message, effective_scalars, read_events
from ziggurat.layout import JobFolder

pytestmark = pytest.mark.usefixtures("cold_starts")

OF_NODES: dict[str, Any] = {"devices": [], "nodes": 2, "threads": 1}
OF_DEVICES: dict[str, Any] = {"threads": 1}
MEASURED = ("Throughput", "StepTime")


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    found = Workers(tmp_path)
    yield found
    found.close()


def start(
    workers: Workers, *folders: JobFolder, of_each: Sequence[Mapping[str, str]] = ({}, {}), **variables: str
) -> list[subprocess.Popen[bytes]]:
    """Start the worker of each rank as the bridge to a cluster does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    common = {"LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, **variables}
    common["WORLD_SIZE"] = str(len(folders))
    return [workers.start(folder, RANK=str(rank), **common, **of_each[rank]) for rank, folder in enumerate(folders)]


def curves_of(folder: JobFolder) -> list[tuple[str, int, float]]:
    points = effective_scalars(read_events(folder.events)[0])
    return sorted((each.tag, each.step, each.value) for each in points if not each.tag.startswith(MEASURED))


def end_of(folder: JobFolder) -> str:
    """Return how the attempt ended, in words; empty where it did not say."""
    return next((each.reason for each in read_events(folder.events)[0] if isinstance(each, AttemptEnded)), "")


def test_two_nodes_give_the_curves_of_two_devices(workers, tmp_path):
    ranks = [job(tmp_path / f"rank{rank}", **OF_NODES) for rank in range(2)]
    processes = start(workers, *ranks)
    workers.run(job(tmp_path / "alone", **OF_DEVICES))
    assert [each.wait(120) for each in processes] == [0, 0]
    expected = curves_of(JobFolder(tmp_path / "alone"))
    assert any(tag == "validation_cost" for tag, _, _ in expected)
    assert curves_of(ranks[0]) == expected
    assert curves_of(ranks[1]) == []
    assert not ranks[1].checkpoints.exists()
    assert end_of(ranks[1]) == "rank 0 has ended the training"
    (recorded,) = [each for each in read_events(ranks[0].events)[0] if isinstance(each, ArithmeticRecorded)]
    assert recorded.values["devices"] == "2 × cpu"


@pytest.mark.nightly
def test_a_killed_process_leaves_an_exact_resume(workers, tmp_path):
    workers.run(job(tmp_path / "alone", **OF_DEVICES))
    step = int(np.random.default_rng().integers(4, 18))
    ranks = [job(tmp_path / f"rank{rank}", "threading.Event().wait(0.1)", **OF_NODES) for rank in range(2)]
    first, other = start(workers, *ranks)
    wait_for_step(ranks[0], step)
    other.kill()
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(3)  # it does not call the job failed: whoever started it decides
    assert end_of(ranks[0]) == ""
    first.kill()
    first.wait()
    # A new attempt of another rank begins with what rank 0 had saved.
    shutil.rmtree(ranks[1].path)
    shutil.copytree(ranks[0].path, ranks[1].path, ignore=shutil.ignore_patterns("events.jsonl", "log.txt"))
    assert [each.wait(120) for each in start(workers, *ranks)] == [0, 0]
    alone = JobFolder(tmp_path / "alone")
    assert curves_of(ranks[0]) == curves_of(alone), f"killed at step {step} or later"
    expected = arrays_of(alone)
    for name, values in arrays_of(ranks[0]).items():
        assert np.array_equal(values, expected[name]), f"{name}, killed at step {step} or later"


SEEN = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(input_shape[1] * input_shape[2], 16)
        self.fc2 = nn.Linear(16, nclasses)

    def forward(self, x):
        if self.training and x.device.type == "cpu":
            threading.Event().wait(float(os.environ.get("PAUSE_S", "0")))
            with open(os.environ["SEEN"], "a") as file:
                print(*[int(row.sum()) for row in x], file=file)
        return self.fc2(F.relu(self.fc1((x * 0.0125).flatten(1))))
"""
"""A network that writes down the samples of each step, by the sums of their pixels."""


def samples_of(*files: Path) -> list[list[str]]:
    """Return the samples of each step, those of all ranks."""
    steps = zip(*(file.read_text().splitlines() for file in files), strict=False)
    return [" ".join(parts).split() for parts in steps]


def test_a_resume_on_fewer_processes_has_the_same_samples(workers, tmp_path):
    network = {"path": "net.py", "source": "file", "text": f"import os, threading\n{SEEN}"}
    names = ("twin0", "twin1", "rank0", "rank1")
    folders = [job(tmp_path / name, network=network, epochs=1, **OF_NODES) for name in names]
    seen = [tmp_path / f"{name}.txt" for name in (*names, "alone")]
    files = [{"SEEN": str(path)} for path in seen]
    assert [each.wait(120) for each in start(workers, *folders[:2], of_each=files[:2])] == [0, 0]
    twin, lost = folders[0], folders[2]
    processes = start(workers, *folders[2:], of_each=files[2:], PAUSE_S="0.1")
    wait_for_step(lost, 7)
    for each in reversed(processes):
        each.kill()
        each.wait()
    saved = CheckpointStore(lost.checkpoints).list()[-1].step
    note = "Resumed on 1 of 2 processes: node b is gone."
    (alone,) = start(workers, lost, of_each=files[4:], ZIGGURAT_RESUMED_ON=note)
    assert alone.wait(120) == 0, end_of(lost)
    assert samples_of(seen[4]) == samples_of(*seen[:2])[saved:]
    expected, found = curves_of(twin), curves_of(lost)
    assert [each[:2] for each in found] == [each[:2] for each in expected]
    before = [each for each in found if each[1] <= saved]
    assert before == [each for each in expected if each[1] <= saved], "bit for bit up to the checkpoint"
    assert before, "some steps are those of two processes"
    assert np.allclose([each[2] for each in found], [each[2] for each in expected], rtol=1e-3, atol=1e-4)
    events = read_events(lost.events)[0]
    recorded = [each for each in events if isinstance(each, ArithmeticRecorded)][-1]
    assert recorded.text == f"{note} Same state and data, other arithmetic: devices 2 × cpu → cpu."
    assert recorded.text in [each.text for each in events if isinstance(each, Message)]
    assert recorded.text in lost.log.read_text()


@pytest.mark.nightly
def test_rank_1_ends_in_order_when_rank_0_is_killed(workers, tmp_path):
    ranks = [job(tmp_path / f"rank{rank}", "threading.Event().wait(0.05)", **OF_NODES) for rank in range(2)]
    first, other = start(workers, *ranks)
    wait_for_step(ranks[0], 2)
    first.kill()
    assert other.wait(60) == 0
    assert end_of(ranks[1]) == "rank 0 has ended, or cannot be reached"


@pytest.mark.nightly
def test_an_error_of_a_rank_names_it(workers, tmp_path):
    other = "__import__('os').environ['RANK'] == '1'"
    step = f"if {other} and self.norm.num_batches_tracked == 3:\n                1 / 0"
    ranks = [job(tmp_path / f"rank{rank}", step, **OF_NODES) for rank in range(2)]
    processes = start(workers, *ranks)
    assert all(each.wait(120) for each in processes)
    assert end_of(ranks[0]).startswith("Rank 1 failed: ")
    assert "division by zero" in end_of(ranks[1])


@pytest.mark.nightly
def test_a_worker_without_a_launcher_refuses(workers, tmp_path):
    folder = job(tmp_path / "job", **OF_NODES)
    assert workers.start(folder).wait(60) == ConfigurationError.exit_code
    assert "is started by a studio with a cluster" in end_of(folder)
