"""Arithmetic of an attempt: what decides the last bits of its numbers, and how it differs from that of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.events import ArithmeticRecorded

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
        changed: name → [value in the checkpoint, value now], of those that differ; None where one side has none.
        text: one sentence on what the attempt shares with its checkpoint; empty for an attempt from the start.
    """

    values: Mapping[str, Any]
    checkpoint: str = ""
    verdict: str = "first"
    changed: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Words for each value, and the value as text; the versions first."""
        return [(_title(name), _shown(value)) for name, value in sorted(self.values.items(), key=_order)]


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
        text = f"Same state and data; {NOT_RECORDED} in {checkpoint}."
        return AttemptArithmetic(values=values, checkpoint=checkpoint, verdict="unknown", text=text)
    names = dict.fromkeys([*before, *values])
    changed = {name: [before.get(name), values.get(name)] for name in names if before.get(name) != values.get(name)}
    if not changed:
        text = "Exact: same state, data and arithmetic."
        return AttemptArithmetic(values=values, checkpoint=checkpoint, verdict="same", text=text)
    differences = ", ".join(
        f"{_title(name)} {_shown(old)} → {_shown(new)}" for name, (old, new) in sorted(changed.items(), key=_order)
    )
    text = f"Same state and data, other arithmetic: {differences}."
    return AttemptArithmetic(values=values, checkpoint=checkpoint, verdict="other", changed=changed, text=text)


def arithmetic_after(event: ArithmeticRecorded) -> AttemptArithmetic:
    """Return the arithmetic that an event records."""
    return AttemptArithmetic(
        values=event.values,
        checkpoint=event.checkpoint,
        verdict=event.verdict,
        changed=event.changed,
        text=event.text,
    )


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("_", " "))


def _order(item: tuple[str, Any]) -> tuple[int, str]:
    names = list(_TITLES)
    return (names.index(item[0]) if item[0] in _TITLES else len(names)), item[0]


def _shown(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
