"""Check of datasets that an earlier release made: what their source, read by the rules of today, would become."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.datasets.catalog import Catalogue, Entry
from ziggurat.datasets.checks.report import Case, Facts, Finding
from ziggurat.datasets.creation.create import ScanResult, scanned
from ziggurat.datasets.creation.losses import losses_of
from ziggurat.datasets.creation.request import LOSSES, CreationRequest, Watch
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.format_registry import is_unpacked_first
from ziggurat.datasets.image_size import stored_size
from ziggurat.datasets.rules import RULES, changes_of
from ziggurat.datasets.sources import check_offered, is_remote, open_source
from ziggurat.datasets.sources.archives import is_archive
from ziggurat.errors import ZigguratError
from ziggurat.formatting import as_count, plural
from ziggurat.records.manifest import Manifest
from ziggurat.records.offered_folders import watched_source
from ziggurat.records.schema import Schema

__all__ = ["MADE_BEFORE", "check_made_before", "why_not_again"]

MADE_BEFORE: Final = "made-before"
"""Kind of the finding."""

_QUICK_SAMPLES: Final = 5000
_LOOKS: Final = 200
_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_DEPTH: Final = 24  # place of the byte with the bits of a value
_AFTER_THE_SCAN: Final = ("unreadable", "small-class", "large-class", "not-listed", "excluded", "duplicate-key")
"""Kinds of problems that leave a sample out which a scan finds."""


@dataclass
class _Found:
    """What would be otherwise: ends of sentences, and samples."""

    certain: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    count: int = 0


def why_not_again(manifest: Manifest) -> str:
    """Return why a dataset cannot be created again from its source, one sentence; empty where it can.

    Args:
        manifest: of the dataset.
    """
    again_of = str(manifest.spec.get("again_of")).partition(" ")[0]
    if [each.id for each in manifest.parents] not in ([], [again_of]):
        origins = " and ".join(dict.fromkeys(each.name for each in manifest.parents))
        return f"It is a version: create {origins}, which it was made of, again, and make its changes again."
    source = manifest.spec.get("source")
    if manifest.source is None or not isinstance(source, str) or not source:
        return "It keeps no request that could be carried out again."
    if not is_remote(source) and not _local(source).exists():
        return f"Its source `{source}` is not there any more."
    return ""


def check_made_before(facts: Facts, *, verify: bool) -> Iterator[Finding]:
    """Yield a finding on a dataset that was made by earlier rules, unless its source gives the same today.

    A source of this machine is read again, without its images, for datasets of at most 5,000 samples; with ``verify``
    also for larger ones and archives. It may have changed since.

    Args:
        facts: of the dataset.
        verify: whether to take the time for any source.
    """
    manifest = facts.dataset.manifest
    if manifest.rules >= RULES or manifest.source is None:
        return
    found = _Found()
    _look_at_records(facts, found)
    obstacle = why_not_again(manifest)
    if obstacle:
        found.open += changes_of(manifest.source.format, manifest.rules)
    else:
        _read_again(facts, found, verify=verify)
    if found.certain:
        yield Finding(
            kind=MADE_BEFORE,
            severity="warning",
            count=max(found.count, 1),
            text=f"An earlier release made the dataset. Today it would be otherwise: {'; '.join(found.certain)}.",
            advice=obstacle or "Create it again, which makes a new dataset; the source may have changed, too.",
            cases=tuple({(case.split, case.key): case for case in found.cases}.values()),
        )
    elif found.open:
        more = "" if obstacle or verify else " The full check reads the source again and says whether they are."
        yield Finding(
            kind=MADE_BEFORE,
            severity="note",
            count=1,
            text=f"An earlier release made the dataset. These may be otherwise today: {'; '.join(found.open)}.{more}",
            advice=obstacle or "Create it again where one of them matters.",
        )


# ---- the source, read again


def _read_again(facts: Facts, found: _Found, *, verify: bool) -> None:
    manifest = facts.dataset.manifest
    assert manifest.source is not None
    source = str(manifest.spec["source"])
    unpacks = is_archive(_local(source).name) and is_unpacked_first(_local(source), manifest.source.format)
    if is_remote(source) or (not verify and (len(facts.numbers) > _QUICK_SAMPLES or unpacks)):
        found.open += changes_of(manifest.source.format, manifest.rules)
        return
    with tempfile.TemporaryDirectory(prefix="ziggurat-check-") as folder:
        try:
            scan = _scan(manifest, source, Path(folder))
        except ZigguratError as error:
            found.certain.append(f"its source is refused ({error.rule.rstrip('.')})")
            return
        if scan.format != manifest.source.format:
            found.certain.append(f"its source is read as {scan.format}, not as {manifest.source.format}")
            return
        with Catalogue(scan.catalog) as catalog:
            _compare(facts, scan.schema, catalog, found)


def _scan(manifest: Manifest, uri: str, folder: Path) -> ScanResult:
    spec = manifest.spec
    check_offered(uri)
    losses = spec.get("losses", "some")
    request = CreationRequest(
        name=manifest.name,
        source=uri,
        format=str(spec.get("format") or ""),
        options=dict(spec.get("options") or {}),
        losses=losses if losses in LOSSES else "some",
    )

    def is_unpacked(path: Path) -> bool:
        return is_unpacked_first(path, request.format)

    source = open_source(uri, folder / "source", is_unpacked=is_unpacked)
    with watched_source(source):
        scan = scanned(request, source, folder / "scan.sqlite", Watch())
    with Catalogue(scan.catalog) as catalog:
        losses_of(catalog, scan.schema).check(request.losses)
    return scan


def _compare(facts: Facts, schema: Schema, catalog: Catalogue, found: _Found) -> None:
    """Compare what a scan found with the dataset."""
    before = facts.dataset.catalogue
    form = facts.dataset.manifest.image
    is_fitted = form is not None and form.resize_mode != "none"
    splits = facts.dataset.manifest.spec.get("splits")
    keeps_splits = not isinstance(splits, Mapping) or splits.get("method", "source") == "source"
    counts: Counter[str] = Counter()
    common = 0
    for new in catalog.walk():
        old = before.find(new.key)
        common += old is not None
        says = _difference(old, new, (facts.dataset.schema, schema), is_fitted=is_fitted, keeps_splits=keeps_splits)
        if old is None and _was_left_out(before, new.key):
            says = ""
        if says:
            counts[says] += 1
            if len(found.cases) < facts.limits.most_cases:
                place = {} if old is None else {"split": old.split, "row": old.row}
                found.cases.append(Case(key=new.key, note=f"{says[0].upper()}{says[1:]}.", **place))
    gone = len(before) - common
    found.count = sum(counts.values()) + gone
    found.certain += [f"{plural(count, 'sample has', 'samples have')} {says}" for says, count in counts.items()]
    if gone:
        found.certain.append(f"{plural(gone, 'sample is', 'samples are')} not found any more")
    old_names, new_names = facts.dataset.schema.class_names, schema.class_names
    if old_names != new_names:
        found.certain.append(_class_names(old_names, new_names))
    if facts.dataset.schema.columns != schema.columns:
        found.certain.append("columns have other types or values")


def _was_left_out(before: Catalogue, key: str) -> bool:
    """Return whether a sample was found and then left out on request, or could not be read."""
    return any(problem.kind in _AFTER_THE_SCAN for problem in before.problems_of([key]).get(key, ()))


def _difference(
    old: Entry | None, new: Entry, schemas: tuple[Schema, Schema], *, is_fitted: bool, keeps_splits: bool
) -> str:
    if old is None:
        return "no place in the dataset"
    if keeps_splits and new.split and new.split != old.split:
        return f"another split ({new.split}, not {old.split})"
    one, other = (_meaning(each, schema, is_fitted) for each, schema in zip((old, new), schemas, strict=True))
    if one != other:
        return "another label"
    if any(isinstance(part, bytes) for part in new.parts) and old.parts != new.parts:
        return "other values"
    return ""


def _meaning(entry: Entry, schema: Schema, is_fitted: bool) -> Any:
    """Return a label with the names of its classes; boxes to a tenth of a pixel, none where images were resized."""
    names, label = schema.class_names, entry.label

    def named(number: Any) -> Any:
        return names[number] if type(number) is int and 0 <= number < len(names) else number

    if not isinstance(label, list):
        return named(label) if names else label
    if entry.objects is None:
        return label
    return sorted(
        (str(named(each["class"])), () if is_fitted else tuple(round(side, 1) for side in each["box"]))
        for each in label
    )


def _class_names(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    more, less = [each for each in new if each not in old], [each for each in old if each not in new]
    if not more and not less:
        return "classes have another order"
    shown = [f"{word} {', '.join(names[:5])}" for word, names in (("also", more), ("no longer", less)) if names]
    return f"its classes have {' and '.join(shown)}"


# ---- the records


def _look_at_records(facts: Facts, found: _Found) -> None:
    """Look into some records for what needs no source: sizes, and values of 16 bits."""
    total = len(facts.numbers)
    unturned: list[int] = []
    deep = 0
    looks = np.unique(np.linspace(0, total - 1, min(_LOOKS, total)).astype(np.int64)).tolist() if total else []
    widths, heights = facts.column("width"), facts.column("height")
    for place in looks:
        part = _first_part(facts.dataset, facts.split(place), int(facts.rows[place]))
        if not isinstance(part, bytes) or not part:
            continue
        deep += part.startswith(_PNG) and part[_PNG_DEPTH : _PNG_DEPTH + 1] == b"\x10"
        try:
            size = stored_size(part)
        except ValueError:
            continue
        if (widths[place], heights[place]) == (size.width, size.height) != size.upright:
            unturned.append(place)
    form = facts.dataset.manifest.image
    said = f"of {as_count(len(looks))} that were looked at"
    if unturned:
        found.certain.append(f"{as_count(len(unturned))} {said} are listed by the size before EXIF turns them")
        found.cases += facts.cases(np.array(unturned), dict.fromkeys(unturned, "EXIF turns it."))
    if deep and form is not None and form.bits == 16:
        found.certain.append(f"{as_count(deep)} {said} have 16 bits a value, which are read by the bits that they use")
    found.count += len(unturned) + deep


def _first_part(dataset: Dataset, split: str, row: int) -> Any:
    try:
        parts = dataset.sample(split, row).parts
    except ZigguratError:  # other checks say what is wrong with it
        return None
    return parts[0] if parts else None


def _local(source: str) -> Path:
    return Path(source.removeprefix("file://"))
