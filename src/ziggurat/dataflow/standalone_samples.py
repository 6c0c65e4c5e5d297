"""The self-test of an exported model, without Ziggurat: an export contains this file beside ``predict.py``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

__all__ = ["check_samples", "show_differences", "stored_values"]

Run = Callable[[np.ndarray], "dict[str, np.ndarray]"]

_OUTPUT = "output/"
"""Before the name of an output in the file of the samples."""

_MOST_VALUES = 4096
"""Values of an output that are kept of a sample: of a large mask, some from all over it."""


def stored_values(output: np.ndarray) -> np.ndarray:
    """Return what is kept of an output of one sample, (N,): all its values, or 4,096 from all over it."""
    flat = np.asarray(output).ravel()
    if flat.size <= _MOST_VALUES:
        return flat
    return flat[np.linspace(0, flat.size - 1, _MOST_VALUES).astype(np.int64)]


def check_samples(folder: Path, model: Run, prepared: Callable[[np.ndarray], np.ndarray]) -> tuple[float, list[float]]:
    """Run the samples of an export one by one, and compare their outputs with those that it brings.

    Args:
        folder: of the export.
        model: returns name → output of a batch.
        prepared: returns a batch as the model takes it, of samples as the export has them.

    Returns:
        The largest difference that is allowed, and the one of each sample: of any output, as a share of the largest
        value of that output where that is above 1. NaN and infinity are no numbers that equal others.

    Raises:
        ValueError: if the export brings no samples.
    """
    about = json.loads((folder / "model.json").read_text(encoding="utf-8")).get("self_test")
    if not about:
        raise ValueError("the export has no samples for a self-test; export the model again.")
    with np.load(folder / about["file"], allow_pickle=False) as stored:
        arrays = dict(stored)
    names = [key[len(_OUTPUT) :] for key in arrays if key.startswith(_OUTPUT)]
    differences = []
    for number, sample in enumerate(arrays["inputs"]):
        outputs = model(prepared(sample[None]))
        shares = [0.0]
        for name in names:
            expected = arrays[_OUTPUT + name][number]
            if name == "detections":
                expected = expected.reshape(-1, 6)
                shares.append(_detections_apart(expected, np.asarray(outputs[name][0], np.float64)))
                continue
            found = stored_values(outputs[name][0])
            largest = np.abs(arrays[_OUTPUT + name].astype(np.float64)).max(initial=1)
            is_alike = found.shape == expected.shape
            shares.append(np.abs(found.astype(np.float64) - expected).max(initial=0) / largest if is_alike else np.inf)
        worst = float(np.max(shares))
        differences.append(worst if np.isfinite(worst) else float("inf"))
    return float(about["tolerance"]), differences


def show_differences(allowed: float, differences: Sequence[float], *, as_json: bool) -> int:
    """Print what ``check_samples`` found; return the exit code: 0, or 1 if a sample differs by more than is allowed."""
    failed = [number for number, each in enumerate(differences, 1) if not each <= allowed]
    if as_json:
        shown = [each if np.isfinite(each) else None for each in differences]
        sys.stdout.write(json.dumps({"holds": not failed, "allowed": allowed, "differences": shown}) + "\n")
        return 1 if failed else 0
    for number in failed:
        sys.stdout.write(f"sample {number} differs by {differences[number - 1]:.3g}; allowed is {allowed:g}\n")
    sys.stdout.write(f"{len(differences) - len(failed)} of {len(differences)} samples give the same on this machine.\n")
    return 1 if failed else 0


_LEAST_COMPARED = 0.05
"""Detections of lower scores come and go with the last digit."""


def _detections_apart(expected: np.ndarray, found: np.ndarray) -> float:
    """Return the largest difference of detections (N, 6) from their nearest ones of the same class, px as shares."""
    if not np.isfinite(found).all():
        return float("inf")
    extent = max(1.0, float(np.abs(expected[:, :4]).max(initial=0)))
    worst = 0.0
    for some, others in ((expected, found), (found, expected)):
        for row in some[some[:, 4] >= _LEAST_COMPARED]:
            same = others[(others[:, 5] == row[5]) & (others[:, 4] > 0)]
            apart = np.abs(same[:, :5] - row[:5])
            nearest = np.maximum(apart[:, :4].max(axis=1) / extent, apart[:, 4])
            worst = max(worst, float(nearest.min(initial=1.0)))
    return worst
