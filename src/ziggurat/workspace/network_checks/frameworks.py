"""What the instant checks know of a framework: the names that a network file has, and those of its modules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

__all__ = ["FRAMEWORKS", "MEMBERS", "MODULE_MEMBERS", "Framework"]

MEMBERS: Final = "Tower"
"""In a file of names: what a ``UserModel(Tower)`` finds in ``self``."""

MODULE_MEMBERS: Final = "Module"
"""In a file of names: what a ``UserModel(nn.Module)`` finds in ``self``."""


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A framework whose network files are checked.

    Args:
        own: names that a network file has without an import, those that are offered in place of a wrong one first.
        hidden: names that it has as well, and that are not offered.
        modules: name that it has → module whose names are listed.
        imports: first part of what an import names → module.
        moved: beginning of a module's path → the path under which its names are listed; empty where they are not.
        names_file: JSON: module → its names; a test of each framework writes it.
        takes_modules: whether ``UserModel`` may be a plain module of PyTorch.
    """

    own: tuple[str, ...]
    hidden: tuple[str, ...] = ("__name__", "__file__")
    modules: Mapping[str, str]
    imports: Mapping[str, str]
    moved: Mapping[str, str] = field(default_factory=dict)
    names_file: Path
    takes_modules: bool = False

    @cached_property
    def names(self) -> Mapping[str, frozenset[str]]:
        """Module → its names."""
        return {module: frozenset(names) for module, names in json.loads(self.names_file.read_text("utf-8")).items()}

    def known_module(self, path: str) -> str | None:
        """Return the path under which the names of a module are listed; None where they are not."""
        if path in self.moved:
            return self.moved[path] or None
        path = path.replace("tf.contrib.slim", "slim")
        return path if path in self.names else None

    def imported(self, path: str) -> str | None:
        """Return the listed module that an import of a network file gives; None where it is not listed."""
        first, *rest = path.split(".")
        module = self.imports.get(first)
        return None if module is None else self.known_module(".".join([module, *rest]))


FRAMEWORKS: Final[Mapping[str, Framework]] = {
    "tensorflow": Framework(
        own=("tf", "slim", "digits", "Tower", "model_property", "np"),
        hidden=("_x", "__name__", "__file__"),
        modules={"tf": "tf", "slim": "slim", "digits": "digits"},
        imports={
            "tensorflow": "tf",
            "tf_slim": "slim",
            "utils": "digits",
            "tf": "tf",
            "slim": "slim",
            "digits": "digits",
        },
        moved={"tf.compat.v1": "tf", "tf.python": ""},
        names_file=Path(__file__).with_name("tensorflow_names.json"),
    ),
    "torch": Framework(
        own=("torch", "nn", "F", "digits", "Tower", "model_property", "np"),
        modules={"torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "digits": "digits"},
        imports={"torch": "torch", "utils": "digits", "digits": "digits"},
        names_file=Path(__file__).with_name("torch_names.json"),
        takes_modules=True,
    ),
}
"""Backend → what is known of its network files; files of other backends are checked for syntax alone."""
