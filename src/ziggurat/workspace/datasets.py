"""Use cases of datasets: check a request, recognize a source, list, show, explore, check, export."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np

from ziggurat.atomic import storage_errors
from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.catalog import Catalogue, Entry, SampleFilter, SampleOrder
from ziggurat.datasets.checks import CheckReport, check_dataset, why_not_again
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.format_registry import (
    EXPORT_FORMATS,
    Recognition,
    export_dataset,
    guess_format,
    importer,
    importers,
    is_unpacked_first,
    recognize,
)
from ziggurat.datasets.formats.shared.exports import ExportReport
from ziggurat.datasets.importer import Importer
from ziggurat.datasets.mask_classes import MOST_MASKS, MaskClasses, mask_classes
from ziggurat.datasets.samples import Problem
from ziggurat.datasets.sources import is_remote, public_uri
from ziggurat.datasets.sources.secrets import without_user
from ziggurat.datasets.statistics import Statistics, statistics_lines, statistics_of
from ziggurat.errors import ConfigurationError, DataError, JobError, SpecError, UnknownNameError
from ziggurat.layout import DATASETS_FOLDER, JobFolder
from ziggurat.records.manifest import MANIFEST_NAME, Manifest, SplitNote
from ziggurat.specs import DatasetSpec, parse_spec, read_content

__all__ = [
    "MOST_MASKS",
    "DatasetRow",
    "Datasets",
    "MaskClasses",
    "Page",
    "SampleOrder",
    "check_export_options",
    "check_new_dataset",
    "export_options",
    "finished_dataset",
    "format_named",
    "formats",
    "problems_so_far",
    "recognize_source",
    "rows",
    "sample_filter",
    "source_name",
    "statistics_lines",
    "stored_source",
]

_CATALOG_FILES: Final = ("index.sqlite", "work/scan.sqlite")
"""Files with the problems of a dataset, whole or half made."""


@dataclass(frozen=True, kw_only=True)
class DatasetRow:
    """One dataset in a list.

    Args:
        folder: where it is.
        id: of its manifest; empty while it is not finished.
        name: what people call it.
        kind: its kind; empty while it is not finished.
        state: ``done``, or the state of the job that makes it.
        splits: split → samples.
        classes: number of its classes.
        problems: number of problems that were found.
        parents: names of the versions that it was made of.
    """

    folder: str
    id: str
    name: str
    kind: str
    state: str
    splits: Mapping[str, int]
    classes: int
    problems: int
    parents: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """Some of the samples that a filter leaves.

    Args:
        total: samples that it leaves.
        offset: how many came before.
        entries: what the catalog knows of them.
        problems: key → problems, of those that have some.
    """

    total: int
    offset: int
    entries: list[Entry]
    problems: Mapping[str, list[Problem]]

    def as_json(self, class_names: Sequence[str]) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "total": self.total,
            "offset": self.offset,
            "samples": [self._sample(entry, class_names) for entry in self.entries],
        }

    def _sample(self, entry: Entry, class_names: Sequence[str]) -> dict[str, Any]:
        number = entry.class_number
        known = number is not None and 0 <= number < len(class_names)
        return {
            "split": entry.split,
            "row": entry.row,
            "key": entry.key,
            "label": entry.label,
            "class_name": class_names[number] if known and number is not None else None,
            "group": entry.group,
            "time": entry.time,
            "source_bytes": entry.source_bytes,
            "stored_bytes": entry.stored_bytes,
            "width_px": entry.width_px,
            "height_px": entry.height_px,
            "objects": entry.objects,
            "problems": [asdict(problem) for problem in self.problems.get(entry.key, ())],
        }


class Datasets:
    """Datasets that are done, by name: the paths of their folders, or their ids in a studio.

    Every method raises DataError where there is no dataset of that name.
    """

    def folder(self, name: str) -> Path:
        """Return the folder of a dataset."""
        return Path(name)

    def opened(self, name: str) -> AbstractContextManager[Dataset]:
        """Open a dataset."""
        return Dataset(self.folder(name))

    def describe(self, name: str) -> dict[str, Any]:
        """Return what a dataset is, as JSON values."""
        with self.opened(name) as dataset:
            manifest, names = dataset.manifest, dataset.schema.class_names
            splits = manifest.splits
            content = manifest.as_json()
            return {
                "folder": str(self.folder(name)),
                **{
                    part: content[part]
                    for part in ("id", "name", "image", "source", "problems", "losses", "parents", "mean")
                },
                "pixel_mean": content["pixel_mean"],
                "kind": dataset.kind,
                "stores": sorted({store.record_format for note in splits.values() for store in note.stores}),
                "splits": {split: note.count for split, note in splits.items()},
                "classes": [{"number": at, "name": each, **_counts(splits, at)} for at, each in enumerate(names)],
                "columns": content["schema"]["columns"],
                "target": dataset.schema.target,
                "warnings": [
                    *(each["text"] for each in manifest.losses if each["warns"]),
                    *(dataset.catalogue.note("warnings") or []),
                ],
                "test_openings": len(dataset.openings()),
            }

    def explore(
        self, name: str, chosen: Mapping[str, Any], *, offset: int = 0, limit: int = 50, order: SampleOrder = "row"
    ) -> tuple[Page, Sequence[str]]:
        """Return some of the samples that a filter leaves, and the names of the classes; no image is read.

        Args:
            name: of the dataset.
            chosen: values of ``ziggurat.datasets.catalog.SampleFilter``; ``class_name`` may stand for
                ``class_number``, and the problem ``any`` for any.
            offset: how many to leave out first.
            limit: how many to return at most.
            order: as ``ziggurat.datasets.catalog.Catalogue.page`` takes it.

        Raises:
            UnknownNameError: where there is no such class, split or order.
        """
        with self.opened(name) as dataset:
            wanted = sample_filter(dataset, chosen)
            entries = dataset.catalogue.page(wanted, offset=offset, limit=limit, order=order)
            page = Page(
                total=dataset.catalogue.count(wanted),
                offset=offset,
                entries=entries,
                problems=dataset.catalogue.problems_of([entry.key for entry in entries]),
            )
            return page, dataset.schema.class_names

    def problems(self, name: str, kind: str | None = None, *, offset: int = 0, limit: int = 100) -> list[Problem]:
        """Return some of the problems that were found when the dataset was made."""
        with self.opened(name) as dataset:
            return dataset.catalogue.problems(kind, offset=offset, limit=limit)

    def problem_counts(self, name: str) -> Mapping[str, int]:
        """Return kind → number of the problems that were found when the dataset was made."""
        with self.opened(name) as dataset:
            return dict(dataset.manifest.problems)

    def picture(self, name: str, split: str, row: int, part: int = 0) -> bytes:
        """Return an image of a sample as PNG.

        Raises:
            DataError: where the sample has no such image, or it cannot be read.
        """
        with self.opened(name) as dataset:
            return _as_png(dataset, split, row, part)

    def save_images(self, name: str, samples: Sequence[tuple[str, int]], target: Path) -> list[Path]:
        """Write images as ``SPLIT-ROW.png`` into a folder; return the files.

        Raises:
            DataError: where the samples have no images; nothing is written then.
        """
        written = []
        with self.opened(name) as dataset, storage_errors(target):
            for split, row in samples:
                content = _as_png(dataset, split, row)
                target.mkdir(parents=True, exist_ok=True)
                path = target / f"{split}-{row}.png"
                path.write_bytes(content)
                written.append(path)
        return written

    def check(self, name: str, *, verify: bool = False, predictions: Path | None = None) -> CheckReport:
        """Return what may spoil a training, see ``ziggurat.datasets.checks``."""
        with self.opened(name) as dataset:
            return check_dataset(dataset, verify=verify, predictions=predictions)

    def why_not_again(self, name: str) -> str:
        """Return why a dataset cannot be created again from its source, one sentence; empty where it can."""
        return why_not_again(Manifest.load(self.folder(name)))

    def again(self, name: str) -> DatasetSpec:
        """Return the spec by which a dataset is created again: its own, with its id and name as ``again_of``.

        Raises:
            DataError: where it cannot be, as it is a version or its source is gone.
            SpecError: where its spec has fields that are not known any more.
        """
        manifest = Manifest.load(self.folder(name))
        if obstacle := why_not_again(manifest):
            raise DataError(
                f"The dataset `{manifest.name}` cannot be created again from its source. {obstacle}",
                advice="Bring the source back, or create a dataset of another.",
            )
        spec = parse_spec(
            {**manifest.spec, "again_of": f"{manifest.id} {manifest.name}"}, source="the dataset", is_stored=True
        )
        assert isinstance(spec, DatasetSpec)
        return spec

    def mask_classes(self, name: str) -> MaskClasses:
        """Return which classes occur in which masks; they are all read at the first time.

        Raises:
            UsageError: if there are too many.
        """
        with self.opened(name) as dataset:
            return mask_classes(dataset)

    def statistics(self, name: str) -> Statistics:
        """Return the statistics of a dataset, see ``ziggurat.datasets.statistics``."""
        with self.opened(name) as dataset:
            return statistics_of(dataset)

    def export(self, name: str, format: str, target: Path, options: Mapping[str, Any]) -> ExportReport:  # noqa: A002
        """Write a dataset in a format of others, see ``ziggurat.datasets.format_registry``."""
        check_export_options(format, options)
        with self.opened(name) as dataset:
            return export_dataset(dataset, format, target, options)


def rows(workspace: Path, folder: Path | None = None) -> Iterator[DatasetRow]:
    """Yield the datasets below a folder, by name.

    Args:
        workspace: the folder of everything.
        folder: where to look; the workspace's ``datasets`` where it is not given.

    Raises:
        DataError: where the folder that is given is not there.
    """
    place = folder or workspace / DATASETS_FOLDER
    if not place.is_dir():
        if folder is not None:
            raise DataError(f"`{folder}` does not exist.", advice="Check the path.")
        return
    for path in sorted(each for each in place.iterdir() if each.is_dir() and not each.name.startswith(".")):
        if (path / MANIFEST_NAME).is_file():
            yield _row(path, Manifest.load(path))
        elif _is_creation(path / "spec.json"):
            yield _unfinished(path)


def finished_dataset(workspace: Path, name: str) -> str:
    """Return the folder of a finished dataset of a workspace, of equal names the newest; empty if there is none.

    Args:
        workspace: the folder of everything.
        name: of the dataset, or of its folder.
    """
    made = [
        each.folder for each in rows(workspace) if each.state == "done" and name in (each.name, Path(each.folder).name)
    ]
    return max(made, key=lambda each: Path(each).stat().st_mtime, default="")


def problems_so_far(folder: Path, *, limit: int = 1000) -> tuple[list[Problem], int]:
    """Return the first problems that a creation found before it failed, and how many there are.

    Args:
        folder: of the job; it need not hold a dataset.
        limit: how many to return at most.
    """
    for name in _CATALOG_FILES:
        if not (folder / name).is_file():
            continue
        try:
            with Catalogue(folder / name) as catalogue:
                return catalogue.problems(limit=limit), sum(catalogue.problem_counts().values())
        except DataError:  # written half when the worker ended
            continue
    return [], 0


def formats() -> list[dict[str, Any]]:
    """Return every format: name, title, kinds and options; ``exports`` has the kinds that can be written as it."""
    return [_format(each) for each in importers()]


def format_named(name: str) -> dict[str, Any]:
    """Return one format that can be read.

    Raises:
        UnknownNameError: where there is none of that name.
    """
    return _format(importer(name))


def recognize_source(source: str) -> Recognition:
    """Return what every importer thinks of a local source, and which guess is taken.

    Raises:
        DataError: where the source is not there, or is not local.
    """
    if is_remote(source):
        raise DataError(
            f"`{public_uri(source)}` is recognized after it is fetched only; a local source is before.",
            advice="Make the dataset: the format is guessed when the source is here.",
        )
    return recognize(Path(stored_source(source)))


def stored_source(text: str) -> str:
    """Return a source as a spec keeps it: an address as it is, anything of this machine as an absolute path."""
    if is_remote(text):
        return text
    return str(Path(unquote(urlsplit(text).path) if "://" in text else os.path.expanduser(text)).absolute())


def source_name(source: str) -> str:
    """Return the default name of a dataset of a source: the last name of its path."""
    if not is_remote(source):
        return Path(source).name
    parts = urlsplit(public_uri(source))
    return Path(unquote(parts.path)).name or parts.netloc


def export_options(format: str) -> tuple[str, ...]:  # noqa: A002 - the word that people use
    """Return the names of the options that an export takes.

    Raises:
        UnknownNameError: where there is no such format.
    """
    if format not in EXPORT_FORMATS:
        raise UnknownNameError("format of an export", format, EXPORT_FORMATS)
    function = getattr(import_module(f"ziggurat.datasets.formats.{format}.exporter"), f"export_{format}")
    parameters = inspect.signature(function).parameters.values()
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def check_export_options(format: str, names: Iterable[str]) -> None:  # noqa: A002
    """Find out whether an export takes these options.

    Raises:
        UnknownNameError: where it does not.
    """
    known = export_options(format)
    for name in names:
        if name not in known:
            raise UnknownNameError(f"option of an export as {format}", name, known)


def check_new_dataset(spec: DatasetSpec, folder: Path | None = None) -> None:
    """Find out early what cannot be, so that no folder is left behind.

    Args:
        spec: what is asked; its source is as ``stored_source`` says.
        folder: where it is to be made; None for a new folder of the workspace.

    Raises:
        DataError: where the source is not there, or its format is not clear; ``details["options"]`` lists the likely.
        UnknownNameError: where format or option are unknown.
        ConfigurationError: where a value cannot be, or the address holds a password.
        JobError: where the folder holds something, or lies in the source.
    """
    _check_images(spec)
    if is_remote(spec.source):
        _check_address(spec.source)
        if spec.format:
            importer(spec.format).checked_options(spec.options)
    else:
        _check_local(spec, Path(spec.source))
    if folder is not None:
        _check_folder(folder, None if is_remote(spec.source) else Path(spec.source))


def _check_images(spec: DatasetSpec) -> None:
    if spec.size is not None and min(spec.size) < 1:
        raise ConfigurationError(
            f"`size` is {' x '.join(str(side) for side in spec.size)}, not a number of pixels, or "
            "height and width, at least 1.",
            advice="As in 256 or 240x320.",
        )
    if spec.encoding in ("original", "reference") and (spec.size is not None or spec.channels is not None):
        raise ConfigurationError(
            f"`encoding` is {spec.encoding}, with which images stay as they are, and "
            f"{'`size`' if spec.size is not None else '`channels`'} is set.",
            advice="Choose the encoding png, jpeg or raw to change size or channels.",
        )


def _check_address(uri: str) -> None:
    if without_user(uri) != uri:
        raise ConfigurationError(
            "An address holds no user and no password: it is kept in `spec.json`.",
            received=f"one with both in front of the host of `{public_uri(uri)}`",
            advice="Exclude. Keys come from where the store's own tools look, such as AWS_ACCESS_KEY_ID.",
        )


def _check_local(spec: DatasetSpec, source: Path) -> None:
    if not source.exists():
        raise DataError(f"`{source}` does not exist.", advice="Check the path.")
    if spec.format:
        importer(spec.format).checked_options(spec.options)
    elif not is_unpacked_first(source):
        guess = guess_format(source)
        importer(guess.format).checked_options({**guess.options, **spec.options})


def _check_folder(folder: Path, source: Path | None) -> None:
    inside = source is not None and source.is_dir() and folder.resolve().is_relative_to(source.resolve())
    held = [] if JobFolder(folder).spec.exists() else list(islice(_names(folder), 1))
    if inside or held:
        raise JobError(
            f"The new dataset cannot go to `{folder}`: it lies in the source."
            if inside
            else f"The new dataset cannot go to `{folder}`: the folder holds `{held[0]}`.",
            advice="Choose a folder that is new or empty.",
        )


def _names(folder: Path) -> Iterable[str]:
    if not folder.exists():
        return ()
    return (path.name for path in folder.iterdir()) if folder.is_dir() else (folder.name,)


def _as_png(dataset: Dataset, split: str, row: int, part: int = 0) -> bytes:
    image = dataset.picture(split, row, part)
    return encode_image(image if image.ndim == 3 else image[:, :, None].astype(np.uint8), "png")


def _format(each: Importer) -> dict[str, Any]:
    return {
        "name": each.name,
        "title": each.title,
        "kinds": list(each.kinds),
        "options": [{**vars(option), "type": option.type.__name__} for option in each.options],
        "exports": list(EXPORT_FORMATS.get(each.name, ())),
        "export_options": list(export_options(each.name)) if each.name in EXPORT_FORMATS else [],
    }


def sample_filter(dataset: Dataset, chosen: Mapping[str, Any]) -> SampleFilter:
    """Return the filter of the values that ``Datasets.explore`` takes.

    Raises:
        UnknownNameError: where the dataset has no such class or split.
        UsageError: if a class is looked for in too many masks.
    """
    values = {name: value for name, value in chosen.items() if name != "class_name" and value is not None}
    name = chosen.get("class_name")
    if name is not None:
        names = dataset.schema.class_names
        if name not in names and not str(name).isdigit():
            raise UnknownNameError("class", str(name), names)
        values["class_number"] = names.index(name) if name in names else int(name)
    if "class_number" in values and "mask" in dataset.schema.parts:
        values["numbers"] = json.dumps(mask_classes(dataset).samples(values.pop("class_number")).tolist())
    if "split" in values and values["split"] not in dataset.splits:
        raise UnknownNameError("split", values["split"], dataset.splits)
    if values.get("problem") == "any":
        values["problem"] = ""
    return SampleFilter(**values)


def _counts(splits: Mapping[str, SplitNote], number: int) -> dict[str, int]:
    """Return split → samples or objects of a class."""
    return {name: note.class_counts[number] if number < len(note.class_counts) else 0 for name, note in splits.items()}


def _row(path: Path, manifest: Manifest) -> DatasetRow:
    return DatasetRow(
        folder=str(path),
        id=manifest.id,
        name=manifest.name,
        kind=manifest.schema.kind,
        state="done",
        splits={split: note.count for split, note in manifest.splits.items()},
        classes=len(manifest.schema.class_names),
        problems=sum(manifest.problems.values()),
        parents=tuple(parent.name for parent in manifest.parents),
    )


def _is_creation(path: Path) -> bool:
    try:
        return read_content(path).get("kind") == "dataset"
    except SpecError:
        return False


def _unfinished(path: Path) -> DatasetRow:
    return DatasetRow(
        folder=str(path),
        id="",
        name=path.name,
        kind="",
        state="unfinished",
        splits={},
        classes=0,
        problems=0,
        parents=(),
    )
