"""Instant checks of PyTorch network files: mistakes at their line, and no alarm where there is none."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ziggurat.entities.backend_info import backend_info
from ziggurat.workspace.network_checks import check_network
from ziggurat.zoo import ZOO

ROOT = Path(__file__).parents[3]
GOOD = """\
class UserModel(nn.Module):
    def __init__(self, nclasses, input_shape, target_mean, size=8):
        super().__init__()
        self.conv1 = nn.Conv2d(input_shape[0], size, 3)
        self.register_buffer("mean", target_mean)

    def forward(self, x):
        return F.relu(self.conv1(x)).mean((2, 3)) + self.mean

    def loss(self, output, y):
        return digits.classification_loss(output, y)
"""
TOWER = """\
class UserModel(Tower):
    def build(self):
        self.fc1 = nn.Linear(self.input_shape[0], self.nclasses)

    @model_property
    def inference(self):
        return self.fc1(self.x)

    @model_property
    def loss(self):
        self.summaries.append(digits.scalar("mean", self.inference.mean()))
        return digits.classification_loss(self.inference, self.y)
"""


def found(text: str) -> list[tuple[int, int, str, str]]:
    return [(each.line, each.column, each.level, each.sentence) for each in check_network(text, backend="torch")]


@pytest.mark.parametrize("text", [GOOD, TOWER, backend_info("torch").network_template])
def test_a_network_without_mistakes_has_no_finding(text: str):
    assert found(text) == []


@pytest.mark.parametrize("path", sorted(ZOO.glob("torch/*.py")), ids=lambda p: p.stem)
def test_standard_networks_have_no_finding(path: Path):
    assert found(path.read_text("utf-8")) == []


def texts_of_tests():
    for name in ("torch_jobs.py", "torch_networks.py", "test_torch_training.py", "test_torch_grad_cam.py"):
        for node in ast.walk(ast.parse((ROOT / "tests/torch" / name).read_text("utf-8"))):
            if isinstance(node, ast.Constant) and "class UserModel" in str(node.value) and "return" in str(node.value):
                yield pytest.param(node.value, id=f"{name}-{node.lineno}")


@pytest.mark.parametrize("text", list(texts_of_tests()))
def test_networks_that_are_trained_have_no_finding(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("nn.Conv2d", "nn.Conv2D", (4, 25, "warning", "`nn` has no `Conv2D`. Did you mean `nn.Conv2d`")),
        ("F.relu", "F.reluu", (8, 18, "warning", "Did you mean `F.relu`")),
        ("F.relu(", "torch.nn.functional.rely(", (8, 36, "warning", "`torch.nn.functional` has no `rely`.")),
        ("digits.class", "digits.clas", (11, 23, "warning", "Did you mean `digits.classification_loss`")),
        ("digits.class", "digit.class", (11, 16, "error", "`digit` is not defined. Did you mean `digits`")),
        ("self.conv1(", "self.conv2(", (8, 28, "warning", "Did you mean `self.conv1`")),
        ("F.relu(", "tf.nn.relu(", (8, 16, "error", "`tf` is not defined.")),
        ("def forward", "def forwards", (7, 5, "error", "received: `forwards`). Name it `forward`.")),
        (
            "def forward(self, x)",
            "def forward(self, x, y)",
            (7, 5, "error", "received: `x`, `y`). Write `def forward("),
        ),
        (
            "def loss(self, output, y)",
            "def loss(self, y)",
            (10, 5, "error", "must take `output`, `y` (received: `y`)."),
        ),
        ("(nn.Module)", "", (1, 1, "error", "Write `class UserModel(nn.Module):`.")),
        ("UserModel", "MyModel", (1, 1, "error", "but `MyModel`. Write `class UserModel(nn.Module):`.")),
        ("nclasses, input_shape, target_mean, size=8", "nclasses", (2, 5, "error", "received: `nclasses`).")),
        ("nclasses, input_shape", "input_shape, nclasses", (2, 5, "error", "received: another order")),
        ("size=8", "size", (2, 5, "error", "received: `size`). Give it a default.")),
        ("super().__init__()", "pass", (2, 5, "error", "Begin it with `super().__init__()`.")),
        ("self, x):", "self, x)", (7, 25, "error", "Syntax error: expected ':'.")),
    ],
)
def test_mistakes_are_named_at_their_place(old, new, expected):
    assert old in GOOD
    line, column, level, words = expected
    mistakes = found(GOOD.replace(old, new, 1))
    near = [each for each in mistakes if words in each[3]]
    assert near, mistakes
    assert near[0][:3] == (line, column, level)


def test_a_module_without_its_methods_is_told_both():
    texts = [each[3] for each in found("class UserModel(nn.Module):\n    size = 3\n")]
    assert "must define `__init__`" in texts[0]
    assert "Add it: `def forward(self, x):`." in texts[1]


def test_a_tower_has_the_rules_of_towers():
    assert "Add it: `@model_property`" in found(TOWER[: TOWER.index("    @model_property\n    def loss")])[0][3]
    assert "must be a `@model_property`" in found(TOWER.replace("    @model_property\n", "", 1))[0][3]
    assert "Did you mean `self.nclasses`" in found(TOWER.replace("self.nclasses", "self.nclass"))[0][3]


def test_imports_of_names_that_do_not_exist():
    text = "import torch.nn as layers\nfrom torch.nn import Conv2D\nlayers.Lineer\n" + GOOD
    assert [each[3] for each in found(text)] == [
        "`torch.nn` has no `Conv2D`. Did you mean `torch.nn.Conv2d` or `torch.nn.Conv3d` or `torch.nn.Conv1d`?",
        "`layers` has no `Lineer`. Did you mean `layers.Linear` or `layers.Bilinear` or `layers.LazyLinear`?",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from torch import nn\nimport torch.nn.functional as F\n" + GOOD,
        "import torch\nfrom transformers import ViTModel\n" + GOOD,
        "import numpy as nn\nfrom elsewhere import Base\n" + GOOD.replace("nn.Module", "Base"),
        GOOD.replace('self.register_buffer("mean", target_mean)', "setattr(self, str(size), target_mean)"),
        GOOD.replace('self.register_buffer("mean"', "self.register_buffer(str(size)"),
        GOOD.replace("target_mean, size=8", "size=8, **facts").replace("target_mean", "facts['target_mean']"),
        GOOD.replace("nclasses, input_shape, target_mean, size=8", "*given, size=8, target_mean=0").replace(
            "input_shape", "given"
        ),
        "class Base(nn.Module):\n    def forward(self, x):\n        return x\n" + GOOD.replace("nn.Module", "Base"),
        GOOD.replace("nn.Module", "nn.Sequential").replace("def forward", "def other"),
        "if hasattr(nn, 'Newer'):\n    nn.Newer()\n" + GOOD,
        GOOD.replace("F.relu", "torch.ops.mine.relu"),
        GOOD + "\n\nclass Part(nn.Module):\n    def __init__(self):\n        self.a = self.b\n",
    ],
)
def test_code_that_cannot_be_judged_passes(text: str):
    assert found(text) == []


RENAMED = """\
class Unit(nn.Module):
    def forward(self, x, skip):
        return x + skip

