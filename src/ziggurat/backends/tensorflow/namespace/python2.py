"""Network files in Python 2: their statements in today's words, their builtins, and their division of whole numbers."""

from __future__ import annotations

import ast
import functools
import importlib
import io
import itertools
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace.proxy import notify
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["OLD_ITERTOOLS", "NetworkCode", "compile_network"]

OLD_ITERTOOLS: Final = {
    "ifilter": filter,
    "ifilterfalse": itertools.filterfalse,
    "imap": map,
    "izip": zip,
    "izip_longest": itertools.zip_longest,
}
"""Name in the ``itertools`` of Python 2 → what stands for it."""

_GONE: Final[dict[str, Any]] = {
    "basestring": str,
    "long": int,
    "raw_input": input,
    "reduce": functools.reduce,
    "reload": importlib.reload,
    "unichr": chr,
    "unicode": str,
    "xrange": range,
}
_LISTS: Final[dict[str, Any]] = {
    "filter": lambda *given: list(filter(*given)),
    "map": lambda *given: list(map(*given)),
    "range": lambda *given: list(range(*given)),
    "zip": lambda *given: list(zip(*given)),
}
_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "has_key": lambda found, key: key in found,
    "iteritems": lambda found: found.items(),
    "iterkeys": lambda found: found.keys(),
    "itervalues": lambda found: found.values(),
}
_CALL: Final = "__python_2_method__"
_DIVIDE: Final = "__python_2_divide__"
_DEPTHS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_NO_CODE: Final = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)
_LONG: Final = ("L", "l")
_VERSIONS: Final = ("version", "version_info", "PY2", "PY3")

Edit = tuple[tuple[int, int], int, str]
"""Place (line from 1, column), how many characters are taken out there, and what is put in."""


@dataclass(frozen=True, kw_only=True)
class NetworkCode:
    """A network file, ready to be executed.

    Args:
        code: of the whole file.
        builtins: name → value that it needs beside Python's own.
        notices: for its author: the first line, and a sentence.
    """

    code: CodeType
    builtins: dict[str, Any]
    notices: list[tuple[int, str]]


def compile_network(text: str, path: str, *, older: bool = False) -> NetworkCode:
    """Compile a network file, also one in Python 2.

    A file is in Python 2 where Python 3 cannot read it and it can be rewritten, or where it uses what is gone. Then
    ``/`` of whole numbers has no remainder, and ``map``, ``zip``, ``filter`` and ``range`` give lists.

    Args:
        text: the source.
        path: its name, for errors.
        older: whether it is known to be in Python 2, as a file is whose program is.

    Raises:
        SyntaxError: where it is neither.
    """
    tree, notices = _parsed(text, path)
    notices += _old_uses(tree)
    builtins: dict[str, Any] = {}
    if notices or older:
        tree = _Methods().visit(tree)
        if not any(isinstance(node, ast.ImportFrom) and _imports_division(node) for node in tree.body):
            tree = _Divisions().visit(tree)
        builtins = {**_GONE, **_LISTS, _CALL: _call, _DIVIDE: _divide}
    code = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    first = {sentence: line for line, sentence in sorted(notices, reverse=True)}
    told = sorted((line, sentence) for sentence, line in first.items())
    return NetworkCode(code=code, builtins=builtins, notices=told)


# ---- statements


def _parsed(text: str, path: str) -> tuple[ast.Module, list[tuple[int, str]]]:
    try:
        tree = ast.parse(text, path)
    except SyntaxError:
        rewritten, notices = _rewritten(text)
        if not notices:
            raise
        return ast.parse(rewritten, path), notices
    if not any(isinstance(node, ast.Expr) and _calculates_with_print(node.value) for node in ast.walk(tree)):
        return tree, []
    rewritten, notices = _rewritten(text)
    return ast.parse(rewritten, path), notices


def _calculates_with_print(value: ast.AST) -> bool:
    """Return whether a statement is one of ``print`` that Python 3 reads, and that fails there."""
    if isinstance(value, ast.Tuple) and value.elts:
        value = value.elts[0]
    if not isinstance(value, ast.BinOp):
        return False
    printing = value.left.func if isinstance(value.left, ast.Call) else value.left
    return isinstance(printing, ast.Name) and printing.id == "print"


