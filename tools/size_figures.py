"""Size figures of the source: printed, and checked against limits.

Every line counts, docstrings and comments too. Arguments are counted without ``self``, ``cls``, ``*args`` and
``**kwargs``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from tools.source_tree import Finding, SourceFile, run

__all__ = ["LIMITS", "Limit", "check", "measure"]


@dataclass(frozen=True)
class Limit:
    """How large things of one kind may be.

    Args:
        most: for each of them.
        median: for the middle one; None for no limit.
        unit: what is counted.
    """

    most: int
    median: int | None
    unit: str = "lines"


LIMITS = {
    "file": Limit(most=800, median=250),
    "function": Limit(most=80, median=25),
    "class": Limit(most=400, median=None),
    "arguments of a function": Limit(most=7, median=None, unit="arguments"),
}

PROMISED = {
    "ziggurat.tf.config",
    "ziggurat.tf.models.batch_norm",
    "ziggurat.tf.models.convolution",
    "ziggurat.tf.models.fully_connected",
    "ziggurat.tf.predict_config",
    "ziggurat.compat.tensorpack.keras",
    "ziggurat.compat.tensorpack.utils.viz",
    "ziggurat.compat.tf1.kmeans",
}
"""Modules whose functions have the arguments that programs of Tensorpack or TensorFlow 1 give them."""


@dataclass(frozen=True)
class Size:
    """The size of one thing."""

    kind: str
    name: str
    amount: int
    file: SourceFile
    line: int


def check(files: Sequence[SourceFile]) -> Iterator[Finding]:
    """Print the figures and yield what is over a limit."""
    sizes = [size for file in files for size in measure(file)]
    for kind, limit in LIMITS.items():
        of_kind = [size for size in sizes if size.kind == kind]
        yield from _too_large(of_kind, limit)
        if of_kind:
            yield from _figures(kind, of_kind, limit)


def measure(file: SourceFile) -> Iterator[Size]:
    """Yield the sizes of a file and of everything defined in it, nested functions too."""
    yield Size("file", file.module, len(file.text.splitlines()), file, 1)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef):
            yield Size("class", node.name, _lines(node), file, node.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Size("function", node.name, _lines(node), file, node.lineno)
            if file.module not in PROMISED:
                yield Size("arguments of a function", node.name, _arguments(node), file, node.lineno)


def _lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _too_large(sizes: Iterable[Size], limit: Limit) -> Iterator[Finding]:
    for size in sizes:
        if size.amount > limit.most:
            yield size.file.finding(
                size.line,
                f"a {size.kind.split()[-1]} has at most {limit.most} {limit.unit}. "
                f"Received: {size.amount} in `{size.name}`. Split it by what its parts own.",
            )


def _figures(kind: str, sizes: Sequence[Size], limit: Limit) -> Iterator[Finding]:
    amounts = [size.amount for size in sizes]
    middle, largest = median(amounts), max(sizes, key=lambda size: size.amount)
    print(
        f"{kind:24}{len(sizes):5} of them, {limit.unit}: median {middle:g} (at most {limit.median or '-'}), "
        f"most {largest.amount} (at most {limit.most}) in {largest.name}"
    )
    if limit.median is not None and middle > limit.median:
        yield largest.file.finding(
            largest.line,
            f"the median {kind} has at most {limit.median} {limit.unit}. Received: {middle:g}. "
            f"Split the large ones; the largest is `{largest.name}`.",
        )


if __name__ == "__main__":
    sys.exit(run("sizes", check, sys.argv[1:], with_networks=True))
