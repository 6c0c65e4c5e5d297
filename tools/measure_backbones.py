"""Measures what a pretrained backbone gives a detector or a U-Net: the same network from scratch beside it.

``python -m tools.measure_backbones DATA``: ``DATA`` is a dataset of boxes or masks, made by ``ziggurat dataset
create``. For each seed, two fresh workspaces train the recommended network in as many steps: once by its recipe, which
starts from pretrained weights, and once from scratch. What decides is the metric of the task (mAP 50:95, mean IoU), at
the best checkpoint of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tools.measure_recipe import train_by
from ziggurat.workspace.recipes import Recipe, recommend
from ziggurat.workspace.training_checks import known_data

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Measure; print a line of JSON for each training, and the means."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure_backbones")
    parser.add_argument("data", help="folder of a dataset")
    parser.add_argument("--seeds", type=int, default=3, help="number of trainings of each kind")
    parser.add_argument("--epochs", type=int, default=0, help="of each training; default: those of the recipe")
    parser.add_argument("--size", default="", help="height and width of the images, such as 120x160")
    parser.add_argument("--backend", default="torch", help="`torch` or `tensorflow`")
    given = parser.parse_args(arguments)
    recipe = recommend(known_data(given.data, {}), network=f"{given.backend}/")
    if recipe is None or "pretrained" not in recipe.fields:
        raise SystemExit(f"There is no recipe with pretrained weights for {given.data}.")
    fields: dict[str, Any] = {"epochs": given.epochs or recipe.fields["epochs"]}
    if given.size:
        fields["preprocessing.size"] = [int(side) for side in given.size.split("x")]
    elif "preprocessing.size" in recipe.fields:
        fields["preprocessing.size"] = recipe.fields["preprocessing.size"]
    scratch = recommend(known_data(given.data, {}), network=recipe.network, weights=())
    assert scratch is not None
    found: dict[str, list[float]] = {}
    for seed in range(given.seeds):
        for what, tried in (("pretrained", recipe), ("from scratch", scratch)):
            row = train_by(_for_all_epochs(tried, fields), given.data, seed)
            found.setdefault(what, []).append(row.value)
            seconds = {"cpu_s": round(row.cpu_s, 1), "wall_s": round(row.wall_s, 1)}
            line = {"network": recipe.network, "seed": seed, "what": what, "metric": row.metric}
            print(json.dumps({**line, "value": round(row.value, 4), **seconds}), flush=True)
    print(json.dumps({"mean": {what: round(statistics.fmean(values), 4) for what, values in found.items()}}))
    return 0


def _for_all_epochs(recipe: Recipe, fields: dict[str, Any]) -> Recipe:
    """Return a recipe with other fields, and without an early end."""
    kept = {path: value for path, value in recipe.fields.items() if not path.startswith("early_stopping")}
    return replace(recipe, fields={**kept, **fields})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
