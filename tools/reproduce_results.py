"""Reproduces results of ``docs/explanation/results.md``: trains each, and compares the score with its aim.

``python -m tools.reproduce_results DATA [names]``: ``DATA`` is a folder with the datasets under the names that
``RESULTS`` gives them. Each command is printed as one would type it. The last table is Markdown; the exit code is 1
where a score misses its aim.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

__all__ = ["RESULTS", "Result", "aim_of", "main", "reproduce", "write_prices"]


@dataclass(frozen=True, kw_only=True)
class Result:
    """One training whose score is compared with an aim.

    Args:
        name: of the result; the job folder is called so.
        source: of the data, below the folder of all data.
        create: words after ``dataset create SOURCE``; None where the source is trained on as it is.
        train: words after ``train --recipe --data DATA``.
        score: name of the score in the answer of ``ziggurat evaluate --json``.
        at_least: aim; None where the score has none or a low one is good.
        at_most: likewise.
        baseline: name of the baseline that the score is compared with; empty where ``at_least`` or ``at_most`` is all.
        tolerance: share by which the score may be worse than that of the baseline.
    """

    name: str
    source: str
    create: str | None = ""
    train: str = ""
    score: str = "accuracy"
    at_least: float | None = None
    at_most: float | None = None
    baseline: str = ""
    tolerance: float = 0.03


_PRICES: Final = "tabular/stock_goog_daily.csv"
_LAST_DAY: Final = date(2017, 2, 23)

RESULTS: Final = (
    Result(
        name="prices",
        source=_PRICES,
        create="--splits share",
        train="--framework tensorflow --network table_linear",
        score="rmse",
        baseline="linear",
        tolerance=0.01,
    ),
    Result(
        name="prices-by-time",
        source=_PRICES,
        create="--splits time --option time=day --option 'exclude=[\"day\"]'",
        train="--framework tensorflow --network table_linear",
        score="rmse",
        baseline="linear",
        tolerance=0.01,
    ),
    Result(
        name="titanic",
        source="tabular/titanic.csv",
        create="--splits share --option target=Survived --option task=classes",
        train="--framework tensorflow",
        baseline="boosting",
    ),
    Result(
        name="abalone",
        source="tabular/abalone.csv",
        create="--splits share",
        train="--framework tensorflow",
        score="rmse",
        baseline="boosting",
    ),
    Result(
        name="sms",
        source="text-sms-spam/sms.tsv",
        create="--splits share",
        train="--framework tensorflow --network text_cnn",
        at_least=0.97,
    ),
    Result(
        name="camvid",
        source="camvid",
        train="--framework tensorflow --network unet_small --batch-size 8 --set preprocessing.size=120x160",
        score="mean_iou",
        baseline="majority",
        at_least=0.1,
    ),
    Result(
        name="autoencoder",
        source="mnist",
        create=None,
        train="--framework tensorflow --network autoencoder --epochs 20",
        score="mse",
        at_most=0.015,
    ),
    Result(
        name="siamese16",
        source="mnist",
        create=None,
        train="--framework tensorflow --network siamese16 --epochs 10",
        score="nearest_neighbor_accuracy",
        at_least=0.97,
    ),
    Result(
        name="siamese",
        source="mnist",
        create=None,
        train="--framework tensorflow --network siamese --epochs 20",
        score="nearest_neighbor_accuracy",
        at_least=0.95,
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Reproduce what was named, or all; return 1 where one misses its aim."""
    names = [each.name for each in RESULTS]
    parser = argparse.ArgumentParser(prog="python -m tools.reproduce_results", description=__doc__)
    parser.add_argument("data", type=Path, help="folder of the datasets")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to train; all by default: {', '.join(names)}")
    parser.add_argument("--out", type=Path, help="a new folder for datasets and jobs; default: one that is deleted")
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.names) - set(names))
    if unknown:
        parser.error(f"there is no result {', '.join(unknown)}; there are {', '.join(names)}")
    wanted = [each for each in RESULTS if not given.names or each.name in given.names]
    rows = []
    if given.out:
        given.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="ziggurat-results-") as scratch:
        for each in wanted:
            rows.append(reproduce(each, given.data, given.out or Path(scratch)))
            print(_row(rows[-1]), flush=True)
    print("\n| result | score | aim | baseline | holds | seconds |\n|---|--:|--:|--:|---|--:|")
    for row in rows:
        print(_row(row))
    return int(not all(row["holds"] for row in rows))


