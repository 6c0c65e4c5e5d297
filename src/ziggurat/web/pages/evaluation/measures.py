"""View model of the metrics of an evaluation, and of their difference from another run on the same samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import JobError
from ziggurat.formatting import as_percent
from ziggurat.workspace.studio import Studio

__all__ = ["Comparison", "Measure", "change_of", "compared_with", "measures_of"]

_MANY_CLASSES: Final = 20
_SIGNIFICANT: Final = 0.05
_TRIED: Final = 8


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One metric.

    Args:
        title: name of it.
        text: its value with the unit.
        help: what it says, in one sentence.
        change: difference from the other run in words, such as ``1.1 points better``; empty where there is none.
        verdict: ``better``, ``worse``, ``same``, or empty where there is no other run.
        name: for the id of its place; empty where it has none.
        beside: a few words after the value.
        note: what the value is made of.
        is_asked: whether it follows the fields above the results.
    """

    title: str
    text: str
    help: str
    change: str = ""
    verdict: str = ""
    name: str = ""
    beside: str = ""
    note: str = ""
    is_asked: bool = False


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Another run on the same samples, beside this one.

    Args:
        job: the other run.
        summary: its figures.
        counts: samples that this run ``fixed``, ``broken`` and has ``still_wrong``.
        p_value: of McNemar's test.
        versions: where the other run is on another version of the dataset, what both have in common, as
            ``Evaluations.differences`` gives it.
    """

    job: Job
    summary: Mapping[str, Any]
    counts: Mapping[str, int]
    p_value: float
    versions: Mapping[str, Any] | None = None

    @property
    def is_significant(self) -> bool:
        """Whether a difference of this size is unlikely between two equally good models."""
        return self.p_value < _SIGNIFICANT


def measures_of(summary: Mapping[str, Any], other: Mapping[str, Any] | None) -> list[Measure]:
    """Return the metrics beside the accuracy; those that are not defined are left out.

    Args:
        summary: as ``Evaluations.summary`` gives it.
        other: that of the run that it is compared with.
    """
    top = "top5" if len(summary["classes"]) > _MANY_CLASSES else "top3"
    chosen = (
        ("macro_f1", "Macro F1", "Mean F1 of the classes; every class counts the same.", True),
        (top, f"Top-{top[-1]} accuracy", f"The actual class is among the {top[-1]} most likely ones.", True),
        ("log_loss", "Log loss", "Mean of -log of the probability of the actual class; lower is better.", False),
        (
            "calibration_error",
            "Calibration error",
            "Mean gap between confidence and accuracy over 15 bins; lower is better.",
            False,
        ),
    )
    return [
        _measure(summary, other, name, title, text, rises=rises)
        for name, title, text, rises in chosen
        if summary.get(name) is not None
    ]


def change_of(value: float, other: float | None, *, rises: bool, is_share: bool) -> tuple[str, str]:
    """Return the difference from another value in words, and ``better``, ``worse`` or ``same``.

    Args:
        value: of this run.
        other: of the other run; None where it has none.
        rises: whether larger is better.
        is_share: whether it is a share of 1, whose difference is in percentage points.
    """
    if other is None:
        return "", ""
    gap = value - other
    amount = f"{abs(100 * gap):.1f}" if is_share else f"{abs(gap):.3f}"
    if not float(amount):
        return "no difference", "same"
    verdict = "better" if (gap > 0) == rises else "worse"
    return f"{amount}{' points' if is_share else ''} {verdict}", verdict


def compared_with(studio: Studio, job: Job, others: Sequence[Job], wanted: str) -> Comparison | None:
    """Return the run beside this one.

    Args:
        studio: where they are.
        job: this run.
        others: runs on the same samples, the newest first.
        wanted: id of the other run, ``none``, or empty: the newest of another model or checkpoint.

    Raises:
        JobError: where the wanted run is of other samples.
    """
    if wanted == "none":
        return None
    if wanted:
        return _comparison(studio, job, studio.jobs.get(wanted))
    used = (job.parent, studio.evaluations.checkpoint_of(job.id))
    for other in others[:_TRIED]:
        try:
            if (other.parent, studio.evaluations.checkpoint_of(other.id)) != used:
                return _comparison(studio, job, other)
        except JobError:  # its samples were corrected meanwhile
            continue
    return None


def _comparison(studio: Studio, job: Job, other: Job) -> Comparison:
    found = studio.evaluations.differences(other.id, job.id, limit=0)
    return Comparison(
        job=other,
        summary=studio.evaluations.summary(other.id),
        counts=found["counts"],
        p_value=found["p_value"],
        versions=found["versions"],
    )


def _measure(
    summary: Mapping[str, Any], other: Mapping[str, Any] | None, name: str, title: str, text: str, *, rises: bool
) -> Measure:
    value, is_share = float(summary[name]), name != "log_loss"
    change, verdict = change_of(value, other.get(name) if other else None, rises=rises, is_share=is_share)
    shown = as_percent(value) if is_share else f"{value:.3f}"
    return Measure(title=title, text=shown, help=text, change=change, verdict=verdict)
