"""Task ``weights``: list, strip, compare and average weights in files of any kind."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.engine.callbacks.batches import write_arrays
from ziggurat.engine.stored_weights import StoredWeights, is_training_name, open_plain_weights
from ziggurat.errors import CheckpointError, UsageError

__all__ = ["weights"]

_TF: Final = "ziggurat.tf.varmanip"
"""Loaded only where a path is no plain file: TensorFlow is large, and may be missing."""


def weights(request: Mapping[str, Any]) -> dict[str, Any]:
    """Do something with weights in files.

    Args:
        request: ``paths``, and ``action``: ``list`` (of one path), ``strip`` (of one, to ``out``; with ``meta``, the
            path of a metagraph or ``nearest``, or ``keep``, a regular expression of names), ``diff`` (of two) or
            ``average`` (of all, to ``out``).

    Returns:
        ``arrays``, ``differences``, or what was ``kept``, ``left_out`` and ``written``.
    """
    action = _ACTIONS[request["action"]]
    return action([_opened(path) for path in request["paths"]], request)


def _list(opened: Sequence[StoredWeights], request: Mapping[str, Any]) -> dict[str, Any]:
    [one] = opened
    rows = []
    for name in one.shapes:
        array = one.get(name)
        rows.append({"name": name, "shape": list(array.shape), "dtype": str(array.dtype), "size_bytes": array.nbytes})
    return {"source": one.source, "arrays": rows}


def _strip(opened: Sequence[StoredWeights], request: Mapping[str, Any]) -> dict[str, Any]:
    [one] = opened
    meta = request.get("meta")
    if meta is not None:
        path = _nearest_metagraph(one.source) if meta == "nearest" else Path(meta)
        wanted = importlib.import_module(_TF).params_of_metagraph(path)
        missing = [name for name in wanted if name not in one.shapes]
        if missing:
            raise CheckpointError(
                "A metagraph and a checkpoint are of one training.",
                received=f"{', '.join(missing[:5])} of {path} is not in {one.source}",
                advice="Give the `graph-*.meta` that lies beside the checkpoint.",
            )
        kept = [name for name in one.shapes if name in set(wanted)]
    else:
        pattern = re.compile(request.get("keep") or ".*")
        kept = [name for name in one.shapes if not is_training_name(name) and pattern.fullmatch(name)]
    _write({name: one.get(name) for name in kept}, request["out"])
    return {"written": request["out"], "kept": kept, "left_out": [name for name in one.shapes if name not in kept]}


def _diff(opened: Sequence[StoredWeights], request: Mapping[str, Any]) -> dict[str, Any]:
    one, other = opened
    names = dict.fromkeys([*one.shapes, *other.shapes])
    return {"differences": [_difference(name, one, other) for name in names]}


def _average(opened: Sequence[StoredWeights], request: Mapping[str, Any]) -> dict[str, Any]:
    first, *others = opened
    for other in others:
        unlike = [name for name in {**first.shapes, **other.shapes} if first.shapes.get(name) != other.shapes.get(name)]
        if unlike:
            raise CheckpointError(
                "Weights that are averaged have the same names and shapes.",
                received=f"{', '.join(sorted(unlike)[:5])} of {other.source}",
                advice="Average checkpoints of one network.",
            )
    averaged = {name: _mean([each.get(name) for each in opened]) for name in first.shapes}
    _write(averaged, request["out"])
    return {"written": request["out"], "kept": list(averaged), "left_out": []}


_ACTIONS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "list": _list,
    "strip": _strip,
    "diff": _diff,
    "average": _average,
}


def _mean(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean of floating-point arrays; of others, such as counters, the last one."""
    last = arrays[-1]
    if last.dtype.kind not in "fc":
        return last
    wide = np.promote_types(last.dtype, np.float64)
    return np.mean([each.astype(wide) for each in arrays], axis=0).astype(last.dtype)


def _difference(name: str, one: StoredWeights, other: StoredWeights) -> dict[str, Any]:
    if name not in one.shapes or name not in other.shapes:
        return {"name": name, "kind": "only in the first" if name in one.shapes else "only in the second"}
    a, b = one.get(name), other.get(name)
    if a.shape != b.shape:
        return {"name": name, "kind": "shape", "shapes": [list(a.shape), list(b.shape)]}
    if a.dtype.kind not in "fciub" or b.dtype.kind not in "fciub":
        return {"name": name, "kind": "equal" if np.array_equal(a, b) else "values"}
    if np.array_equal(a, b, equal_nan=a.dtype.kind in "fc" and b.dtype.kind in "fc"):
        return {"name": name, "kind": "equal", "largest": 0.0, "mean": 0.0}
    gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return {"name": name, "kind": "values", "largest": float(gap.max()), "mean": float(gap.mean())}


def _opened(path: str) -> StoredWeights:
    return open_plain_weights(path) or importlib.import_module(_TF).open_weights(path)


def _write(arrays: Mapping[str, np.ndarray], out: str) -> None:
    if out.endswith(".npz"):
        write_arrays(Path(out), {name: array for name, array in arrays.items() if not array.dtype.hasobject})
    else:
        importlib.import_module(_TF).save_checkpoint_vars(arrays, out)


def _nearest_metagraph(source: str) -> Path:
    """Return the newest metagraph beside a checkpoint.

    Raises:
        UsageError: where there is none.
    """
    found = sorted(Path(source).absolute().parent.glob("graph-*.meta"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(
            f"There is no `graph-*.meta` beside {source} that says which variables are needed.",
            advice="Give one by `--meta`.",
        )
    return found[-1]
