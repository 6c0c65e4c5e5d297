"""Pages for comparison of dataset versions and for dataset export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity, Job
from ziggurat.errors import DataError, UnknownNameError, UsageError, ZigguratError
from ziggurat.operations import datasets as operations
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.downloads import download
from ziggurat.server.permissions import new_router
from ziggurat.web.caches import BackgroundResult, background_results
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.view import dataset_about
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.workspace import datasets
from ziggurat.workspace.dataset_versions import what_differs
from ziggurat.workspace.datasets import Datasets
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.archives import ARCHIVE_FORMATS

__all__ = ["router"]

router = new_router()


_MOST: Final = 30


@dataclass(frozen=True, kw_only=True)
class DatasetVersion:
    """One version in the chain.

    Args:
        note: what the chain says of it: ``name``, ``changes``, ``parents``.
        job: its job; None where it was deleted.
        splits: split → samples; empty where it was deleted.
        classes: name → samples (or objects) of all splits.
    """

    note: Any
    job: Job | None
    splits: Mapping[str, int]
    classes: Mapping[str, int]

    @property
    def total(self) -> int:
        """Samples of all splits."""
        return sum(self.splits.values())


def versions_of(studio: Studio, job_id: str) -> list[DatasetVersion]:
    """Return a dataset and all that it came from, newest first."""
    notes = studio.datasets.versions(job_id)[:_MOST]
    jobs = studio.jobs.some(note.folder.name for note in notes if note.folder is not None)
    return [_version(studio, note, jobs) for note in notes]


def differences_of(older: Path, newer: Path) -> list[tuple[str, int, Sequence[str]]]:
    """Return what differs between two versions: in words, how many, and the first names of each."""
    found = what_differs(older, newer)
    words = {
        "added": "Added",
        "removed": "Excluded",
        "moved": "Moved to another split",
        "relabelled": "Relabeled",
        "replaced": "Content replaced",
    }
    lists = [(title, found.counts[name], getattr(found, name)) for name, title in words.items()]
    lists += [
        ("Classes added", len(found.classes_added), found.classes_added),
        ("Classes removed", len(found.classes_removed), found.classes_removed),
    ]
    return [(title, count, names) for title, count, names in lists if count]


def _version(studio: Studio, note: Any, jobs: Mapping[str, Job]) -> DatasetVersion:
    folder: Path | None = note.folder
    described = _described(folder) if folder is not None else None
    if folder is None or described is None:
        return DatasetVersion(note=note, job=None, splits={}, classes={})
    splits = described["splits"]
    classes = {each["name"]: sum(each.get(split, 0) for split in splits) for each in described["classes"]}
    return DatasetVersion(note=note, job=jobs.get(folder.name), splits=splits, classes=classes)


def _described(folder: Path) -> dict[str, Any] | None:
    try:
        return Datasets().describe(str(folder))
    except DataError:  # deleted while we looked
        return None


_AT_ONCE_S: Final = 0.1
_PATIENCE_S: Final = 4.0
_COMPARED: Final = Query(alias="with", max_length=200)


@router.get("/datasets/{job_id}/versions", include_in_schema=False)
def versions(
    request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, other: Annotated[str, _COMPARED] = ""
) -> Response:
    """Return the versions that a dataset came from and that came from it, and what differs from one of them."""
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    if other and is_part(request, "dataset-differences"):
        found = _differences(request, studio, job_id, other, _PATIENCE_S)
        return part(request, "dataset/differences.html", job=job, **_compared(studio, other, found))
    found = _differences(request, studio, job_id, other, _AT_ONCE_S) if other else None
    about = dataset_about(studio, job)
    return page(
        request,
        "dataset/versions.html",
        **dataset_frame(studio, job, "versions"),
        about=about,
        versions=versions_of(studio, job_id),
        **_compared(studio, other, found),
    )


@router.get("/datasets/{job_id}/export", include_in_schema=False)
def export(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the formats in which a dataset can be exported."""
    if not is_finished(studio.jobs.get(job_id)):
        return see_other(request, f"/datasets/{job_id}")
    return _export_page(request, studio, job_id)


