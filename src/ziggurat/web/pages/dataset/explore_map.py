"""Map of a dataset in its explorer: what it is drawn of, similar samples, and the form that makes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, cast

import numpy as np
from fastapi import Form, Query, Request, Response
from pydantic import BaseModel, Field

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.operations import datasets
from ziggurat.server.dependencies import StudioDep, TrainerUser, ViewerUser
from ziggurat.server.permissions import new_router
from ziggurat.web.pages.dataset.explorer_view import tiles_of
from ziggurat.web.pages.dataset.filters import DatasetFilter, filter_of
from ziggurat.web.pages.dataset.listing import Listing
from ziggurat.web.pages.dataset.predicted import predicted_of
from ziggurat.web.pages.dataset.routes import dataset_frame, is_finished
from ziggurat.web.pages.dataset.samples import view_sample
from ziggurat.web.rendering import is_part, page, part, see_other
from ziggurat.web.urls import address
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.dataset_maps import DatasetMap, entry_named

__all__ = ["MapView", "map_view", "router"]

router = new_router()

MOST_DRAWN: Final = 50_000
"""Samples that a browser draws; of larger maps a part, chosen evenly."""

_STRIP: Final = 8
_NO_CLASS: Final = 65_535
_KEPT: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
"""The results of a job never change, and the address names the attempt."""

_Sample = Annotated[str, Query(min_length=1, max_length=4096)]


class _MapForm(BaseModel):
    features: str = Field("", max_length=220)
    tsne: bool = False
    perplexity: str = Field("", max_length=20)
    seed: str = Field("", max_length=20)

    def options(self) -> dict[str, Any]:
        """Return fields of the spec; what is no number stays as it was typed, for the error that names the field."""
        return {
            "tsne": self.tsne,
            "perplexity": _typed(self.perplexity, float, 30.0),
            "seed": _typed(self.seed, int, 0),
        }


def _typed(text: str, kind: type[int] | type[float], otherwise: float) -> Any:
    try:
        return kind(text) if text.strip() else otherwise
    except ValueError:
        return text


@dataclass(frozen=True, kw_only=True)
class MapView:
    """The map of a dataset, or what there is in its place.

    Args:
        shown: the map; None for none.
        others: maps of the dataset that are done, the newest first.
        making: newest job that makes one and has not ended; None for none.
        failed: newest job of all, if it failed or was stopped; None if not.
        choices: features that a new map may be made of: value and text.
        chosen: value of the default.
        has_tsne: whether t-SNE is installed.
        state: what the script draws, as JSON values; empty for no map.
        total: samples of the map.
        outcome_source: what predicted the classes that the color Error shows; empty for nothing.
    """

    shown: DatasetMap | None
    others: Sequence[DatasetMap]
    making: Job | None
    failed: Job | None
    choices: Sequence[tuple[str, str]]
    chosen: str
    has_tsne: bool
    state: Mapping[str, Any]
    total: int = 0
    outcome_source: str = ""

    @property
    def topics(self) -> tuple[str, ...]:
        """Notices that the page listens to: of the map that is being made."""
        return () if self.making is None else (f"job:{self.making.id}",)


def map_view(
    studio: Studio,
    job: Job,
    mapped: DatasetMap | None,
    wanted: DatasetFilter,
    described: Mapping[str, Any],
) -> MapView:
    """Return what the map column of the explorer shows.

    Args:
        studio: where the dataset is.
        job: of the dataset.
        mapped: the map; None for none.
        wanted: the filter of the samples.
        described: what ``Datasets.describe`` returned.
    """
    jobs = studio.maps.of_dataset(job.id)
    others = [found for each in jobs if each.state == "done" and (found := studio.maps.find(job.id, each.id))]
    newest = jobs[0] if jobs else None
    predicted = predicted_of(studio, job.id) if mapped is not None else None
    source = ""
    if predicted is not None:
        source = predicted.model_name
    elif mapped is not None and mapped.summary["labels"]:
        source = mapped.source
    models = [each for each in studio.jobs.dependents(job.id) if each.kind == "train" and each.state == "done"]
    choices = [("backbone", "EfficientNet-Lite0, for photographs")] if described["image"] else []
    choices.append(
        ("own", {"text-classification": "own words", "table": "own columns"}.get(described["kind"], "own pixels"))
    )
    choices += [(f"model:{each.id}", f"model {each.name or each.id}") for each in reversed(models)]
    return MapView(
        shown=mapped,
        others=others,
        making=next((each for each in jobs if each.state not in ("done", "failed", "stopped")), None),
        failed=newest if newest is not None and newest.state in ("failed", "stopped") else None,
        choices=choices,
        chosen=studio.maps.default_features(job.id),
        has_tsne=studio.maps.has_tsne,
        state={} if mapped is None else _state(studio, job, mapped, wanted, described),
        total=0 if mapped is None else len(mapped.numbers),
        outcome_source=source,
    )


def _state(
    studio: Studio, job: Job, mapped: DatasetMap, wanted: DatasetFilter, described: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "count": min(len(mapped.numbers), MOST_DRAWN),
        "projections": mapped.projections,
        "classes": [each["name"] for each in described["classes"] or ()],
        "splits": list(described["splits"]),
        "area": wanted.value("area"),
        "isFiltered": bool(wanted.without("area").typed),
        "version": str(mapped.job.ended or ""),
    }


@router.get("/datasets/{job_id}/maps/{map_id}/points", include_in_schema=False)
def points(studio: StudioDep, _who: ViewerUser, job_id: str, map_id: str) -> Response:
    """Return the points of a map as one block of numbers, little-endian, array by array.

    For N samples: row in the split (uint32); for each projection, first t-SNE if it is there, the places (2 uint16);
    class, 65535 for none (uint16); number of the split (uint8); marks (uint8): 1 for a label-error candidate, 2 for a
    near duplicate.
    """
    mapped = studio.maps.get(job_id, map_id)
    with studio.datasets.opened(job_id) as dataset:
        drawn = drawn_places(mapped)
        numbers = mapped.numbers[drawn]
        classes = dataset.catalogue.column("class")[numbers]
        ends = np.cumsum([note.count for note in dataset.manifest.splits.values()])
        splits = np.searchsorted(ends, numbers, side="right")
        rows = numbers - np.concatenate([[0], ends])[splits]
    marks = np.zeros(len(mapped.numbers), np.uint8)
    if mapped.summary["labels"]:
        marks[mapped.array("candidates")] |= 1
    marks[mapped.array("near")] |= 2
    parts = [
        rows.astype("<u4"),
        *(mapped.grid(each)[drawn].astype("<u2") for each in mapped.projections),
        np.where((classes >= 0) & (classes < _NO_CLASS), classes, _NO_CLASS).astype("<u2"),
        splits.astype(np.uint8),
        marks[drawn],
    ]
    content = b"".join(np.ascontiguousarray(each).tobytes() for each in parts)
    return Response(content, media_type="application/octet-stream", headers=_KEPT)


@router.get("/datasets/{job_id}/maps/{map_id}/matching", include_in_schema=False)
def matching(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, map_id: str) -> Response:
    """Return a byte for each point: 1 if the filter leaves the sample."""
    mapped = studio.maps.get(job_id, map_id)
    wanted = filter_of(request.query_params).without("area")
    predicted = predicted_of(studio, job_id) if wanted.needs_predictions else None
    left = Listing(studio, job_id, wanted, predicted, mapped).numbers()
    found = np.isin(mapped.numbers[drawn_places(mapped)], left).astype(np.uint8)
    return Response(found.tobytes(), media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


@router.get("/datasets/{job_id}/maps/{map_id}/outcomes", include_in_schema=False)
def outcomes(studio: StudioDep, _who: ViewerUser, job_id: str, map_id: str) -> Response:
    """Return a byte for each point: 1 if the class was predicted right, 2 if not, 0 if unknown.

    The predictions are those of the model that was evaluated last, else those that found the label errors of the map.
    """
    mapped = studio.maps.get(job_id, map_id)
    found, predicted = mapped.outcomes, predicted_of(studio, job_id)
    if predicted is not None:
        with studio.datasets.opened(job_id) as dataset:
            counts = [note.count for note in dataset.manifest.splits.values()]
            firsts = dict(zip(dataset.splits, np.cumsum([0, *counts]).tolist(), strict=False))
        found = np.zeros(len(mapped.numbers), np.uint8)
        for value, which in ((1, "right"), (2, "wrong")):
            found[np.isin(mapped.numbers, predicted.numbers(which, firsts))] = value
    content = found[drawn_places(mapped)].astype(np.uint8).tobytes()
    return Response(content, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


@router.get("/datasets/{job_id}/maps/{map_id}/tip", include_in_schema=False)
def tip(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, map_id: str, of: _Sample) -> Response:
    """Return what is shown beside a point: the sample, small."""
    mapped = studio.maps.get(job_id, map_id)
    with studio.datasets.opened(job_id) as dataset:
        entry = entry_named(dataset, of)
        sample = view_sample(dataset, entry, most_shapes=0)
        guess = mapped.predicted(entry.number)
        names = dataset.schema.class_names
        predicted = "" if guess is None or guess[0] == entry.class_number else names[guess[0]]
        score = 0.0 if guess is None else guess[1]
        return part(
            request,
            "dataset/map_tip.html",
            job=studio.jobs.get(job_id),
            sample=sample,
            predicted=predicted,
            score=score,
        )


@router.get("/datasets/{job_id}/maps/{map_id}/similar", include_in_schema=False)
def similar(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str, map_id: str, to: _Sample) -> Response:
    """Return the samples that are most similar to one, in a row; the page of the explorer lists more of them."""
    if not is_part(request):
        return see_other(request, f"/datasets/{job_id}/explore", {"similar": to, "map": map_id})
    mapped = studio.maps.get(job_id, map_id)
    with studio.datasets.opened(job_id) as dataset:
        first = entry_named(dataset, to)
        near = mapped.neighbors(first.number, _STRIP)
        entries = {each.number: each for each in dataset.catalogue.entries([number for number, _ in near])}
        shown = [first, *(entries[number] for number, _ in near)]
        tiles = tiles_of(studio, dataset, [view_sample(dataset, each, most_shapes=0) for each in shown])
        return part(
            request,
            "dataset/map_similar.html",
            job=studio.jobs.get(job_id),
            mapped=mapped,
            tiles=list(zip(tiles, [None, *(cosine for _, cosine in near)], strict=True)),
            schema=dataset.schema,
            to=f"{first.split}/{first.row}",
        )


@router.get("/datasets/{job_id}/maps/new", include_in_schema=False)
def new_map(request: Request, studio: StudioDep, _who: ViewerUser, job_id: str) -> Response:
    """Return the page with the form that makes a map, or how the newest one is coming along."""
    return _form_page(request, studio, job_id)


@router.post("/datasets/{job_id}/maps/new", include_in_schema=False)
def create_map(
    request: Request,
    studio: StudioDep,
    who: TrainerUser,
    job_id: str,
    form: Annotated[_MapForm, Form()],
) -> Response:
    """Put a map into the queue."""
    source, _, model = form.features.partition(":")
    try:
        datasets.create_map(studio, who, job_id, cast(Any, source), model, **form.options())
    except ZigguratError as error:
        return _form_page(request, studio, job_id, error)
    return see_other(request, f"/datasets/{job_id}/explore", {"view": "map"})


def _form_page(request: Request, studio: Studio, job_id: str, error: ZigguratError | None = None) -> Response:
    job = studio.jobs.get(job_id)
    if not is_finished(job):
        return see_other(request, f"/datasets/{job_id}")
    described = studio.datasets.describe(job_id)
    wanted = DatasetFilter(view="map")
    maps = map_view(studio, job, studio.maps.find(job_id), wanted, described)
    if is_part(request, "map-making"):
        if maps.making is None:  # it has ended: the page shows the map, or why there is none
            target = address(request, f"/datasets/{job_id}/explore", {"view": "map"})
            return Response(status_code=204, headers={"HX-Redirect": target})
        return part(request, "dataset/map_making.html", job=job, maps=maps)
    return page(
        request,
        "dataset/new_map.html",
        **dataset_frame(studio, job, "explore", described),
        maps=maps,
        error=error,
        topics=maps.topics,
    )


def drawn_places(mapped: DatasetMap) -> np.ndarray:
    """Return the places of the samples that are drawn, in order."""
    count = len(mapped.numbers)
    return np.arange(count) if count <= MOST_DRAWN else np.linspace(0, count - 1, MOST_DRAWN).astype(np.int64)
