"""Preview of a source before a dataset is created from it, within a time limit: counts, splits, problems, samples."""

from __future__ import annotations

import base64
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import cv2
import numpy as np

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.creation import CreationRequest
from ziggurat.datasets.creation.create import links_out
from ziggurat.datasets.creation.images import FittedPicture, Fitting, fit_mask, fit_objects, fit_picture
from ziggurat.datasets.creation.losses import Losses, losses_of
from ziggurat.datasets.format_registry import guess_format, importer, is_unpacked_first
from ziggurat.datasets.importer import Guess, Importer, PartReader
from ziggurat.datasets.samples import SPLITS, TOLD, Problem
from ziggurat.datasets.sources import check_offered, is_remote, public_uri
from ziggurat.datasets.sources.archives import unpack
from ziggurat.datasets.sources.cache import SourceLimits
from ziggurat.datasets.sources.opening import inner_folder
from ziggurat.datasets.splitting import assign_splits
from ziggurat.errors import ConfigurationError, DataError, DatapointError, SpecError, ZigguratError
from ziggurat.formatting import plural
from ziggurat.records.manifest import ImageForm
from ziggurat.records.offered_folders import offer_folders, watched_source
from ziggurat.records.schema import Schema
from ziggurat.specs import DatasetSpec, parse_spec
from ziggurat.worker.dataset_job import creation_request

__all__ = ["OVER", "Deadline", "preview_dataset"]


Result = TypeVar("Result")


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
        chance, each by itself; ``classes``: ``name`` and ``count`` (None where that is not known yet), the first 200,
        of masks: in how many of the ``masks`` that were read it occurs;
        ``colours``: (R, G, B) of each class in a mask, empty if unknown; ``ignore_class``: number in a mask that
        counts for nothing, None for none;
        ``samples``, with their objects and masks: see ``SamplePreviews``;
        ``problems``: ``kind``, ``key`` and ``reason`` of the first 50, before all others of images and masks that
        were to be shown; ``problem_counts``: kind → how many were seen;
        ``losses``: what of the source would be lost, as ``ziggurat.records.manifest.Manifest`` has it; ``refused``: why
        no dataset would be made of it, empty otherwise; ``warnings``.

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
            kind = guess.kind if guess is not None else chosen.kinds[0]
            seen = _Seen(
                importer=chosen, source=place, options=options, catalogue=folder / "seen", schema=Schema(kind=kind)
            )
            seen.is_complete = _walk(seen, walking, request["at_most"]) and is_whole
    limit_s = request["time_limit_s"] * (1 - _SCAN_SHARE)
    with watched_source(place), Deadline(limit_s) as showing, Catalogue(seen.catalogue) as catalogue:
        counts, problems, is_random = _divided(seen, catalogue, asked)
        shown = SamplePreviews(
            importer=chosen, source=place, options=seen.options, schema=seen.schema, form=asked.image
        )
        samples, bad = shown.read(catalogue, request["samples"], showing)
        losses = losses_of(catalogue, seen.schema)
        problems = [*bad, *problems]
        return {
            "format": chosen.name,
            "title": chosen.title,
            "confidence": guess.confidence if guess is not None else 0.0,
            "folder": inner,
            "kind": seen.schema.kind,
            "counts": {**counts, "total": len(catalogue), "is_complete": seen.is_complete},
            "is_random": is_random,
            "classes": _classes(seen.schema, catalogue, shown) if seen.has_schema else [],
            "masks": len(shown.masks),
            "colours": [list(color) for color in seen.schema.colours],
            "ignore_class": seen.schema.ignore_class,
            "samples": samples,
            "problems": [
                {"kind": each.kind, "key": each.key, "reason": each.reason}
                for each in [*problems, *catalogue.problems(limit=_PROBLEMS)][:_PROBLEMS]
            ],
            "problem_counts": dict(Counter(catalogue.problem_counts()) + Counter(each.kind for each in problems)),
            "losses": losses.as_json(),
            "refused": _refused(losses, asked.losses) if seen.is_complete else "",
            "warnings": [*losses.warnings, *seen.warnings, *shown.gray_proposal()],
        }


