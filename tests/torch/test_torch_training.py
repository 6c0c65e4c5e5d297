"""Trainings on PyTorch: pretrained weights, freezing, several losses, mixed labels, hooks, devices and errors."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from safetensors.torch import save_file
from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.network_file import users_errors
from ziggurat.backends.torch.optimizers import OPTIMIZERS
from ziggurat.backends.torch.program import TorchProgram
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.engine.program import NonFiniteStep
from ziggurat.entities.backend_info import backend_info
from ziggurat.errors import CheckpointError, ConfigurationError, NetworkCodeError, TrainingError, UnknownNameError
from ziggurat.specs.optimizer import Optimizer


def build(text: str = SMALL, **fields: Any) -> TorchProgram:
    chosen: dict[str, Any] = {**class_arrays((8, 8, 1), 10), "batch_size": 32, "learning_rate": 0.01, **fields}
    return TorchBackend().build(ProgramRequest(network="net.py", network_text=text, **chosen))


def weights(program: TorchProgram) -> dict[str, np.ndarray]:
    return {name: array for name, array in program.state().items() if name.startswith("model/")}


def test_pretrained_weights_are_taken_by_name(caplog: pytest.LogCaptureFixture) -> None:
    first = build(seed=1)
    first.step(batches(1, 32)[0], ())
    pretrained = weights(first)
    caplog.set_level("INFO")
    second = build(SMALL.replace("self.fc1", "self.head"), seed=2, pretrained=pretrained)
    np.testing.assert_array_equal(weights(second)["model/conv1.weight"], pretrained["model/conv1.weight"])
    assert "started fresh: model/head.weight, model/head.bias." in caplog.text
    assert "left out: model/fc1.weight, model/fc1.bias." in caplog.text


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_files_of_weights_are_checkpoints(tmp_path: Path, suffix: str) -> None:
    program, path = build(seed=1), tmp_path / f"mine{suffix}"
    tensors = program.network.module.state_dict()
    if suffix == ".pth":
        torch.save({"state_dict": tensors}, path)
    else:
        save_file({name: each.contiguous() for name, each in tensors.items()}, path)
    assert backend_info("torch").has_checkpoint(path)
    found = TorchBackend().read_checkpoint(path)
    assert set(found) == set(weights(program))
    np.testing.assert_array_equal(found["model/fc1.weight"], weights(program)["model/fc1.weight"])


def test_another_shape_is_refused_with_both() -> None:
    with pytest.raises(CheckpointError, match=r"has shape \(8, 1, 3, 3\), in the checkpoint \(4, 1, 3, 3\)"):
        build(pretrained={"model/conv1.weight": np.zeros((4, 1, 3, 3), np.float32)})


def test_a_model_of_which_nothing_fits_is_refused() -> None:
    pretrained = {"model/resnet/conv_1/weights": np.zeros((3, 3, 1, 8), np.float32)}
    with pytest.raises(CheckpointError, match=r"resnet/conv_1/weights .* model/conv1\.weight, .* its own"):
        build(pretrained=pretrained)
    build(pretrained={"optimizer/0/step/conv1.weight": np.zeros(()), "global_step": np.zeros(())})


def test_renaming_and_patterns_freeze() -> None:
    pretrained = weights(build(seed=1))
    renamed = SMALL.replace("self.conv1", "self.conv1_not_in_use")
    for program, name in (
        (build(renamed, pretrained=pretrained), "model/conv1_not_in_use.weight"),
        (build(pretrained=pretrained, freeze=("conv*",)), "model/conv1.weight"),
    ):
        before = weights(program)
        for batch in batches(3, 32):
            program.step(batch, ())
        after = weights(program)
        np.testing.assert_array_equal(after[name], pretrained["model/conv1.weight"])
        assert (after["model/fc1.weight"] != before["model/fc1.weight"]).any()


def test_everything_frozen_is_an_error() -> None:
    with pytest.raises(NetworkCodeError, match="at least one parameter that is trained"):
        build(freeze=("*",))


def test_fine_tune_hook_is_called_for_pretrained_only() -> None:
    text = TOWER + "\n    def fineTuneHook(self, net):\n        return 2 * net\n"
    fresh = build(text, seed=1)
    tuned = build(text, pretrained=weights(fresh))
    x = batches(1, 4)[0][0]
    np.testing.assert_allclose(2 * fresh.predict(x)[0], tuned.predict(x)[0], rtol=1e-5)


def test_gradient_update_leaves_out_what_it_returns_not() -> None:
    hook = "\n    def gradientUpdate(self, grads):\n        return [(0 * g, p) for g, p in grads if p.ndim > 1]\n"
    program = build(TOWER + hook)
    before = weights(program)
    for batch in batches(2, 32):
        program.step(batch, ())
    for name, array in weights(program).items():
        np.testing.assert_array_equal(array, before[name])


TWO_LOSSES = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.first = nn.Linear(64, 10)
        self.second = nn.Linear(64, 10)

    def forward(self, x):
        x = x.flatten(1) / 255
        return [self.first(x), self.second(x)]

    def loss(self, output, y):
        both = F.cross_entropy(output[0] + output[1], y)
        return [
            {"loss": both, "vars": list(self.first.parameters())},
            {"loss": 0 * both, "vars": list(self.second.parameters())},
        ]
"""


