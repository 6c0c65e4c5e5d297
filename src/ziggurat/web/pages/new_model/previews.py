"""Previews in the new-model form: learning rate, images, network, pre-flight check, job as command or code."""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any, Final

from ziggurat.errors import SpecError, ZigguratError
from ziggurat.web.image_cache import ImageCache
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm
from ziggurat.web.pages.new_model.network_view import graph_of, layer_rows, network_problem, shape_text
from ziggurat.web.pages.new_model.rate_chart import rate_picture
from ziggurat.web.pages.new_model.request import Asked
from ziggurat.web.pages.new_model.view import input_of, summary_of
from ziggurat.workspace.rate_curve import rate_curve
from ziggurat.workspace.studio import Studio

__all__ = ["network_look", "preflight_look", "preview_look", "rate_look", "words_look"]

_MOST_CURVES: Final = 6
_PICTURES: Final = 6
_VARIANTS: Final = 12
_USUAL_LIMIT_S: Final = 60.0
_LONGEST_LIMIT_S: Final = 600.0


def rate_look(studio: Studio, asked: Asked) -> dict[str, Any]:
    """Return the learning-rate schedule: ``picture`` and ``sentence``, or ``sentence`` alone where it is wrong."""
    rates = asked.request.sweep.get("learning_rate", [None])[:_MOST_CURVES]
    try:
        curves = [
            (
                "" if rate is None else f"{rate:g}",
                rate_curve(dict(asked.first_spec) | ({} if rate is None else {"learning_rate": rate})),
            )
            for rate in rates
        ]
    except ZigguratError as error:
        advice = error.advice if isinstance(error, SpecError) else ""
        return {"picture": None, "sentence": f"No curve can be drawn: {error.rule} {advice}".strip()}
    except (TypeError, ValueError):  # a swept rate that is no number; its field says so
        return {"picture": None, "sentence": "No curve can be drawn: the learning rate must be a number."}
    return {"picture": rate_picture(curves), "sentence": curves[0][1]["sentence"]}


def network_look(studio: Studio, form: ModelForm, asked: Asked, how: str) -> dict[str, Any]:
    """Build the network in a process of its own, and return what it is, or what is wrong with it.

    Args:
        studio: that is held.
        form: what stands in it.
        asked: what that asks for.
        how: ``visualize`` or ``debug``.
    """
    spec, summary = asked.request.spec, summary_of(studio, form["dataset"])
    network = spec.get("network")
    text = network.get("text", "") or "" if isinstance(network, dict) else ""
    if isinstance(network, dict) and network.get("source") == "zoo":
        network = network["name"]
    options: dict[str, Any] = {
        "text": text,
        "backend": spec.get("backend"),
        "time_limit_s": _limit_s(form),
    }
    name = network if isinstance(network, str) else ""
    try:
        if how == "debug":
            dataset = asked.request.dataset if summary["state"] == "done" else ""
            return _debugged(studio.networks.debug(name, dataset=dataset, **options), with_data=bool(dataset))
        known = input_of(form, summary["what"])
        if form["dataset"] != DIGITS and summary["what"] is None:
            known = {}
        return _described(studio.graphs.describe(name, **options, **known))
    except ZigguratError as error:
        return {"how": how, "problem": network_problem(error, text)}


def preview_look(studio: Studio, form: ModelForm, asked: Asked, kept: ImageCache, another: str) -> dict[str, Any]:
    """Return images exactly as the network will get them, or why there are none.

    Args:
        studio: that is held.
        form: what stands in it; seed or row are changed where others are asked for.
        asked: what that asks for.
        kept: keeps the images until they are asked for.
        another: ``seed``, ``row``, or empty.
    """
    if not asked.request.dataset:
        return {"error": {"rule": "The preview needs a dataset of the studio.", "advice": "Choose or make one."}}
    split = form["preview_split"]
    if another == "seed":
        form.values["preview_seed"] = str(secrets.randbelow(10_000))
    if another == "row":
        form.values["preview_row"] = _another_row(studio, asked.request.dataset, split)
    row, seed = form["preview_row"].strip(), form["preview_seed"].strip() or form["seed"].strip()
    try:
        found = studio.training.augmented(
            asked.request.dataset,
            asked.first_spec,
            row=int(row) if row.isdecimal() else None,
            split=split,
            count=_VARIANTS if row.isdecimal() else _PICTURES,
            seed=int(seed) if seed.isdecimal() else 0,
        )
    except ZigguratError as error:
        return {"error": error.as_dict()}
    return {"error": None, "sentence": found["sentence"], "pictures": _kept(found["pictures"], kept)}


def preflight_look(studio: Studio, asked: Asked, *, whole: bool) -> dict[str, Any]:
    """Return what the check before the start finds.

    Args:
        studio: that is held.
        asked: what the form asks for.
        whole: whether the data is measured and the network built, which takes seconds.
    """
    if asked.problems:
        return {"findings": [], "error": None, "whole": whole, "steps": None, "parameters": None}
    try:
        found = studio.training.preflight(asked.request, describe=whole)
    except ZigguratError as error:
        return {"findings": [], "error": error.as_dict(), "whole": whole, "steps": None, "parameters": None}
    return {**found, "error": None, "whole": whole}


def words_look(studio: Studio, asked: Asked, url: str) -> dict[str, Any]:
    """Return the job in other words: ``cli``, ``json`` and ``python``, or why there are none."""
    if asked.problems:
        return {"error": {"rule": "The form must be complete first.", "advice": "Mend the fields that are marked."}}
    try:
        return {"error": None, **studio.training.as_text(asked.request, url=url)}
    except ZigguratError as error:
        return {"error": error.as_dict()}


def _described(found: dict[str, Any]) -> dict[str, Any]:
    graph = graph_of(found)
    return {
        "how": "visualize",
        "problem": None,
        "layers": layer_rows(found),
        "graph": json.dumps(graph, separators=(",", ":")),
        "operations": len(graph["nodes"]),
        "parameters": found["parameters"],
        "multiply_adds": found["multiply_adds"],
        "input": shape_text([None, *found["input_shape"]]),
        "outputs": [shape_text(shape) for shape in found["outputs"]],
        "scalars": found["scalars"],
        "tensorboard": found["tensorboard"],
    }


def _debugged(found: dict[str, Any], *, with_data: bool) -> dict[str, Any]:
    return {
        "how": "debug",
        "problem": None,
        "with_data": with_data,
        "batch": [shape_text(shape) for shape in found["batch"]],
        "layers": [{**each, "shape": shape_text(each["shape"])} for each in found["layers"]],
        "outputs": [shape_text(shape) for shape in found["output_shapes"]],
        "loss": found["loss"],
        "notes": found["notes"],
    }


def _limit_s(form: ModelForm) -> float:
    try:
        return min(_LONGEST_LIMIT_S, max(1.0, float(form["look_limit_s"])))
    except ValueError:
        return _USUAL_LIMIT_S


def _another_row(studio: Studio, dataset: str, split: str) -> str:
    what = summary_of(studio, dataset)["what"]
    count = what["splits"].get(split, 0) if what else 0
    return str(secrets.randbelow(count)) if count else ""


def _kept(pictures: list[dict[str, Any]], kept: ImageCache) -> list[dict[str, Any]]:
    """Put the images away; return what the page says of each, with their numbers in the set."""
    content: list[bytes] = []
    shown = []
    for each in pictures:
        first = len(content)
        content += [base64.b64decode(png) for png in (each["original_png"], *each["augmented_png"])]
        shown.append({**each, "first": first, "count": len(each["augmented_png"])})
    name = kept.keep(content)
    return [{**each, "set": name} for each in shown]
