"""Answers to the buttons of the new-model page: network, learning rate, augmentation, pre-flight, the job as text."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ziggurat.errors import SpecError, ZigguratError, broken_rule, nearest_names
from ziggurat.formatting import as_number, plural
from ziggurat.web.caches import ImageCache
from ziggurat.web.forms import small_number
from ziggurat.web.pages.new_model.chosen_data import data_of
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm
from ziggurat.web.pages.new_model.request import Asked, place_of
from ziggurat.web.pages.new_model.view import input_of, summary_of
from ziggurat.web.spread import spread_indices
from ziggurat.workspace.previews import rate_curve
from ziggurat.workspace.studio import Studio

__all__ = [
    "network_look",
    "network_problem",
    "preflight_look",
    "preview_look",
    "rate_look",
    "words_look",
]


_MOST_LINES_AROUND: Final = 3
_MEMBERS: Final = (
    "categories",
    "disableAutoDataParallelism",
    "fineTuneHook",
    "gradientUpdate",
    "inference",
    "inference_inputs",
    "input_shape",
    "is_inference",
    "is_training",
    "loss",
    "nclasses",
    "summaries",
    "target_mean",
    "target_shape",
    "target_std",
    "train",
    "vocabulary_size",
    "x",
    "y",
)
"""What a network finds in ``self``; the reference of the contract lists it."""

_NO_MEMBER: Final = re.compile(r"'UserModel' object has no attribute '(\w+)'")


def network_problem(error: ZigguratError, text: str) -> dict[str, Any]:
    """Return what is wrong with a network, for people and for the editor.

    Args:
        error: that it ended with.
        text: of the network; empty for a standard one.

    Returns:
        ``rule``, ``advice``, ``line`` (from 1; None if unknown), ``lines`` (number and text of
        the lines around it) and ``trace``.
    """
    lines, named = text.splitlines(), error.details.get("line")
    line = named if isinstance(named, int) and 1 <= named <= len(lines) else None
    return {
        "rule": error.details.get("what") or broken_rule(error.rule, error.received if line is None else None),
        "advice": error.advice or _nearest_member(error.rule),
        "line": line,
        "lines": [] if line is None else _around(lines, line),
        "trace": _own_trace(str(error.details.get("traceback", ""))),
    }


def layer_rows(described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the layers of a description: name, shape, parameters and their share."""
    whole = described["parameters"] or 1
    return [
        {**each, "shape": shape_text(each["shape"]), "share": each["parameters"] / whole}
        for each in described["layers"]
    ]


