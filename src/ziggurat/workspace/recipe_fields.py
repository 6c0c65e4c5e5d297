"""Recommended recipe of a training, and the fields of a spec that it fills: those that were not given."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ziggurat.specs import TrainSpec, assign, describe_fields
from ziggurat.workspace.recipes import Recipe, recommend
from ziggurat.workspace.training_checks import known_data

__all__ = ["fill_recipe", "local_recipe"]


def local_recipe(source: str, network: str | None) -> Recipe | None:
    """Return the recipe for data of this machine; see ``recommend``."""
    return recommend(known_data(source, {}), network=network)


def fill_recipe(content: dict[str, Any], paths: Collection[str], recipe: Recipe) -> dict[str, Any]:
    """Put a recipe into the fields of a spec that were not given.

    Args:
        content: decoded spec; it is changed.
        paths: of the fields that were given besides, such as ``schedule.gamma``.
        recipe: recommended for the data.

    Returns:
        Path → value of the fields that were filled.
    """
    given = {*paths, *content}
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    chosen: dict[str, Any] = {}
    if recipe.network and not {"network", "network.name"} & given:
        backend, _, name = recipe.network.rpartition("/")
        chosen["network"] = name
        if "backend" not in given:
            chosen["backend"] = backend
    tops = {path.partition(".")[0] for path in given}
    # The rate of a recipe with an optimizer is one of that optimizer, and means nothing for another.
    unfit = {"learning_rate"} if "optimizer" in tops and "optimizer.name" in recipe.fields else set[str]()
    for path, value in recipe.fields.items():
        if path in unfit:
            continue
        top = path.partition(".")[0]
        # A field of which a part was given stays as the user wants it, except for required parts.
        field = fields.get(path)
        is_needed = field is not None and field.required and not {top, path} & given
        if top not in tops or is_needed:
            chosen[path] = value
    for path, value in chosen.items():
        assign(content, path, value, fields)
    return chosen
