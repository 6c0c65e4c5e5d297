"""Reference page of Tensorpack's names: ours, and their state."""

from __future__ import annotations

import importlib

__all__ = ["tensorpack_page"]

_HEAD = """# Tensorpack's names

What a program gets under Tensorpack's names by [`ziggurat run-tensorpack`](../how-to/bring-a-tensorpack-program.md).

| state | meaning |
|---|---|
| same | works as in Tensorpack |
| changed | works, with the difference that is told |
| left out | imports, and says on use what to do in its place |
"""


def tensorpack_page() -> str:
    """Return the page: one table a module of Tensorpack."""
    names = list(importlib.import_module("ziggurat.compat.tensorpack.names").all_names())
    states = [each.state for each in names]
    lines = [
        _HEAD,
        f"{states.count('same')} names are the same, {states.count('changed')} are changed, "
        f"{states.count('left out')} are left out; names of two modules are counted twice.",
    ]
    module = ""
    for each in names:
        if each.module != module:
            module = each.module
            lines += ["", f"## `{module}`", "", "| name | ours | state |", "|---|---|---|"]
        ours = f"`{each.ours}`" if each.ours else ""
        state = f"{each.state}: {each.note}" if each.note else each.state
        lines.append(f"| `{each.name}` | {ours} | {state} |")
    return "\n".join(lines) + "\n"