@router.post("/datasets/{job_id}/export", include_in_schema=False)
async def take_away(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Return a dataset in a format of others, as an archive that is made while it is sent."""
    form = await request.form(max_fields=200)
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    return await run_in_threadpool(_taken_away, request, studio, who, job_id, texts)


def _taken_away(request: Request, studio: Studio, who: Identity, job_id: str, texts: dict[str, str]) -> Response:
    name, archive = texts.get("format", ""), texts.get("archive", "zip")
    try:
        job = studio.jobs.get(job_id)
        known = export_formats(studio, studio.datasets.describe(job_id)["kind"])
        chosen = next((each for each in known if each.name == name), None)
        if chosen is None:
            raise UnknownNameError("format that holds this dataset", name, [each.name for each in known])
        parts = operations.export(studio, who, job_id, name, archive, typed_options(chosen, texts))
    except ZigguratError as error:
        return _export_page(request, studio, job_id, error, texts)
    return download(parts, f"{job.name or job_id}-{name}", archive)


def _export_page(
    request: Request,
    studio: Studio,
    job_id: str,
    error: ZigguratError | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    job = studio.jobs.get(job_id)
    described = studio.datasets.describe(job_id)
    return page(
        request,
        "dataset/export.html",
        **dataset_frame(studio, job, "export"),
        formats=export_formats(studio, described["kind"]),
        archives=[(name, name) for name in sorted(ARCHIVE_FORMATS, key=lambda name: name != "zip")],
        is_reference=(described["image"] or {}).get("encoding") == "reference",
        typed=typed or {},
        error=error,
    )


def _differences(request: Request, studio: Studio, job_id: str, other: str, wait_s: float) -> BackgroundResult:
    newer, older = studio.datasets.folder(job_id), studio.datasets.folder(other)

    def find() -> Any:
        return differences_of(Path(older), Path(newer))

    return background_results(request).get(("differences", other, job_id), find, wait_s=wait_s)


def _compared(studio: Studio, other: str, found: BackgroundResult | None) -> dict[str, Any]:
    return {
        "compared": studio.jobs.get(other) if other else None,
        "is_compared": found is not None and found.is_ready,
        "differences": found.value if found is not None and found.is_ready else None,
        "compare_problem": found.error.as_dict() if found is not None and found.is_ready and found.error else None,
    }


@dataclass(frozen=True, kw_only=True)
class ExportOption:
    """An option of an export.

    Args:
        name: as the exporter calls it.
        title: for people.
        hint: what it does.
        choices: value and text of each; empty where anything may be typed.
        usual: what holds where nothing is typed.
        is_whole: whether it is a whole number.
        is_switch: whether it is on or off.
    """

    name: str
    title: str
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    usual: str = ""
    is_whole: bool = False
    is_switch: bool = False


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A format that can hold the dataset.

    Args:
        name: as the studio calls it.
        title: for people.
        options: of the export.
    """

    name: str
    title: str
    options: Sequence[ExportOption]


_KNOWN: Final[Mapping[str, ExportOption]] = {
    option.name: option
    for option in (
        ExportOption(
            name="compression",
            title="Compression",
            hint="gzip makes the files smaller and slower to read.",
            choices=(("none", "None"), ("gzip", "gzip")),
            usual="none",
        ),
        ExportOption(
            name="elements_per_file",
            title="Values per file",
            hint="Caffe reads no more than 2147483648.",
            usual="2147483648",
            is_whole=True,
        ),
        ExportOption(
            name="encoding",
            title="Images",
            hint="Caffe without OpenCV needs them not encoded.",
            choices=(("stored", "As they are stored"), ("none", "Not encoded")),
            usual="stored",
        ),
        ExportOption(name="compress", title="Compress the files", hint="With gzip, as MNIST is.", is_switch=True),
        ExportOption(
            name="records_per_shard",
            title="Records per file",
            hint="Typical: 1000 to 10000.",
            usual="10000",
            is_whole=True,
        ),
        ExportOption(
            name="samples_per_shard",
            title="Samples per file",
            hint="Typical: 1000 to 10000.",
            usual="10000",
            is_whole=True,
        ),
        ExportOption(
            name="one_based",
            title="Count pixels from 1",
            hint="As the first VOC files do; else from 0.",
            is_switch=True,
        ),
        ExportOption(
            name="outlines",
            title="Boxes or outlines",
            hint="A YOLO dataset has one or the other. Outlines are for segmentation; boxes become rectangles.",
            choices=(("", "Outlines if every object has one"), ("false", "Boxes"), ("true", "Outlines")),
        ),
    )
}
_ON_OR_OFF: Final = {"true": True, "false": False}
_FILE_FORMATS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "table": (("csv", "CSV"), ("tsv", "TSV"), ("parquet", "Parquet")),
    "text": (("csv", "CSV"), ("tsv", "TSV"), ("jsonl", "JSON lines")),
}


def export_formats(studio: Studio, kind: str) -> list[ExportFormat]:
    """Return the formats that can hold datasets of a kind."""
    return [
        ExportFormat(
            name=each["name"],
            title=each["title"],
            options=[_option(each["name"], name) for name in each["export_options"]],
        )
        for each in datasets.formats()
        if kind in each["exports"]
    ]


def typed_options(chosen: ExportFormat, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that were typed; those that were left empty are left out.

    Raises:
        UsageError: where a number is none.
    """
    found: dict[str, Any] = {}
    for option in chosen.options:
        text = typed.get(option.name, "").strip()
        if option.is_switch:
            found[option.name] = text == "true"
        elif option.is_whole and text:
            if not (text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text)):
                raise UsageError(f"“{option.title}” is a whole number, at least 1.", received=f"`{text[:40]}`")
            found[option.name] = int(text)
        elif text:
            found[option.name] = _ON_OR_OFF.get(text, text) if option.choices else text
    return found


def _option(format_name: str, name: str) -> ExportOption:
    if name == "file_format":
        choices = _FILE_FORMATS.get(format_name, ())
        return ExportOption(name=name, title="Kind of file", choices=choices, usual="csv")
    return _KNOWN.get(name) or ExportOption(name=name, title=name.replace("_", " ").capitalize())