def reproduce(result: Result, data: Path, out: Path) -> dict[str, Any]:
    """Train and evaluate; return the name, the score, the aim, whether it is reached, and the seconds of training.

    Args:
        result: what is trained.
        data: folder of the datasets.
        out: folder in which the dataset and the job are created.

    Raises:
        CalledProcessError: where a command fails.
    """
    source = data / result.source
    if result.source == _PRICES:
        source = write_prices(source, out / f"{result.name}.csv", has_days="time=" in (result.create or ""))
    if result.create is not None:
        dataset = out / f"{result.name}-data"
        _ziggurat("dataset", "create", str(source), "--out", str(dataset), *shlex.split(result.create))
        source = dataset
    job = out / result.name
    began = time.monotonic()
    _ziggurat("train", "--recipe", "--data", str(source), *shlex.split(result.train), "--out", str(job))
    seconds = time.monotonic() - began
    report = json.loads(_ziggurat("evaluate", str(job), "--json"))
    kept = job / "baselines.json"
    baselines = json.loads(kept.read_text())["baselines"] if kept.exists() else []
    scores = {each["name"]: each["scores"].get(result.score) for each in baselines if each["scores"]}
    score, is_high_good, aim = float(report[result.score]), *aim_of(result, scores)
    return {
        "name": result.name,
        "score": score,
        "aim": f"{'≥' if is_high_good else '≤'} {aim:.4g}",
        "baseline": scores.get(result.baseline),
        "holds": score >= aim if is_high_good else score <= aim,
        "seconds": seconds,
    }


def aim_of(result: Result, baselines: dict[str, float]) -> tuple[bool, float]:
    """Return whether a high score is good, and the aim.

    Args:
        result: whose aim is wanted.
        baselines: name of a baseline → its score.
    """
    if result.at_least is not None:
        return True, result.at_least
    if result.at_most is not None:
        return False, result.at_most
    is_high_good = result.score == "accuracy"
    allowed = 1 - result.tolerance if is_high_good else 1 + result.tolerance
    return is_high_good, baselines[result.baseline] * allowed


def write_prices(source: Path, file: Path, *, has_days: bool) -> Path:
    """Write daily prices with names of columns; return the file.

    Args:
        source: rows without a heading, newest first, with lines of comments.
        file: to write.
        has_days: whether the first column is a date: each row is the day before that of the row above, for the source
            has none.
    """
    with source.open(newline="") as opened:
        rows = [row for row in csv.reader(opened) if row and not row[0].startswith("#")]
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow([*(["day"] if has_days else []), "open", "high", "low", "volume", "close"])
        for number, row in enumerate(rows):
            day = [(_LAST_DAY - timedelta(days=number)).isoformat()] if has_days else []
            writer.writerow([*day, *row])
    return file


def _ziggurat(*words: str) -> str:
    print(f"$ ziggurat {shlex.join(words)}", flush=True)
    command = [sys.executable, "-m", "ziggurat", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
        done.check_returncode()
    return done.stdout


def _row(row: dict[str, Any]) -> str:
    baseline = "–" if row["baseline"] is None else f"{row['baseline']:.4g}"
    cells = row["name"], f"{row['score']:.4g}", row["aim"], baseline, "yes" if row["holds"] else "no"
    return f"| {' | '.join(cells)} | {row['seconds']:.0f} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