def graph_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the image of the graph is drawn from: operations with the ones before them, weights of scopes."""
    shown = [each for each in described["operations"] if _is_shown(each)]
    places = {each["name"]: place for place, each in enumerate(shown)}
    nodes = [
        {
            "name": each["name"].removeprefix("model/"),
            "kind": each["kind"],
            "shape": shape_text(each["shape"]),
            "from": [places[source] for source in each["inputs"] if source in places],
        }
        for each in shown
    ]
    weights = {_scoped(each["name"]): each["count"] for each in described["variables"] if each["trainable"]}
    return {"nodes": nodes, "weights": weights}


def shape_text(shape: Sequence[int | None] | None) -> str:
    """Return a shape as people write it: ``N x 24 x 24 x 20``, with N for the samples of a batch."""
    if shape is None:
        return "unknown"
    return " x ".join("N" if side is None else str(side) for side in shape) or "one number"


def _scoped(name: str) -> str:
    """Return the name of a weight by its scopes; PyTorch writes them with dots: ``layer1.0.conv1.weight``."""
    inside = name.removeprefix("model/")
    return inside if "/" in inside else inside.replace(".", "/")


def _is_shown(operation: Mapping[str, Any]) -> bool:
    """Whether an operation belongs to the network, not to its penalties and summaries."""
    return operation["name"].startswith("model/") and not operation["kind"].endswith("Summary")


def _around(lines: Sequence[str], line: int) -> list[tuple[int, str]]:
    first = max(1, line - _MOST_LINES_AROUND)
    return [(number, lines[number - 1]) for number in range(first, min(len(lines), line + _MOST_LINES_AROUND) + 1)]


def _nearest_member(rule: str) -> str:
    found = _NO_MEMBER.search(rule)
    near = nearest_names(found[1], _MEMBERS) if found else []
    return f"Did you mean {' or '.join(f'`self.{name}`' for name in near)}?" if near else ""


def _own_trace(trace: str) -> str:
    """Return a trace without the frames that are not the user's: those show this program's files."""
    blocks = re.split(r"(?m)^(?=  File )", trace)
    own = [each for each in blocks[1:] if re.match(r'  File "[^"]*/network\.py"', each)]
    shown = "".join([blocks[0], *own]) if own else ""
    return re.sub(r'File "[^"]*/network\.py"', 'File "network.py"', shown).strip()


_WIDTH: Final = 560
_HEIGHT: Final = 190
_LEFT: Final = 62
_BOTTOM: Final = 28
_TOP: Final = 10
_RIGHT: Final = 14
_TABLE_ROWS: Final = 11


def rate_picture(curves: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the numbers of the image.

    Args:
        curves: name and what ``Training.rate_curve`` returned; one for each rate of a sweep.

    Returns:
        ``width``, ``height``, ``box``, ``lines`` (``name``, ``points`` of an SVG polyline, ``number``), ``ticks_x`` and
        ``ticks_y`` (place and text), ``table`` (epoch and the rate of each curve) and ``names``.
    """
    most = max(max(curve["rates"]) for _, curve in curves) or 1.0
    epochs = max(curve["epochs"][-1] for _, curve in curves) or 1.0
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "box": (_LEFT, _TOP, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM),
        "names": [name for name, _ in curves],
        "lines": [
            {"name": name, "points": _points(curve, epochs, most), "number": number % 6 + 1}
            for number, (name, curve) in enumerate(curves)
        ],
        "ticks_x": [(_x(epochs * part / 4, epochs), f"{epochs * part / 4:.3g}") for part in range(5)],
        "ticks_y": [(_y(most * part / 2, most), f"{most * part / 2:.3g}") for part in range(3)],
        "table": _table([curve for _, curve in curves]),
    }


def _points(curve: Mapping[str, Any], epochs: float, most: float) -> str:
    pairs = zip(curve["epochs"], curve["rates"], strict=True)
    return " ".join(f"{_x(epoch, epochs):.1f},{_y(rate, most):.1f}" for epoch, rate in pairs)


