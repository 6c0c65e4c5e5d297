"""Rules for joining datasets: what must agree, keys shared by several samples, and duplicate samples."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, get_args

import numpy as np

from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.samples import Problem
from ziggurat.datasets.versions.classes import has_one_class, join_classes
from ziggurat.datasets.versions.draft import LEFT_OUT, Draft, Origin
from ziggurat.errors import DataError, UsageError
from ziggurat.formatting import plural
from ziggurat.records.manifest import ImageForm, SourceNote
from ziggurat.records.schema import Column, Schema

__all__ = ["Duplicates", "Survey", "joined", "joined_image", "joined_source", "key_number"]

Duplicates = Literal["keep", "leave-out"]
_NO_CONTENT: Final = 0  # in place of a hash, for samples whose content is unknown
_UNLIKE_CONTENT: Final = ("image-pairs",)
_MOST_PREFIXES: Final = 100  # tried before two datasets with such keys are refused


def joined(datasets: Sequence[Dataset]) -> Draft:
    """Return the draft of datasets one after the other; their classes become one list, matched by name.

    Raises:
        UsageError: where there is none.
        DataError: where they cannot be one dataset; the message says why and what to do.
    """
    if not datasets:
        raise UsageError("A version is made of at least one dataset.", received="none")
    schema = datasets[0].schema
    origins: list[Origin] = []
    for dataset in datasets:
        origin = Origin.of(dataset, origins[-1].first + len(origins[-1]) if origins else 0)
        if origins:
            schema, origin.classes = _joined_schema(datasets[0], schema, dataset)
        origins.append(origin)
    joined_image(datasets)
    joined_source(datasets)
    return Draft(origins, schema)


def joined_image(datasets: Sequence[Dataset]) -> ImageForm | None:
    """Return how the images of all are stored; what differs is None, and encodings that differ are ``original``.

    Raises:
        DataError: where all images of one have a size or a number of channels that those of another have not.
    """
    first, *others = [dataset.manifest.image for dataset in datasets]
    for other, dataset in zip(others, datasets[1:], strict=True):
        if first is None or other is None:
            continue
        for name in ("height_px", "width_px", "channels", "bits"):
            one, two = getattr(first, name), getattr(other, name)
            if None not in (one, two) and one != two:
                came = f"{name.removesuffix('_px')} {one} and {two}"
                raise _unlike(datasets[0], dataset, came, "Create one of them anew like the other.")
        first = ImageForm(
            encoding=_same(first.encoding, other.encoding, "original"),
            resize_mode=_same(first.resize_mode, other.resize_mode, "none"),
            height_px=_same(first.height_px, other.height_px, None),
            width_px=_same(first.width_px, other.width_px, None),
            channels=_same(first.channels, other.channels, None),
            quality=min(first.quality, other.quality),
            bits=first.bits,
        )
    return first


def joined_source(datasets: Sequence[Dataset]) -> SourceNote | None:
    """Return the source of all where it is one; else where their referenced files are, None where there are none.

    Raises:
        DataError: where the files that they refer to are below different folders.
    """
    sources = [dataset.manifest.source for dataset in datasets]
    if all(source == sources[0] for source in sources):
        return sources[0]
    roots = sorted({source.root for source in sources if source is not None and source.root})
    if len(roots) > 1:
        raise DataError(
            "Datasets that refer to files in place are joined where their files are below one folder.",
            received=f"`{roots[0]}` and `{roots[1]}`",
            advice="Create one of them anew with the images in its records, or both from a folder above the two.",
        )
    return SourceNote(uri="", format="", root=roots[0]) if roots else None


def _joined_schema(oldest: Dataset, schema: Schema, dataset: Dataset) -> tuple[Schema, np.ndarray]:
    other = dataset.schema
    if (schema.kind, schema.parts) != (other.kind, other.parts):
        came = f"{schema.kind} ({', '.join(schema.parts)}) and {other.kind} ({', '.join(other.parts)})"
        raise _unlike(oldest, dataset, came, "Create one of them anew with the kind of the other.")
    columns = _joined_columns(oldest, schema, dataset)
    if schema.class_names != other.class_names and schema.kind != "detection" and not has_one_class(schema):
        came = f"the classes {_shown(schema.class_names)} and {_shown(other.class_names)}"
        raise _unlike(oldest, dataset, came, "Their labels hold the classes by place, so both need the same list.")
    if schema.ignore_class != other.ignore_class:
        came = f"the numbers {schema.ignore_class} and {other.ignore_class} for pixels that do not count"
        raise _unlike(oldest, dataset, came, "Create one of them anew with the number of the other.")
    if bool(schema.class_names) != bool(other.class_names):
        raise _unlike(oldest, dataset, "labels with and without classes", "Create one of them anew like the other.")
    edit = join_classes(schema, other)
    return replace(edit.schema, columns=columns), edit.numbers


def _joined_columns(oldest: Dataset, schema: Schema, dataset: Dataset) -> tuple[Column, ...]:
    """Return the columns of both, which must mean the same; categories of either are categories of both."""
    ours, theirs = _meaning(schema), _meaning(dataset.schema)
    if ours != theirs:
        differing = sorted(set(ours) ^ set(theirs)) or ["their order"]
        raise _unlike(oldest, dataset, f"columns ({_shown(differing)})", "Create one anew with equal columns.")
    return tuple(
        replace(
            one,
            categories=tuple(dict.fromkeys((*one.categories, *two.categories))),
            missing=one.missing + two.missing,
        )
        for one, two in zip(schema.columns, dataset.schema.columns, strict=True)
    )


def _meaning(schema: Schema) -> list[str]:
    return [f"{column.name}: {column.type}" for column in schema.columns] + [f"target {schema.target}"]


def _unlike(one: Dataset, other: Dataset, came: str, advice: str) -> DataError:
    return DataError(
        "Datasets become one where their samples mean the same.",
        received=f"{one.name} and {other.name}, with {came}",
        advice=advice,
    )


def _same(one: Any, other: Any, otherwise: Any) -> Any:
    return one if one == other else otherwise


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f", … ({len(names)})" if len(names) > 5 else "")


class Survey:
    """Looks once at all samples of a draft; costs 16 bytes a sample.

    Args:
        draft: of several datasets.
        duplicates: ``keep`` lists samples of a later dataset with the content of one of an earlier; ``leave-out``
            lists them and leaves them out.
    """

    def __init__(self, draft: Draft, duplicates: Duplicates) -> None:
        if duplicates not in get_args(Duplicates):
            raise UsageError("`duplicates` is keep or leave-out.", received=repr(duplicates))
        self._draft = draft
        self._leaves_out = duplicates == "leave-out"
        self._keys = np.empty(len(draft.splits), np.uint64)
        self._contents = np.empty(len(draft.splits), np.uint64)
        for origin in draft.origins:
            self._walk(origin)
        self.twins = np.zeros(0, np.int64)
        """Samples with the content of one of an earlier dataset, in order."""
        self._firsts = np.zeros(0, np.int64)

    def apply(self) -> None:
        """Find duplicates, leave them out where that was asked for, and give prefixes to keys that would conflict."""
        if self._draft.schema.kind not in _UNLIKE_CONTENT:
            self._find_twins()
        if self._leaves_out:
            self._draft.splits[self.twins] = LEFT_OUT
            self._draft.sentences.append(f"Left out {plural(len(self.twins), 'sample')} that came twice.")
        self._choose_prefixes()

    def problems(self) -> Iterator[Problem]:
        """Yield a problem for each duplicate, in order."""
        for twin, first in zip(self.twins.tolist(), self._firsts.tolist(), strict=True):
            key, other = self._draft.key(twin), self._draft.key(first)
            reason = f"It has the content of {other}."
            yield Problem(key=key, kind="duplicate", reason=reason, left_out=self._leaves_out)

    def _walk(self, origin: Origin) -> None:
        for place, entry in enumerate(origin.dataset.catalogue.walk()):
            content = entry.content_hash
            self._keys[origin.first + place] = key_number(entry.key)
            self._contents[origin.first + place] = int.from_bytes(content[:8], "big") if content else _NO_CONTENT

    def _find_twins(self) -> None:
        known, firsts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        twins, originals = [self.twins], [self._firsts]
        for origin in self._draft.origins:
            contents = self._contents[origin.first : origin.first + len(origin)]
            inside = np.flatnonzero((contents != _NO_CONTENT) & np.isin(contents, known))
            twins.append(origin.first + inside)
            originals.append(firsts[np.searchsorted(known, contents[inside])])
            everything = np.concatenate([known, contents[contents != _NO_CONTENT]])
            numbers = np.concatenate([firsts, origin.first + np.flatnonzero(contents != _NO_CONTENT)])
            known, at = np.unique(everything, return_index=True)
            firsts = numbers[at]
        self.twins, self._firsts = np.concatenate(twins), np.concatenate(originals)

    def _choose_prefixes(self) -> None:
        still = self._draft.splits != LEFT_OUT
        taken = np.zeros(0, np.uint64)
        for origin in self._draft.origins:
            place = slice(origin.first, origin.first + len(origin))
            attempt = 0
            while np.isin(self._keys[place][still[place]], taken).any():
                attempt += 1
                self._rename(origin, attempt)
            if origin.prefix:
                self._draft.sentences.append(f"Put {origin.prefix} before the keys of {origin.dataset.name}.")
            taken = np.union1d(taken, self._keys[place][still[place]])

    def _rename(self, origin: Origin, attempt: int) -> None:
        if attempt > _MOST_PREFIXES:
            raise UsageError(f"Too many of the datasets that become one are called `{origin.dataset.name}`.")
        name = origin.dataset.name.replace("/", "-") or "joined"
        origin.prefix = f"{name}/" if attempt == 1 else f"{name}-{attempt}/"
        for place, entry in enumerate(origin.dataset.catalogue.walk()):
            self._keys[origin.first + place] = key_number(origin.prefix + entry.key)


def key_number(text: str) -> int:
    """Return 64 bits of a text's BLAKE2b: two of a million texts share them with a probability of 3e-8."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
