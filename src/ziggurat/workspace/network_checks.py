"""Instant checks of a network file's code: syntax, the contract, and names that do not exist; nothing is executed.

The names of ``tf``, ``slim`` and ``digits`` come from ``network_names.json``, so that no framework is imported. A file
that this module cannot judge with certainty is passed: each finding is meant to be a mistake.
"""

from __future__ import annotations

import ast
import builtins
import json
import symtable
import threading
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Final, Literal

from ziggurat.entities.backend_info import DEFAULT_BACKEND
from ziggurat.errors import nearest_names

__all__ = ["NAMES_FILE", "CodeFinding", "check_network"]

NAMES_FILE: Final = Path(__file__).with_name("network_names.json")
"""Module, as a network file writes it → its names; ``tests/tensorflow/test_network_names.py`` writes it."""

_CHECKED: Final = "tensorflow"
"""Backend whose contract is known here."""

_MEMBERS: Final = "Tower"
"""In the names file: what a network finds in ``self``."""

_REQUIRED: Final = ("inference", "loss")
_OWN: Final = ("tf", "slim", "digits", "Tower", "model_property", "np", "_x", "__name__", "__file__")
_PYTHON_2_NAMES: Final = ("basestring", "long", "reduce", "unichr", "unicode", "xrange", "raw_input")
_PYTHON_2: Final = (
    "Missing parentheses in call to",
    "multiple exception types must be parenthesized",
    "inconsistent use of tabs",
    "leading zeros in decimal integer literals",
    "invalid decimal literal",
)
"""Beginnings of what Python 3 says of a file in Python 2, which a worker rewrites before it runs it."""

_SPECIAL: Final = ("__class__", "__dict__", "__doc__", "__module__")
_MOST: Final = 50
_LONGEST: Final = 100_000
"""Characters of the longest text that is checked, which takes two seconds at most; networks have a tenth of them."""

_PARSING: Final = threading.Lock()
"""Filters of warnings hold for the whole process: one thread at a time changes them."""

Level = Literal["error", "warning"]


@dataclass(frozen=True, kw_only=True)
class CodeFinding:
    """A mistake in a network file.

    Args:
        line: from 1.
        column: from 1, of its first character.
        end_column: from 1, after its last character.
        level: ``error`` where the file cannot work, ``warning`` where a line cannot.
        rule: what holds, in one sentence.
        advice: what to do; empty where that is plain.
    """

    line: int
    column: int
    end_column: int
    level: Level
    rule: str
    advice: str = ""

    @property
    def sentence(self) -> str:
        """Rule and advice."""
        return f"{self.rule} {self.advice}".strip()


def check_network(text: str, *, backend: str = DEFAULT_BACKEND) -> list[CodeFinding]:
    """Return the mistakes in the text of a network file, by line; at most 50, and none of a text that is too long.

    Args:
        text: of the file.
        backend: that the file is for; beyond syntax, only files for TensorFlow are checked.
    """
    if len(text) > _LONGEST:
        return []
    # Python warns of a file while it parses it, such as of an unknown escape: that would fill the log of the server.
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            return [] if _is_python_2(error) else [_of_syntax(error, text)]
        except (ValueError, RecursionError, MemoryError) as error:  # NUL characters; deeper than Python reads
            return [_finding(1, 1, 1, "error", f"Python cannot read the file: {error}.")]
        if backend != _CHECKED:
            return []
        try:
            return _found(text, tree)
        except RecursionError:  # Python reads it, and it is too deep to be judged here
            return []


def check_syntax(text: str) -> CodeFinding | None:
    """Return why Python cannot read a text; None where it can. Nothing is executed."""
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except SyntaxError as error:
            advice = "It is Python 2: convert the line to Python 3." if _is_python_2(error) else ""
            return replace(_of_syntax(error, text), advice=advice)
        except (ValueError, RecursionError, MemoryError) as error:
            return _finding(1, 1, 1, "error", f"Python cannot read the file: {error}.")
    return None


def _found(text: str, tree: ast.Module) -> list[CodeFinding]:
    code = _Code.of(tree)
    suspects = [*_attributes(code), *_members(code), *_undefined(text, code)]
    found = [*(_Suspect(each) for each in _contract(code)), *suspects]
    first = sorted(found, key=lambda each: (each.finding.line, each.finding.column))[:_MOST]
    return [each.complete() for each in first]


