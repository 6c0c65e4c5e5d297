"""View model of the form that gives samples of an evaluation another label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.workspace.studio import Studio

__all__ = ["LONGEST_NAME", "Relabeling", "relabeling_of"]

LONGEST_NAME: Final = 200
"""Characters of the name of a version at most."""

_KINDS: Final = ("image-classification", "text-classification", "table")
_FEW_CLASSES: Final = 400


@dataclass(frozen=True, kw_only=True)
class Relabeling:
    """What the form offers.

    Args:
        names: of the classes.
        chosen: name of the class that is chosen at first; empty for none.
        version_name: that the new version gets, where no other is typed.
    """

    names: Sequence[str]
    chosen: str
    version_name: str

    @property
    def is_list(self) -> bool:
        """Whether the classes are few enough to be listed; else a name is typed."""
        return len(self.names) <= _FEW_CLASSES


def relabeling_of(
    studio: Studio, job: Job, summary: Mapping[str, Any], predicted: str | int | None
) -> Relabeling | None:
    """Return what the form offers; None where samples of this evaluation cannot be relabeled.

    Args:
        studio: where the dataset is.
        job: of the evaluation.
        summary: as ``Evaluations.summary`` gives it.
        predicted: number of the class that the listed samples were wrongly predicted as; None or empty for none.
    """
    if job.kind != "evaluate" or not summary["classifier"] or not summary["dataset"] or not summary["confusion"]:
        return None
    try:
        described = studio.datasets.describe(str(summary["dataset"]))
        dataset = studio.jobs.get(str(summary["dataset"]))
    except ZigguratError:  # it was deleted or damaged meanwhile
        return None
    if described["kind"] not in _KINDS:
        return None
    names, number = summary["classes"], str("" if predicted is None else predicted)
    is_known = number.isdigit() and int(number) < len(names)
    return Relabeling(
        names=names, chosen=names[int(number)] if is_known else "", version_name=next_name(dataset.name or dataset.id)
    )
