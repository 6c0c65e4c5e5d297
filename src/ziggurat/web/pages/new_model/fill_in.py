"""Automatic values of the new-model form: the recommended recipe, the rate of the network, and a name.

A field is filled in as long as it holds what the page put there before; what a user typed stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities.backend_info import StandardNetwork, backend_infos
from ziggurat.entities.pretrained_weights import weights_name
from ziggurat.errors import ZigguratError
from ziggurat.web.forms import json_or_text
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm, field_id, first_form, model_fields, text_of
from ziggurat.workspace.fine_tuning import FINE_TUNE_SUMMARY, fine_tune_fields
from ziggurat.workspace.recipes import Recipe
from ziggurat.workspace.studio import Studio

__all__ = [
    "RecipeState",
    "TuningState",
    "apply_fine_tuning",
    "apply_recipe",
    "fill_in",
    "filled_fields",
    "put_fields",
    "put_values",
    "recipe_state",
    "standard_network",
    "tuning_state",
    "undo_fine_tuning",
    "undo_recipe",
]

_NETWORK: Final = "standard_network"
_RATE: Final = "learning_rate"
_OFF: Final = "off"
_ON: Final = "on"
_LONGEST_NAME: Final = 120
_TAGS: Final = {"schedule.policy": "schedule", "optimizer.name": "optimizer"}


@dataclass(frozen=True, kw_only=True)
class RecipeState:
    """The recommended recipe beside a form.

    Args:
        recipe: for the chosen data.
        is_applied: whether the form holds what it says.
    """

    recipe: Recipe
    is_applied: bool


@dataclass(frozen=True, kw_only=True)
class TuningState:
    """The preset "Fine-tune" beside a form.

    Args:
        summary: of the preset, one sentence.
        is_applied: whether the form holds what it says.
    """

    summary: str
    is_applied: bool


def fill_in(studio: Studio, form: ModelForm) -> None:
    """Fill in what follows from the chosen data and network, where no user typed anything else.

    Args:
        studio: that is held.
        form: its values are changed; that of a clone stays as it is.
    """
    if form.parent is not None:
        return
    picked = form.picked
    recommended = _recipe_of(studio, form)
    wanted: dict[str, str] = {}
    if form["method"] == "standard":
        if recommended is not None and form[_NETWORK] == form.first_text(_NETWORK):
            form.values[_NETWORK] = picked[_NETWORK] = recommended.network
        recipe = None if form["recipe"] == _OFF else _recipe_of(studio, form, form[_NETWORK])
        wanted = _of_network(standard_network(form[_NETWORK])) if recipe is None else _texts_of(recipe)
    wanted |= _tuning(form, wanted)
    wanted["name"] = _name_of(studio, form)
    first = first_form()
    for name in {*wanted, *picked} - {_NETWORK}:
        text = wanted.get(name, first[name])
        if form[name].strip() == picked.get(name, first[name]):
            form.values[name] = text
            picked[name] = text
        if name not in wanted:
            picked.pop(name, None)
    form.values["picked"] = json.dumps(picked, separators=(",", ":"), sort_keys=True) if picked else ""


def _of_network(network: StandardNetwork | None) -> dict[str, str]:
    """Return the rate that is usual for a network, with the optimizer that it is for."""
    if network is None or network.learning_rate is None:
        return {}
    optimizer = {path: value for path, value in network.recipe.items() if path.startswith("optimizer.")}
    return _texts({_RATE: network.learning_rate, **optimizer})


def recipe_state(studio: Studio, form: ModelForm) -> RecipeState | None:
    """Return the recipe for the chosen data, and whether it is applied; None where there is none."""
    recipe = _recipe_of(studio, form)
    if recipe is None:
        return None
    texts = _texts_of(recipe)
    is_applied = (
        form["method"] == "standard"
        and form[_NETWORK] == recipe.network
        and all(form[name].strip() == text for name, text in {**texts, **_tuning(form, texts)}.items())
    )
    return RecipeState(recipe=recipe, is_applied=is_applied)


def apply_recipe(studio: Studio, form: ModelForm) -> None:
    """Put the recipe into the form, whatever stands there."""
    recipe = _recipe_of(studio, form)
    if recipe is None:
        return
    texts = {_NETWORK: recipe.network, **_texts_of(recipe)}
    form.values.update(texts, recipe="", method="standard")
    form.values["picked"] = json.dumps({**form.picked, **texts}, separators=(",", ":"), sort_keys=True)
    fill_in(studio, form)


def undo_recipe(studio: Studio, form: ModelForm) -> None:
    """Take the recipe out of the form: its fields get their defaults, those that were typed over stay."""
    form.values["recipe"] = _OFF
    fill_in(studio, form)


def filled_fields(form: ModelForm) -> list[str]:
    """Return the fields that the page fills in, or has just emptied, but the rate, which has a place of its own."""
    names = (*form.picked, *_tuning_texts(form["optimizer"]))
    return [name for name in dict.fromkeys(names) if name in model_fields() and name != _RATE]


def tuning_state(form: ModelForm) -> TuningState:
    """Return the preset "Fine-tune", and whether it is applied."""
    is_applied = form["fine_tune"] == _ON and all(
        form[name].strip() == text for name, text in _tuning_texts(form["optimizer"]).items()
    )
    return TuningState(summary=FINE_TUNE_SUMMARY, is_applied=is_applied)


def apply_fine_tuning(studio: Studio, form: ModelForm) -> None:
    """Put the preset "Fine-tune" into the form, whatever stands there."""
    texts = _tuning_texts(form["optimizer"])
    form.values.update(texts, fine_tune=_ON)
    form.values["picked"] = json.dumps({**form.picked, **texts}, separators=(",", ":"), sort_keys=True)
    fill_in(studio, form)


def undo_fine_tuning(studio: Studio, form: ModelForm) -> None:
    """Take the preset out of the form: its fields get what they had without it, those that were typed over stay."""
    form.values["fine_tune"] = ""
    if form.parent is not None:
        for name, text in _tuning_texts(form["optimizer"]).items():
            if form[name].strip() == text:
                form.values[name] = form.parent[name]
    fill_in(studio, form)


def _tuning(form: ModelForm, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what the preset puts into the form; nothing where it was not asked for, or there is nothing to tune."""
    if form["fine_tune"] != _ON or not form.starts_from_model:
        return {}
    return _tuning_texts(wanted.get("optimizer", form["optimizer"]))


