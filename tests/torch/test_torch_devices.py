"""A training on several devices: the results are those of one device on the same batches."""

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_networks import SMALL, TOWER, batches

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.devices import devices_of
from ziggurat.backends.torch.reduction import GradientSum
from ziggurat.backends.torch.shards import ShardMemory, row_ranges
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.errors import ConfigurationError, StateError

PLAIN = SMALL.replace("Dropout(0.3)", "Dropout(0.0)")

NORMS = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.fc1 = nn.Linear(8, nclasses, bias=False)
        self.norm2 = nn.BatchNorm1d(nclasses, affine=False, momentum=None)

    def forward(self, x):
        return self.norm2(self.fc1(F.relu(self.norm1(self.conv1(x * 0.0125))).mean((2, 3))))
"""

TWO_LOSSES = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        self.fc1 = nn.Linear(64, nclasses)
        self.fc2 = nn.Linear(64, nclasses)
        self.unused = nn.Linear(64, 3)

    def forward(self, x):
        x = x.flatten(1) * 0.0125
        return [self.fc1(x), self.fc2(x)]

    def loss(self, output, y):
        return [
            {"loss": F.cross_entropy(output[0], y), "vars": list(self.fc1.parameters())},
            {"loss": F.cross_entropy(output[1], y), "vars": [*self.fc2.parameters(), *self.unused.parameters()]},
        ]
"""

HOOKED = """
class UserModel(Tower):
    def build(self):
        self.fc1 = nn.Linear(64, 16)
        self.fc2 = nn.Linear(16, self.nclasses)
        self.register_buffer("seen", torch.zeros(3))

    def gradientUpdate(self, grads):
        noise = getattr(self, "noise", 0.0)
        return [(F.normalize(g.flatten(), dim=0).reshape(g.shape) + noise * torch.randn_like(g), v) for g, v in grads]

    @model_property
    def inference(self):
        if self.is_training:
            self.seen[:2] += self.x.mean() * self.seen[2]
        return self.fc2(F.relu(self.fc1(self.x.flatten(1) * 0.0125))) + self.seen[0]

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


PIXELS = """
class UserModel(Tower):
    def build(self):
        self.conv = nn.Conv2d(1, self.nclasses, 3, padding=1)

    @model_property
    def inference(self):
        return self.conv(self.x * 0.0125)

    @model_property
    def loss(self):
        labels = torch.where(self.x[:, 0] > 3.0 * self.y[:, None, None], self.y[:, None, None], 255)
        return digits.segmentation_loss(self.inference, labels)
