"""Measurement of maps on real datasets: how long they take, how soon a page draws them, which label errors they find.

``python -m tools.measure_maps speed FOLDER`` makes a dataset of FOLDER and a map of 50,000 samples by own features, and
opens the page in a browser. ``python -m tools.measure_maps labels NAME=FOLDER ...`` plants label errors, at random and
between the two classes that are confused most, and compares the candidates of maps with those of cleanlab.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from bench.parts.chromium import FLAGS, path_of_chromium
from bench.parts.report import machine
from ziggurat.client import Client
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.embeddings.label_candidates import label_candidates
from ziggurat.datasets.embeddings.projections import principal_components
from ziggurat.engine.linear_head import held_out_probabilities
from ziggurat.layout import JobFolder, ResultFiles
from ziggurat.records.manifest import ImageForm
from ziggurat.specs import EmbedSpec
from ziggurat.worker.commands.embedding import embed_dataset
from ziggurat.worker.event_watch import EventWatch

__all__ = ["main"]

_POLL_S: Final = 0.5
_SHARE: Final = 0.05
"""Share of the labels that are made wrong: of all samples, or of those of the two classes."""

_VISITS: Final = 5


class _Quiet:
    def progress(self, _stage: str, _done: int, _total: int) -> None:
        pass

    def stop_requested(self) -> bool:
        return False


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure_maps", description=(__doc__ or "").partition("\n")[0]
    )
    commands = parser.add_subparsers(dest="what", required=True)
    speed = commands.add_parser("speed", help="minutes of the features and of t-SNE, seconds of the page")
    speed.add_argument("folder", type=Path)
    speed.add_argument("--limit", type=int, default=50_000, help="samples of the map")
    labels = commands.add_parser("labels", help="recall and precision on planted errors")
    labels.add_argument("sets", nargs="+", metavar="NAME=FOLDER")
    labels.add_argument("--features", default="own", choices=("own", "backbone"), help="of images")
    labels.add_argument("--workspace", type=Path, help="with the weights of the backbone")
    labels.add_argument("--limit", type=int, default=5000, help="samples of each dataset")
    given = parser.parse_args(arguments)
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        if given.what == "speed":
            _measure_speed(given.folder, Path(scratch), given.limit)
        else:
            for text in given.sets:
                name, _, folder = text.partition("=")
                _measure_labels(name, Path(folder), Path(scratch) / name, given)
    return 0


# ---- speed


def _measure_speed(folder: Path, scratch: Path, limit: int) -> None:
    workspace = scratch / "workspace"
    command = [sys.executable, "-m", "ziggurat", "--workspace", str(workspace)]
    with subprocess.Popen([*command, "up", "--port", "0", "--no-open", "--json"], stdout=subprocess.PIPE) as studio:
        assert studio.stdout is not None
        address = json.loads(studio.stdout.readline())["address"].rstrip("/")
        try:
            subprocess.run([*command, "settings", "allow", str(folder.resolve())], check=True, capture_output=True)
            _speed_of(Client(address), address, folder.resolve(), limit)
        finally:
            studio.send_signal(signal.SIGTERM)


def _speed_of(client: Client, address: str, folder: Path, limit: int) -> None:
    dataset = _ended(client, client.datasets.create({"source": str(folder), "name": "measured"})["id"])
    job = _ended(client, client.datasets.create_map(dataset["id"], features="own", limit=limit)["id"])
    summary = json.loads(ResultFiles(JobFolder(Path(job["folder"])).results).summary.read_text(encoding="utf-8"))
    print(f"{summary['count']:,} samples, {summary['features']['dimension']} features")
    for stage, seconds in summary["seconds"].items():
        print(f"  {stage:9} {seconds / 60:6.2f} min")
    marks = _page_marks(f"{address}/datasets/{dataset['id']}/explore?view=map")
    visits = ", ".join(f"{each:.2f}" for each in marks)
    print(f"  page      {visits} s until the map is drawn; the first visit with an empty cache")


def _ended(client: Client, job_id: str) -> dict[str, Any]:
    while (job := client.job(job_id))["state"] not in ("done", "failed", "stopped"):
        time.sleep(_POLL_S)
    if job["state"] != "done":
        raise SystemExit(f"{job['name']}: {job['state']}, {job['reason']}")
    return job


def _page_marks(address: str) -> list[float]:
    """Return the seconds from the request of the page to its own mark, once for each visit."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path_of_chromium(), args=list(FLAGS))
        page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        for _ in range(_VISITS):
            page.goto(address)
            # Text is no program to a page of the studio, so Playwright cannot wait for a condition there.
            while not page.evaluate("performance.getEntriesByName('map').length"):
                page.wait_for_timeout(_POLL_S * 100)
            found.append(page.evaluate("performance.getEntriesByName('map')[0].startTime") / 1000)
        browser.close()
    return found


