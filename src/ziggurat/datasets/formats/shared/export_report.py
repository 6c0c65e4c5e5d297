"""Export report: what was written, and what the format cannot hold."""

from __future__ import annotations

from dataclasses import dataclass, field

from ziggurat.datasets.samples import Problem

__all__ = ["ExportReport"]


@dataclass(frozen=True, kw_only=True)
class ExportReport:
    """What an export wrote.

    Args:
        format: name of the format.
        counts: split → samples written.
        problems: samples that could not be written, or not wholly, with the reason.
        notes: what the format cannot hold of any sample, one sentence each.
    """

    format: str
    counts: dict[str, int]
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
