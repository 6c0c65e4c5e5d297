"""View model of the dataset explorer: tiles, facets, and one sample with its neighbors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.web.pages.dataset.check_findings import problem_title
from ziggurat.web.pages.dataset.filters import DatasetFilter, Facet, facets_of, mask_class_value
from ziggurat.web.pages.dataset.listing import MOST_SIMILAR, Listing, Neighbours
from ziggurat.web.pages.dataset.predicted import Predicted, SamplePrediction, predicted_of
from ziggurat.web.pages.dataset.sample_images import (
    MASK_PALETTE,
    PLAIN_RESIZES,
    SHEET_TILES,
    Tile,
    mask_classes,
    sheet_places,
    sheet_tiles,
    tile_size,
)
from ziggurat.web.pages.dataset.samples import SampleView, class_title, view_sample
from ziggurat.workspace.datasets import MaskClasses, sample_filter
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.dataset_maps import DatasetMap, entry_named
from ziggurat.workspace.studio.datasets import Dataset

__all__ = ["Explored", "Sheet", "ShownSample", "TileView", "chosen_places", "explored", "shown_sample", "tiles_of"]

_SHAPES_ON_A_PAGE: Final = 2000
_REGIONS_ON_A_PAGE: Final = 300
_DIRECT_BYTES: Final = 2_000_000
"""Up to this size the drawer shows the original at once; a larger one is asked for."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """An image with the tiles of several samples.

    Args:
        places: as its address names them.
        width: in pixels.
        height: in pixels.
        is_source: whether the files of the source are there: its address is another one when they come or go.
    """

    places: str
    width: int
    height: int
    is_source: bool


@dataclass(frozen=True, kw_only=True)
class TileView:
    """A sample in the grid.

    Args:
        sample: it.
        tile: place of its image on the sheet; None for samples without images.
        sheet: that holds the image.
        prediction: of a model; None for none.
        similarity: cosine to the sample that others are compared with, or to a near duplicate; None for none.
    """

    sample: SampleView
    tile: Tile | None = None
    sheet: Sheet | None = None
    prediction: SamplePrediction | None = None
    similarity: float | None = None


@dataclass(frozen=True, kw_only=True)
class Legend:
    """A class in a mask.

    Args:
        name: of the class.
        colour: as ``#rrggbb``; empty where it is not drawn.
        share: of the pixels; None where it was not counted.
    """

    name: str
    colour: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Explored:
    """A page of the explorer.

    Args:
        total: samples that the filter leaves.
        all: samples of the dataset.
        tiles: of the page.
        schema: of the dataset.
        facets: to choose by.
        predicted: what a model predicted; None for nothing.
        has_groups: whether a sample has a group.
        legend: classes of masks.
        mapped: map of the dataset; None for none.
    """

    total: int
    all: int
    tiles: list[TileView]
    schema: Any
    facets: Sequence[Facet]
    predicted: Predicted | None
    has_groups: bool
    legend: Sequence[Legend] = ()
    mapped: DatasetMap | None = None

    @property
    def has_pictures(self) -> bool:
        """Whether samples are images."""
        return any(each.sample.pictures for each in self.tiles)


@dataclass(frozen=True, kw_only=True)
class ShownSample:
    """One sample, large.

    Args:
        sample: it.
        schema: of the dataset.
        neighbours: of it.
        film: samples on both sides of it, each with its place among those that the filter leaves.
        prediction: of a model; None for none.
        model_name: of that model; empty for none.
        original: ``source`` where the file of the source is there and unchanged, ``bytes`` where the dataset stores
            the bytes of that file, else empty.
        size: width and height of the original; None if unknown.
        fits: whether boxes and masks fit the original too.
        legend: classes in its mask.
        has_neighbors: whether a map of the dataset tells which samples are similar.
    """

    sample: SampleView
    schema: Any
    neighbours: Neighbours
    film: Sequence[tuple[int, TileView]] = field(default_factory=tuple)
    prediction: SamplePrediction | None = None
    model_name: str = ""
    original: str = ""
    size: tuple[int, int] | None = None
    fits: bool = True
    legend: Sequence[Legend] = ()
    has_neighbors: bool = False

    @property
    def shows_original(self) -> bool:
        """Whether the original is shown at once, in place of what is stored."""
        return bool(self.original) and self.fits and (self.sample.entry.source_bytes or 0) <= _DIRECT_BYTES


def explored(
    studio: Studio,
    job_id: str,
    wanted: DatasetFilter,
    mask_numbers: Sequence[int] = (),
    masks: MaskClasses | None = None,
) -> Explored:
    """Return the samples that a filter leaves.

    Args:
        studio: where the dataset is.
        job_id: of the dataset.
        wanted: the filter.
        mask_numbers: of the classes in its masks, where they have no names.
        masks: the classes in each mask, which filter and facets read; None until they are counted, or without masks.

    Raises:
        UnknownNameError: where there is no such split or class.
        JobError: where there is no dataset of that id.
    """
    predicted = predicted_of(studio, job_id, is_counted=True)
    mapped = studio.maps.find(job_id, wanted.map_id)

    def listed(chosen: DatasetFilter) -> Listing:
        return Listing(studio, job_id, chosen, predicted, mapped)

    listing = listed(wanted)
    entries = listing.page(wanted.offset, wanted.limit)
    with studio.datasets.opened(job_id) as dataset:
        most = max(20, _SHAPES_ON_A_PAGE // max(1, len(entries)))
        regions = max(4, _REGIONS_ON_A_PAGE // max(1, len(entries)))
        samples = [
            view_sample(dataset, entry, listing.problems.get(entry.key, ()), most_shapes=most, most_regions=regions)
            for entry in entries
        ]
        found = dataset.catalogue.samples_with_problems()
        problems = {kind: (problem_title(kind), count) for kind, count in found.items()}
        return Explored(
            total=listing.total,
            all=len(dataset),
            tiles=_marked(tiles_of(studio, dataset, samples, predicted), dataset, wanted, mapped),
            schema=dataset.schema,
            facets=facets_of(
                dataset.manifest,
                wanted,
                problems,
                predicted,
                mapped,
                masks=None if masks is None else masks.counts(),
                within={
                    name: counts
                    for name in ("split", "class_name")
                    if (counts := _within(dataset, wanted.without(name), listed, masks, name))
                },
            ),
            predicted=predicted,
            has_groups=any(entry.group for entry in entries) or "group" in wanted.typed,
            legend=_legend(dataset.schema, range(len(dataset.schema.class_names)) or mask_numbers),
            mapped=mapped,
        )


def _within(
    dataset: Dataset,
    others: DatasetFilter,
    listed: Callable[[DatasetFilter], Listing],
    masks: MaskClasses | None,
    name: str,
) -> dict[str, int]:
    """Return the counts of a facet's values among the samples that the other filters leave; empty without one."""
    if not others.typed:
        return {}
    if others.needs_map or others.prediction:
        numbers = listed(others).numbers()
        chosen = sample_filter(dataset, {"numbers": json.dumps(numbers.tolist())})
    else:
        chosen = sample_filter(dataset, others.chosen)
    if name == "split":
        return dataset.catalogue.split_counts(chosen)
    names = dataset.schema.class_names
    if masks is not None:
        counts = masks.counts(dataset.catalogue.column("number", chosen))
    else:
        counts = dataset.catalogue.class_counts_of(chosen)
    return {mask_class_value(number, names): count for number, count in counts.items()}