def test_each_loss_trains_its_own_variables() -> None:
    program = build(TWO_LOSSES)
    before = weights(program)
    program.step(batches(1, 32)[0], ("cost", "output", "output_1"))
    after = weights(program)
    assert (after["model/first.weight"] != before["model/first.weight"]).any()
    np.testing.assert_array_equal(after["model/second.weight"], before["model/second.weight"])


def test_mixed_labels_share_the_loss() -> None:
    program = build(mixes_labels=True, optimizer="sgd", learning_rate=0.0)
    x, y = batches(1, 32)[0]
    other, share = (y + 1) % 10, np.full(32, 0.7, np.float32)
    mixed = program.step([x, y, other, share], ("cost",))["cost"]
    program.load_state({**program.state(), "ziggurat/step": np.array(0)})
    own = program.step([x, y, y, np.ones(32, np.float32)], ("cost",))["cost"]
    program.load_state({**program.state(), "ziggurat/step": np.array(0)})
    others = program.step([x, other, other, np.ones(32, np.float32)], ("cost",))["cost"]
    assert mixed == pytest.approx(0.7 * own + 0.3 * others, rel=1e-5)


def test_class_weights_weigh_the_loss() -> None:
    x, y = batches(1, 32)[0]
    factors = tuple(float(each) for each in range(1, 11))
    plain, weighted = build(seed=1), build(seed=1, class_weights=factors)
    logits = torch.from_numpy(plain.predict(x)[0])
    expected = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y), weight=torch.tensor(factors))
    assert weighted.evaluate([x, y], ("cost",))["cost"] == pytest.approx(float(expected), rel=1e-5)


def test_parts_of_a_batch_equal_the_whole() -> None:
    text = SMALL.replace("nn.Dropout(0.3)", "nn.Dropout(0.0)")
    whole, parts = build(text), build(text, gradient_accumulation_steps=4)
    for batch in batches(3, 32):
        one, other = whole.step(batch, ("cost", "output")), parts.step(batch, ("cost", "output"))
        assert one["cost"] == pytest.approx(other["cost"], rel=1e-5)
        np.testing.assert_allclose(one["output"], other["output"], atol=1e-5)


def test_the_clipped_norm_is_the_limit() -> None:
    free, clipped = build(learning_rate=1.0), build(learning_rate=1.0, gradient_clip=0.1)
    batch = batches(1, 32)[0]
    before = weights(clipped)
    norm = float(clipped.step(batch, ("gradient_norm",))["gradient_norm"])
    assert norm == pytest.approx(float(free.step(batch, ("gradient_norm",))["gradient_norm"]), rel=1e-6)
    assert norm > 0.1
    moved = [after - before[name] for name, after in weights(clipped).items()]
    assert np.sqrt(sum(float(np.square(each).sum()) for each in moved)) == pytest.approx(0.1, rel=1e-4)


LINEAR = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)

    def forward(self, x):
        return self.fc1(x.flatten(1) / 255)
