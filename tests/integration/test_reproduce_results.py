"""Results of the documentation are reproduced by a command: here one of a table that the test writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tools.reproduce_results import RESULTS, Result, aim_of, main, reproduce, write_prices

LINE = Result(
    name="line",
    source="line.csv",
    create="--splits share",
    train="--framework tensorflow --network table_linear --epochs 20",
    score="rmse",
    baseline="linear",
)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_result_is_compared_with_its_baseline(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 2))
    targets = 3 * values[:, 0] - values[:, 1] + random.normal(scale=0.1, size=400)
    rows = "".join(f"{a:.6f},{b:.6f},{y:.6f}\n" for (a, b), y in zip(values, targets, strict=True))
    (tmp_path / "line.csv").write_text("a,b,y\n" + rows)
    found = reproduce(LINE, tmp_path, tmp_path)
    assert found["holds"]
    assert 0.08 < found["baseline"] < 0.12
    assert found["score"] <= 1.03 * found["baseline"]
    assert found["aim"].startswith("≤ 0.1")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"at_least": 0.9, "baseline": ""}, (True, 0.9)),
        ({"at_most": 0.015, "baseline": ""}, (False, 0.015)),
        ({"tolerance": 0.01}, (False, 2.02)),
        ({"score": "accuracy", "tolerance": 0.03}, (True, 1.94)),
    ],
)
def test_the_aim_is_a_figure_or_a_share_of_the_baseline(changes: dict, expected: tuple[bool, float]) -> None:
    assert aim_of(replace(LINE, **changes), {"linear": 2.0}) == pytest.approx(expected)


def test_each_result_has_an_aim() -> None:
    assert len({each.name for each in RESULTS}) == len(RESULTS)
    for each in RESULTS:
        assert each.baseline or each.at_least is not None or each.at_most is not None


def test_prices_get_names_and_days(tmp_path: Path) -> None:
    (tmp_path / "source.csv").write_text("# Open,High,Low,Volume,Close\r\n3,4,2,100,3\r\n1,2,1,90,2\r\n")
    bare = write_prices(tmp_path / "source.csv", tmp_path / "bare.csv", has_days=False)
    assert bare.read_text().split() == ["open,high,low,volume,close", "3,4,2,100,3", "1,2,1,90,2"]
    dated = write_prices(tmp_path / "source.csv", tmp_path / "dated.csv", has_days=True)
    assert dated.read_text().split()[1:] == ["2017-02-23,3,4,2,100,3", "2017-02-22,1,2,1,90,2"]


def test_an_unknown_name_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path), "titanik"])
    assert "there is no result titanik; there are prices, " in capsys.readouterr().err