@dataclass(kw_only=True)
class _Seen:
    """What is known of a source so far; the schema is that of the guess until the walk tells it."""

    importer: Importer
    source: Path
    options: Mapping[str, Any]
    catalogue: Path
    schema: Schema
    has_schema: bool = False
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
        raise DataError(f"`{source}` does not exist.", advice="Check the path.")
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
            f"Finding the format of `{source.name}` took too long.",
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
    try:
        seen.schema, seen.has_schema = scan.schema, True
        seen.options = {**seen.options, **scan.found_options}
    except Exception:  # in mid-walk an importer may not know yet, and then raises what it likes
        if each is _END:
            raise
    if each is not _END:
        seen.warnings.append(f"Only a part of the source was looked at: the first {count} samples.")
    return each is _END


def _refused(losses: Losses, accepted: str) -> str:
    try:
        losses.check(accepted)
    except DataError as error:
        return f"{error.rule} {error.advice}"
    return ""


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
    seen.warnings += dict.fromkeys(problem.reason for kind in TOLD for problem in catalogue.problems(kind))
    seen.warnings += assignment.warnings
    is_random = assignment.is_random and not keeps_clusters
    return {**counts, **assignment.counts()}, assignment.problems, is_random


def _classes(schema: Schema, catalogue: Catalogue, shown: SamplePreviews) -> list[dict[str, Any]]:
    counts = shown.classes if shown.masks else catalogue.class_counts()
    names = schema.class_names or tuple(f"class {number}" for number in range(max(counts, default=-1) + 1))
    return [
        {"name": name, "count": counts.get(number, 0) if counts else None}
        for number, name in enumerate(names[:_CLASSES])
    ]


_IMAGES: Final = ("image", "image2", "target")
_SECONDS: Final = ("image2", "target")


_SIDE_PX: Final = 160


_TEXT_CHARACTERS: Final = 500


_OBJECTS: Final = 200