def _finding(line: int, column: int, end_column: int, level: Level, rule: str, advice: str = "") -> CodeFinding:
    return CodeFinding(line=line, column=column, end_column=end_column, level=level, rule=rule, advice=advice)


def _at(node: ast.expr | ast.stmt, level: Level, rule: str, advice: str = "", *, width: int = 0) -> CodeFinding:
    end = (node.end_col_offset or 0) if node.end_lineno == node.lineno else node.col_offset + max(width, 1)
    last = node.col_offset + width if width else end
    return _finding(node.lineno, node.col_offset + 1, last + 1, level, rule, advice)


@dataclass(frozen=True)
class _Suspect:
    """A finding whose nearest names are not searched for yet: that takes longest, and few findings are shown.

    Args:
        finding: without the question.
        name: that does not exist; empty where nothing is asked.
        known: names that exist in its place.
        owner: what they belong to, with its dot; empty for none.
    """

    finding: CodeFinding
    name: str = ""
    known: Collection[str] = ()
    owner: str = ""

    def complete(self) -> CodeFinding:
        """Return the finding with the question which name was meant."""
        nearest = nearest_names(self.name, self.known) if self.name else []
        if not nearest:
            return self.finding
        names = " or ".join(f"`{self.owner}{each}`" for each in nearest)
        return replace(self.finding, advice=f"Did you mean {names}?")


# ---- syntax


def _is_python_2(error: SyntaxError) -> bool:
    return any(str(error.msg).startswith(words) for words in _PYTHON_2)


def _of_syntax(error: SyntaxError, text: str) -> CodeFinding:
    lines = text.count("\n") + 1
    line = min(max(error.lineno or 1, 1), lines)
    column = max(error.offset or 1, 1)
    end = error.end_offset or 0
    last = end if error.end_lineno == error.lineno and end > column else column + 1
    return _finding(line, column, last, "error", f"Syntax error: {error.msg}.")


# ---- what the file says of itself


@dataclass
class _Code:
    """A file with what the checks ask of it.

    Args:
        tree: the file.
        aliases: name → module that it stands for in the whole file, such as ``tf`` → ``tf``.
        asked: texts that the file gives to ``hasattr`` or ``getattr``: it looks for itself whether they exist.
        guarded: nodes inside a ``try`` that catches a missing name.
        set_names: module → names that the file puts there.
    """

    tree: ast.Module
    aliases: dict[str, str]
    asked: set[str] = field(default_factory=set)
    guarded: set[ast.AST] = field(default_factory=set)
    set_names: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, tree: ast.Module) -> _Code:
        """Return what a file says."""
        code = cls(tree, _aliases(tree))
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

    def module(self, node: ast.expr) -> str | None:
        """Return the module that an expression stands for, where its names are known; else None."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.module(node.value)
            return None if owner is None else _known_module(f"{owner}.{node.attr}")
        return None


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return name → module; a name that is bound to anything else as well is left out."""
    bound: dict[str, set[str | None]] = {name: {name} for name in ("tf", "slim", "digits")}
    for node in ast.walk(tree):
        for name, module in _bindings(node):
            bound.setdefault(name, set()).add(module)
    return {name: only for name, found in bound.items() if len(found) == 1 and (only := next(iter(found))) is not None}


