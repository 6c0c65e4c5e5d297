"""The text of a network file as the instant checks see it: its modules, its classes and what they define."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ziggurat.workspace.network_checks.frameworks import Framework

__all__ = [
    "Code",
    "bindings",
    "bound_names",
    "class_members",
    "is_dynamic",
    "is_named",
    "is_of_modules",
    "lineage",
    "outside_classes",
    "statements",
]


@dataclass
class Code:
    """A file with what the checks ask of it.

    Args:
        tree: the file.
        framework: that it is for.
        aliases: name → module that it stands for in the whole file, such as ``tf`` → ``tf``.
        asked: texts that the file gives to ``hasattr`` or ``getattr``: it looks for itself whether they exist.
        guarded: nodes inside a ``try`` that catches a missing name.
        set_names: module → names that the file puts there.
    """

    tree: ast.Module
    framework: Framework
    aliases: dict[str, str]
    asked: set[str] = field(default_factory=set)
    guarded: set[ast.AST] = field(default_factory=set)
    set_names: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module, framework: Framework) -> Code:
        """Return what a file says."""
        code = cls(tree, framework, _aliases(tree, framework))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("hasattr", "getattr", "setattr"):
                    code.asked |= {str(each.value) for each in node.args if isinstance(each, ast.Constant)}
            elif isinstance(node, ast.Try) and any(_catches_names(handler) for handler in node.handlers):
                for statement in node.body:
                    code.guarded.update(ast.walk(statement))
            elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                owner = code.module(node.value)
                if owner is not None:
                    code.set_names.setdefault(owner, set()).add(node.attr)
        return code

    @cached_property
    def classes(self) -> Mapping[str, ast.ClassDef]:
        """Name → class of the file."""
        return {node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)}

    def module(self, node: ast.expr) -> str | None:
        """Return the module that an expression stands for, where its names are known; else None."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.module(node.value)
            return None if owner is None else self.framework.known_module(f"{owner}.{node.attr}")
        return None


def _aliases(tree: ast.Module, framework: Framework) -> dict[str, str]:
    """Return name → module; a name that is bound to anything else as well is left out."""
    bound: dict[str, set[str | None]] = {name: {module} for name, module in framework.modules.items()}
    for node in ast.walk(tree):
        for name, module in bindings(node, framework):
            bound.setdefault(name, set()).add(module)
    return {name: only for name, found in bound.items() if len(found) == 1 and (only := next(iter(found))) is not None}


def bindings(node: ast.AST, framework: Framework | None = None) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a node binds, each with the listed module that it gets, or None."""
    imported = _nothing if framework is None else framework.imported
    if isinstance(node, ast.Import):
        for alias in node.names:
            module = imported(alias.name)
            if alias.asname:
                yield alias.asname, module
            else:
                first = alias.name.partition(".")[0]
                yield first, imported(first)
    elif isinstance(node, ast.ImportFrom):
        owner = imported(node.module or "") if not node.level else None
        for alias in node.names:
            yield (
                alias.asname or alias.name,
                None if owner is None or framework is None else framework.known_module(f"{owner}.{alias.name}"),
            )
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, None
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
        yield node.name, None


def _nothing(_: str) -> str | None:
    return None


def _catches_names(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = ("AttributeError", "Exception", "ImportError", "ModuleNotFoundError", "NameError", "BaseException")
    return any(isinstance(each, ast.Name) and each.id in caught for each in kinds)


def bound_names(node: ast.AST) -> list[str]:
    """Return the names that a statement binds."""
    return [name for name, _ in bindings(node)]


def lineage(code: Code, model: ast.ClassDef) -> list[ast.ClassDef] | None:
    """Return a class with its ancestors in the file, down to the framework's; None where one is from elsewhere."""
    found: list[ast.ClassDef] = []
    waiting = [model]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        found.append(node)
        if node.keywords or node.decorator_list:
            return None
        for base in node.bases:
            if is_named(base, "Tower") or is_named(base, "object") or is_module_class(code, base):
                continue
            if not isinstance(base, ast.Name) or base.id not in code.classes:
                return None
            waiting.append(code.classes[base.id])
    return found


def is_module_class(code: Code, base: ast.expr) -> bool:
    """Return whether a base of a class is PyTorch's ``nn.Module``."""
    return isinstance(base, ast.Attribute) and base.attr == "Module" and code.module(base.value) == "torch.nn"


def is_of_modules(code: Code, ancestors: Iterable[ast.ClassDef]) -> bool:
    """Return whether a class with its ancestors is a plain module of PyTorch, and no tower."""
    bases = [base for node in ancestors for base in node.bases]
    return any(is_module_class(code, base) for base in bases) and not any(is_named(base, "Tower") for base in bases)


def is_named(node: ast.expr, name: str) -> bool:
    """Return whether an expression is nothing but a name."""
    return isinstance(node, ast.Name) and node.id == name


def class_members(lineage: Iterable[ast.ClassDef]) -> dict[str, ast.stmt]:
    """Return name → statement of all that classes define in their bodies, those of branches too."""
    found: dict[str, ast.stmt] = {}
    for node in lineage:
        for statement in statements(node.body):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(statement.name, statement)
                continue
            for part in ast.walk(statement):
                for name in bound_names(part):
                    found.setdefault(name, statement)
    return found


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, and those of its branches."""
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                yield from statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from statements(handler.body)
        else:
            yield statement


def outside_classes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a method, but not those of classes in it: their ``self`` is another object."""
    waiting: list[ast.AST] = [method]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.ClassDef))


def is_dynamic(tree: ast.Module) -> bool:
    """Whether a file makes attributes in a way that only running it shows."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return bool({"setattr", "vars", "exec"} & names or "__dict__" in attributes or "__getattr__" in methods)
