"""Measures the recommended recipe for photographs: accuracy and CPU time from the first click to the result.

``python -m tools.measure_recipe DATA``: ``DATA`` has the folders ``train`` and ``val``, in each of which is a folder of
images for each class. For each seed, a fresh workspace gets a job with the recommended recipe, as a user makes it:
weights are added, features computed, the last layer fitted, and the best checkpoint kept. Beside it stand, where they
are asked for, scikit-learn's logistic regression on the same features (``--sklearn``, the default), more epochs that
train all layers behind the fit (``--more EPOCHS``), and the recipe from scratch (``--scratch EPOCHS``).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ziggurat.entities.best_checkpoint import best_checkpoint
from ziggurat.layout import JobFolder
from ziggurat.settings import load_settings
from ziggurat.specs import TrainSpec, assign, describe_fields, parse_spec
from ziggurat.worker.build import data_options
from ziggurat.worker.commands.trained import open_network, open_trained_job
from ziggurat.worker.pipeline import Pipeline
from ziggurat.worker.source import open_source
from ziggurat.workspace.recipes import Recipe, recommend
from ziggurat.workspace.training_checks import known_data
from ziggurat.workspace.workspace import open_folders

__all__ = ["Measured", "main", "train_by"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a training took and reached.

    Args:
        metric: by which the training is judged, such as ``validation_accuracy``.
        value: of it at the best checkpoint.
        cpu_s: seconds of CPU time of this process and all of its children, from the recipe to the end.
        wall_s: seconds that passed.
        folder: of the job.
    """

    metric: str
    value: float
    cpu_s: float
    wall_s: float
    folder: Path


def main(arguments: Sequence[str]) -> int:
    """Measure; print a line of JSON for each training, and the means."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure_recipe")
    parser.add_argument("data", help="folder with `train` and `val`")
    parser.add_argument("--seeds", type=int, default=3, help="number of trainings of each kind")
    parser.add_argument("--sklearn", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--more", type=int, default=0, help="epochs of all layers behind the fit; 0 for none")
    parser.add_argument("--scratch", type=int, default=0, help="epochs from scratch; 0 for none")
    parser.add_argument("--backend", default="", help="`torch` or `tensorflow`; default: the recommended one")
    given = parser.parse_args(arguments)
    network = f"{given.backend}/" if given.backend else None
    found: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        rows = {"recipe": train_by(_recipe(given.data, network), given.data, seed)}
        if given.sklearn:
            rows["scikit-learn"] = _by_sklearn(rows["recipe"])
        if given.more:
            more = {"epochs": 1 + given.more}
            rows["all layers"] = train_by(_recipe(given.data, network, **more), given.data, seed)
        if given.scratch:
            scratch = {"epochs": given.scratch}
            rows["from scratch"] = train_by(_recipe(given.data, network, weights=(), **scratch), given.data, seed)
        for name, row in rows.items():
            found.setdefault(name, []).append(row.value)
            seconds = {"cpu_s": round(row.cpu_s, 1), "wall_s": round(row.wall_s, 1)}
            print(json.dumps({"seed": seed, "what": name, "accuracy": round(row.value, 4), **seconds}), flush=True)
    means = {name: round(statistics.fmean(values), 4) for name, values in found.items()}
    print(json.dumps({"mean accuracy": means}))
    return 0


def _recipe(source: str, network: str | None, *, weights: Sequence[str] | None = None, **fields: Any) -> Recipe:
    """Return the recommended recipe with some other fields."""
    recipe = recommend(known_data(source, {}), network=network, weights=weights)
    if recipe is None:
        raise SystemExit(f"There is no recipe for {source}.")
    kept: Mapping[str, Any] = {**recipe.fields, **fields}
    if weights is not None:  # all epochs are measured
        kept = {path: value for path, value in kept.items() if not path.startswith("early_stopping")}
    return replace(recipe, fields=kept)


def train_by(recipe: Recipe, source: str, seed: int) -> Measured:
    """Train by a recipe in a fresh workspace, in a worker as a user's job has it.

    Args:
        recipe: of the data.
        source: folder of the data.
        seed: of the training.
    """
    backend, _, name = recipe.network.rpartition("/")
    content: dict[str, Any] = {"kind": "train", "version": 1, "backend": backend, "network": name, "data": source}
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    for path, value in recipe.fields.items():
        assign(content, path, value, fields)
    spec = parse_spec({**content, "seed": seed})
    scratch = tempfile.mkdtemp(prefix="ziggurat-recipe-")
    settings = load_settings({"ZIGGURAT_WORKSPACE": scratch, "HOME": scratch, "ZIGGURAT_PROGRESS": "none"})
    workspace = open_folders(settings)
    began_s, cpu_s = time.monotonic(), _cpu_s()
    folder = workspace.jobs.create(spec)
    code = workspace.jobs.attend(str(folder)).wait()
    if code:
        raise SystemExit(f"The training in {folder} ended with the code {code}; see its log.")
    best = best_checkpoint(JobFolder(folder))
    if best is None or best.value is None:
        raise SystemExit(f"The training in {folder} was not validated; see its log.")
    seconds = {"cpu_s": _cpu_s() - cpu_s, "wall_s": time.monotonic() - began_s}
    return Measured(metric=best.tag, value=best.value, **seconds, folder=folder)


def _by_sklearn(trained: Measured) -> Measured:
    """Return what scikit-learn's logistic regression reaches on the features of the network of a job."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    began_s, cpu_s = time.monotonic(), _cpu_s()
    job = open_trained_job(trained.folder)
    source = open_source(job.spec.data.source, job.spec.data.options, job.spec.seed, JobFolder(trained.folder))
    splits = {}
    with open_network(job) as network:
        for split in ("train", "val"):
            with Pipeline(source, data_options(job.spec), job.context).evaluation(split) as flow:
                rows = [(network.features(batch[0]), batch[1]) for batch in flow]  # pyright: ignore
            splits[split] = [np.concatenate(part) for part in zip(*rows, strict=True)]
    strengths: Any = np.logspace(-4, 0, 5)
    model = make_pipeline(
        StandardScaler(), LogisticRegressionCV(Cs=strengths, cv=5, max_iter=300, scoring="neg_log_loss")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model.fit(*splits["train"])
    x, y = splits["val"]
    accuracy = float(np.mean(model.predict(x) == y))
    return replace(trained, value=accuracy, cpu_s=_cpu_s() - cpu_s, wall_s=time.monotonic() - began_s)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of its children that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
