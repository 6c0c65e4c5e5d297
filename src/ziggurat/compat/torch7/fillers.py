"""First values of weights as a network file of Torch sets them: what it does to a tensor becomes one filler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ziggurat.compat.torch7.errors import TorchError

__all__ = ["filler_of"]

_Filler = list[tuple[str, Any]]


def filler_of(module: Mapping[str, Any], name: str, limit: float, usual: _Filler | None) -> _Filler:
    """Return the filler of an array.

    Args:
        module: as recorded, with what was done to its arrays.
        name: ``weight`` or ``bias``.
        limit: of the uniform numbers that Torch begins with.
        usual: filler of an array that nothing was done to; None for that of PyTorch, which is Torch's.

    Raises:
        TorchError: if something was done that no filler does; names the line.
    """
    ops = module.get(name) or ()
    if not ops:
        return usual or [("type", "usual")]
    found = usual if usual is not None else _uniform(-limit, limit)
    for op in ops:
        found = _changed(found, op)
    return found


def _uniform(least: float, most: float) -> _Filler:
    return [("type", "uniform"), ("min", min(least, most)), ("max", max(least, most))]


def _changed(filler: _Filler, op: Sequence[Any]) -> _Filler:
    word, line = str(op[0]), int(op[-1])
    values = [float(each) for each in op[1:-1]]
    if word == "normal":
        return [("type", "gaussian"), ("mean", values[0]), ("std", values[1])]
    if word == "uniform":
        return _uniform(values[0], values[1])
    if word in ("zero", "fill"):
        return [("type", "constant"), ("value", values[0] if values else 0.0)]
    fields = dict(filler)
    if word not in ("mul", "div", "add", "sub") or fields["type"] == "usual" or (word == "div" and not values[0]):
        raise TorchError(f"`{word}` of weights is not known to an import.", line=line)
    factor = {"mul": values[0], "div": 1 / values[0] if values[0] else 0.0}.get(word, 1.0)
    shift = {"add": values[0], "sub": -values[0]}.get(word, 0.0)
    if fields["type"] == "gaussian":
        return [("type", "gaussian"), ("mean", fields["mean"] * factor + shift), ("std", abs(fields["std"] * factor))]
    if fields["type"] == "uniform":
        return _uniform(fields["min"] * factor + shift, fields["max"] * factor + shift)
    return [("type", "constant"), ("value", fields["value"] * factor + shift)]
