"""Names that do not exist: attributes of modules, members of ``self``, and names that nothing defines."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from typing import Final

from ziggurat.workspace.network_checks.code import (
    Code,
    bound_names,
    class_members,
    is_dynamic,
    is_named,
    is_of_modules,
    lineage,
    outside_classes,
    statements,
)
from ziggurat.workspace.network_checks.findings import Suspect, at, finding
from ziggurat.workspace.network_checks.frameworks import MEMBERS, MODULE_MEMBERS

__all__ = ["attributes", "members", "undefined"]

_PYTHON_2_NAMES: Final = ("basestring", "long", "reduce", "unichr", "unicode", "xrange", "raw_input")
_REGISTER: Final = ("register_buffer", "register_parameter", "register_module", "add_module")
_SPECIAL: Final = ("__class__", "__dict__", "__doc__", "__module__")


def attributes(code: Code) -> Iterator[Suspect]:
    """Yield attributes of modules that do not exist, and imports of such names."""
    for node in ast.walk(code.tree):
        if node in code.guarded:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            module = code.module(node.value)
            if module is not None and node.end_lineno is not None and node.end_col_offset is not None:
                place = (node.end_lineno, node.end_col_offset - len(node.attr) + 1, node.end_col_offset + 1)
                yield from _unknown(code, (module, ast.unparse(node.value)), node.attr, place)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = code.framework.imported(node.module or "")
            for alias in node.names if module is not None else ():
                if alias.name != "*":
                    place = (alias.lineno, alias.col_offset + 1, alias.col_offset + 1 + len(alias.name))
                    yield from _unknown(code, (str(module), str(module)), alias.name, place)


def _unknown(code: Code, owner: tuple[str, str], name: str, place: tuple[int, int, int]) -> Iterator[Suspect]:
    """Yield a name that a module does not have.

    Args:
        code: the file.
        owner: the module, and what the file calls it.
        name: that is read.
        place: line, first column, and the one after the last.
    """
    module, shown = owner
    known = code.framework.names[module]
    is_own = name in code.set_names.get(module, ()) or name in code.asked
    if name in known or name.startswith("_") or is_own:
        return
    yield Suspect(finding(*place, "warning", f"`{shown}` has no `{name}`."), name, known, f"{shown}.")


def members(code: Code) -> Iterator[Suspect]:
    """Yield attributes of ``self`` that neither the contract nor the file defines."""
    model = code.classes.get("UserModel")
    ancestors = None if model is None else lineage(code, model)
    if ancestors is None or is_dynamic(code.tree):
        return
    registered = _registered(code.tree)
    if registered is None:
        return
    kind = MODULE_MEMBERS if is_of_modules(code, ancestors) else MEMBERS
    own = {*class_members(ancestors), *code.framework.names[kind], *code.asked, *registered}
    for node in ast.walk(code.tree):  # of any object: `model.extra = …` may mean this one
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            own.add(node.attr)
    for each in ancestors:
        for method in statements(each.body):
            if isinstance(method, ast.FunctionDef) and method.args.args and method.args.args[0].arg == "self":
                yield from _unknown_members(code, method, own)


def _registered(tree: ast.Module) -> set[str] | None:
    """Return the names that calls such as ``register_buffer("mean", …)`` give; None where one is computed."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _REGISTER:
            first = [*node.args, *(each.value for each in node.keywords if each.arg == "name")][:1]
            if not first or not isinstance(first[0], ast.Constant):
                return None
            found.add(str(first[0].value))
    return found


def _unknown_members(code: Code, method: ast.FunctionDef, own: set[str]) -> Iterator[Suspect]:
    for node in outside_classes(method):
        if not isinstance(node, ast.Attribute) or not is_named(node.value, "self") or node in code.guarded:
            continue
        if node.attr in own or node.attr.startswith("__") or node.end_lineno is None or node.end_col_offset is None:
            continue
        place = (node.end_lineno, node.end_col_offset - len(node.attr) + 1, node.end_col_offset + 1)
        yield Suspect(finding(*place, "warning", f"`UserModel` has no `{node.attr}`."), node.attr, own, "self.")


def undefined(text: str, code: Code) -> Iterator[Suspect]:
    """Yield names that are read and that neither the file, Python nor the contract defines."""
    if _has_open_names(code.tree):
        return
    known = {*code.framework.own, *code.framework.hidden, *_SPECIAL, *_PYTHON_2_NAMES, *dir(builtins)}
    try:
        table = symtable.symtable(text, "network.py", "exec")
    except (SyntaxError, ValueError, RecursionError):  # what the parser took and the compiler refuses
        return
    bound = {symbol.get_name() for symbol in table.get_symbols() if _is_bound(symbol)}
    free: set[str] = set()
    for scope in _scopes(table):
        bound |= {each.get_name() for each in scope.get_symbols() if each.is_declared_global() and _is_bound(each)}
        free |= {each.get_name() for each in scope.get_symbols() if _reads_global(scope, each)}
    wrong = free - bound - known
    reads = (
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in wrong
    )
    around = _Around(code.tree)
    offered = {*bound, *code.framework.own, *dir(builtins)}
    for node in reads:
        if node not in code.guarded and not around.is_bound(node):
            yield Suspect(at(node, "error", f"`{node.id}` is not defined."), node.id, offered)


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _reads_global(scope: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    if not symbol.is_referenced():
        return False
    return symbol.is_global() if scope.get_type() != "module" else not _is_bound(symbol)


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


class _Around:
    """The functions and classes around names of a file.

    Args:
        tree: the file.
    """

    def __init__(self, tree: ast.Module) -> None:
        self._owners = {part: node for node in ast.walk(tree) for part in ast.iter_child_nodes(node)}
        self._names: dict[ast.AST, frozenset[str]] = {}

    def is_bound(self, wanted: ast.Name) -> bool:
        """Return whether a scope around a name binds it: then only the compiler knows which one is read."""
        node: ast.AST | None = wanted
        while (node := self._owners.get(node)) is not None:
            if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef) and wanted.id in self._bound(node):
                return True
        return False

    def _bound(self, scope: ast.AST) -> frozenset[str]:
        if scope not in self._names:
            self._names[scope] = frozenset(name for inner in ast.walk(scope) for name in bound_names(inner))
        return self._names[scope]


def _has_open_names(tree: ast.Module) -> bool:
    """Whether a file defines names in a way that cannot be read off it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Name) and node.id in ("exec", "eval", "globals", "locals", "execfile"):
            return True
    return False