class Base(nn.Module):
    def __init__(self, n_classes=2, img_size=32, width=8):
        super().__init__()
        self.unit = Unit()

class Mine(Base):
    def forward(self, x):
        return self.unit(x, x)
"""


def test_the_network_is_the_module_that_is_no_part():
    for text in (
        RENAMED,
        RENAMED.replace("Mine", "AGiant") + "\nclass Up(nn.Module):\n    def forward(self, a, b): ...\n",
    ):
        ((line, column, level, sentence),) = found(text)
        name = "Mine" if "Mine" in text else "AGiant"
        assert (line, column, level) == (10, 1, "error")
        assert sentence == (
            f"The file defines no class `UserModel`, but `{name}`. Write below it `class UserModel({name}):` with "
            "`def __init__(self, nclasses, input_shape):`, and in that "
            "`super().__init__(n_classes=nclasses, img_size=input_shape[-1])`."
        )


def test_the_missing_lines_make_the_network_fit():
    (wrong,) = check_network(RENAMED, backend="torch")
    assert check_network(RENAMED + "\n" + wrong.missing_code, backend="torch") == []
    (unknown,) = check_network(RENAMED.replace("n_classes=2", "depth"), backend="torch")
    assert "`super().__init__(depth=…, img_size=input_shape[-1])`" in unknown.advice
    assert unknown.missing_code == ""
