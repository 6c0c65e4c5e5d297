"""A user's network file for PyTorch: both forms, its names, and errors that name its own lines."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch_networks import SMALL, TOWER

from ziggurat.backends.torch.backend import TorchBackend
from ziggurat.backends.torch.export.serving import ServingModule
from ziggurat.backends.torch.network import Network, make_network
from ziggurat.backends.torch.network_file import load_network
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.engine.backend import ArraySpec, ProgramRequest, class_arrays
from ziggurat.errors import NetworkCodeError

HEAD = "class UserModel(nn.Module):\n    def __init__(self, nclasses, input_shape):\n        super().__init__()\n"
FORWARD = "    def forward(self, x):\n        return self.fc(x.flatten(1))\n"
LINEAR = f"{HEAD}        self.fc = nn.Linear(64, nclasses)\n"


def network(text: str, **arrays: Any) -> Network:
    found = {**class_arrays((8, 8, 1), 10), **arrays}
    return make_network(ProgramRequest(network="my_network.py", network_text=text, **found))


def error_of(text: str, **arrays: Any) -> NetworkCodeError:
    with pytest.raises(NetworkCodeError) as caught:
        network(text, **arrays)
    return caught.value


@pytest.mark.parametrize(
    "imports",
    [
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n",
        "from torch import nn\nfrom torch.nn import functional as F\nimport numpy as np, math\n",
        "from model import Tower\nfrom utils import model_property\nimport utils as digits\nimport digits\n",
    ],
)
def test_usual_imports_work(imports: str) -> None:
    assert issubclass(load_network(imports + SMALL, "my_network.py"), torch.nn.Module)


def test_both_forms_give_the_same(recwarn: pytest.WarningsRecorder) -> None:
    x = torch.rand(4, 1, 8, 8) * 255
    plain, tower = network(SMALL), network(TOWER)
    for one, other in zip(plain.module.state_dict().values(), tower.module.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)
    plain.module.eval(), tower.module.eval()
    torch.testing.assert_close(plain.predict(x)[0], tower.predict(x)[0])
    y = torch.tensor([1, 2, 3, 4])
    values = [each.results(x, y, is_training=False) for each in (plain, tower)]
    torch.testing.assert_close(values[0].losses[0].value, values[1].losses[0].value)
    torch.testing.assert_close(values[0].scalars["accuracy"], values[1].scalars["accuracy"])


def test_a_plain_module_gets_what_it_names() -> None:
    text = (
        "class UserModel(nn.Module):\n"
        "    def __init__(self, nclasses, input_shape, *, target_std, categories, vocabulary_size):\n"
        "        super().__init__()\n"
        "        self.seen = (nclasses, input_shape, target_std.tolist(), categories, vocabulary_size)\n"
        "        self.fc = nn.Linear(3, 2)\n"
        "    def forward(self, x):\n"
        "        return self.fc(x)\n"
    )
    arrays = {
        "inputs": {"x": ArraySpec((3,), categories=(0, 4, 0))},
        "targets": {"y": ArraySpec((2,), mean=(1.0, 2.0), std=(3.0, 4.0))},
    }
    assert network(text, **arrays).module.seen == (None, [3], [3.0, 4.0], (0, 4, 0), None)


def test_images_reach_the_network_channels_first() -> None:
    made = network(SMALL)
    batch = np.arange(2 * 8 * 8, dtype=np.float32).reshape(2, 8, 8, 1)
    x = made.samples(batch)
    assert tuple(x.shape) == (2, 1, 8, 8)
    np.testing.assert_array_equal(x[1, 0].numpy(), batch[1, :, :, 0])


def test_masks_lose_their_channel() -> None:
    text = (
        f"{HEAD}        self.conv = nn.Conv2d(3, nclasses, 1)\n    def forward(self, x):\n        return self.conv(x)\n"
    )
    arrays = {"inputs": {"x": ArraySpec((4, 6, 3))}, "targets": {"y": ArraySpec((4, 6, 1), "int64", 5)}}
    made = network(text, **arrays)
    y = made.labels(np.full((2, 4, 6, 1), 255))
    assert y is not None
    assert tuple(y.shape) == (2, 4, 6)
    results = made.results(made.samples(np.zeros((2, 4, 6, 3), np.float32)), y, is_training=False)
    assert results.losses[0].value.item() == 0.0, "no pixel counts"
    assert made.scalar_names == ["pixel_accuracy"]


def test_an_embedding_gives_no_class_scores() -> None:
    own = f"{LINEAR}{FORWARD}    def loss(self, output, y):\n        return output.square().mean()\n"
    own += "    def scalars(self, output, y):\n        return {}\n"
    assert network(SMALL).gives_class_scores
    assert not network(own).gives_class_scores


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        ("x = 1\n", "defines no class `UserModel`.", "let it inherit `Tower` or `nn.Module`"),
        ("class UserModel:\n    pass\n", "inherits object, not `Tower` or `nn.Module`", "class UserModel(Tower)"),
        (
            "class UserModel(Tower):\n    pass\n",
            "has no `inference`, which a `UserModel",
            "Add it",
        ),
        (LINEAR + FORWARD.replace("self.fc", "self.fully"), "no attribute 'fully'", ""),
        (
            f"{HEAD}        self.k = 1\n    def forward(self, x):\n        return x\n",
            "has no layers, so there is nothing to train",
            "nn.Conv2d",
        ),
        (
            f"{LINEAR}    def forward(self, x):\n        return 3\n",
            "return a tensor, or a list of tensors",
            "last layer",
        ),
        (f"{HEAD}        self.fc = nn.Linear(64, 3)\n{FORWARD}", "a batch of 2 has the shape (2, 10)", "last layer"),
        (f"{LINEAR}{FORWARD}    def loss(self, output, y):\n        return y\n", "`loss` is a scalar", "mean()"),
        ("import tensorflow as tf\n", "`import tensorflow` is not for a PyTorch network", ""),
        ("from . import layers\n", "A network file stands alone", ""),
        ("import my_layers\n", "A network file stands alone", ""),
        ("class UserModel(nn.Modul):\n    pass\n", "has no attribute 'Modul'", ""),
        ("class UserModel(nn.Module)\n", "SyntaxError", "Fix the line"),
    ],
)
def test_wrong_files_say_what_to_do(text: str, message: str, advice: str) -> None:
    error = error_of(text)
    assert message in str(error)
    assert advice in str(error)


def test_errors_name_line_layer_and_both_shapes() -> None:
    error = error_of(f"{HEAD}        self.fc = nn.Linear(100, nclasses)\n{FORWARD}")
    assert (error.details["line"], error.details["source"]) == (6, "return self.fc(x.flatten(1))")
    assert "2x64 and 100x10" in str(error)
    assert "the layer Linear(in_features=100, out_features=10, bias=True)" in str(error)


def test_a_name_that_is_missing_gets_the_nearest() -> None:
    assert "Did you mean `digits`" in str(error_of(f"{LINEAR}    def forward(self, x):\n        return digit.x\n"))


def test_an_attribute_error_inside_a_property_is_shown() -> None:
    error = error_of(TOWER.replace("self.conv1(self.x", "self.konv1(self.x"))
    assert "no attribute 'konv1'" in str(error)
    assert "inference" not in str(error).split(":")[1]


def test_layers_made_for_each_batch_are_refused() -> None:
    text = TOWER.replace("        x = F.max", "        self.extra = nn.Linear(2, 2)\n        x = F.max")
    assert "Layers are made once, in `build`" in str(error_of(text))


def test_cuda_in_a_tower_is_a_notice(caplog: pytest.LogCaptureFixture) -> None:
    network(TOWER.replace("        self.dropout", "        self.cuda()\n        self.dropout"))
    assert "`cuda()` does nothing in a network file" in caplog.text


def test_lazy_layers_learn_their_sizes() -> None:
    text = f"{HEAD}        self.fc = nn.LazyLinear(nclasses)\n{FORWARD}"
    program = TorchBackend().build(
        ProgramRequest(network="n.py", network_text=text, **class_arrays((8, 8, 1), 10), batch_size=2)
    )
    assert program.state()["model/fc.weight"].shape == (10, 64)


def test_first_weights_follow_the_seed() -> None:
    def weights(seed: int) -> np.ndarray:
        request = ProgramRequest(network="n.py", network_text=SMALL, **class_arrays((8, 8, 1), 10), seed=seed)
        return make_network(request).module.state_dict()["conv1.weight"].numpy()

    np.testing.assert_array_equal(weights(1), weights(1))
    assert (weights(1) != weights(2)).any()


VIEW = """
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape):
        super().__init__()
        channels, height, width = input_shape
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.conv2 = nn.{lazy}Conv2d({inputs}16, 3, padding=1)
        self.fc = nn.LazyLinear(nclasses)

    def forward(self, x):
        x = F.relu(self.conv2(F.relu(self.conv1(x))))
        return self.fc({flat})
