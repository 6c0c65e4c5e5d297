"""How people choose samples of an evaluation by what their task knows of them: fields, and what they leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ziggurat.entities.task_report import Report, SampleField
from ziggurat.errors import UnknownNameError, UsageError

__all__ = ["ChoosesSamples", "SampleChoice", "SampleField", "checked_choice"]

_NEARLY: Final = 1e-9


@dataclass(frozen=True)
class SampleChoice:
    """The samples that are left.

    Args:
        kept: (N) bool.
        scores: (N) float64, which ranks them in place of what the results keep; None where it is that.
    """

    kept: np.ndarray
    scores: np.ndarray | None = None


class ChoosesSamples:
    """What a task says of samples that people choose by more than their score; nothing by default."""

    def sample_fields(self, summary: Mapping[str, Any]) -> Sequence[SampleField]:
        """Return the fields that samples of an evaluation are chosen by, beside their score; none by default."""
        return ()

    def prepare_samples(self, summary: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
        """Return what is computed once of an evaluation, for all answers of the methods below; it is kept in memory.

        Args:
            summary: of the job.
            arrays: of the results, by name.
        """
        return None

    def choose_samples(self, prepared: Any, asked: Mapping[str, str]) -> SampleChoice:
        """Return the samples that fields leave; only asked where there are fields.

        Args:
            prepared: what ``prepare_samples`` returned.
            asked: name of each of ``sample_fields`` → value, checked.
        """
        raise NotImplementedError

    def asked_report(self, summary: Mapping[str, Any], prepared: Any, asked: Mapping[str, str]) -> Report:
        """Return the report with what a page asks for; only asked where a field is of the report.

        Args:
            summary: of the job.
            prepared: what ``prepare_samples`` returned.
            asked: as for ``choose_samples``.
        """
        raise NotImplementedError

    def sample_changes(
        self, first: Any, second: Any, places: tuple[np.ndarray, np.ndarray], asked: Mapping[str, str]
    ) -> Mapping[str, int]:
        """Return what changed inside of samples from one evaluation to another, title → count; empty by default.

        Args:
            first: what ``prepare_samples`` returned of an evaluation.
            second: the same of another one.
            places: of the same samples in the arrays of both.
            asked: as for ``choose_samples``.
        """
        return {}


def checked_choice(fields: Sequence[SampleField], asked: Mapping[str, Any]) -> dict[str, str]:
    """Return the value of each field as text: what was asked for, else its default.

    Raises:
        UnknownNameError: where there is no such field.
        UsageError: where a value cannot be.
    """
    known = {field.name: field for field in fields}
    for name in asked:
        if name not in known:
            raise UnknownNameError("field that samples of this task are chosen by", name, known)
    return {name: _checked(field, str(asked.get(name, "")).strip()) for name, field in known.items()}


def _checked(field: SampleField, value: str) -> str:
    if value == "":
        return field.default
    if field.choices:
        if value in (each for each, _ in field.choices):
            return value
        some = ", ".join(each for each, _ in field.choices[:12] if each)
        raise UsageError(f"`{field.name}` is one of its values.", received=value[:80], advice=f"Values: {some}, ….")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not field.low - _NEARLY <= number <= field.high + _NEARLY:
        raise UsageError(f"`{field.name}` is a number from {field.low:g} to {field.high:g}.", received=value[:80])
    return f"{number:g}"
