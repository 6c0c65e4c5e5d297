"""Dataset explorer: samples that match a filter, one sample among them, and corrections of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from ziggurat.entities import Identity, Job
from ziggurat.errors import MissingEntryError, UsageError, ZigguratError
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.errors import status_of
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.samples import SampleView, label_as_json, view_sample
from ziggurat.web.pages.dataset.view import next_name
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio

__all__ = ["filter_of", "router"]

router = new_router()


_TEXTS: Final = ("split", "class_name", "text", "problem", "group")
_NUMBERS: Final = ("min_width_px", "max_width_px", "min_height_px", "max_height_px")
FILTERS: Final = (*_TEXTS, *_NUMBERS)
"""Names of the fields that choose samples."""

PAGE_SIZES: Final = (24, 48, 96, 192)
"""Samples on a page, for people to choose from."""

_LARGEST: Final = 2**31


@dataclass(frozen=True, kw_only=True)
class DatasetFilter:
    """Which samples of a dataset.

    Args:
        typed: field → what was typed, of those that were filled in.
        offset: samples before the page.
        limit: samples on it.
        problems: field → what is wrong with it.
    """

    typed: Mapping[str, str] = field(default_factory=dict)
    offset: int = 0
    limit: int = PAGE_SIZES[1]
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, Any]:
        """What the studio's ``datasets.explore`` takes; fields with a problem choose nothing."""
        return {
            name: int(text) if name in _NUMBERS else text
            for name, text in self.typed.items()
            if name not in self.problems
        }

    @property
    def query(self) -> dict[str, Any]:
        """What stands in an address, without the place in the list."""
        return {**self.typed, **({} if self.limit == PAGE_SIZES[1] else {"limit": self.limit})}

    def value(self, name: str) -> str:
        """Return what was typed into a field."""
        return self.typed.get(name, "")


def filter_of(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter of an address, or of a form; what cannot be read is said and otherwise left out."""
    typed = {name: str(values.get(name) or "").strip() for name in FILTERS}
    problems = {
        name: "A whole number of pixels, at least 1."
        for name in _NUMBERS
        if typed[name]
        and not (typed[name].isascii() and typed[name].isdigit() and 0 < int(typed[name][:12]) < _LARGEST)
    }
    limit = _whole(values.get("limit"), PAGE_SIZES[1])
    return DatasetFilter(
        typed={name: text for name, text in typed.items() if text},
        offset=_whole(values.get("offset"), 0),
        limit=min(max(limit, 1), PAGE_SIZES[-1]),
        problems=problems,
    )


def _whole(text: Any, otherwise: int) -> int:
    word = str(text or "")
    return int(word) if word.isascii() and word.isdigit() and len(word) < 10 else otherwise


_BLOCK: Final = 5000
_SHAPES_ON_A_PAGE: Final = 2000
_REGIONS_ON_A_PAGE: Final = 300


@dataclass(frozen=True, kw_only=True)
class Explored:
    """A page of the explorer.

    Args:
        total: samples that the filter leaves.
        samples: of the page.
        schema: of the dataset.
        splits: of the dataset.
        problem_counts: kind of problem → how many.
        has_groups: whether a sample has a group.
    """

    total: int
    samples: list[SampleView]
    schema: Any
    splits: tuple[str, ...]
    problem_counts: dict[str, int]
    has_groups: bool

    @property
    def has_pictures(self) -> bool:
        """Whether samples are images."""
        return any(sample.pictures for sample in self.samples)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The samples before and after one, within a filter.

    Args:
        at: place of the sample among those that the filter leaves, from 0; None where it is none of them.
        total: samples that the filter leaves.
        before: entry of the one before; None for none.
        after: entry of the one after; None for none.
    """

    at: int | None
    total: int
    before: Any = None
    after: Any = None


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """One sample, large.

    Args:
        sample: it.
        schema: of the dataset.
        neighbours: of it.
    """

    sample: SampleView
    schema: Any
    neighbours: Neighbours


def explored(studio: Studio, job_id: str, wanted: DatasetFilter) -> Explored:
    """Return the samples that a filter leaves.

    Raises:
        UnknownNameError: where there is no such split or class.
        JobError: where there is no dataset of that id.
    """
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=wanted.offset, limit=wanted.limit)
    with studio.datasets.opened(job_id) as dataset:
        samples = max(1, len(page.entries))
        most = max(20, _SHAPES_ON_A_PAGE // samples)
        regions = max(4, _REGIONS_ON_A_PAGE // samples)
        return Explored(
            total=page.total,
            samples=[
                view_sample(dataset, entry, page.problems.get(entry.key, ()), most_shapes=most, most_regions=regions)
                for entry in page.entries
            ],
            schema=dataset.schema,
            splits=dataset.splits,
            problem_counts=dict(dataset.manifest.problems),
            has_groups=any(entry.group for entry in page.entries) or "group" in wanted.typed,
        )


def shown_sample(
    studio: Studio, job_id: str, split: str, row: int, wanted: DatasetFilter, at: int | None
) -> ShownSample:
    """Return one sample with its neighbors.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        split: that the sample is in.
        row: its number in the split.
        wanted: the filter within which it is looked at.
        at: place that it probably has among the samples that the filter leaves; None if unknown.

    Raises:
        MissingEntryError: where there is no such sample.
    """
    with studio.datasets.opened(job_id) as dataset:
        entry = _entry(dataset, split, row)
        problems = dataset.catalogue.problems_of([entry.key]).get(entry.key, ())
        return ShownSample(
            sample=view_sample(dataset, entry, problems, most_shapes=1000, most_regions=1000, is_whole=True),
            schema=dataset.schema,
            neighbours=_neighbours(studio, job_id, entry, wanted, at if wanted.typed else entry.number),
        )


def chosen_places(studio: Studio, job_id: str, wanted: DatasetFilter) -> list[str]:
    """Return all samples that a filter leaves, as ``SPLIT/ROW``."""
    found: list[str] = []
    while True:
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=len(found), limit=_BLOCK)
        found += [f"{entry.split}/{entry.row}" for entry in page.entries]
        if len(page.entries) < _BLOCK:
            return found


def _entry(dataset: Any, split: str, row: int) -> Any:
    counts = {name: note.count for name, note in dataset.manifest.splits.items()}
    if row < counts.get(split, 0):
        before = sum(counts[name] for name in dataset.splits[: dataset.splits.index(split)])
        return dataset.catalogue.entries([before + row])[0]  # numbers go split by split, row by row
    raise MissingEntryError("There is no such sample in this dataset.", received=f"{split}/{row}")


def _neighbours(studio: Studio, job_id: str, entry: Any, wanted: DatasetFilter, at: int | None) -> Neighbours:
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=max(0, (at or 0) - 1), limit=3)
    entries: Sequence[Any] = page.entries
    places = [each.number for each in entries]
    expected = 1 if at else 0
    if places[expected : expected + 1] != [entry.number]:
        at = _searched(studio, job_id, entry, wanted, page.total)
        if at is None:
            return Neighbours(at=None, total=page.total)
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=max(0, at - 1), limit=3)
        entries, places = page.entries, [each.number for each in page.entries]
    inside = places.index(entry.number)
    return Neighbours(
        at=page.offset + inside,
        total=page.total,
        before=entries[inside - 1] if inside else None,
        after=entries[inside + 1] if inside + 1 < len(entries) else None,
    )


