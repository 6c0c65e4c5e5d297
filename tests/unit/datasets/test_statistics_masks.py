"""The share of pixels of each class in masks is that of a random choice of them, and what cannot be read is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from table_text_fakes import MemoryDataset

from ziggurat.dataflow.images import encode_image
from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry
from ziggurat.datasets.dataset import StoredSample
from ziggurat.datasets.samples import Sample
from ziggurat.datasets.statistics import statistics_lines, statistics_of
from ziggurat.records.schema import Schema

ROADS = Schema(kind="segmentation", class_names=("sky", "road", "car"), ignore_class=255)


class MaskedDataset(MemoryDataset):
    """Images with masks; its catalog is a file in ``folder``."""

    def __init__(self, folder: Path, masks: list[bytes | np.ndarray]) -> None:
        samples = [
            Sample(key=f"{number}.png", parts=(f"{number}.png", f"{number}-mask.png"), split="train")
            for number in range(len(masks))
        ]
        super().__init__(ROADS, samples)
        self.masks = masks
        with CatalogueWriter(folder / "catalogue.sqlite") as writer:
            for number, sample in enumerate(samples):
                writer.add(replace(Entry.of_sample(number, sample), row=number))
            writer.note("schema", ROADS.as_json())
        self.opened = Catalogue(folder / "catalogue.sqlite")

    @property
    def catalogue(self) -> Catalogue:
        return self.opened

    def close(self) -> None:
        self.opened.close()

    def sample(self, split: str, row: int) -> StoredSample:
        return StoredSample(key=f"{row}.png", split=split, row=row, parts=(b"", self.masks[row]), label=None)


def test_shares_of_pixels_and_of_pictures(tmp_path: Path) -> None:
    first = np.array([[0, 0, 1, 1], [0, 0, 255, 255]], np.uint8)
    second = np.full((2, 4), 1, np.uint8)
    with MaskedDataset(tmp_path, [encode_image(first, "png"), second, b"broken"]) as masks:
        found = statistics_of(masks)
    assert found.masks is not None
    assert (found.masks.looked_at, found.masks.unreadable) == (2, 1)
    assert [(number, name) for number, name, _, _ in found.masks.shares] == [(0, "sky"), (1, "road"), (2, "car")]
    np.testing.assert_allclose([share for _, _, share, _ in found.masks.shares], [4 / 14, 10 / 14, 0])
    assert [pictures for _, _, _, pictures in found.masks.shares] == [0.5, 1.0, 0.0]
    assert statistics_lines(found)[2:5] == [
        "class  of pixels  of images",
        "sky       28.57%  50.0%",
        "road      71.43%  100.0%",
    ]
    assert "ignored, no class: number 255, 12.50% of all pixels" in statistics_lines(found)


def test_a_choice_of_masks_is_said(tmp_path: Path) -> None:
    with MaskedDataset(tmp_path, [np.zeros((2, 2), np.uint8)] * 9) as masks:
        found = statistics_of(masks, masks=4)
    assert found.masks is not None
    assert found.masks.looked_at == 4
    assert found.notes == ("Shares of pixels are those of 4 random samples of 9.",)


def test_a_scan_knows_no_masks_yet(tmp_path: Path) -> None:
    with MaskedDataset(tmp_path, []) as masks:
        assert statistics_of(masks.catalogue).masks is None