def _bindings(node: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Yield the names that a node binds, each with the known module that it gets, or None."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            module = _imported(alias.name)
            if alias.asname:
                yield alias.asname, module
            else:
                first = alias.name.partition(".")[0]
                yield first, _imported(first)
    elif isinstance(node, ast.ImportFrom):
        owner = _imported(node.module or "") if not node.level else None
        for alias in node.names:
            yield alias.asname or alias.name, None if owner is None else _known_module(f"{owner}.{alias.name}")
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id, None
    elif isinstance(node, ast.arg):
        yield node.arg, None
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
        yield node.name, None


def _imported(path: str) -> str | None:
    """Return the known module that an import of a network file gives."""
    first, *rest = path.split(".")
    first = {"tensorflow": "tf", "tf_slim": "slim", "utils": "digits"}.get(first, first)
    if first not in ("tf", "slim", "digits"):
        return None
    return _known_module(".".join([first, *rest]))


def _known_module(path: str) -> str | None:
    """Return the path under which the names of a module are listed; None where they are not."""
    for prefix in ("tf.compat.v1", "tf.python"):
        if path == prefix:
            return "tf" if prefix == "tf.compat.v1" else None
    path = path.replace("tf.contrib.slim", "slim")
    return path if path in _names() else None


@cache
def _names() -> Mapping[str, frozenset[str]]:
    return {module: frozenset(names) for module, names in json.loads(NAMES_FILE.read_text("utf-8")).items()}


def _catches_names(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = ("AttributeError", "Exception", "ImportError", "ModuleNotFoundError", "NameError", "BaseException")
    return any(isinstance(each, ast.Name) and each.id in caught for each in kinds)


# ---- attributes of modules


def _attributes(code: _Code) -> Iterator[_Suspect]:
    """Yield attributes of modules that do not exist, and imports of such names."""
    for node in ast.walk(code.tree):
        if node in code.guarded:
            continue
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            module = code.module(node.value)
            if module is not None and node.end_lineno is not None and node.end_col_offset is not None:
                place = (node.end_lineno, node.end_col_offset - len(node.attr) + 1, node.end_col_offset + 1)
                yield from _unknown(code, module, node.attr, place)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = _imported(node.module or "")
            for alias in node.names if module is not None else ():
                if alias.name != "*":
                    place = (alias.lineno, alias.col_offset + 1, alias.col_offset + 1 + len(alias.name))
                    yield from _unknown(code, str(module), alias.name, place)


def _unknown(code: _Code, module: str, name: str, place: tuple[int, int, int]) -> Iterator[_Suspect]:
    known = _names()[module]
    is_own = name in code.set_names.get(module, ()) or name in code.asked
    if name in known or name.startswith("_") or is_own:
        return
    yield _Suspect(_finding(*place, "warning", f"`{module}` has no `{name}`."), name, known, f"{module}.")


# ---- the contract


def _contract(code: _Code) -> Iterator[CodeFinding]:
    """Yield what is wrong with the class of the network."""
    tree = code.tree
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    if "UserModel" not in classes:
        if not any("UserModel" in _bound_names(node) for node in ast.walk(tree)):
            yield _no_class(tree, classes)
        return
    model = classes["UserModel"]
    lineage = _lineage(model, classes)
    if not model.bases:
        width = len("class UserModel")
        yield _at(model, "error", "`UserModel` must inherit `Tower`.", "Write `class UserModel(Tower):`.", width=width)
    if lineage is None:
        return
    members = _class_members(lineage)
    later = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    for name in _REQUIRED:
        if name in members:
            yield from _undecorated(members[name], name)
            continue
        if name in later or _is_dynamic(tree):  # such as ``UserModel.loss = …``
            continue
        nearest = nearest_names(name, [each for each in members if each not in _names()[_MEMBERS]], at_most=1)
        place: ast.stmt = members[nearest[0]] if nearest else model
        width = len(f"def {nearest[0]}") if nearest else len("class UserModel")
        came = f" Received: `{nearest[0]}`." if nearest else ""
        advice = f"Add it: `@model_property`, then `def {name}(self):`." if not nearest else f"Name it `{name}`."
        rule = f"`UserModel` must define `{name}` as a `@model_property`.{came}"
        yield _at(place, "error", rule, advice, width=width)


def _bound_names(node: ast.AST) -> list[str]:
    return [name for name, _ in _bindings(node)]


def _no_class(tree: ast.Module, classes: Mapping[str, ast.ClassDef]) -> CodeFinding:
    rule = "A network file must define a class named `UserModel`."
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "build_model"]
    if functions:
        advice = "The file is for DIGITS before its TensorFlow release: docs/how-to/bring-a-digits-network.md helps."
        return _at(functions[0], "error", rule, advice, width=len("def build_model"))
    nearest = nearest_names("UserModel", classes) or [
        name for name, node in classes.items() if any(_is_named(base, "Tower") for base in node.bases)
    ]
    if nearest:
        node = classes[nearest[0]]
        rule = f"{rule} Received: `{nearest[0]}`."
        return _at(node, "error", rule, "Write `class UserModel(Tower):`.", width=len(f"class {nearest[0]}"))
    return _finding(1, 1, 1, "error", rule, "Write `class UserModel(Tower):`.")


def _lineage(model: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef] | None:
    """Return a class with its ancestors in the file, down to ``Tower``; None where one is from elsewhere."""
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
            if _is_named(base, "Tower") or _is_named(base, "object"):
                continue
            if not isinstance(base, ast.Name) or base.id not in classes:
                return None
            waiting.append(classes[base.id])
    return found


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _class_members(lineage: Iterable[ast.ClassDef]) -> dict[str, ast.stmt]:
    """Return name → statement of all that classes define in their bodies, those of branches too."""
    found: dict[str, ast.stmt] = {}
    for node in lineage:
        for statement in _statements(node.body):
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.setdefault(statement.name, statement)
                continue
            for part in ast.walk(statement):
                for name in _bound_names(part):
                    found.setdefault(name, statement)
    return found


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.If | ast.Try | ast.With):
            for part in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(statement, part, []))
            for handler in getattr(statement, "handlers", []):
                yield from _statements(handler.body)
        else:
            yield statement