@dataclass(frozen=True, kw_only=True)
class SamplePreviews:
    """Shows samples of a source.

    Each is ``key``, ``label`` in words, ``png`` (base64, at most 160 px wide or high; None where there is no image),
    ``text`` (None where there is none), ``width_px`` and ``height_px`` as they would be stored (None without image).
    ``objects`` (None where the kind has none): the first 200 as ``ziggurat.records.objects`` writes them, in pixels of
    the stored image, each with the ``name`` of its class; ``more_objects``: how many come after those. ``mask_png``
    (None where there is none, or where it cannot be read): base64, as large as ``png``, one channel of class numbers.

    Args:
        importer: of its format.
        source: local folder or file.
        options: of the importer, complete.
        schema: what the samples mean.
        form: how images would be stored.
        colored: of each image that was shown, whether it has colors; None for one that has a single channel.
        classes: class number → masks that were read and have it.
        masks: keys of the samples whose masks were read.
    """

    importer: Importer
    source: Path
    options: Mapping[str, Any]
    schema: Schema
    form: ImageForm
    colored: list[bool | None] = field(default_factory=list)
    classes: Counter[int] = field(default_factory=Counter)
    masks: list[str] = field(default_factory=list)

    def gray_proposal(self) -> list[str]:
        """Return a sentence where all images that were shown are gray, and some are stored with three channels."""
        if self.form.channels is not None or False not in self.colored or True in self.colored:
            return []
        return [
            f"The {plural(len(self.colored), 'image')} looked at have three equal channels: they are gray. "
            "`channels=1` stores one channel; without it, networks get three."
        ]

    def read(self, catalogue: Catalogue, count: int, showing: Deadline) -> tuple[list[dict[str, Any]], list[Problem]]:
        """Return some samples from all over a catalog, as many as can be read in time, and what cannot be read."""
        if not len(catalogue) or count < 1:
            return [], []
        numbers = np.unique(np.linspace(0, len(catalogue) - 1, num=min(count, len(catalogue)), dtype=int)).tolist()
        samples: list[dict[str, Any]] = []
        problems: list[Problem] = []
        with self.importer.reader(self.source, self.options) as reader:
            for entry in catalogue.entries(numbers):
                try:
                    found = showing.call(self._shown, entry, reader)
                except DatapointError as error:
                    problems.append(_unreadable(entry, error.rule))
                    continue
                if found is OVER:
                    break
                samples.append(found[0])
                problems += found[1]
        return samples, problems

    def _shown(self, entry: Entry, reader: PartReader) -> tuple[dict[str, Any], list[Problem]]:
        """Return a sample as it is shown, and what in it cannot be read although its image can."""
        problems: list[Problem] = []
        role = self.schema.parts[0]
        address = entry.parts[0]
        part = address if isinstance(address, bytes) else reader.read(address)
        shown: dict[str, Any] = dict.fromkeys(("png", "text", "width_px", "height_px", "objects", "mask_png"))
        shown["more_objects"] = 0
        if role in _IMAGES:
            fitting = Fitting(form=replace(self.form, encoding="raw"))
            fitted = fit_picture(part, fitting, entry.key)
            pixels: Any = fitted.pixels
            has_channels = pixels.ndim == 3 and pixels.shape[2] == 3
            self.colored.append(bool((pixels != pixels[..., :1]).any()) if has_channels else None)
            second = self._second(entry, reader, fitting)
            png = _small_png(pixels) if second is None else _beside_png(pixels, second)
            shown |= {"png": png, "width_px": int(pixels.shape[1]), "height_px": int(pixels.shape[0])}
            shown |= self._objects(entry.label, fitted)
            shown["mask_png"] = self._mask_png(entry, reader, fitted, fitting, problems)
        elif isinstance(part, np.ndarray):
            shown["text"] = f"array {part.shape} of {part.dtype}"
        else:
            shown["text"] = self._text(part, role)
        return {"key": entry.key, "label": _label(entry.label, self.schema), **shown}, problems

    def _second(self, entry: Entry, reader: PartReader, fitting: Fitting) -> Any:
        """Return the pixels of the target image, or of the second image of a pair; None where there is none."""
        if len(entry.parts) < 2 or self.schema.parts[1] not in _SECONDS:
            return None
        address = entry.parts[1]
        part = address if isinstance(address, bytes) else reader.read(address)
        return fit_picture(part, fitting, entry.key).pixels

    def _objects(self, label: Any, fitted: FittedPicture) -> dict[str, Any]:
        if self.schema.kind != "detection" or not isinstance(label, list) or fitted.pixels is None:
            return {}
        found: list[Any] = label[:_OBJECTS]
        if fitted.transform is not None:
            size = (fitted.pixels.shape[0], fitted.pixels.shape[1])
            found, _ = fit_objects(found, fitted.transform, size, fitted.source_size)
        named = [{**each, "name": _class_name(each["class"], self.schema)} for each in found]
        return {"objects": named, "more_objects": max(0, len(label) - _OBJECTS)}

    def _mask_png(
        self, entry: Entry, reader: PartReader, fitted: FittedPicture, fitting: Fitting, problems: list[Problem]
    ) -> str | None:
        number = self.schema.parts.index("mask") if "mask" in self.schema.parts else len(entry.parts)
        if number >= len(entry.parts):
            return None
        address = entry.parts[number]
        try:
            part = address if isinstance(address, bytes) else reader.read(address)
            mask = fit_mask(part, fitted, fitting, entry.key, self.schema.ignore_class or 0)
        except DatapointError as error:  # the sample cannot come then; its image is shown all the same
            problems.append(_unreadable(entry, error.rule))
            return None
        except (ZigguratError, OSError, ValueError, KeyError) as error:
            reason = f"Its mask cannot be read ({type(error).__name__}: {error})."
            problems.append(_unreadable(entry, reason))
            return None
        problems += self._strange_values(entry, mask)
        done, content = cv2.imencode(".png", _smaller(mask, cv2.INTER_NEAREST))
        assert done
        return base64.b64encode(content.tobytes()).decode()

    def _strange_values(self, entry: Entry, mask: np.ndarray) -> list[Problem]:
        """Return a problem where a mask has values that no class has; without names, each is a class."""
        values = np.unique(mask)
        self.masks.append(entry.key)
        self.classes.update(values[values != self.schema.ignore_class].tolist())
        strange = values[(values >= len(self.schema.class_names)) & (values != self.schema.ignore_class)]
        if not self.schema.class_names or not len(strange):
            return []
        reason = f"Its mask has values that no class has: {', '.join(map(str, strange[:10].tolist()))}."
        return [Problem(key=entry.key, kind="unknown-mask-value", reason=reason)]

    def _text(self, part: bytes, role: str) -> str:
        text = part.decode("utf-8", "replace")
        columns = self.schema.columns
        if role == "row" and columns:
            text = ", ".join(
                f"{column.name}: {value}" for column, value in zip(columns, json.loads(text), strict=False)
            )
        return text if len(text) <= _TEXT_CHARACTERS else f"{text[: _TEXT_CHARACTERS - 1]}…"


