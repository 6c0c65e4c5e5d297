"""Shows that a map is made of every kind of dataset, stops when it is told to, and says what is missing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from tests.unit.datasets.small_datasets_for_versions import ANIMALS, PNG, png, write_dataset
from tests.unit.datasets.small_task_datasets import small_dataset
from ziggurat.errors import DataError, MissingDependencyError
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.specs import EmbedSpec
from ziggurat.worker.commands.embedding import embed_dataset
from ziggurat.worker.event_watch import EventWatch


class Watched:
    """Takes progress, and asks for the end in a stage.

    Args:
        stop_in: stage; empty for none.
    """

    def __init__(self, stop_in: str = "") -> None:
        self.stages: list[str] = []
        self._stop_in = stop_in

    def progress(self, stage: str, _done: int, _total: int) -> None:
        if stage not in self.stages:
            self.stages.append(stage)

    def stop_requested(self) -> bool:
        return self._stop_in in self.stages


def made(dataset: Path | str, folder: Path, watch: Watched | None = None, **fields: Any) -> tuple[str | None, Any]:
    """Make a map; return what was said, and its results: summary, and arrays by name."""
    spec = EmbedSpec(dataset=str(dataset), **{"features": "own", "tsne": False, **fields})
    said = embed_dataset(spec, JobFolder(folder), cast(EventWatch, watch or Watched()))
    files = ResultFiles(JobFolder(folder).results)
    if not files.summary.is_file():
        return said, None
    arrays = {path.stem: np.load(path) for path in files.path.glob("*.npy")}
    return said, (json.loads(files.summary.read_text()), arrays)


def striped(number: int) -> np.ndarray:
    """Return an image of a class that pixels tell: red, green or blue."""
    rng = np.random.default_rng(number)
    return (150 * np.eye(3)[number % 3] + rng.integers(0, 80, (6, 8, 3))).astype(np.uint8)


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    """Return a dataset of 45 images, one with the label of another class, one twice."""
    samples = [(f"{n:02d}.png", (png(striped(n)),), n % 3) for n in range(44)]
    samples[4] = (samples[4][0], samples[4][1], 0)
    samples.append(("twin.png", samples[20][1], 2))
    write_dataset(tmp_path / "data", {"train": samples[:30], "val": samples[30:]}, ANIMALS, image=PNG).close()
    return tmp_path / "data"


def test_features_that_tell_no_classes_suspect_no_label(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    samples = [(f"{n:02d}.png", (png(rng.integers(0, 256, (6, 8, 3)).astype(np.uint8)),), n % 3) for n in range(90)]
    write_dataset(tmp_path / "data", {"train": samples}, ANIMALS, image=PNG).close()
    _, (summary, arrays) = made(tmp_path / "data", tmp_path / "job")
    assert summary["labels"]["right"] < 45
    assert summary["labels"]["candidates"] == len(arrays["candidates"]) == 0


def test_a_map_has_places_neighbors_and_candidates(animals: Path, tmp_path: Path) -> None:
    said, (summary, arrays) = made(animals, tmp_path / "job")
    assert said is not None
    assert said.startswith("45 samples, 45 features; 1 label-error candidate; ")
    assert arrays["numbers"].tolist() == list(range(45))
    assert arrays["pca"].shape == (45, 2)
    assert arrays["candidates"].tolist() == [4]
    assert arrays["predicted"][4] == 1
    assert arrays["near"][:2].tolist() == [20, 44]
    assert arrays["neighbor"][[20, 44]].tolist() == [44, 20]
    assert summary["features"] == {"source": "own", "name": "pixels", "dimension": 45}
    assert (summary["count"], summary["total"], summary["skipped"], summary["seed"]) == (45, 45, 0, 0)
    assert summary["labels"] == {"folds": 5, "labeled": 45, "right": 44, "candidates": 1}


def test_equal_specs_give_equal_maps(animals: Path, tmp_path: Path) -> None:
    _, (_, first) = made(animals, tmp_path / "one", seed=7)
    _, (_, second) = made(animals, tmp_path / "two", seed=7)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)


@pytest.mark.parametrize("kind", ["rows with a value", "rows with a class", "texts", "masks", "shapes", "labels"])
def test_every_kind_of_dataset_has_features_of_its_own(kind: str, tmp_path: Path) -> None:
    _, (summary, arrays) = made(small_dataset(kind, tmp_path / "data"), tmp_path / "job", folds=2)
    assert arrays["features"].shape[0] == 120
    assert np.isfinite(arrays["features"]).all()
    assert bool(summary["labels"]) == (kind in ("rows with a class", "texts"))
    if summary["labels"]:
        assert summary["labels"]["right"] > 100


def test_some_samples_of_a_large_dataset_are_chosen(animals: Path, tmp_path: Path) -> None:
    _, (summary, arrays) = made(animals, tmp_path / "job", limit=12, seed=1)
    assert len(arrays["numbers"]) == 12
    assert (np.diff(arrays["numbers"]) > 0).all()
    assert (summary["count"], summary["total"]) == (12, 45)
    _, (_, other) = made(animals, tmp_path / "other", limit=12, seed=2)
    assert arrays["numbers"].tolist() != other["numbers"].tolist()


def test_a_sample_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    samples = [(f"{n}.png", (png(striped(n)),), n % 3) for n in range(12)]
    samples[5] = ("5.png", (b"no image",), 2)
    write_dataset(tmp_path / "data", {"train": samples}, ANIMALS, image=PNG).close()
    said, (summary, arrays) = made(tmp_path / "data", tmp_path / "job")
    assert arrays["numbers"].tolist() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert summary["skipped"] == 1
    assert said is not None
    assert said.endswith("1 could not be read")


def test_a_map_needs_samples(tmp_path: Path) -> None:
    samples = [(f"{n}.png", (b"no image",), 0) for n in range(3)]
    write_dataset(tmp_path / "data", {"train": samples}, ANIMALS, image=PNG).close()
    with pytest.raises(DataError, match="No sample"):
        made(tmp_path / "data", tmp_path / "job")


@pytest.mark.parametrize("stage", ["embed", "compare", "place"])
def test_a_stop_leaves_no_results_and_a_new_attempt_makes_them(animals: Path, tmp_path: Path, stage: str) -> None:
    if stage == "place":
        pytest.importorskip("openTSNE")
    said, found = made(animals, tmp_path / "job", Watched(stage), tsne=stage == "place")
    assert (said, found) == (None, None)
    said, found = made(animals, tmp_path / "job")
    assert said is not None
    assert found is not None


def test_tsne_is_asked_for_before_the_work(animals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    watch = Watched()
    with pytest.raises(MissingDependencyError, match=r"ziggurat\[maps\]"):
        made(animals, tmp_path / "job", watch, tsne=True)
    assert watch.stages == ["load"]


def test_tsne_places_the_samples(animals: Path, tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    watch = Watched()
    _, (summary, arrays) = made(animals, tmp_path / "job", watch, tsne=True, perplexity=40)
    assert arrays["tsne"].shape == (45, 2)
    assert summary["tsne"]["perplexity"] == pytest.approx(14.67)  # a third of the others
    assert watch.stages == ["load", "embed", "compare", "place"]