def tiles_of(
    studio: Studio, dataset: Dataset, samples: Sequence[SampleView], predicted: Predicted | None = None
) -> list[TileView]:
    """Return samples with the places of their images on sheets, and what was predicted for them."""
    known: Mapping[int, SamplePrediction] = {}
    if predicted is not None:
        known = predicted.of(sample.entry for sample in samples)
    made: list[TileView] = []
    for start in range(0, len(samples), SHEET_TILES):
        some = samples[start : start + SHEET_TILES]
        (is_source,) = studio.datasets.may_have_sources(dataset, [some[0].entry])
        tiles, (width, height) = sheet_tiles([tile_size(each.entry, dataset.manifest.image) for each in some])
        places = sheet_places([(each.entry.split, each.entry.row) for each in some])
        sheet = Sheet(places=places, width=width, height=height, is_source=is_source)
        made += [
            TileView(
                sample=sample,
                tile=tile if sample.pictures else None,
                sheet=sheet if sample.pictures else None,
                prediction=known.get(sample.entry.number),
            )
            for sample, tile in zip(some, tiles, strict=True)
        ]
    return made


def _marked(
    tiles: Sequence[TileView], dataset: Dataset, wanted: DatasetFilter, mapped: DatasetMap | None
) -> list[TileView]:
    """Return tiles with what a map says of them: how similar they are, and the class that was predicted without them.

    What a model predicted stays, unless the list is of the map's own predictions.
    """
    if mapped is None:
        return list(tiles)
    names, found = dataset.schema.class_names, wanted.value("found")
    cosines: dict[int, float] = {}
    if "similar" in wanted.typed:
        cosines = dict(mapped.neighbors(entry_named(dataset, wanted.value("similar")).number, MOST_SIMILAR))
    elif found == "near-duplicates":
        places = {number: mapped.place(number) for number in (each.sample.entry.number for each in tiles)}
        near = mapped.array("neighbor_cosine")
        cosines = {number: float(near[place]) for number, place in places.items() if place is not None}
    is_own = found in ("label-errors", "right", "wrong")
    made = []
    for each in tiles:
        entry, prediction = each.sample.entry, each.prediction
        guess = mapped.predicted(entry.number) if is_own or (prediction is None and wanted.view == "map") else None
        if guess is not None:
            name, score = names[guess[0]], guess[1]
            is_right = None if entry.class_number is None else entry.class_number == guess[0]
            prediction = SamplePrediction(name=name, score=score, is_right=is_right, top=[(name, score)])
        made.append(replace(each, prediction=prediction, similarity=cosines.get(entry.number)))
    return made


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
    predicted = predicted_of(studio, job_id)
    with studio.datasets.opened(job_id) as dataset:
        entry = dataset.entry(split, row)
        problems = dataset.catalogue.problems_of([entry.key]).get(entry.key, ())
        sample = view_sample(dataset, entry, problems, most_shapes=1000, most_regions=1000, is_whole=True)
        mapped = studio.maps.find(job_id, wanted.map_id)
        listing = Listing(studio, job_id, wanted, predicted, mapped)
        around = listing.around(entry, entry.number if at is None and not wanted.query else at)
        beside = [view_sample(dataset, each, most_shapes=0) for _, each in around.beside]
        film = list(zip((place for place, _ in around.beside), tiles_of(studio, dataset, beside), strict=True))
        image = dataset.manifest.image
        original = ""
        if sample.pictures and image is not None:
            is_bytes = image.encoding in ("original", "reference")
            is_there = studio.datasets.source_content(dataset, entry) is not None
            original = "source" if is_there else "bytes" if is_bytes else ""
        return ShownSample(
            sample=sample,
            schema=dataset.schema,
            neighbours=around,
            film=film,
            prediction=predicted.of([entry]).get(entry.number) if predicted is not None else None,
            model_name=predicted.model_name if predicted is not None else "",
            original=original,
            size=(entry.width_px, entry.height_px) if entry.width_px and entry.height_px else sample.size,
            fits=image is None or image.resize_mode in PLAIN_RESIZES or not (sample.shapes or sample.mask is not None),
            legend=_legend_of(studio, job_id, dataset, sample),
            has_neighbors=mapped is not None and mapped.place(entry.number) is not None,
        )


