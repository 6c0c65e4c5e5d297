"""PyTorch on a real GPU: batches that are copied ahead, precision, memory, jobs side by side. Skipped without one."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.feeds import StagedBatch, StagingFeed
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.callback import Callback
from ziggurat.engine.callbacks.gpu import GPUMemoryTracker, GPUUtilizationTracker
from ziggurat.engine.feed import BatchCycle
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import TrainingError

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

DEVICE = torch.device("cuda", 0)


def program_of(text=TOWER, **fields):
    arrays = class_arrays((8, 8, 1), 10)
    return TorchBackend().build(
        ProgramRequest(network="network.py", network_text=text, **{**arrays, "batch_size": 32, "seed": 1, **fields})
    )


def trained(data, epochs=2, **fields):
    """Return the state behind some epochs, and the costs of their steps."""
    program, costs = program_of(**fields), []

    class Costs(Callback):
        def declares(self):
            return ("cost",)

        def before_run(self):
            return ("cost",)

        def after_run(self, values):
            costs.append(float(values["cost"]))

    try:
        Trainer(program, data, callbacks=[Costs()]).train(epochs)
        return program.state(), costs
    finally:
        program.close()


def test_batches_are_copied_ahead_and_let_go() -> None:
    data = batches(8, 32)
    feed = program_of().connect(BatchCycle(data))
    assert isinstance(feed, StagingFeed)
    held = []
    for expected in data[:5]:
        batch = feed.next()
        assert isinstance(batch, StagedBatch)
        copies = batch.take()
        assert [each.device for each in copies] == [DEVICE] * 2
        for copy, array in zip(copies, expected, strict=True):
            np.testing.assert_array_equal(copy.cpu().numpy(), array)
        assert batch.take() == list(batch), "a batch that is kept holds no memory of the GPU"
        held.append(batch)
    feed.close()
    for batch, expected in zip(held, data, strict=False):
        np.testing.assert_array_equal(batch[0], expected[0])


def test_copies_that_no_stream_has_used_up_are_not_written_over() -> None:
    """Each batch holds one number, which a slow step must find in all of its places."""
    data = [[np.full((64, 128, 128, 3), number, np.uint8)] for number in range(24)]
    feed = StagingFeed(BatchCycle(data), 2, DEVICE)
    sums = []
    for _ in data:
        (copy,) = feed.next().take()
        torch.cuda._sleep(20_000_000)  # about 10 ms, so that copies overtake the steps
        sums.append(copy.float().mean())
        del copy
    assert [each.item() for each in sums] == list(range(24))
    feed.close()


def test_uint8_images_train_as_float32_ones_do() -> None:
    data = batches(8, 32)
    _, costs = trained(data)
    _, costs_of_bytes = trained([[x.astype(np.uint8), y] for x, y in data])
    np.testing.assert_allclose(costs, costs_of_bytes, rtol=1e-4)  # sums of a GPU may differ from run to run


def test_a_gpu_trains_as_the_processor_does() -> None:
    costs = [trained(batches(8, 32), text=SMALL.replace("0.3", "0.0"), devices=(name,))[1] for name in ("gpu:0", "cpu")]
    assert len(costs[0]) == 16
    np.testing.assert_allclose(costs[0], costs[1], rtol=2e-3)


@pytest.mark.filterwarnings("ignore")  # the compiler warns of itself, on some versions
@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
@pytest.mark.parametrize("compiled", [False, True])
def test_every_precision_learns(precision, compiled) -> None:
    fields = {"options": {"compile": True}} if compiled else {}
    state, costs = trained(
        batches(20, 64), 5, precision=precision, optimizer="adam", learning_rate=0.01, batch_size=64, **fields
    )
    assert np.mean(costs[-10:]) < 0.35 * np.mean(costs[:10])
    assert all(np.isfinite(each).all() for name, each in state.items() if name.startswith("model/"))


def test_deterministic_algorithms_resume_bit_for_bit(monkeypatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    data, fields = batches(8, 32), {"optimizer": "adam", "options": {"deterministic": True}}
    try:
        whole, _ = trained(data, 2, **fields)
        first = program_of(**fields)
        Trainer(first, data).train(1)
        state = first.state()
        first.close()
        second = program_of(**fields)
        second.load_state(state)
        for batch in data:
            second.step(batch, ())
        found = second.state()
        second.close()
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(np.array_equal(whole[name], found[name]) for name in whole)


def test_too_large_a_batch_says_what_to_do() -> None:
    network = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)

    def forward(self, x):
        x = x.flatten(1)
        if self.training:
            x = x + torch.zeros(1 << 44, device=x.device).sum()
        return self.fc1(x)
"""
    program = program_of(network)
    with pytest.raises(TrainingError, match="batch_size") as caught:
        program.step(batches(1, 32)[0], ())
    assert "memory of cuda:0" in caught.value.rule
    program.close()


def test_trackers_read_the_gpu() -> None:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    found = {}

    class Kept(Monitor):
        def process_scalar(self, scalar):
            found.setdefault(scalar.tag, []).append(scalar.value)

    program = program_of()
    trackers = [GPUUtilizationTracker(every_s=0.05), GPUMemoryTracker(every_s=0.05)]
    Trainer(program, batches(20, 32), callbacks=trackers, monitors=[Kept()]).train(3)
    program.close()
    assert len(found["GPUUtil/0"]) == 3
    assert all(0 <= each <= 100 for each in found["GPUUtil/0"])
    assert all(each > 0.1 for each in found["GPUMemory/0 (GB)"]), "a context alone takes more"


def test_two_jobs_share_a_gpu(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "ziggurat", "train", "--backend", "torch", "--network", "lenet"]
    command += ["--data", "digits", "--epochs", "2", "--devices", "gpu:0"]
    jobs = [
        subprocess.Popen(
            [*command, "--seed", str(seed), "--out", str(tmp_path / str(seed))],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for seed in range(2)
    ]
    said = [job.communicate(timeout=300)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], said
    assert all(list((tmp_path / str(seed) / "checkpoints").iterdir()) for seed in range(2))
