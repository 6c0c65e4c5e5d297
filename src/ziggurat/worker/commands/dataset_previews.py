"""Preview of a source before a dataset is created from it, within a time limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation import CreationRequest
from ziggurat.datasets.creation.create import links_out
from ziggurat.datasets.format_registry import guess_format, importer, is_unpacked_first
from ziggurat.datasets.importer import Guess, Importer
from ziggurat.datasets.samples import LEAKING, SPLITS, Problem
from ziggurat.datasets.sources import check_offered, is_remote, public_uri
from ziggurat.datasets.sources.archives import unpack
from ziggurat.datasets.sources.cache import SourceLimits
from ziggurat.datasets.sources.opening import inner_folder
from ziggurat.datasets.splitting import assign_splits
from ziggurat.errors import ConfigurationError, DataError, SpecError, ZigguratError
from ziggurat.records.offered_folders import offer_folders, watched_source
from ziggurat.records.schema import Schema
from ziggurat.specs import DatasetSpec, parse_spec
from ziggurat.worker.commands.deadline import OVER, Deadline
from ziggurat.worker.commands.sample_previews import SamplePreviews
from ziggurat.worker.dataset_job import creation_request

__all__ = ["preview_dataset"]

_SCAN_SHARE: Final = 0.7
"""Part of the time for the walk; the rest is for splits and images."""

_CLASSES: Final = 200
_PROBLEMS: Final = 50
_UNPACKED_BYTES: Final = 2 << 30
_UNPACKED_FILES: Final = 200_000
_END: Final[Any] = object()


def preview_dataset(request: Mapping[str, Any]) -> dict[str, Any]:
    """Look at a source as a spec says; nothing is made of it.

    Args:
        request: ``spec`` (of a dataset); ``samples``: how many are shown; ``time_limit_s``; ``at_most``: samples and
            problems after which the walk ends; ``folder``: an empty one, for what is written on the way; ``offered``:
            the folders below which files may be read, None for all.

    Returns:
        ``format``, ``title``, ``confidence`` (of its importer, from 0 to 1), ``kind``; ``folder`` below the source that
        alone holds data, empty for the source itself; ``counts``: ``train``, ``val``, ``test``, ``total`` and
        ``is_complete`` (False: they are those of the part that was seen); ``is_random``: whether samples are divided by
        chance, each by itself; ``classes``: ``name`` and ``count`` (None where that is not known yet), the first 200;
        ``colours``: (R, G, B) of each class in a mask, empty if unknown; ``ignore_class``: number in a mask that
        counts for nothing, None for none;
        ``samples``, with their objects and masks: see ``SamplePreviews``;
        ``problems``: ``kind``, ``key`` and ``reason`` of the first 50, before all others of images and masks that
        were to be shown; ``problem_counts``: kind → how many were seen; ``warnings``.

    Raises:
        SpecError: where an option is wrong; ``details["field"]`` names it.
        DataError: where the source is not there, is somewhere else, or its format is not clear;
            ``details["options"]`` lists the likely ones.
    """
    spec = parse_spec(request["spec"], source="the request")
    assert isinstance(spec, DatasetSpec)
    asked = creation_request(spec)
    folder = Path(request["folder"])
    if request.get("offered") is not None:
        offer_folders(request["offered"])
    with Deadline(request["time_limit_s"] * _SCAN_SHARE) as walking:
        place, is_whole = _opened(asked, folder / "source", walking)
        with watched_source(place):
            chosen, guess = _recognised(asked, place, walking)
            inner = guess.folder if guess is not None else ""
            place = place / inner
            options = _options(chosen, asked, guess)
            seen = _Seen(importer=chosen, source=place, options=options, catalogue=folder / "seen")
            seen.is_complete = _walk(seen, walking, request["at_most"]) and is_whole
    limit_s = request["time_limit_s"] * (1 - _SCAN_SHARE)
    with watched_source(place), Deadline(limit_s) as showing, Catalogue(seen.catalogue) as catalogue:
        counts, problems, is_random = _divided(seen, catalogue, asked)
        shown = SamplePreviews(
            importer=chosen, source=place, options=seen.options, schema=seen.schema, form=asked.image
        )
        samples, bad = shown.read(catalogue, request["samples"], showing)
        problems = [*bad, *problems]
        return {
            "format": chosen.name,
            "title": chosen.title,
            "confidence": guess.confidence if guess is not None else 0.0,
            "folder": inner,
            "kind": seen.schema.kind,
            "counts": {**counts, "total": len(catalogue), "is_complete": seen.is_complete},
            "is_random": is_random,
            "classes": _classes(seen.schema, catalogue),
            "colours": [list(colour) for colour in seen.schema.colours],
            "ignore_class": seen.schema.ignore_class,
            "samples": samples,
            "problems": [
                {"kind": each.kind, "key": each.key, "reason": each.reason}
                for each in [*problems, *catalogue.problems(limit=_PROBLEMS)][:_PROBLEMS]
            ],
            "problem_counts": dict(Counter(catalogue.problem_counts()) + Counter(each.kind for each in problems)),
            "warnings": seen.warnings,
        }


@dataclass(kw_only=True)
class _Seen:
    """What is known of a source so far."""

    importer: Importer
    source: Path
    options: Mapping[str, Any]
    catalogue: Path
    schema: Schema = field(default_factory=lambda: Schema(kind="generic"))
    is_complete: bool = False
    warnings: list[str] = field(default_factory=list)


def _opened(asked: CreationRequest, folder: Path, walking: Deadline) -> tuple[Path, bool]:
    """Return where the source can be read, and whether all of it is there: an archive is unpacked as far as it goes."""
    if is_remote(asked.source):
        raise DataError(
            "Only a source of this machine is looked at before it is fetched.",
            received=public_uri(asked.source),
            advice="Make the dataset: it is fetched then, and its problems are listed.",
        )
    source = Path(asked.source)
    if not source.exists():
        raise DataError("A source is a folder or a file that exists.", received=f"`{source}`", advice="Check the path.")
    check_offered(asked.source)
    if not _is_unpacked(source, asked.format):
        return source, True
    folder.mkdir()
    limits = SourceLimits(files=_UNPACKED_FILES, total_bytes=_UNPACKED_BYTES)
    is_whole = walking.call(unpack, source, folder, limits) is not OVER
    return inner_folder(folder), is_whole


def _is_unpacked(source: Path, format_name: str) -> bool:
    try:
        return is_unpacked_first(source, format_name)
    except ConfigurationError as error:
        raise _in_field("format", error) from None


def _recognised(asked: CreationRequest, source: Path, walking: Deadline) -> tuple[Importer, Guess | None]:
    """Return the importer, and what it thinks of the source."""
    if asked.format:
        try:
            chosen = importer(asked.format)
        except ConfigurationError as error:
            raise _in_field("format", error) from None
        guess = walking.call(chosen.guess, source)
        return chosen, None if guess is OVER else guess
    guess = walking.call(guess_format, source)
    if guess is OVER:
        raise DataError(
            "The format of a source is found in the time that there is.",
            received=f"`{source.name}`, which took longer",
            advice="Name the format.",
        )
    return importer(guess.format), guess


def _options(chosen: Importer, asked: CreationRequest, guess: Guess | None) -> Mapping[str, Any]:
    for name, value in asked.options.items():
        try:
            chosen.checked_options({name: value})
        except ConfigurationError as error:
            raise _in_field(f"options.{name}", error) from None
    guessed = {} if asked.format or guess is None else guess.options
    return chosen.checked_options({**guessed, **asked.options})


def _in_field(name: str, error: ZigguratError) -> SpecError:
    received = {} if error.received is None else {"received": error.received}
    return SpecError(error.rule, advice=error.advice, details={**error.details, "field": name}, **received)


def _walk(seen: _Seen, walking: Deadline, at_most: int) -> bool:
    """Write what is in a source into the catalog; return whether that was all of it."""
    scan = seen.importer.scan(seen.source, seen.options)
    found = iter(scan)
    count = problems = 0
    each: Any = None
    with CatalogueWriter(seen.catalogue) as catalogue:
        while True:
            each = walking.call(next, found, _END)
            if each is OVER or each is _END or count + problems >= at_most:
                break
            if isinstance(each, Problem):
                catalogue.add_problem(each)
                problems += 1
            else:
                catalogue.add(Entry.of_sample(count, each))
                count += 1
        for problem in links_out(seen.source):
            catalogue.add_problem(problem)
    seen.schema = _schema_of(scan, each is _END)
    if each is not _END:
        seen.warnings.append(f"Only a part of the source was looked at: the first {count} samples.")
    return each is _END


def _schema_of(scan: Any, is_complete: bool) -> Schema:
    try:
        return scan.schema
    except Exception:  # in mid-walk an importer may not know yet, and then raises what it likes
        if is_complete:
            raise
        return Schema(kind="generic")


def _divided(seen: _Seen, catalogue: Catalogue, asked: CreationRequest) -> tuple[dict[str, int], list[Problem], bool]:
    """Return split → samples, as the rule divides what was seen, what it leaves out, and whether that is by chance."""
    rule = asked.rule
    keeps_clusters = rule.method == "cluster"
    if keeps_clusters:
        rule = replace(rule, method="share")
        seen.warnings.append("Images that look alike are found when the dataset is made: splits differ a little.")
    counts: dict[str, int] = dict.fromkeys(SPLITS, 0)
    try:
        assignment = assign_splits(catalogue, rule, class_names=seen.schema.class_names)
    except DataError as error:
        seen.warnings.append(str(error))
        return counts, [], False
    seen.warnings += [problem.reason for problem in catalogue.problems(LEAKING)]
    seen.warnings += assignment.warnings
    is_random = assignment.is_random and not keeps_clusters
    return {**counts, **assignment.counts()}, assignment.problems, is_random


def _classes(schema: Schema, catalogue: Catalogue) -> list[dict[str, Any]]:
    counts = catalogue.class_counts()
    names = schema.class_names or tuple(str(number) for number in range(max(counts, default=-1) + 1))
    return [
        {"name": name, "count": counts.get(number, 0) if counts else None}
        for number, name in enumerate(names[:_CLASSES])
    ]