"""


def test_every_optimizer_of_a_spec_is_there() -> None:
    kinds = get_args(get_args(Optimizer)[0])
    assert len(kinds) > 8
    for kind in kinds:
        parameters = {*kind.model_fields} - {"name"}
        assert parameters <= OPTIMIZERS[kind.model_fields["name"].default][1], kind


@pytest.mark.parametrize("options", [{"initial_accumulator": 0}, {"l1": -1}])
def test_wrong_parameters_of_an_optimizer_are_told(options: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        build(LINEAR, optimizer="adagrad_da", optimizer_options=options)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_learns_and_resumes(name: str) -> None:
    rate = {"adadelta": 1.0, "adam": 1e-3, "adamw": 1e-3, "rmsprop": 1e-3}.get(name, 0.01)
    text = LINEAR if name == "adagrad_da" else SMALL  # it starts weights at 0
    program, other = (build(text, optimizer=name, learning_rate=rate, weight_decay=1e-4) for _ in range(2))
    data = batches(6, 32)
    first = program.evaluate(data[0], ("cost",))["cost"]
    for batch in data * 3:
        program.step(batch, ())
    assert program.evaluate(data[0], ("cost",))["cost"] < first
    other.load_state(program.state())
    for batch in data:
        assert program.step(batch, ("cost",)) == other.step(batch, ("cost",))


def test_unknown_optimizers_and_options_are_named() -> None:
    with pytest.raises(UnknownNameError, match="optimizer of the PyTorch backend"):
        build(optimizer="adamm")
    with pytest.raises(UnknownNameError, match="parameter of the optimizer adam"):
        build(optimizer="adam", optimizer_options={"beta": 0.9})
    with pytest.raises(UnknownNameError, match="option of the PyTorch backend"):
        build(options={"channel_last": True})


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"PyTorch .* sees 0 GPUs"):
        build(devices=("gpu:7",))


def test_a_cost_that_is_not_finite_is_told() -> None:
    program = build(learning_rate=1e30)
    assert list(program.record(["cost"], ["cost"])) == ["cost"]
    program.declare(["cost"])
    with pytest.raises(NonFiniteStep, match="cost"):
        for batch in batches(5, 32):
            program.step(batch, ())


def test_memory_that_runs_out_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    program = build()

    def full(*_: Any, **__: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nmore")

    monkeypatch.setattr(program, "_forward", full)
    with pytest.raises(TrainingError, match=r"Tried to allocate 2\.00 GiB.*Make `batch_size`"):
        program.step(batches(1, 32)[0], ())


def test_memory_that_runs_out_is_no_error_of_the_network_file() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="no room"), users_errors("net.py"):
        raise torch.OutOfMemoryError("no room")


def test_parameters_that_are_trained_alike_are_one_group() -> None:
    groups = [build(optimizer=name, weight_decay=0.01).optimizers[0].param_groups for name in ("momentum", "adamw")]
    assert [[each["weight_decay"] for each in found] for found in groups] == [[0.0], [0.01, 0.0]]


def test_a_scalar_loss_is_minimized_as_it_is() -> None:
    network = build().network
    (loss,) = network.results(network.zeros(), torch.zeros(2, dtype=torch.int64), is_training=True).losses
    assert type(loss.value.grad_fn).__name__ == "NllLossBackward0"


def test_the_layout_in_memory_changes_no_result() -> None:
    batch = batches(1, 32)[0]
    costs = [build(options={"channels_last": wanted}).step(batch, ("cost",))["cost"] for wanted in (True, False)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6)


def test_summaries_become_messages_for_tensorboard() -> None:
    program = build(TOWER)
    message = program.summarise(batches(1, 8)[0])
    assert b"input/3" in message
    assert b"logits" in message
    assert b"\x89PNG" in message
    assert build().summarise(batches(1, 8)[0]) == b""


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"has the shape \(8, 8, 1\)"):
        build().step([np.zeros((2, 9, 9, 1), np.float32), np.zeros(2, np.int64)], ())
    with pytest.raises(ConfigurationError, match="samples and labels"):
        build().step([np.zeros((2, 8, 8, 1), np.float32)], ())


def test_regression_starts_in_the_units_of_its_target() -> None:
    text = (
        "class UserModel(nn.Module):\n"
        "    def __init__(self, nclasses, input_shape, target_shape, target_mean, target_std):\n"
        "        super().__init__()\n"
        "        self.register_buffer('mean', target_mean), self.register_buffer('std', target_std)\n"
        "        self.fc = nn.Linear(input_shape[0], target_shape[0])\n"
        "    def forward(self, x):\n"
        "        return self.fc(x) * self.std + self.mean\n"
    )
    arrays = {
        "inputs": {"x": ArraySpec((3,))},
        "targets": {"y": ArraySpec((1,), mean=(1000.0,), std=(5.0,))},
    }
    program = build(text, **arrays)
    values = program.evaluate([np.zeros((4, 3), np.float32), np.full((4, 1), 1000, np.float32)], ("output", "cost"))
    assert np.abs(values["output"] - 1000).max() < 5
    assert "mean_absolute_error" in program.summary_names()