def chosen_places(studio: Studio, job_id: str, wanted: DatasetFilter) -> list[str]:
    """Return all samples that a filter leaves, as ``SPLIT/ROW``."""
    predicted = predicted_of(studio, job_id) if wanted.needs_predictions else None
    mapped = studio.maps.find(job_id, wanted.map_id) if wanted.needs_map else None
    return Listing(studio, job_id, wanted, predicted, mapped).places()


def _legend_of(studio: Studio, job_id: str, dataset: Dataset, sample: SampleView) -> list[Legend]:
    if sample.mask is None:
        return []
    shares = dict(mask_classes(studio, job_id, sample.entry.split, sample.entry.row, sample.mask))
    return [
        Legend(name=each.name, colour=each.colour, share=share)
        for each, share in zip(_legend(dataset.schema, shares), shares.values(), strict=True)
    ]


def _legend(schema: Any, numbers: Iterable[int]) -> list[Legend]:
    if "mask" not in schema.parts:
        return []
    given = schema.colours if len({tuple(colour) for colour in schema.colours}) > 1 else ()
    found = []
    for number in numbers:
        red, green, blue = given[number] if number < len(given) else MASK_PALETTE[(number - 1) % len(MASK_PALETTE)]
        is_drawn = number != 0 and number != schema.ignore_class
        name = "ignored" if number == schema.ignore_class else class_title(number, schema.class_names)
        found.append(Legend(name=name, colour=f"#{red:02x}{green:02x}{blue:02x}" if is_drawn else ""))
    return found


def legend_of_masks(schema: Any) -> list[Legend]:
    """Return the named classes of masks with their colors; none for data without masks."""
    return _legend(schema, range(len(schema.class_names)))
