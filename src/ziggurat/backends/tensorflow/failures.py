"""Error messages for failures while a graph runs: the user's line, or the memory that was too small."""

from __future__ import annotations

import linecache
import re
from typing import Any, Final, Literal

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import NetworkCodeError, TrainingError, ZigguratError

__all__ = ["explained"]

_TOO_LARGE: Final = "Cannot parse tensor from proto"
"""What TensorFlow says of a constant that it cannot allocate; a graph made by Python has no damaged ones."""

_NODE: Final = re.compile(r"\{\{\{?node ([^\s}]+)\}")

_MEMORY: Final = {
    "step": (
        "The step must fit in the device's memory: it is out of memory.",
        "Make `batch_size` or the network smaller, or set `gradient_accumulation_steps` to train a batch in parts.",
    ),
    "start": (
        "The network's variables must fit in the device's memory: it is out of memory.",
        "Make the network smaller: fewer or narrower layers.",
    ),
}


def explained(error: Any, path: str, graph: Any = None, *, doing: Literal["step", "start"] = "step") -> ZigguratError:
    """Return the error to raise for one of TensorFlow's.

    Args:
        error: a ``tf.errors.OpError``.
        path: the network file.
        graph: finds the operation of an error that only names it, as those of prepared calls do.
        doing: what failed: a step, or giving the variables their first values.
    """
    # TensorFlow may tell first where the operation was made, up to a line "Node: 'name'".
    text = re.split(r"\nNode: '[^']*'\n", str(error.message or ""))[-1].strip()
    first = text.splitlines()[0] if text else type(error).__name__
    line = _users_line(error.op or _named_operation(text, graph), path)
    where = f"{path}, line {line}" if line else path
    if isinstance(error, tf.errors.ResourceExhaustedError) or first.startswith(_TOO_LARGE):
        rule, advice = _MEMORY[doing]
        return TrainingError(
            rule,
            received=f"{where}: {first}",
            advice=advice,
            details={"file": path, "line": line, "error_type": type(error).__name__},
        )
    source = linecache.getline(path, line).strip() if line else ""
    return NetworkCodeError(
        f"The network failed while it ran: {first}",
        received=f"{where}: {source}" if source else where,
        details={"file": path, "line": line, "source": source, "error_type": type(error).__name__},
    )


def _named_operation(text: str, graph: Any) -> Any:
    """Return the operation of ``graph`` that a message names; None where it names none of its own."""
    found = _NODE.search(text)
    try:
        return None if found is None or graph is None else graph.get_operation_by_name(found.group(1))
    except (KeyError, ValueError):  # made by the runtime, or a name of a port
        return None


def _users_line(operation: Any, path: str) -> int | None:
    """Return the newest line of the user's file that made the operation, or the one whose gradient it is."""
    while operation is not None:
        lines = [frame.lineno for frame in operation.traceback or () if frame.filename == path]
        if lines:
            return lines[-1]
        operation = getattr(operation, "_original_op", None)
    return None