def _undecorated(statement: ast.stmt, name: str) -> Iterator[CodeFinding]:
    if isinstance(statement, ast.FunctionDef) and not statement.decorator_list:
        rule = f"`{name}` must be a `@model_property`: without it, `self.{name}` is a method and no tensor."
        yield _at(statement, "error", rule, "Write `@model_property` above it.", width=len(f"def {name}"))


# ---- what is read from self


def _members(code: _Code) -> Iterator[_Suspect]:
    """Yield attributes of ``self`` that neither the contract nor the file defines."""
    classes = {node.name: node for node in ast.walk(code.tree) if isinstance(node, ast.ClassDef)}
    model = classes.get("UserModel")
    lineage = None if model is None else _lineage(model, classes)
    if lineage is None or _is_dynamic(code.tree):
        return
    own = {*_class_members(lineage), *_names()[_MEMBERS], *code.asked}
    for node in ast.walk(code.tree):  # of any object: `model.extra = …` may mean this one
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            own.add(node.attr)
    for each in lineage:
        for method in _statements(each.body):
            if isinstance(method, ast.FunctionDef) and method.args.args and method.args.args[0].arg == "self":
                yield from _unknown_members(code, method, own)


def _unknown_members(code: _Code, method: ast.FunctionDef, own: set[str]) -> Iterator[_Suspect]:
    for node in _outside_classes(method):
        if not isinstance(node, ast.Attribute) or not _is_named(node.value, "self") or node in code.guarded:
            continue
        if node.attr in own or node.attr.startswith("__") or node.end_lineno is None or node.end_col_offset is None:
            continue
        place = (node.end_lineno, node.end_col_offset - len(node.attr) + 1, node.end_col_offset + 1)
        yield _Suspect(_finding(*place, "warning", f"`UserModel` has no `{node.attr}`."), node.attr, own, "self.")


def _outside_classes(method: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield the nodes of a method, but not those of classes in it: their ``self`` is another object."""
    waiting: list[ast.AST] = [method]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += (each for each in ast.iter_child_nodes(node) if not isinstance(each, ast.ClassDef))


def _is_dynamic(tree: ast.Module) -> bool:
    """Whether a file makes attributes in a way that only running it shows."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    methods = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return bool({"setattr", "vars", "exec"} & names or "__dict__" in attributes or "__getattr__" in methods)


# ---- names that nothing defines


def _undefined(text: str, code: _Code) -> Iterator[_Suspect]:
    """Yield names that are read and that neither the file, Python nor the contract defines."""
    if _has_open_names(code.tree):
        return
    known = {*_OWN, *_SPECIAL, *_PYTHON_2_NAMES, *dir(builtins)}
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
    offered = {*bound, *_OWN[:6], *dir(builtins)}
    for node in reads:
        if node not in code.guarded and not around.is_bound(node):
            yield _Suspect(_at(node, "warning", f"`{node.id}` is not defined."), node.id, offered)


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
            self._names[scope] = frozenset(name for inner in ast.walk(scope) for name in _bound_names(inner))
        return self._names[scope]


def _has_open_names(tree: ast.Module) -> bool:
    """Whether a file defines names in a way that cannot be read off it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return True
        if isinstance(node, ast.Name) and node.id in ("exec", "eval", "globals", "locals", "execfile"):
            return True
    return False
