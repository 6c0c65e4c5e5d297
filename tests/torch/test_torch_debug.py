"""Debug runs a PyTorch network once on one batch, and tells of each layer with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.tasks import TorchTasks
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import NetworkCodeError
from ziggurat.worker.commands.networks import debug


def run(text: str) -> Any:
    asked = ProgramRequest(network="net.py", network_text=text, **class_arrays((8, 8, 1), 10))
    return TorchTasks().debug(asked, batches(1, 16)[0])


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize("text", [SMALL, TOWER])
def test_layers_are_told_with_figures_and_lines(text: str) -> None:
    found = run(text)
    first = line_of(text, "F.max_pool2d")
    calls = [(each["layer"], each["scope"], each["shape"], each["line"]) for each in found["layers"]][:6]
    assert calls == [
        ("mul", "", (16, 1, 8, 8), first),
        ("Conv2d", "conv1", (16, 8, 8, 8), first),
        ("relu", "", (16, 8, 8, 8), first),
        ("max_pool2d", "", (16, 8, 4, 4), first),
        ("Dropout", "dropout", (16, 128), first + 1),
        ("Linear", "fc1", (16, 10), first + 1),
    ]
    x = batches(1, 16)[0][0].astype(np.float64) * 0.0125
    assert found["layers"][0]["mean"] == pytest.approx(x.mean(), rel=1e-5)
    assert found["layers"][0]["deviation"] == pytest.approx(x.std(), rel=1e-5)
    assert found["variables"]["model/fc1.weight"] == (10, 128)
    assert found["output_shapes"] == [(16, 10)]
    assert 1 < found["loss"] < 5
    assert found["notes"] == []


def test_dropout_is_in_training_mode() -> None:
    dropped = next(each for each in run(SMALL)["layers"] if each["layer"] == "Dropout")
    kept = next(
        each for each in run(SMALL.replace("Dropout(0.3)", "Dropout(0.0)"))["layers"] if each["layer"] == "Linear"
    )
    assert dropped["deviation"] > 0
    assert kept["shape"] == (16, 10)


def test_weights_that_nothing_reads_are_named() -> None:
    text = SMALL.replace("self.dropout =", "self.left_out = nn.Linear(3, 4)\n        self.dropout =")
    assert run(text)["notes"] == ["Weights that nothing read: model/left_out.weight, model/left_out.bias."]


def test_an_error_stops_at_the_line_of_the_layer() -> None:
    text = SMALL.replace("8 * (height // 2)", "9 * (height // 2)")
    with pytest.raises(NetworkCodeError, match=f"net.py, line {line_of(text, 'return self.fc1')}, `return "):
        run(text)


def test_a_file_is_debugged_on_real_digits(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(SMALL)
    found = debug({"network": str(path), "backend": "torch", "batch_size": 4})
    assert found["batch"] == [[4, 28, 28, 1], [4]]
    assert found["layers"][1]["shape"] == (4, 8, 28, 28)