def _x(epoch: float, epochs: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * epoch / epochs


def _y(rate: float, most: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * rate / most


def _table(curves: Sequence[Mapping[str, Any]]) -> list[tuple[float, list[float]]]:
    count = min(len(curve["epochs"]) for curve in curves)
    rows = spread_indices(count, _TABLE_ROWS)
    return [(curves[0]["epochs"][row], [curve["rates"][row] for curve in curves]) for row in rows]


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
        return {"picture": None, "small": None, "sentence": f"No curve can be drawn: {error.rule} {advice}".strip()}
    except (TypeError, ValueError):  # a swept rate that is no number; its field says so
        sentence = "No curve can be drawn: the learning rate must be a number."
        return {"picture": None, "small": None, "sentence": sentence}
    return {"picture": rate_picture(curves), "small": _small(curves), "sentence": curves[0][1]["sentence"]}


def _small(curves: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the small curve beside the rate: points of lines in a box of 130 by 36, and the last epoch."""
    most = max(max(curve["rates"]) for _, curve in curves) or 1.0
    last = max(curve["epochs"][-1] for _, curve in curves) or 1.0
    lines = []
    for _, curve in curves:
        pairs = zip(curve["epochs"], curve["rates"], strict=True)
        lines.append(" ".join(f"{130 * epoch / last:.1f},{35 - 33 * rate / most:.1f}" for epoch, rate in pairs))
    return {"lines": lines, "last": as_number(last)}


def network_look(studio: Studio, form: ModelForm, asked: Asked, how: str) -> dict[str, Any]:
    """Build the network in a process of its own, and return what it is, or what is wrong with it.

    Args:
        studio: that is held.
        form: what stands in it.
        asked: what that asks for.
        how: ``visualize`` or ``debug``.
    """
    spec, summary = asked.request.spec, summary_of(studio, form, data_of(studio, form))
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
        advice = "Choose one under Data, or create one."
        return {"error": {"rule": "The preview needs a dataset of the studio.", "advice": advice}}
    split = form["preview_split"]
    if another == "seed":
        form.values["preview_seed"] = str(secrets.randbelow(10_000))
    if another == "row":
        form.values["preview_row"] = _another_row(studio, asked.request.dataset, split)
    row = small_number(form["preview_row"].strip())
    seed = small_number(form["preview_seed"].strip() or form["seed"].strip())
    for name, title, value in (("preview_row", "Sample", row), ("preview_seed", "Seed of the preview", seed)):
        text = form[name].strip()
        if text and value is None:
            rule = f"{title} must be a whole number from 0, or empty."
            return {"error": {"rule": rule, "received": text[:50]}}
    try:
        found = studio.training.augmented(
            asked.request.dataset,
            asked.first_spec,
            row=row,
            split=split,
            count=_PICTURES if row is None else _VARIANTS,
            seed=seed or 0,
        )
    except ZigguratError as error:
        return {"error": error.as_dict()}
    second = {"second": "second image"}.get(found["second"], found["second"])
    return {
        "error": None, "sentence": found["sentence"], "second": second, "pictures": _kept(found["pictures"], kept)
    }  # fmt: skip


_EMPTY: Final[dict[str, Any]] = {
    "findings": [],
    "error": None,
    "steps": None,
    "parameters": None,
    "expected_s": None,
    "is_rough": False,
}
_LEVELS: Final = {"ok": "passed", "unknown": "unknown", "warning": "warning", "error": "problem"}


def preflight_look(studio: Studio, form: ModelForm, asked: Asked, *, whole: bool) -> dict[str, Any]:
    """Return what the check before the start finds.

    Args:
        studio: that is held.
        form: what stands in it.
        asked: what that asks for.
        whole: whether the data is measured and the network built, which takes seconds.

    Returns:
        ``findings`` (``level``, ``title``, ``value``, ``why``, ``place``, ``fix``), ``count`` (how many of each level),
        ``expected_s``, ``is_rough``, ``steps``, ``steps_per_epoch``, ``parameters``, ``error`` and ``whole``.
    """
    if asked.problems:
        return {**_EMPTY, "whole": whole, "count": plural(len(asked.problems), "problem")}
    try:
        found = studio.training.preflight(asked.request, describe=whole)
    except ZigguratError as error:
        return {**_EMPTY, "error": error.as_dict(), "whole": whole, "count": ""}
    lines = [_finding_line(form, each) for each in found["findings"]]
    counts = {word: sum(each["level"] == level for each in lines) for level, word in _LEVELS.items()}
    words = [word if word in ("passed", "unknown") or count == 1 else f"{word}s" for word, count in counts.items()]
    took = next((each for each in found["findings"] if each.get("expected_s")), {})
    return {
        **found,
        "findings": lines,
        "expected_s": took.get("expected_s"),
        "is_rough": took.get("rough", False),
        "count": ", ".join(f"{count} {word}" for count, word in zip(counts.values(), words) if count),
        "error": None,
        "whole": whole,
    }


def _finding_line(form: ModelForm, finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding as a line of the check: title, value, and the sentence where something is to be done."""
    fix = finding.get("fix")
    return {
        "level": finding["level"],
        "title": finding["title"],
        "value": finding["value"],
        "why": "" if finding["level"] == "ok" and finding["value"] else finding["sentence"],
        "place": place_of(form, finding["field"]) if finding["field"] else "",
        "fix": None if fix is None else {"title": fix["title"], "fields": json.dumps(fix["fields"])},
    }


def words_look(studio: Studio, asked: Asked, url: str) -> dict[str, Any]:
    """Return the job in other words: ``cli``, ``json`` and ``python``, or why there are none."""
    if asked.problems:
        return {"error": {"rule": "The form must be complete first.", "advice": "Fix the marked fields."}}
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
    count = studio.datasets.describe(dataset)["splits"].get(split, 0)
    return str(secrets.randbelow(count)) if count else ""


def _kept(pictures: list[dict[str, Any]], kept: ImageCache) -> list[dict[str, Any]]:
    """Put the images away; return what the page says of each, with their numbers in the set."""
    content: list[bytes] = []
    shown = []
    for each in pictures:
        first = len(content)
        drawn = (each["original_png"], *each["augmented_png"], *each["mask_png"], *each["second_png"])
        content += [base64.b64decode(png) for png in drawn]
        has = {"has_masks": bool(each["mask_png"]), "has_seconds": bool(each["second_png"])}
        shown.append({**each, **has, "first": first, "count": len(each["augmented_png"])})
    name = kept.keep(*content)
    return [{**each, "set": name} for each in shown]