def _searched(studio: Studio, job_id: str, entry: Any, wanted: DatasetFilter, total: int) -> int | None:
    """Return the place of a sample among those that a filter leaves; they stand in the order of their numbers."""
    low, high = 0, total
    while low < high:
        middle = (low + high) // 2
        page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=middle, limit=1)
        if not page.entries:
            return None
        if page.entries[0].number < entry.number:
            low = middle + 1
        else:
            high = middle
    page, _ = studio.datasets.explore(job_id, wanted.chosen, offset=low, limit=1)
    return low if page.entries and page.entries[0].number == entry.number else None


_FEW_CLASSES: Final = 400
"""Up to so many classes a list to choose from is shown; beyond, a field to type into."""

_LONGEST_NAME: Final = 200


@dataclass(frozen=True, kw_only=True)
class _Correction:
    """What was typed into the form that makes a version.

    Args:
        what: ``relabel`` or ``exclude``.
        samples: that were ticked, as ``SPLIT/ROW``.
        is_all: whether all that the filter leaves are meant.
        label: that they are to get.
        reason: why they are left out.
        name: of the new version.
        single: ``SPLIT/ROW`` of the page that the form stands on; empty for the explorer.
    """

    what: str = ""
    samples: Sequence[str] = field(default_factory=tuple)
    is_all: bool = False
    label: str = ""
    reason: str = ""
    name: str = ""
    single: str = ""


@dataclass(frozen=True, kw_only=True)
class _Refused:
    """What is shown of a correction that was not made.

    Args:
        typed: what was typed; None if nothing was.
        error: what is wrong with it; None for nothing.
    """

    typed: _Correction | None = None
    error: ZigguratError | None = None


_NOTHING: Final = _Refused()


