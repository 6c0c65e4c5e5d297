"""Arithmetic of an attempt: what decides the last bits of its numbers, and how it differs from that of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["NOT_RECORDED", "AttemptArithmetic", "arithmetic_after", "compare_arithmetic"]

NOT_RECORDED: Final = "arithmetic not recorded"
"""What is said of attempts of releases that recorded none."""

_TITLES: Final = {
    "backend": "backend",
    "framework": "framework",
    "python": "Python",
    "numpy": "NumPy",
    "blas": "BLAS",
    "blas_threads": "threads of the BLAS",
    "opencv": "OpenCV",
    "pillow": "Pillow",
    "jpeg": "JPEG library",
    "image_engine": "image engine",
    "processor": "processor",
    "instructions": "instruction set of NumPy",
    "framework_instructions": "instruction set",
    "threads": "threads",
    "inter_threads": "threads between operations",
    "devices": "devices",
    "precision": "precision",
    "float32_products": "float32 products",
    "cudnn": "cuDNN",
    "cuda": "CUDA",
    "libraries": "matrix libraries",
    "cudnn_benchmark": "cuDNN benchmark",
    "deterministic": "deterministic algorithms",
    "channels_last": "channels last",
    "compiled": "compiled",
    "loader_workers": "workers of the loader",
    "variables": "environment variables",
}
"""Name in a record → words for people, in the order in which differences are told."""


@dataclass(frozen=True, kw_only=True)
class AttemptArithmetic:
    """The arithmetic of an attempt, beside that of the attempt that wrote its checkpoint.

    Args:
        values: name → text, number or bool; see ``ziggurat.engine.arithmetic``.
        checkpoint: name of the checkpoint that the attempt went on from; empty if it began from the start.
        verdict: ``first`` (no checkpoint), ``same``, ``other``, or ``unknown`` (the checkpoint's is not recorded).
        changed: name → value before and now, of the values that differ; None where one side has none.
    """

    values: Mapping[str, Any]
    checkpoint: str = ""
    verdict: str = "first"
    changed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One sentence on what the attempt shares with the one before; empty for an attempt from the start."""
        match self.verdict:
            case "same":
                return "Exact: same state, data and arithmetic."
            case "other":
                return f"Same state and data, other arithmetic: {self.differences}."
            case "unknown":
                return f"Same state and data; {NOT_RECORDED} in {self.checkpoint}."
            case _:
                return ""

    @property
    def differences(self) -> str:
        """What differs, such as ``threads 1 → 2, NumPy 2.1.0 → 2.2.0``; empty for nothing."""
        return ", ".join(
            f"{_TITLES.get(name, name.replace('_', ' '))} {_shown(before)} → {_shown(now)}"
            for name, (before, now) in sorted(self.changed.items(), key=_order)
        )


def compare_arithmetic(
    values: Mapping[str, Any], checkpoint: str, before: Mapping[str, Any] | None
) -> AttemptArithmetic:
    """Return the arithmetic of an attempt beside that of a checkpoint.

    Args:
        values: of the attempt.
        checkpoint: name of the checkpoint; empty for none.
        before: what the checkpoint records; None where it records nothing.
    """
    if not checkpoint:
        return AttemptArithmetic(values=values)
    if not before:
        return AttemptArithmetic(values=values, checkpoint=checkpoint, verdict="unknown")
    names = dict.fromkeys([*before, *values])
    changed = {name: [before.get(name), values.get(name)] for name in names if before.get(name) != values.get(name)}
    verdict = "other" if changed else "same"
    return AttemptArithmetic(values=values, checkpoint=checkpoint, verdict=verdict, changed=changed)


def arithmetic_after(content: Any) -> AttemptArithmetic | None:
    """Return the arithmetic of decoded JSON; None where it is none."""
    try:
        changed = {str(name): (before, now) for name, (before, now) in content["changed"].items()}
        return AttemptArithmetic(
            values=dict(content["values"]),
            checkpoint=str(content["checkpoint"]),
            verdict=str(content["verdict"]),
            changed=changed,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _order(item: tuple[str, Any]) -> tuple[int, str]:
    names = list(_TITLES)
    return (names.index(item[0]) if item[0] in _TITLES else len(names)), item[0]


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
