"""Contract of networks whose class is a plain module of PyTorch: ``__init__``, ``forward``, and what may be beside."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ziggurat.errors import broken_rule, nearest_names
from ziggurat.workspace.network_checks.code import Code, is_dynamic
from ziggurat.workspace.network_checks.findings import CodeFinding, at

__all__ = ["module_contract"]

_FACTS: Final = ("target_shape", "target_mean", "target_std", "categories", "vocabulary_size")
"""What ``__init__`` is given by keyword where it names it."""

_INIT: Final = "def __init__(self, nclasses, input_shape):"
_FORWARD: Final = "def forward(self, x):"
_GIVEN: Final[Mapping[str, tuple[str, ...]]] = {"forward": ("x",), "loss": ("output", "y"), "scalars": ("output", "y")}
"""Method → what it is called with."""


def module_contract(code: Code, model: ast.ClassDef, members: Mapping[str, ast.stmt]) -> Iterator[CodeFinding]:
    """Yield what is wrong with a ``UserModel(nn.Module)``.

    Args:
        code: the file.
        model: its class.
        members: name → statement of all that the class and its ancestors in the file define.
    """
    if is_dynamic(code.tree):
        return
    yield from _initializer(model, members)
    if "forward" not in members:
        nearest = nearest_names("forward", members, at_most=1)
        place: ast.stmt = members[nearest[0]] if nearest else model
        width = len(f"def {nearest[0]}") if nearest else len("class UserModel")
        came = f"`{nearest[0]}`" if nearest else None
        advice = "Name it `forward`." if nearest else f"Add it: `{_FORWARD}`."
        rule = broken_rule("`UserModel` must define `forward`, which returns the output of a batch.", came)
        yield at(place, "error", rule, advice, width=width)
    for name, given in _GIVEN.items():
        method = members.get(name)
        if isinstance(method, ast.FunctionDef) and not method.decorator_list:
            yield from _called(method, given)


def _initializer(model: ast.ClassDef, members: Mapping[str, ast.stmt]) -> Iterator[CodeFinding]:
    method = members.get("__init__")
    if method is None:
        rule = "`UserModel` must define `__init__`, which gets the number of classes and the shape of a sample."
        yield at(model, "error", rule, f"Add it: `{_INIT}`.", width=len("class UserModel"))
        return
    if not isinstance(method, ast.FunctionDef) or method.decorator_list:
        return
    width = len("def __init__")
    taken = _Taken.by(method)
    names = [*taken.needed, *taken.optional]
    unknown = [name for name in (*taken.needed[2:], *taken.keywords) if name not in _FACTS]
    if len(names) < 2 and not taken.any_number:
        rule = f"`__init__` must take `nclasses` and `input_shape` (received: {_listed(names)})."
        yield at(method, "error", rule, f"Write `{_INIT}`.", width=width)
    elif names[:2] == ["input_shape", "nclasses"]:
        rule = "`__init__` is given the number of classes first, then the shape of a sample (received: another order)."
        yield at(method, "error", rule, f"Write `{_INIT}`.", width=width)
    elif unknown:
        rule = f"`__init__` must need no more than Ziggurat gives it (received: {_listed(unknown)})."
        advice = f"Give it a default. Beside `nclasses` and `input_shape`, it may name {_listed(_FACTS)}."
        yield at(method, "error", rule, advice, width=width)
    if not _calls_parent(method):
        rule = "`__init__` must call that of `nn.Module` before it makes layers."
        yield at(method, "error", rule, "Begin it with `super().__init__()`.", width=width)


def _called(method: ast.FunctionDef, given: tuple[str, ...]) -> Iterator[CodeFinding]:
    taken = _Taken.by(method)
    count = len(taken.needed)
    most = count + len(taken.optional)
    if count > len(given) or taken.keywords or (most < len(given) and not taken.any_number):
        came = _listed([*taken.needed, *taken.optional, *taken.keywords])
        rule = f"`{method.name}` must take {_listed(given)} (received: {came})."
        advice = f"Write `def {method.name}(self, {', '.join(given)}):`."
        yield at(method, "error", rule, advice, width=len(f"def {method.name}"))


@dataclass(frozen=True)
class _Taken:
    """What a method takes beside ``self``.

    Args:
        needed: positional parameters without a default.
        optional: positional parameters with one.
        keywords: parameters that are given by keyword and have no default.
        any_number: whether it takes any number of positional ones.
    """

    needed: list[str]
    optional: list[str]
    keywords: list[str]
    any_number: bool

    @classmethod
    def by(cls, method: ast.FunctionDef) -> _Taken:
        """Return what a method takes."""
        arguments = method.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        with_default = len(arguments.defaults)
        needed = names[: len(names) - with_default][1:]
        pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        return cls(
            needed=needed,
            optional=names[max(1, len(names) - with_default) :],
            keywords=[each.arg for each, default in pairs if default is None],
            any_number=arguments.vararg is not None,
        )


def _calls_parent(method: ast.FunctionDef) -> bool:
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
        for node in ast.walk(method)
    )


def _listed(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"