def _rewritten(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Return a file in today's words, and what was rewritten; nothing was where it is beyond that."""
    lines = [_with_blanks(line) for line in text.splitlines(keepends=True)]
    notices = []
    if lines != text.splitlines(keepends=True):
        notices.append((1, "Tabs are read as Python 2 did: up to the next eighth column."))
    edits: list[Edit] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("".join(lines)).readline))
    except (tokenize.TokenError, SyntaxError):
        return text, []
    for first, rest in _statements(tokens):
        sentence, changes = _statement_today(first, rest)
        if sentence:
            notices.append((first.start[0], sentence))
            edits += changes
    for line, sentence, edit in _expressions_today(tokens):
        notices.append((line, sentence))
        edits.append(edit)
    for (line, column), length, new in sorted(edits, reverse=True):
        old = lines[line - 1]
        lines[line - 1] = old[:column] + new + old[column + length :]
    return "".join(lines), notices


def _statement_today(first: tokenize.TokenInfo, rest: Sequence[tokenize.TokenInfo]) -> tuple[str, list[Edit]]:
    """Return what a statement of Python 2 is read as, and the edits; an empty text for all others."""
    around: list[Edit] = [(rest[0].start, 0, "("), (rest[-1].end, 0, ")")]
    commas = _commas(rest)
    if first.string == "print" and rest[0].string == ">>":
        return "`print >>file, x` is Python 2; it is read as `print(x, file=file)`.", _print_to_file(rest, commas)
    if first.string == "print" and _is_print_statement(rest):
        around[1] = (rest[-1].end, 0, ' end=" ")' if rest[-1].string == "," else ")")
        return "`print x` is Python 2; it is read as `print(x)`.", around
    if first.string == "exec" and rest[0].string != "(":
        return "`exec code` is Python 2; it is read as `exec(code)`.", around
    if first.string == "raise" and len(commas) == 1:
        edits: list[Edit] = [(commas[0].start, 1, "("), (rest[-1].end, 0, ")")]
        return "`raise Error, text` is Python 2; it is read as `raise Error(text)`.", edits
    if first.string == "except" and rest[-1].type == tokenize.NAME and rest[-2].string == ",":
        return "`except Error, name` is Python 2; it is read as `except Error as name`.", [(rest[-2].start, 1, " as")]
    return "", []


def _commas(tokens: Sequence[tokenize.TokenInfo]) -> list[tokenize.TokenInfo]:
    """Return the commas outside of brackets."""
    found, depth = [], 0
    for token in tokens:
        depth += _DEPTHS.get(token.string, 0)
        if depth == 0 and token.string == ",":
            found.append(token)
    return found


def _print_to_file(rest: Sequence[tokenize.TokenInfo], commas: Sequence[tokenize.TokenInfo]) -> list[Edit]:
    """Return the edits that put the file of ``print >>file, x`` behind what is printed."""
    line, start = rest[0].start
    until = commas[0].start[1] if commas else rest[-1].end[1]
    file = rest[0].line[rest[0].end[1] : until].strip()
    taken = until - start + bool(commas)
    if not commas:
        return [((line, start), taken, f"(file={file})")]
    ending = f' end=" ", file={file})' if rest[-1].string == "," and len(commas) > 1 else f", file={file})"
    return [((line, start), taken, "("), (rest[-1].end, 0, ending)]


def _expressions_today(tokens: Sequence[tokenize.TokenInfo]) -> Iterator[tuple[int, str, Edit]]:
    """Yield for each expression that only Python 2 reads its line, what it is read as, and the edit."""
    opened = False
    for token, after in itertools.pairwise(tokens):
        line, column = token.start
        touching = token.end == after.start
        if token.string == "<" and after.string == ">" and touching:
            yield line, "`<>` is Python 2; it is read as `!=`.", ((line, column), 2, "!=")
        elif token.type == tokenize.NUMBER and after.string in _LONG and touching:
            yield line, f"`{token.string}L` is Python 2; it is read as `{token.string}`.", (after.start, 1, "")
        elif token.string == "0" and after.type == tokenize.NUMBER and touching:
            octal = f"0o{after.string}"
            yield line, f"`0{after.string}` is Python 2; it is read as `{octal}`.", (after.start, 0, "o")
        elif token.string == "`":
            opened = not opened
            yield (
                line,
                "`` `x` `` is Python 2; it is read as `repr(x)`.",
                ((line, column), 1, "repr(" if opened else ")"),
            )


def _with_blanks(line: str) -> str:
    code = line.lstrip(" \t")
    return line[: len(line) - len(code)].expandtabs(8) + code


