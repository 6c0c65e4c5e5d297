"""Baselines beside a result: the values of scikit-learn, reasons where there are none, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import f1_score, mean_absolute_error, r2_score, root_mean_squared_error

from ziggurat.dataflow.table_preprocessing import TablePreprocessing
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.samples import Sample
from ziggurat.errors import DataError
from ziggurat.tasks.baselines import (
    Baseline,
    majority_class,
    mean_image_mse,
    table_classification_baselines,
    table_regression_baselines,
)

SHARED = Path(os.environ.get("ZIGGURAT_SHARED_DATA", Path(__file__).parents[4] / "shared" / "data"))
CATEGORIES = (0, 0, 4)


def rows(count: int, seed: int) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return np.column_stack([chance.normal(size=(count, 2)) * [1, 500], chance.integers(0, 4, count)])


def target(x: np.ndarray) -> np.ndarray:
    return 3 * x[:, 0] - 0.01 * x[:, 1] + np.array([5, 0, -5, 2])[x[:, 2].astype(int)] + 1


def by_name(found: list[Baseline]) -> dict[str, Baseline]:
    return {each.name: each for each in found}


def test_regression_scores_are_those_of_scikit_learn() -> None:
    train_x, val_x = rows(200, 0), rows(100, 1)
    noise = np.random.default_rng(2).normal(size=100)
    val_y = target(val_x) + noise
    found = by_name(table_regression_baselines(train_x, target(train_x), val_x, val_y, CATEGORIES))
    assert list(found) == ["mean", "linear", "boosting"]
    mean = np.full(100, target(train_x).mean())
    assert found["mean"].scores == pytest.approx(
        {
            "rmse": root_mean_squared_error(val_y, mean),
            "mae": mean_absolute_error(val_y, mean),
            "r2": r2_score(val_y, mean),
        }
    )
    assert found["linear"].scores["rmse"] == pytest.approx(
        np.sqrt(np.square(noise).mean())
    )  # the categories are one-hot
    assert found["boosting"].scores["rmse"] < 0.6 * found["mean"].scores["rmse"]
    assert not any(each.reason for each in found.values())


def test_several_targets_are_measured_together() -> None:
    x = rows(120, 3)
    y = np.column_stack([target(x), -target(x), np.ones(120)])
    found = by_name(table_regression_baselines(x[:80], y[:80], x[80:], y[80:], CATEGORIES))
    assert found["linear"].scores["rmse"] == pytest.approx(0, abs=1e-9)
    assert found["linear"].scores["r2"] == pytest.approx(1)
    one = by_name(table_regression_baselines(x[:80], y[:80, 2], x[80:], y[80:, 2], CATEGORIES))
    assert "r2" not in one["mean"].scores  # it is not defined for a target that never varies
    json.dumps([dict(each.scores) for each in found.values()])


def test_classification_finds_what_can_be_found() -> None:
    train_x, val_x = rows(400, 0), rows(200, 1)
    labels = [np.digitize(target(x), [-3, 4]) for x in (train_x, val_x)]
    found = by_name(table_classification_baselines(train_x, labels[0], val_x, labels[1], CATEGORIES))
    assert list(found) == ["majority", "linear", "boosting"]
    assert found["majority"].scores["accuracy"] == (labels[1] == np.bincount(labels[0]).argmax()).mean()
    assert found["linear"].scores["accuracy"] > 0.9
    assert found["boosting"].scores["accuracy"] > 0.8


def test_baselines_are_the_same_every_time() -> None:
    train_x, val_x = rows(400, 0), rows(50, 1)
    data: tuple[Any, ...] = (train_x, target(train_x), val_x, target(val_x), CATEGORIES)
    assert table_regression_baselines(*data) == table_regression_baselines(*data)
    data = (train_x, target(train_x) > 0, val_x, target(val_x) > 0, CATEGORIES)
    assert table_classification_baselines(*data) == table_classification_baselines(*data)


def test_one_class_alone_is_no_error() -> None:
    x, labels = rows(20, 0), np.zeros(20, int)
    found = by_name(table_classification_baselines(x, labels, x, labels, CATEGORIES))
    assert found["majority"].scores["accuracy"] == 1
    assert found["linear"] == Baseline(
        name="linear", title="logistic regression", reason="The training split has one class only."
    )
    assert not found["boosting"].scores


def test_many_categories_and_unseen_ones_are_no_error() -> None:
    chance = np.random.default_rng(0)
    x = chance.integers(0, 900, (1500, 1)).astype(float)
    found = table_regression_baselines(x[:1000], x[:1000, 0] % 7, x[1000:], x[1000:, 0] % 7, (1000,))
    assert not any(each.reason for each in found)
    assert found[1].scores["rmse"] < found[0].scores["rmse"]


def test_without_scikit_learn_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    x = rows(20, 0)
    found = by_name(table_regression_baselines(x, target(x), x, target(x), CATEGORIES))
    assert found["mean"].scores
    assert not found["linear"].scores
    assert "`scikit-learn` is not installed" in found["linear"].reason


def test_the_majority_class_is_the_most_frequent() -> None:
    labels = np.array([2, 1, 1, 2, 0, -1])
    assert majority_class(labels).scores["accuracy"] == 2 / 5
    found = majority_class(labels, np.array([1, 1, 0, 2, -1]))
    assert found.scores["accuracy"] == 1 / 2
    assert found.scores["macro_f1"] == pytest.approx(f1_score([1, 1, 0, 2], [1] * 4, average="macro", zero_division=0))


def test_the_mean_image_is_that_of_the_training_split() -> None:
    train = np.random.default_rng(0).integers(0, 256, (5, 4, 3, 1)).astype(np.uint8)
    val = np.random.default_rng(1).integers(0, 256, (7, 4, 3, 1)).astype(np.uint8)
    expected = np.square(val - train.astype(float).mean(axis=0)).mean()
    assert mean_image_mse(iter(train), iter(val)).scores["mse"] == pytest.approx(expected, rel=1e-12)
    with pytest.raises(DataError, match=r"have one shape.*\(4, 3, 1\) and \(2, 2\)"):
        mean_image_mse(train, [np.zeros((2, 2))])
    with pytest.raises(DataError, match="A split has no samples"):
        mean_image_mse(train, [])


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    x, y = rows(10, 0), np.zeros(10)
    with pytest.raises(DataError, match="same samples"):
        table_regression_baselines(x, y[:9], x, y, CATEGORIES)
    with pytest.raises(DataError, match="2 entries"):
        table_regression_baselines(x, y, x, y, (0, 0))
    with pytest.raises(DataError, match="A split has no samples"):
        table_regression_baselines(x, y, x[:0], y[:0], CATEGORIES)
    with pytest.raises(DataError, match="A split has no samples"):
        majority_class(np.array([-1, -1]))


def test_a_public_table_has_its_known_baselines() -> None:
    path = SHARED / "tabular" / "stock_goog_daily.csv"
    if not path.is_file():
        pytest.skip("needs the public file `tabular/stock_goog_daily.csv`")
    importer = TableImporter()
    scan = importer.scan(path, importer.checked_options({"header": "no"}))
    samples = [each for each in scan if isinstance(each, Sample)]
    table = TablePreprocessing.fit(scan.schema.columns, scan.schema.target, [json.loads(s.parts[0]) for s in samples])
    raw = np.stack([table.decode(json.loads(each.parts[0]), each.key) for each in samples])
    y = np.array([each.label for each in samples], float)
    found = by_name(table_regression_baselines(raw[:600], y[:600], raw[600:], y[600:], table.categories))
    model = LinearRegression().fit(raw[:600], y[:600])
    expected = root_mean_squared_error(y[600:], model.predict(raw[600:]))
    assert found["linear"].scores["rmse"] == pytest.approx(expected, rel=1e-6)
