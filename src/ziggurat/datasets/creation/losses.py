"""What stands in a source and not in the dataset: counted by reason, said in sentences, and refused where all went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ziggurat.datasets.catalog import Catalogue
from ziggurat.errors import DataError
from ziggurat.formatting import as_count, plural
from ziggurat.records.schema import Schema

__all__ = ["NO_LOSS", "WARNING_SHARE", "Loss", "Losses", "losses_of"]

WARNING_SHARE: Final = 0.01
"""Share of the objects or samples from which on a loss is a warning; the loss of a name always is one."""

NO_LOSS: Final = ("small-class", "large-class", "not-listed", "duplicate-key", "not-written", "repeated-header")
"""Kinds of problems that leave samples out because they were asked to, or because the sample is there already."""

_WHY: Final[Mapping[str, str]] = {
    "bad-box": "they have no box of four finite numbers",
    "bad-column": "their column cannot be used",
    "bad-line": "their line cannot be read",
    "bad-value": "a value of theirs cannot be read",
    "empty-text": "they have no text",
    "link-outside": "a link leads out of the source",
    "missing-value": "their target is missing",
    "no-class": "they have no class",
    "no-label": "they have no label",
    "no-partner": "their partner is not there",
    "no-picture": "their image is not there",
    "object-lost": "they lie outside of the fitted image",
    "other-shape": "their shape is not that of the others",
    "too-large": "they are too large",
    "unknown-class": "their class is not among the names",
    "unreadable": "they cannot be read",
    "zero-size-box": "they have no area",
}
_UNITS: Final[Mapping[str, tuple[str, str]]] = {
    "objects": ("box", "boxes"),
    "names": ("name", "names"),
}
_SAMPLES: Final[Mapping[str, str]] = {"table": "row", "text-classification": "text", "generic": "sample"}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What was lost for one reason.

    Args:
        unit: ``objects``, ``samples`` or ``names``.
        kind: of the problems.
        lost: how many.
        total: how many the source has of the unit; None where that is unknown.
        text: one sentence.
    """

    unit: str
    kind: str
    lost: int
    total: int | None
    text: str


@dataclass(frozen=True, kw_only=True)
class Losses:
    """All losses of a source.

    Args:
        items: by unit and reason, in the order in which they were found.
        whole: what lost every label: the set, splits, classes; one sentence each.
    """

    items: tuple[Loss, ...] = ()
    whole: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """Sentences on the units of which at least ``WARNING_SHARE`` were lost."""
        return [each.text for each in self.items if each.total is None or self._share(each) >= WARNING_SHARE]

    def _share(self, loss: Loss) -> float:
        """Return the part of a unit that was lost for all reasons together."""
        return sum(each.lost for each in self.items if each.unit == loss.unit) / (loss.total or 1)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the items for a manifest or an answer; ``warns`` tells whether the loss is a warning."""
        warnings = self.warnings
        return [{**asdict(each), "warns": each.text in warnings} for each in self.items]

    def check(self, accepted: str) -> None:
        """Refuse losses that were not accepted.

        Args:
            accepted: one of ``ziggurat.datasets.creation.request.LOSSES``.

        Raises:
            DataError: where there are such losses; ``details["field"]`` names the field.
        """
        said = " ".join(each.text for each in self.items)
        if accepted == "none" and self.items:
            raise DataError(
                "Data would be lost, and `losses=none` accepts no loss.",
                received=said,
                advice="Fix the source, or create the dataset without --strict (`losses=some`).",
                details={"field": "losses"},
            )
        if accepted != "any" and self.whole:
            raise DataError(
                " ".join(self.whole),
                received=said,
                advice="Fix the source or the options of the format; to create it all the same: losses=any.",
                details={"field": "losses"},
            )


def losses_of(catalog: Catalogue, schema: Schema) -> Losses:
    """Return what is in the problems of a catalog and not among its samples.

    Args:
        catalog: of a scan, or of a dataset.
        schema: what its samples mean.
    """
    has_objects = schema.kind == "detection"
    kept_objects = sum(catalog.class_counts().values()) if has_objects else 0
    counts: dict[tuple[str, str, str], int] = {}
    by_split: set[tuple[str, str]] = set()
    by_class: set[tuple[str, str]] = set()
    for kind, why, class_name, split, *numbers in catalog.lost(NO_LOSS):
        for unit, lost in zip(("samples", "objects", "names"), numbers, strict=True):
            if not lost:
                continue
            counts[unit, kind, why] = counts.get((unit, kind, why), 0) + lost
            by_split.add((unit, split))
            by_class.add((unit, class_name))
    if not counts:
        return Losses()
    totals = {"objects": kept_objects, "samples": len(catalog)}
    for (unit, *_), lost in counts.items():
        if unit in totals:
            totals[unit] += lost
    items = []
    for (unit, kind, why), lost in counts.items():
        text = _sentence(unit, why or _WHY.get(kind, kind), lost, totals, schema)
        items.append(Loss(unit=unit, kind=kind, lost=lost, total=totals.get(unit), text=text))
    return Losses(items=tuple(items), whole=tuple(_whole(catalog, schema, kept_objects, by_split, by_class)))


def _sentence(unit: str, why: str, lost: int, totals: Mapping[str, int], schema: Schema) -> str:
    words = _words(unit, schema)
    said = f"{as_count(lost)} of {plural(totals[unit], *words)}" if unit in totals else plural(lost, *words)
    return f"{said} {'was' if lost == 1 else 'were'} dropped: {why}."


def _words(unit: str, schema: Schema) -> tuple[str, str]:
    one = _SAMPLES.get(schema.kind, "image")
    return _UNITS.get(unit, (one, f"{one}s"))


def _whole(
    catalog: Catalogue,
    schema: Schema,
    kept_objects: int,
    by_split: Iterable[tuple[str, str]],
    by_class: Iterable[tuple[str, str]],
) -> list[str]:
    """Return what lost every label; a smaller part is not named beside the whole that it belongs to."""
    unit = "objects" if schema.kind == "detection" else "samples"
    _, words = _words(unit, schema)
    if unit == "objects" and not kept_objects and any(each == unit for each, _ in by_split):
        return [f"Every one of the {words} was lost."]
    said = []
    for each, split in sorted(by_split):
        kept = sum(catalog.class_counts(split).values()) if unit == "objects" else catalog.split_counts().get(split, 0)
        if each == unit and split and not kept:
            said.append(f"All {words} of the split {split} were lost.")
    counts = catalog.class_counts()
    for each, name in sorted(by_class):
        if each == unit and name in schema.class_names and not counts.get(schema.class_names.index(name)):
            said.append(f"All {words} of the class {name} were lost.")
    return said