"""


def request(text: str = PLAIN, devices: int = 2, **fields: Any) -> ProgramRequest:
    chosen: dict[str, Any] = {"batch_size": 32, "optimizer": "momentum", "learning_rate": 0.01, **fields}
    names = tuple(f"cpu:{number}" for number in range(devices))
    return ProgramRequest(network="net.py", network_text=text, devices=names, **class_arrays((8, 8, 1), 10), **chosen)


def build(text: str = PLAIN, devices: int = 2, **fields: Any) -> Any:
    return TorchBackend().build(request(text, devices, **fields))


def uneven_batches(steps: int = 20) -> list[list[np.ndarray]]:
    """Return batches of 32, and between them some of 31 and of 1."""
    x, y = (np.concatenate(parts) for parts in zip(*batches(50, 32), strict=True))
    sizes = [(32, 31, 1, 32)[number % 4] for number in range(steps)]
    ends = np.cumsum(sizes)
    return [[x[end - size : end], y[end - size : end]] for end, size in zip(ends, sizes, strict=True)]


def train(program: Any, given: list[list[np.ndarray]], names: tuple[str, ...] = ("cost",)) -> list[dict[str, Any]]:
    return [dict(program.step(batch, names)) for batch in given]


def assert_alike(one: Any, other: Any, tolerance: float = 1e-5) -> None:
    """Assert that all arrays agree, relative to the largest number of each."""
    assert one.keys() == other.keys()
    for name, values in one.items():
        scale = float(np.abs(values).max(initial=0)) or 1.0
        assert np.abs(np.asarray(values, np.float64) - other[name]).max(initial=0) <= tolerance * scale, name


def assert_one_equals_two(text: str, given: list[list[np.ndarray]], tolerance: float = 1e-5, **fields: Any) -> None:
    one, two = build(text, 1, **fields), build(text, 2, **fields)
    try:
        names = ("cost", "gradient_norm")
        for alone, together in zip(train(one, given, names), train(two, given, names), strict=True):
            assert_alike(alone, together, tolerance)
        assert_alike(one.state(), two.state(), tolerance)
    finally:
        two.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"gradient_clip": 0.5, "weight_decay": 0.01, "mixes_labels": True},
        {"gradient_accumulation_steps": 3, "gradient_clip": 0.5},
        {"optimizer": "adam", "learning_rate": 0.001, "gradient_clip": 0.5, "ema_decay": 0.9},
    ],
    ids=["momentum", "parts", "adam"],
)
def test_two_devices_equal_one_on_uneven_batches(fields):
    given = uneven_batches()
    if fields.get("mixes_labels"):
        given = [[x, y, y[::-1].copy(), np.full(len(y), 0.7, np.float32)] for x, y in given]
    assert_one_equals_two(PLAIN, given, **fields)


@pytest.mark.parametrize("text", [PLAIN, PIXELS], ids=["classes", "pixels"])
def test_losses_that_count_more_than_rows_equal_one_device(text):
    weights = tuple(1.0 + number for number in range(10))
    assert_one_equals_two(text, uneven_batches(8), class_weights=weights)


def test_losses_with_own_parameters_equal_one_device():
    assert_one_equals_two(TWO_LOSSES, uneven_batches(8), gradient_clip=0.5)


def test_gradients_of_several_messages_equal_one_device():
    wide = PLAIN.replace("self.dropout = nn.Dropout(0.0)", "self.wide = nn.Linear(10, 600000)")
    wide = wide.replace("self.dropout(x.flatten(1))", "x.flatten(1)").replace("return self.fc1(", "x = self.fc1(")
    text = wide + "        return x + self.wide(x).reshape(len(x), 10, -1).mean(2) * 100\n"
    assert_one_equals_two(text, batches(3, 32), optimizer="sgd")


def test_gradient_update_sees_gradients_of_the_whole_batch():
    assert_one_equals_two(HOOKED, uneven_batches(8), optimizer="sgd")


def test_synchronized_batch_norm_equals_one_device():
    options = {"sync_batch_norm": True}
    given = [[x[:27], y[:27]] for x, y in batches(6, 32)]
    assert_one_equals_two(NORMS, given, 1e-4, options=options, gradient_accumulation_steps=2)
    two = build(NORMS, 2, options=options)
    with pytest.raises(ConfigurationError, match="at least one sample"):
        two.step([each[:1] for each in given[0]], ())
    two.close()


def test_batch_norm_sees_the_rows_of_its_device():
    given = batches(3, 32)
    one, two = build(NORMS, 1), build(NORMS, 2)
    train(one, [[each[:16] for each in batch] for batch in given[:1]])
    train(two, given[:1])
    name = "model/norm1.running_mean"
    # The first device has the first rows, and its averages are those of the checkpoint.
    np.testing.assert_allclose(two.state()[name], one.state()[name], rtol=1e-5, atol=1e-7)
    two.close()


def test_half_precision_with_scaled_losses_equals_one_device():
    one, two = (build(PLAIN, count, precision="fp16", gradient_accumulation_steps=2) for count in (1, 2))
    given = batches(6, 32)
    given[0] = [each[:1] for each in given[0]]  # the second device has no rows
    given[2] = [given[2][0] * np.float32(1e30), given[2][1]]  # its gradients are not finite
    train(one, given)
    train(two, given)
    state = two.state()
    assert_alike(one.state(), state, 2e-3)
    assert float(state["ziggurat/scaler/scale"]) < 65536
    two.close()


def test_values_are_those_of_the_whole_batch():
    names = ("cost", "accuracy", "error", "output", "incorrect_vector", "labels", "learning_rate")
    one, three = build(TOWER.replace("0.3", "0.0"), 1), build(TOWER.replace("0.3", "0.0"), 3)
    for program in (one, three):
        program.record(("cost", "accuracy"), ("cost",))
    given = [[*batch, np.array(["a name"] * len(batch[0]), object)] for batch in uneven_batches(4)]
    for alone, together in zip(train(one, given, names), train(three, given, names), strict=True):
        assert_alike(alone, together)
    assert_alike(one.recorded(), three.recorded())
    assert_alike(one.evaluate(given[0], names[:6]), three.evaluate(given[0], names[:6]))
    three.close()


def test_recorded_numbers_are_those_of_the_whole_batch():
    given, found = uneven_batches(3), []
    for devices in (1, 2):
        program = build(devices=devices)
        program.record(("cost", "accuracy"), ())
        for each in given:
            program.step(each, ())
        found.append(program.recorded())
        program.close()
    np.testing.assert_allclose(found[1]["accuracy"], found[0]["accuracy"], atol=1e-6)
    np.testing.assert_allclose(found[1]["cost"], found[0]["cost"], rtol=1e-5)


def test_random_numbers_differ_by_device_and_not_by_run():
    first, second = build(SMALL, 2), build(SMALL, 2)
    same = [np.concatenate([each[:1]] * 32) for each in batches(1, 32)[0]]
    rows = first.step(same, ("output",))["output"]
    assert not np.array_equal(rows[:16], rows[16:]), "each device draws its own dropout"
    assert np.array_equal(rows, second.step(same, ("output",))["output"])
    for program in (first, second):
        program.close()


@pytest.mark.nightly
def test_random_gradient_updates_are_the_same_everywhere():
    text = HOOKED.replace('getattr(self, "noise", 0.0)', "0.1").replace("torch.zeros(3)", "torch.ones(3) * 0.01")
    straight, broken = build(text, 2), build(text, 2)
    given = batches(6, 32)
    train(straight, given)
    train(broken, given[:3])
    state = broken.state()
    broken.close()
    resumed = build(text, 2)
    resumed.load_state(state)  # its replica gets what the first process had: nothing else may have counted
    train(resumed, given[3:])
    for name, values in straight.state().items():
        assert np.array_equal(values, resumed.state()[name]), name
    for program in (straight, resumed):
        program.close()


def test_one_process_where_the_network_asks_for_it():
    text = TOWER.replace("class UserModel(Tower):", "class UserModel(Tower):\n    disableAutoDataParallelism = True\n")
    program = build(text, 2)
    assert not hasattr(program, "replicas")
    program.close()


def test_a_closed_program_takes_no_step():
    program = build()
    program.close()
    program.close()
    with pytest.raises(StateError, match="until it is closed"):
        program.step(batches(1, 32)[0], ())


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (("gpu:7",), "a GPU that PyTorch sees"),
        (("cpu:0", "gpu:x"), "a GPU that PyTorch sees"),
        (("tpu:0",), "a GPU that PyTorch sees"),
    ],
)
def test_devices_that_cannot_be_are_refused(devices, message):
    with pytest.raises(ConfigurationError, match=message):
        devices_of(replace(request(), devices=devices))


def test_gpus_train_together_once_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(each) for each in devices_of(replace(request(), devices=("/gpu:1", "cuda")))] == ["cuda:1", "cuda:0"]
    for devices, message in ((("gpu:0", "cpu:0"), "all GPUs, or all"), (("gpu:1", "cuda:1"), "a GPU once")):
        with pytest.raises(ConfigurationError, match=message):
            devices_of(replace(request(), devices=devices))


@pytest.mark.parametrize("options", [{"device_timeout_s": 0}, {"device_timeout_s": "long"}])
def test_a_wrong_device_timeout_is_refused(options):
    with pytest.raises(ConfigurationError, match="device_timeout_s"):
        build(options=options)


def test_rows_are_split_over_devices_within_each_part():
    assert row_ranges(32, 1, 2) == (((0, 16),), ((16, 32),))
    assert row_ranges(7, 2, 3) == (((0, 2), (4, 5)), ((2, 3), (5, 6)), ((3, 4), (6, 7)))
    assert row_ranges(1, 2, 2) == (((0, 1),), ((1, 1),))
    for total in range(1, 40):
        ranges = row_ranges(total, 3, 4)
        rows = [row for place in range(len(ranges[0])) for own in ranges for row in range(*own[place])]
        assert rows == list(range(total))


def test_shards_lie_in_shared_memory_and_grow():
    writer = ShardMemory()
    reader = ShardMemory(writer.file)
    for size in (3, 700):
        x = np.arange(size * 1000, dtype=np.float32).reshape(size, 10, 100).transpose(0, 2, 1)
        layout = writer.write([x, np.arange(size)], [(0, 1), (2, 3)])
        shared = reader.arrays(pickle.loads(pickle.dumps(layout)))
        assert np.array_equal(shared[0], x[[0, 2]])
        assert shared[1].tolist() == [0, 2]
    whole = writer.write([x], [(0, 700)])
    assert np.array_equal(reader.arrays(whole)[0], x)
    writer.close()


class _Doubling:
    """A group of this process and one that has the same gradients."""

    rank, size = 0, 2

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def begin_sum(self, values: Any) -> None:
        self.sizes.append(len(values))
        values.mul_(2)

    def wait(self, _work: None) -> None:
        pass


@pytest.mark.parametrize("limit", [1, 400, 1 << 20])
def test_gradients_are_added_up_in_messages_of_any_size(limit):
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8, 4))
    module.to(memory_format=torch.channels_last)
    module[2].double()
    module[0].bias.requires_grad_(False)
    parameters = [each for each in module.parameters() if each.requires_grad]
    group = _Doubling()
    summed = GradientSum(group, parameters, 2, limit)
    for _ in range(2):
        for each in parameters:
            each.grad = None
        (module[0](torch.ones(1, 3, 3, 3)).square().sum() * 0.5).backward()
        summed.begin()
        features = module[0](torch.ones(1, 3, 3, 3))
        (features.square().sum() + module[2](features.flatten(1).double()).sum()).backward()
        expected = [each.grad.clone() if isinstance(each.grad, torch.Tensor) else None for each in parameters]
        sums = summed.finish({1: torch.tensor(3.0)})
        assert sums.tolist() == [0.0, 6.0]
        for parameter, values in zip(parameters, expected, strict=True):
            # Where messages leave during the backward pass, they are doubled before they are seen here.
            factor = 1.0 if torch.equal(parameter.grad, values) else 2.0
            assert torch.equal(parameter.grad, factor * values)
            assert parameter.grad.stride() == parameter.stride()