@router.get("/datasets/{job_id}/explore", include_in_schema=False)
def explore(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the samples that a filter leaves, page by page."""
    return _explorer(request, studio, job_id, filter_of(request.query_params))


@router.get("/datasets/{job_id}/samples/{split}/{row}", include_in_schema=False)
def sample(
    request: Request,
    studio: StudioDep,
    _who: ViewerUser,
    job_id: str,
    split: str,
    row: Annotated[int, Path(ge=0, lt=2**31)],
    at: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> Response:
    """Return one sample with all that is known of it, and the ways to its neighbors within the filter."""
    wanted = _within(request.query_params)
    return _sample_page(request, studio, job_id, (split, row), wanted, at=at)


@router.post("/datasets/{job_id}/explore", include_in_schema=False)
async def correct(request: Request, studio: StudioDep, who: TrainerUser, job_id: str) -> Response:
    """Make a version in which samples have another label, or that does without them."""
    form = await request.form(max_fields=20_000)
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    asked = _Correction(
        what=texts.get("what", ""),
        samples=tuple(str(value) for value in form.getlist("samples")),
        is_all=texts.get("everything") == "true",
        label=texts.get("label", ""),
        reason=texts.get("reason", "")[:1000],
        name=texts.get("name", "").strip(),
        single=texts.get("single", ""),
    )
    return await run_in_threadpool(_corrected, request, studio, who, job_id, (asked, texts))


def _corrected(
    request: Request, studio: Studio, who: Identity, job_id: str, sent: tuple[_Correction, Mapping[str, str]]
) -> Response:
    asked, texts = sent
    wanted = _within(texts) if asked.single else filter_of(texts)
    try:
        job = _made(studio, who, job_id, asked, wanted)
    except ZigguratError as error:
        return _refused(request, studio, job_id, sent, error)
    studio.people.note(who, f"dataset.{asked.what}", job.id, parent=job_id, samples=len(asked.samples))
    return see_other(request, f"/datasets/{job.id}")


def _made(studio: Studio, who: Identity, job_id: str, asked: _Correction, wanted: DatasetFilter) -> Job:
    if not 0 < len(asked.name) <= _LONGEST_NAME:
        raise UsageError(
            f"A version has a name of 1 to {_LONGEST_NAME} characters.", received=f"{len(asked.name)} characters"
        )
    samples = chosen_places(studio, job_id, wanted) if asked.is_all else list(asked.samples)
    if not samples:
        raise UsageError("Choose at least one sample.", advice="Select the boxes beside the samples.")
    if asked.what == "relabel":
        if not asked.label.strip():
            raise UsageError("Choose the label that the samples are to get.")
        return studio.datasets.relabel(job_id, samples, asked.label, name=asked.name, owner=who.name)
    if asked.what == "exclude":
        return studio.datasets.exclude(job_id, samples, reason=asked.reason, name=asked.name, owner=who.name)
    raise UsageError("Samples are given another label, or left out.", received=f"`{asked.what[:40]}`")


def _refused(
    request: Request,
    studio: Studio,
    job_id: str,
    sent: tuple[_Correction, Mapping[str, str]],
    error: ZigguratError,
) -> Response:
    """Show the page again with what was typed and what is wrong with it."""
    asked, texts = sent
    refused = _Refused(typed=asked, error=error)
    split, _, row = asked.single.partition("/")
    if row.isascii() and row.isdigit() and len(row) < 10:
        return _sample_page(request, studio, job_id, (split, int(row)), _within(texts), refused=refused)
    return _explorer(request, studio, job_id, filter_of(texts), refused)


def _explorer(
    request: Request,
    studio: Studio,
    job_id: str,
    wanted: DatasetFilter,
    refused: _Refused = _NOTHING,
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    filter_problem, status = None, 200
    try:
        found = explored(studio, job_id, wanted)
    except ZigguratError as error:
        filter_problem, status = error.as_dict(), status_of(error)
        found = explored(studio, job_id, DatasetFilter(limit=wanted.limit))
    shown = {**_correcting(job, found.schema, refused), "found": found, "wanted": wanted}
    if is_part(request, "found"):
        answer = part(request, "dataset/found.html", status, job=job, **shown)
        place = {**wanted.query, "offset": wanted.offset or None}
        answer.headers["HX-Push-Url"] = address(request, f"/datasets/{job_id}/explore", place)
        return answer
    return page(
        request,
        "dataset/explore.html",
        status,
        **dataset_frame(studio, job, "explore", sum(found.problem_counts.values())),
        **shown,
        filter_problem=filter_problem,
        page_sizes=PAGE_SIZES,
        few_classes=_FEW_CLASSES,
    )


def _sample_page(
    request: Request,
    studio: Studio,
    job_id: str,
    place: tuple[str, int],
    wanted: DatasetFilter,
    *,
    at: int | None = None,
    refused: _Refused = _NOTHING,
) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    found = shown_sample(studio, job_id, *place, wanted, at)
    return page(
        request,
        "dataset/sample.html",
        **dataset_frame(studio, job, "explore"),
        **_correcting(job, found.schema, refused),
        sample=found.sample,
        around=found.neighbours,
        label_json=label_as_json(found.sample.entry.label),
        wanted=wanted,
        few_classes=_FEW_CLASSES,
    )


def _within(values: Mapping[str, Any]) -> DatasetFilter:
    """Return the filter that a sample is looked at within; its fields have other names where they name the sample."""
    return filter_of({**values, "split": values.get("in_split", "")})


def _correcting(job: Job, schema: Any, refused: _Refused) -> dict[str, Any]:
    one_class = bool(schema.class_names) and schema.kind in ("image-classification", "text-classification", "table")
    if one_class:
        labels = [(name, name) for name in schema.class_names]
    elif schema.kind == "image-pairs":
        labels = [("1", "same"), ("0", "not the same")]
    else:
        labels = []
    return {
        "labels": labels,
        "schema": schema,
        "can_relabel": schema.kind not in ("segmentation", "image-to-image"),
        "typed": refused.typed or _Correction(name=next_name(job.name)),
        "error": refused.error,
    }
