"""Preprocessing of public tables: their shapes, and least squares by plain gradient descent on whitened numbers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from table_rows import encoded, public_table

from ziggurat.dataflow.table_preprocessing import TablePreprocessing


def descended_rmse(x: np.ndarray, y: np.ndarray, *, steps: int = 300, rate: float = 0.1) -> float:
    """Return the RMSE of a linear network after plain gradient descent on all rows, in float32."""
    goal = ((y - y.mean()) / y.std()).astype(np.float32)
    weights, bias = np.zeros(x.shape[1], np.float32), np.float32(0)
    for _ in range(steps):
        error = x @ weights + bias - goal
        weights -= np.float32(2 * rate / len(x)) * (error @ x)
        bias -= np.float32(2 * rate) * error.mean()
    return float(np.sqrt(np.square(x @ weights + bias - goal, dtype=np.float64).mean()) * y.std())


def test_whitened_prices_reach_the_least_squares() -> None:
    schema, rows, y = public_table(
        "stock_goog_daily.csv", header="no", names=["Open", "High", "Low", "Volume", "Close"]
    )
    assert schema.target == "Close"
    raw = np.array([row[:4] for row in rows], np.float64)
    best = float(np.sqrt(np.square(LinearRegression().fit(raw, y).predict(raw) - y).mean()))
    table = TablePreprocessing.fit(schema.columns, schema.target, rows, numbers="whiten")
    assert (table.shape, table.categories) == ((4,), (0, 0, 0, 0))
    assert descended_rmse(encoded(table, rows), y) == pytest.approx(best, rel=0.01)
    plain = TablePreprocessing.fit(schema.columns, schema.target, rows)
    assert descended_rmse(encoded(plain, rows), y) > 1.2 * best  # why whitening is there


def test_titanic_has_ages_that_are_missing() -> None:
    schema, rows, labels = public_table("titanic.csv")
    table = TablePreprocessing.fit(schema.columns, schema.target, rows)
    assert set(table.left_out) == {"PassengerId", "Name", "Ticket", "Cabin"}
    assert table.feature_names == ("Pclass", "Age", "Age (missing)", "SibSp", "Parch", "Fare", "Sex", "Embarked")
    assert table.categories == (0, 0, 0, 0, 0, 0, 3, 4)
    x = encoded(table, rows)
    assert x[:, 2].sum() == 177
    model = HistGradientBoostingClassifier(random_state=0).fit(x[:600], labels[:600])
    assert model.score(x[600:], labels[600:]) > 0.78


def test_abalone_has_one_category() -> None:
    schema, rows, _ = public_table("abalone.csv", header="no", task="number")
    table = TablePreprocessing.fit(schema.columns, schema.target, rows)
    assert table.shape == (8,)
    assert table.categories == (*[0] * 7, 4)
    assert encoded(table, rows).shape == (4177, 8)
    assert not table.left_out


def test_bikeshare_has_the_hour_of_each_row() -> None:
    schema, rows, y = public_table("bikeshare.csv", exclude=["casual", "registered"])
    assert schema.target == "count"
    table = TablePreprocessing.fit(schema.columns, schema.target, rows, numbers="whiten")
    x = encoded(table, rows).astype(np.float64)
    hourless = np.delete(x, [place for place, name in enumerate(table.feature_names) if "day" in name], axis=1)
    assert LinearRegression().fit(x, y).score(x, y) > LinearRegression().fit(hourless, y).score(hourless, y)