def _statements(
    tokens: Sequence[tokenize.TokenInfo],
) -> Iterator[tuple[tokenize.TokenInfo, list[tokenize.TokenInfo]]]:
    """Yield the first token of each statement of more than one, or of a compound one's head, and the others."""
    current: list[tokenize.TokenInfo] = []
    depth = 0
    for token in tokens:
        depth += _DEPTHS.get(token.string, 0)
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) or (depth == 0 and token.string in (";", ":")):
            if len(current) > 1:
                yield current[0], current[1:]
            current = []
        elif token.type not in _NO_CODE:
            current.append(token)


def _is_print_statement(rest: Sequence[tokenize.TokenInfo]) -> bool:
    """Return whether what stands behind ``print`` is what it prints, and not a call's arguments."""
    if rest[0].string != "(":
        return rest[0].type != tokenize.OP or rest[0].string in ("[", "{", "-")
    depth = 0
    for number, token in enumerate(rest):
        depth += _DEPTHS.get(token.string, 0)
        if depth == 0:
            return number < len(rest) - 1
    return False


# ---- names


def _old_uses(tree: ast.Module) -> list[tuple[int, str]]:
    """Return what a file uses that only Python 2 has, with its first line; not what the file defines itself."""
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    own |= {
        alias.asname or alias.name
        for node in ast.walk(tree)
        for alias in getattr(node, "names", [])
        if isinstance(alias, ast.alias)
    }
    own |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    found: dict[str, tuple[int, str]] = {}
    for node in _for_one_python(tree):
        if isinstance(node, ast.Name) and node.id in _GONE and node.id not in own:
            text = f"`{node.id}` is Python 2; `{_GONE[node.id].__name__}` stands for it."
            found[node.id] = min(found.get(node.id, (node.lineno, text)), (node.lineno, text))
        elif isinstance(node, ast.Call) and (name := _old_method(node)):
            text = f"`.{name}()` is Python 2; a dictionary does without it today."
            found[name] = min(found.get(name, (node.lineno, text)), (node.lineno, text))
    return list(found.values())


def _for_one_python(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree, without what a program that both Pythons run keeps for one of them."""
    yield tree
    if isinstance(tree, ast.Try) and any(_catches_names(handler) for handler in tree.handlers):
        return
    if isinstance(tree, ast.If | ast.IfExp) and any(_names_version(node) for node in ast.walk(tree.test)):
        return
    for child in ast.iter_child_nodes(tree):
        yield from _for_one_python(child)


def _catches_names(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or any(
        isinstance(node, ast.Name) and node.id == "NameError" for node in ast.walk(handler.type)
    )


def _names_version(node: ast.AST) -> bool:
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) in _VERSIONS


def _old_method(call: ast.Call) -> str:
    """Return the name of a method that dictionaries have no more, or an empty text."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name if name in _METHODS and len(call.args) == (name == "has_key") else ""


def _imports_division(node: ast.ImportFrom) -> bool:
    return node.module == "__future__" and any(alias.name == "division" for alias in node.names)


class _Methods(ast.NodeTransformer):
    """Lets methods of dictionaries that are gone be called through a function, and a bare ``print`` print a line."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id == "print":
            node.value = ast.copy_location(ast.Call(node.value, [], []), node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = _old_method(node)
        if not name or not isinstance(node.func, ast.Attribute):
            return node
        arguments = [node.func.value, ast.Constant(name), *node.args]
        return ast.copy_location(ast.Call(ast.Name(_CALL, ast.Load()), arguments, []), node)


class _Divisions(ast.NodeTransformer):
    """Lets ``/`` and ``/=`` of a name be a call of a function."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.copy_location(ast.Call(ast.Name(_DIVIDE, ast.Load()), [node.left, node.right], []), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or not isinstance(node.target, ast.Name):
            return node
        quotient = ast.Call(ast.Name(_DIVIDE, ast.Load()), [ast.Name(node.target.id, ast.Load()), node.value], [])
        return ast.copy_location(ast.Assign([node.target], quotient), node)


def _call(found: Any, name: str, *arguments: Any) -> Any:
    own = getattr(found, name, None)  # some other classes have it still
    return _METHODS[name](found, *arguments) if own is None else own(*arguments)


def _divide(left: Any, right: Any) -> Any:
    if not (_is_whole(left) and _is_whole(right)):
        return left / right
    notify("Python 2 divided whole numbers without a remainder, and so it is done here; write `//` to say so.")
    return tf.div(left, right) if isinstance(left, tf.Tensor) or isinstance(right, tf.Tensor) else left // right


def _is_whole(value: Any) -> bool:
    if isinstance(value, tf.Tensor):
        return value.dtype.is_integer
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and value.dtype.kind in "iu")
