"""View model of an inspected network: its layers, its graph, and errors with their line numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.errors import ZigguratError, nearest_names

__all__ = ["graph_of", "layer_rows", "network_problem", "shape_text"]

_MOST_LINES_AROUND: Final = 3
_MEMBERS: Final = (
    "disableAutoDataParallelism",
    "fineTuneHook",
    "gradientUpdate",
    "inference",
    "input_shape",
    "is_inference",
    "is_training",
    "loss",
    "nclasses",
    "summaries",
    "train",
    "x",
    "y",
)
"""What a network finds in ``self``; the reference of the contract lists it."""

_NO_MEMBER: Final = re.compile(r"'UserModel' object has no attribute '(\w+)'")


def network_problem(error: ZigguratError, text: str) -> dict[str, Any]:
    """Return what is wrong with a network, for people and for the editor.

    Args:
        error: that it ended with.
        text: of the network; empty for a standard one.

    Returns:
        ``rule``, ``received``, ``advice``, ``line`` (from 1; None where nobody knows), ``lines`` (number and text of
        the lines around it) and ``trace``.
    """
    lines, named = text.splitlines(), error.details.get("line")
    line = named if isinstance(named, int) and 1 <= named <= len(lines) else None
    return {
        "rule": error.rule,
        "received": (error.received or "") if line is None else "",
        "advice": error.advice or _nearest_member(error.rule),
        "line": line,
        "lines": [] if line is None else _around(lines, line),
        "trace": _own_trace(str(error.details.get("traceback", ""))),
    }


def layer_rows(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the layers of a description: name, shape, parameters and their share."""
    whole = described["parameters"] or 1
    return [
        {**each, "shape": shape_text(each["shape"]), "share": each["parameters"] / whole}
        for each in described["layers"]
    ]


def graph_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the image of the graph is drawn from: operations with the ones before them, weights of scopes."""
    shown = [each for each in described["operations"] if _is_shown(each)]
    places = {each["name"]: place for place, each in enumerate(shown)}
    nodes = [
        {
            "name": each["name"].removeprefix("model/"),
            "kind": each["kind"],
            "shape": shape_text(each["shape"]),
            "from": [places[source] for source in each["inputs"] if source in places],
        }
        for each in shown
    ]
    weights = {
        each["name"].removeprefix("model/"): each["count"] for each in described["variables"] if each["trainable"]
    }
    return {"nodes": nodes, "weights": weights}


def shape_text(shape: Sequence[int | None] | None) -> str:
    """Return a shape as people write it: ``N x 24 x 24 x 20``, with N for the samples of a batch."""
    if shape is None:
        return "unknown"
    return " x ".join("N" if side is None else str(side) for side in shape) or "one number"


def _is_shown(operation: Mapping[str, Any]) -> bool:
    """Whether an operation belongs to the network, not to its penalties and summaries."""
    return operation["name"].startswith("model/") and not operation["kind"].endswith("Summary")


def _around(lines: Sequence[str], line: int) -> list[tuple[int, str]]:
    first = max(1, line - _MOST_LINES_AROUND)
    return [(number, lines[number - 1]) for number in range(first, min(len(lines), line + _MOST_LINES_AROUND) + 1)]


def _nearest_member(rule: str) -> str:
    found = _NO_MEMBER.search(rule)
    near = nearest_names(found[1], _MEMBERS) if found else []
    return f"Did you mean {' or '.join(f'`self.{name}`' for name in near)}?" if near else ""


def _own_trace(trace: str) -> str:
    """Return a trace without the frames that are not the user's: those show this program's files."""
    blocks = re.split(r"(?m)^(?=  File )", trace)
    own = [each for each in blocks[1:] if re.match(r'  File "[^"]*/network\.py"', each)]
    shown = "".join([blocks[0], *own]) if own else ""
    return re.sub(r'File "[^"]*/network\.py"', 'File "network.py"', shown).strip()
