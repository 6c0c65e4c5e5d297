"""The list of names that instant checks of PyTorch network files use, against the installed PyTorch.

``python -m tests.torch.test_torch_names`` writes the list anew.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch import nn

from ziggurat.backends.torch import digits
from ziggurat.backends.torch.network_file import load_network
from ziggurat.backends.torch.tower import Tower
from ziggurat.errors import ZigguratError
from ziggurat.workspace.network_checks import check_network
from ziggurat.workspace.network_checks.frameworks import FRAMEWORKS
from ziggurat.zoo import network_path

NAMES_FILE = FRAMEWORKS["torch"].names_file
PARTS = (
    "torch", "torch.amp", "torch.autograd", "torch.autograd.functional", "torch.cuda", "torch.distributions",
    "torch.fft", "torch.func", "torch.linalg", "torch.nn", "torch.nn.attention", "torch.nn.functional",
    "torch.nn.init", "torch.nn.modules", "torch.nn.parameter", "torch.nn.utils", "torch.nn.utils.parametrizations",
    "torch.nn.utils.rnn", "torch.optim", "torch.optim.lr_scheduler", "torch.special", "torch.utils",
    "torch.utils.checkpoint", "torch.utils.data",
)  # fmt: skip
TOWER_MEMBERS = ("inference", "loss", "x", "y")
"""What a network defines itself, and what it is given for each batch."""


def all_names() -> dict[str, list[str]]:
    """Return module → its names, as a network file finds them."""
    found = {part: names_of(importlib.import_module(part)) for part in PARTS}
    found["digits"] = names_of(digits)
    found["Tower"] = sorted({*TOWER_MEMBERS, *members_of(Tower([1, 8, 8], 10))})
    found["Module"] = members_of(nn.Module())
    return found


def names_of(module: Any) -> list[str]:
    """Return the names of a module; of a package with those of its modules, which may not be imported yet."""
    inside = [each.name for each in pkgutil.iter_modules(getattr(module, "__path__", []))]
    return sorted(name for name in {*dir(module), *inside} if not name.startswith("_"))


def members_of(value: Any) -> list[str]:
    return sorted(name for name in dir(value) if not name.startswith("__"))


def test_every_installed_name_is_in_the_list() -> None:
    listed = json.loads(NAMES_FILE.read_text("utf-8"))
    missing = {place: sorted({*names} - {*listed.get(place, ())}) for place, names in all_names().items()}
    assert {place: names for place, names in missing.items() if names} == {}


def test_the_list_has_no_more_than_is_installed() -> None:
    listed = json.loads(NAMES_FILE.read_text("utf-8"))
    assert {*listed} == {*PARTS, "digits", "Tower", "Module"}
    for place in ("torch.nn", "torch.nn.functional", "digits", "Tower"):
        assert {*listed[place]} - {*all_names()[place]} == set()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("nn.Conv2d", "nn.Conv2D", "`nn` has no `Conv2D`. Did you mean `nn.Conv2d`"),
        ("F.relu", "F.rellu", "`F` has no `rellu`. Did you mean `F.relu`"),
        ("def __init__(self, nclasses, input_shape", "def __init__(self", "`__init__` must take"),
        ("super().__init__()", "pass", "Begin it with `super().__init__()`"),
        ("def forward", "def forwards", "Name it `forward`"),
    ],
)
def test_what_is_found_wrong_fails(old: str, new: str, said: str) -> None:
    text = network_path("lenet", "torch").read_text()
    assert old in text
    assert check_network(text, backend="torch") == []
    text = text.replace(old, new, 1)
    found = check_network(text, backend="torch")
    assert said in found[0].sentence
    with pytest.raises((ZigguratError, AttributeError, TypeError, NotImplementedError)):
        load_network(text, "network.py")(10, [3, 32, 32])(torch.zeros(2, 3, 32, 32))


if __name__ == "__main__":
    lines = [f" {json.dumps(place)}: {json.dumps(names)}" for place, names in all_names().items()]
    NAMES_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
