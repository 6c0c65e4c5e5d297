"""Instant checks of network code: mistakes at their line, and no alarm where there is none."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from ziggurat.specs import FileNetwork
from ziggurat.workspace.network_checks import check_network
from ziggurat.zoo import ZOO
from ziggurat.zoo.backends import file_backend

ROOT = Path(__file__).parents[3]
GOOD = """\
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x), self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def found(text: str, **options: str) -> list[tuple[int, int, str, str]]:
    return [(each.line, each.column, each.level, each.sentence) for each in check_network(text, **options)]


def test_a_network_without_mistakes_has_no_finding():
    assert found(GOOD) == []


@pytest.mark.parametrize("path", sorted(ZOO.glob("tensorflow/*.py")), ids=lambda p: p.stem)
def test_standard_networks_have_no_finding(path: Path):
    assert found(path.read_text("utf-8")) == []


def texts_of_docs():
    for page in sorted(ROOT.glob("docs/**/*.md")):
        for block in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            if "class UserModel" in block:
                yield pytest.param(block, id=page.stem)


@pytest.mark.parametrize("text", list(texts_of_docs()))
def test_networks_of_the_docs_have_no_finding(text: str):
    assert found(text, backend=file_backend(FileNetwork(path="network.py", text=text))) == []


@pytest.mark.parametrize(
    ("text", "backend"),
    [
        (GOOD, "tensorflow"),
        ("class UserModel(nn.Module):\n    pass\n", "torch"),
        ("import torch.nn.functional as f\n", "torch"),
        ("from tensorflow.contrib import slim\n", "tensorflow"),
        ("class UserModel(Tower):\n    def build(self):\n        self.a = nn.Linear(1, 1)\n", "torch"),
        ("class UserModel(\n", "tensorflow"),
    ],
)
def test_a_file_tells_its_framework(text: str, backend: str):
    assert file_backend(FileNetwork(path="network.py", text=text)) == backend


def texts_of_tests():
    for path in (ROOT / "tests/tensorflow/tensorflow_networks.py", ROOT / "tests/tensorflow/grad_cam_networks.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and "class UserModel" in str(node.value) and "@model" in str(node.value):
                yield pytest.param(node.value, id=f"{path.stem}-{node.lineno}")


@pytest.mark.parametrize("text", list(texts_of_tests()))
def test_networks_that_are_trained_have_no_finding(text: str):
    assert found(text) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("slim.flatten", "slim.flaten", (4, 42, "warning", "`slim` has no `flaten`. Did you mean `slim.flatten`")),
        ("self.nclasses", "self.nclases", (4, 64, "warning", "Did you mean `self.nclasses`?")),
        ("digits.class", "digit.class", (8, 16, "error", "`digit` is not defined. Did you mean `digits`")),
        ("def loss", "def los", (7, 5, "error", "received: `los`). Name it `loss`.")),
        ("UserModel", "UserMode", (1, 1, "error", "no class `UserModel`, but `UserMode`.")),
        ("(Tower)", "", (1, 1, "error", "`UserModel` must inherit `Tower`.")),
        ("    @model_property\n    def loss", "    def loss", (6, 5, "error", "must be a `@model_property`")),
        ("self.y)", "self.y", (8, 42, "error", "Syntax error: '(' was never closed.")),
        ("return slim", "return tf.nn.reluu(slim.x) + slim", (4, 22, "warning", "`tf.nn` has no `reluu`.")),
    ],
)
def test_mistakes_are_named_at_their_place(old, new, expected):
    line, column, level, words = expected
    mistakes = found(GOOD.replace(old, new, 1))
    near = [each for each in mistakes if words in each[3]]
    assert near, mistakes
    assert (near[0][0], near[0][2]) == (line, level)
    assert near[0][1] == column


def test_imports_of_names_that_do_not_exist():
    text = "from utils import model_propety\nfrom tensorflow.contrib.layers import xavier_init\n" + GOOD
    assert [each[3][:40] for each in found(text)] == [
        "`digits` has no `model_propety`. Did you",
        "`tf.contrib.layers` has no `xavier_init`",
    ]


@pytest.mark.parametrize(
    "lines",
    [
        "import numpy as tf\ntf.anything()",
        "def f(slim):\n    return slim.anything",
        "if hasattr(tf, 'newer'):\n    tf.newer()",
        "try:\n    tf.gone()\nexcept AttributeError:\n    pass",
        "tf.mine = 1\ntf.mine + 1",
        "from numpy import *\nzeros(3)",
        "print 'Python 2'",
        "import tensorflow.contrib.slim as s\ns.conv2d",
        "import tensorflow.compat.v1 as t\nt.nn.relu",
        "[each for each in range(3)]\nlambda each: each",
        "class A:\n    name = 1\n    other = name",
        "def f():\n    global made\n    made = 1\ndef g():\n    return made",
        "tf.contrib.framework.python.ops.anything",
        "UserModel.extra = 1",
    ],
)
def test_code_that_cannot_be_judged_passes(lines: str):
    assert found(f"{lines}\n{GOOD}") == []


def test_members_are_those_of_classes_of_the_file():
    base = "class Base(Tower):\n    size = 3\n    def layer(self, net):\n        self.kept = net\n        return net\n"
    text = base + GOOD.replace("(Tower)", "(Base)").replace("self.x)", "self.layer(self.x)) + self.size + self.kept")
    assert found(text) == []
    assert found("from elsewhere import Other\n" + GOOD.replace("(Tower)", "(Other)").replace("self.x", "self.z")) == []


@pytest.mark.parametrize(
    "text", ["", "\0", "x = " + "(" * 500, "class UserModel(Tower): pass", "def build_model(params): pass"]
)
def test_other_texts_are_said_to_be_no_network(text: str):
    assert "error" in {each[2] for each in found(text)}


def test_other_backends_are_checked_for_syntax_only():
    assert found("anything = 1", backend="null") == []
    assert found("anything =", backend="null")[0][0] == 1


def test_members_of_a_class_inside_a_method_are_its_own():
    cell = "        class Cell(Base):\n            def call(self):\n                return self.units\n"
    assert found(f"from elsewhere import Base\n{GOOD}    def layer(self):\n{cell}") == []


def test_members_that_are_set_later_are_no_mistake():
    later = "UserModel.inference = model_property(lambda self: self.x)\nUserModel.loss = 1"
    assert found(f"class UserModel(Tower):\n    pass\n{later}") == []
    assert found("class UserModel(Tower):\n    pass\nsetattr(UserModel, 'inference', 1)") == []


def test_what_python_only_warns_of_is_no_mistake():
    assert found(GOOD + 'name = "\\d"\nsame = 1 is 1\n') == []


@pytest.mark.parametrize("name", ["tf", "self", "other"])
def test_code_that_is_too_deep_is_left(name):
    assert found(f"{GOOD}deep = {name}{'.a' * 1500}\n") == []


def test_a_text_that_would_take_long_is_left():
    assert found("x\n" * 900_000) == []
    assert found("x\n" * 1000)


def test_the_number_of_findings_is_limited():
    assert len(found(GOOD + "\n".join(f"slim.x{number}" for number in range(500)))) == 50
    methods = "".join(f"    def f{each}(self):\n        self.gone\n        missing\n" for each in range(100))
    lines = [each[0] for each in found(GOOD + "slim.x\n" + "class Other(Tower):\n" + methods)]
    assert lines == [9, *range(13, 160, 3)][:50], "the first by line"