"""


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("lazy", "inputs"), [("", "8, "), ("Lazy", "")])
@pytest.mark.parametrize("channels_last", [True, False])
def test_view_after_a_convolution_trains(channels: int, lazy: str, inputs: str, channels_last: bool, caplog) -> None:
    caplog.set_level("INFO", "ziggurat")
    values: list[float] = []
    x = np.random.default_rng(0).random((4, 8, 8, channels), np.float32)
    y = np.arange(4)
    for flat in ("x.view(x.size(0), -1)", "x.flatten(1)"):
        request = ProgramRequest(
            network="my_network.py",
            network_text=VIEW.format(lazy=lazy, inputs=inputs, flat=flat),
            options={"channels_last": channels_last},
            optimizer="sgd",
            learning_rate=0.1,
            **class_arrays((8, 8, channels), 10),
        )
        program = TorchBackend().build(request)
        for _ in range(3):
            program.step([x, y], ())
        values.append(float(program.evaluate([x, y], ["cost"])["cost"]))
        assert program.predict(x)[0].shape == (4, 10)
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert [each.getMessage() for each in caplog.records if "view" in each.getMessage()] == [
        "`my_network.py` calls `view` on maps: its images are kept contiguous, and `channels_last` is off."
    ]


@pytest.mark.parametrize("channels", [1, 3])
def test_view_after_a_convolution_is_exported(channels: int) -> None:
    text = VIEW.format(lazy="", inputs="8, ", flat="x.view(x.size(0), -1)")
    found = make_network(ProgramRequest(network="n.py", network_text=text, **class_arrays((8, 8, channels), 10)))
    found.module.eval()
    module = ServingModule(found, Preprocessing(size=(8, 8), channels=channels), inside=False)
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, (module.samples(2),), dynamic_shapes={"input": {0: batch}})
    x = torch.rand(5, 8, 8, channels)
    torch.testing.assert_close(program.module()(x)["output"], found.predict(found.samples(x))[0])


RENAMED = """
class Block(nn.Module):
    def __init__(self, wide):
        super().__init__()
        self.fc = nn.Linear(wide, wide)

    def forward(self, x):
        return F.relu(self.fc(x))


class Net(nn.Module):
    def __init__(self, in_channels, wide, num_classes=10, *, dropout=0.5):
        super().__init__()
        self.block = Block(wide)
        self.fc = nn.Linear(in_channels * wide, num_classes)

    def forward(self, x):
        return self.fc(self.block(x).flatten(1))


class NetLoss(nn.Module):
    def forward(self, output, y):
        return F.cross_entropy(output, y)
"""


def test_a_network_of_another_name_is_told_its_user_model() -> None:
    with pytest.raises(NetworkCodeError) as refused:
        load_network(RENAMED, "net.py")
    assert str(refused.value) == (
        "net.py defines no class `UserModel`, but `Block`, `Net`, `NetLoss`. Write below it `class UserModel(Net):` "
        "with `def __init__(self, nclasses, input_shape):`, and in that "
        "`super().__init__(in_channels=input_shape[0], wide=…, num_classes=nclasses)`."
    )