def _tuning_texts(optimizer: str) -> dict[str, str]:
    return _texts(fine_tune_fields(optimizer))


def standard_network(value: str) -> StandardNetwork | None:
    """Return the network of ``backend/name``; None where there is none."""
    backend, _, name = value.rpartition("/")
    info = backend_infos().get(backend)
    return None if info is None else info.network(name)


def _recipe_of(studio: Studio, form: ModelForm, network: str | None = None) -> Recipe | None:
    """Return the recipe for the chosen data and a network, None for the recommended one; None where there is none."""
    chosen = form["dataset"]
    if not chosen or chosen.startswith("source:"):
        return None
    try:
        return studio.training.recipe(chosen, network=network)
    except ZigguratError:  # dataset or network is gone, or cannot be read; its field says so
        return None


def put_fields(form: ModelForm, text: str) -> None:
    """Put values into a form.

    Args:
        form: is changed.
        text: JSON of path in the spec → value; anything else changes nothing.
    """
    fields = json_or_text(text)
    if isinstance(fields, dict):
        put_values(form, fields)


def put_values(form: ModelForm, fields: Mapping[str, Any]) -> None:
    """Put values into a form.

    Args:
        form: is changed.
        fields: path in the spec → value; unknown paths change nothing.
    """
    form.values.update(_texts(fields))


def _texts_of(recipe: Recipe) -> dict[str, str]:
    """Return field of the form → what the recipe puts there."""
    return _texts(recipe.fields)


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    for path, value in fields.items():
        if name := weights_name(value) if path == "pretrained" else "":
            found.update(weights="pretrained", pretrained_weights=name)
            continue
        owner = path.rpartition(".")[0]
        variant = str(fields.get({"schedule": "schedule.policy", "optimizer": "optimizer.name"}.get(owner, ""), ""))
        names = (_TAGS.get(path, ""), field_id(path), field_id(path, variant) if variant else "")
        name = next((each for each in names if each in model_fields()), None)
        if name is not None:
            found[name] = text_of(model_fields()[name], value)
    return found


def _name_of(studio: Studio, form: ModelForm) -> str:
    """Return a name that tells network and data: ``lenet on digits``."""
    network = {
        "standard": form[_NETWORK].rpartition("/")[2],
        "custom": form["network_file"].rpartition("/")[2].removesuffix(".py"),
        "pretrained": form["published_model"],
        "previous": _title(studio, form["previous_model"]),
    }.get("custom" if form.has_code else form["method"], "")
    chosen = form["dataset"]
    if chosen.startswith("source:"):
        data = chosen.rstrip("/").rpartition("/")[2]
    else:
        data = "digits" if chosen == DIGITS else _title(studio, chosen)
    return " on ".join(part for part in (network, data) if part)[:_LONGEST_NAME]


def _title(studio: Studio, job_id: str) -> str:
    try:
        return studio.jobs.get(job_id).name if job_id else ""
    except ZigguratError:
        return ""