def _unreadable(entry: Entry, reason: str) -> Problem:
    return Problem(key=entry.key, kind="unreadable", reason=reason, left_out=True)


def _small_png(pixels: np.ndarray) -> str:
    return base64.b64encode(encode_image(np.ascontiguousarray(_smaller(pixels, cv2.INTER_AREA)), "png")).decode()


def _smaller(pixels: np.ndarray, interpolation: int) -> np.ndarray:
    height, width = pixels.shape[:2]
    factor = min(1.0, _SIDE_PX / max(height, width))
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    return pixels if factor == 1 else cv2.resize(pixels, size, interpolation=interpolation)


def _beside_png(first: np.ndarray, second: np.ndarray) -> str:
    """Return two images side by side, as high as the first one."""
    width = max(1, round(second.shape[1] * first.shape[0] / second.shape[0]))
    is_same = second.shape[:2] == first.shape[:2]
    fitted = second if is_same else cv2.resize(second, (width, first.shape[0]), interpolation=cv2.INTER_AREA)
    colored = [each if each.ndim == 3 and each.shape[2] == 3 else np.dstack([each] * 3) for each in (first, fitted)]
    return _small_png(np.concatenate(colored, axis=1))


def _label(label: Any, schema: Schema) -> str:
    """Return a label in words: the name of a class, or how often each class is in the image."""
    if label is None:
        return ""
    if isinstance(label, list) and label and all(isinstance(each, dict) and "class" in each for each in label):
        found = Counter(_class_name(each["class"], schema) for each in label)
        return ", ".join(name if count == 1 else f"{count} × {name}" for name, count in found.items())
    if isinstance(label, list):
        chosen = schema.chosen_names(label)
        if chosen is not None:
            return ", ".join(chosen) or "none"
        return ", ".join(f"{each:g}" if isinstance(each, int | float) else str(each) for each in label)
    if schema.kind == "image-pairs":
        return "same" if label else "not the same"
    return _class_name(label, schema) if isinstance(label, int) else f"{label:g}"


def _class_name(number: int, schema: Schema) -> str:
    if number < 0:
        return "ignored"
    return schema.class_names[number] if number < len(schema.class_names) else str(number)


OVER: Final[Any] = object()
"""What stands for a result that did not come in time."""


class _TimeUp(BaseException):
    """Ends a call; no ``except Exception`` of an importer may catch it."""


class Deadline:
    """Ends calls at a moment. It is used in the main thread, in a ``with`` statement.

    Args:
        time_limit_s: from the beginning of the ``with`` statement.
    """

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self._ends_calls = False
        self._end_at = 0.0

    def __enter__(self) -> Self:
        self._end_at = time.monotonic() + self._time_limit_s
        self._before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self._time_limit_s)
        return self

    def __exit__(self, *_exc: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self._before)

    @property
    def is_over(self) -> bool:
        """Whether the moment has come."""
        return time.monotonic() >= self._end_at

    def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return what a call gives, or ``OVER`` where it does not end in time; it is not begun after that."""
        try:
            try:
                if self.is_over:
                    return OVER
                self._ends_calls = True
                return function(*arguments)
            finally:
                self._ends_calls = False
        except _TimeUp:
            return OVER

    def _ring(self, *_arguments: Any) -> None:
        if self._ends_calls:
            raise _TimeUp