# ---- label errors


def _measure_labels(name: str, source: Path, folder: Path, given: argparse.Namespace) -> None:
    jobs = (given.workspace or folder) / "jobs"
    create_dataset(CreationRequest(name=name, source=str(source), image=ImageForm(encoding="")), folder / "data")
    with Dataset(folder / "data") as dataset:
        is_image = dataset.manifest.image is not None
        classes = len(dataset.schema.class_names)
        labels = dataset.catalogue.column("class")
    features = given.features if is_image else "own"
    job = JobFolder(jobs / f"measured-{name}-{int(time.time())}")
    job.path.mkdir(parents=True)
    spec = EmbedSpec(dataset=str(folder / "data"), features=features, tsne=False, folds=0, limit=given.limit)
    embed_dataset(spec, job, cast(EventWatch, _Quiet()))
    files = ResultFiles(job.results)
    labels = labels[np.load(files.array("numbers"))]
    inputs = np.asarray(np.load(files.array("features")), np.float32)
    if features == "own":
        inputs = principal_components(inputs, max(2, len(labels) // 10))[0]
    clean = held_out_probabilities(inputs, labels, classes, seed=0)
    right = float((clean.argmax(axis=1) == labels).mean())
    print(f"\n{name}: {len(labels):,} samples, {classes} classes, {features} features, {right:.1%} right by 5 folds")
    print("  planted                          by          found  recall  precision  recall in the first so many")
    for title, plant in (("at random", _at_random), ("between the two most confused", _between_two)):
        wrong, where = plant(labels, clean, np.random.default_rng(0))
        probabilities = held_out_probabilities(inputs, wrong, classes, seed=0)
        for by, ranked in (
            ("map", label_candidates(probabilities, wrong)),
            ("cleanlab", _by_cleanlab(probabilities, wrong)),
        ):
            _say(f"{title} ({len(where)})", by, ranked, where)
        share = len(where) / len(labels)
        print(f"  {title:32} {'random order':12} {len(where):4}  {share:6.1%}  {share:9.1%}  {share:6.1%}")


def _say(title: str, by: str, ranked: np.ndarray, where: np.ndarray) -> None:
    hits = np.isin(ranked, where)
    first = hits[: len(where)].sum() / len(where)
    recall, precision = hits.sum() / len(where), hits.mean() if len(hits) else 0.0
    print(f"  {title:32} {by:12} {len(ranked):4}  {recall:6.1%}  {precision:9.1%}  {first:6.1%}")


Planting = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def _at_random(labels: np.ndarray, clean: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of which some are of any other class, and which."""
    where = random.choice(len(labels), max(1, round(_SHARE * len(labels))), replace=False)
    wrong = labels.copy()
    wrong[where] = (labels[where] + random.integers(1, clean.shape[1], len(where))) % clean.shape[1]
    return wrong, where


def _between_two(labels: np.ndarray, clean: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of which some of the two classes that are confused most are swapped, and which."""
    classes = clean.shape[1]
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (labels, clean.argmax(axis=1)), 1)
    np.fill_diagonal(confusion, 0)
    one, other = np.unravel_index((confusion + confusion.T).argmax(), confusion.shape)
    among = np.flatnonzero((labels == one) | (labels == other))
    where = random.choice(among, max(1, round(_SHARE * len(among))), replace=False)
    wrong = labels.copy()
    wrong[where] = one + other - labels[where]
    return wrong, where


def _by_cleanlab(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    from cleanlab.filter import find_label_issues

    found = find_label_issues(labels, probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
    return np.asarray(found, np.int64)


if __name__ == "__main__":
    sys.exit(main())
