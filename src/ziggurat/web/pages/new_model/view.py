"""View model of the new-model page: choices of the form, and previews of rate, images, network and job."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import StandardNetwork, backend_infos, backend_title
from ziggurat.errors import SpecError, ZigguratError, nearest_names
from ziggurat.web.caches import ImageCache
from ziggurat.web.pages.new_model.form import DIGITS, Asked, ChosenData, FormField, ModelForm, chosen_data, model_fields
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.frameworks import FrameworkState
from ziggurat.workspace.previews import rate_curve
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.models import PublishedModel
from ziggurat.workspace.training_checks import why_not_trainable
from ziggurat.zoo.backends import why_not_usable

__all__ = [
    "choices_of",
    "data_of",
    "network_look",
    "network_problem",
    "networks_of",
    "preflight_look",
    "preview_look",
    "rate_look",
    "summary_of",
    "words_look",
]


_SHOWN: Final = 200
"""Datasets and models that are offered; further ones are found on the first page."""

_DATASET_STATES: Final = ("done", "running", "queued", "stopping")
_DIGITS_SHAPE: Final = (28, 28, 1)
_DIGITS_CLASSES: Final = 10
_SOLVER: Final = ("epochs", "batch_size", "learning_rate")
_GROUPS: Final = (
    (
        "update",
        "More update settings",
        ("weight_decay", "gradient_clip", "gradient_accumulation_steps", "ema_decay", "precision"),
    ),
    ("length", "Length and validation", ("steps_per_epoch", "validation-every_epochs")),
    (
        "stopping",
        "Early stopping",
        ("early_stopping-tag", "early_stopping-patience", "early_stopping-min_delta", "early_stopping-mode"),
    ),
    (
        "checkpoints",
        "Checkpoints",
        (
            "checkpoints-every_epochs",
            "checkpoints-every_steps",
            "checkpoints-every_minutes",
            "checkpoints-keep_last",
            "checkpoints-keep_best-tag",
            "checkpoints-keep_best-mode",
            "checkpoints-keep_checkpoint_every_n_hours",
        ),
    ),
    ("loading", "Data loading", ("loading-workers", "loading-worker_kind", "loading-prefetch", "loading-decode")),
    ("samples", "Order, classes and frozen weights", ("shuffle", "class_weights", "freeze", "seed", "data-options")),
    (
        "job",
        "The job itself",
        ("on_stop", "heartbeat_s", "hung_after_s", "backend_options", "monitors", "callbacks"),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Fields that stand together.

    Args:
        id: of its element.
        title: what people read.
        fields: in their order.
        is_open: whether something in it differs from its default, or is wrong.
    """

    id: str
    title: str
    fields: tuple[FormField, ...]
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What can be chosen.

    Args:
        datasets: (value, text) of each.
        networks: framework → its standard networks; ``why_not`` says why one cannot be chosen.
        models: trainings to start from, the newest first.
        published: models that were published, to start from.
        checkpoints: of the chosen one: (value, text).
        frameworks: (backend, name, why it does not work) of those that take a network file.
        devices: (value, text) of each.
        projects: names.
        solver: the fields that everybody looks at.
        groups: the others.
        pictures: fields of what is done to images.
    """

    datasets: list[tuple[str, str]]
    networks: list[dict[str, Any]]
    models: list[Job]
    published: list[PublishedModel]
    checkpoints: list[tuple[str, str]]
    frameworks: list[tuple[str, str, str]]
    devices: list[tuple[str, str]]
    projects: list[str]
    solver: tuple[FormField, ...]
    groups: tuple[Group, ...]
    pictures: tuple[tuple[str, tuple[FormField, ...]], ...]

    def why_not(self, backend: str) -> str:
        """Return why a backend does not work; empty if it works, or was not checked yet."""
        return next((why for name, _, why in self.frameworks if name == backend), "")

    def variants(self, path: str) -> list[tuple[str, list[FormField]]]:
        """Return the variants of a compound field, each with the fields that only it has."""
        every = model_fields()
        return [
            (variant, [each for each in every.values() if each.owner == path and each.variant == variant])
            for variant in every[path].choices
        ]


def choices_of(studio: Studio, form: ModelForm, problems: Mapping[str, str]) -> Choices:
    """Return what can be chosen, whatever stands in the form among it."""
    frameworks = _frameworks(studio)
    models = _jobs(studio, form["previous_model"], kinds=("train",))
    return Choices(
        datasets=_datasets(studio, form["dataset"]),
        networks=networks_of(studio, form),
        models=models,
        published=studio.published.all(),
        checkpoints=_checkpoints(form, models),
        frameworks=frameworks,
        devices=_devices(studio, form),
        projects=[project.name for project, _ in studio.projects.all()],
        solver=tuple(model_fields()[name] for name in _SOLVER),
        groups=tuple(_group(form, problems, *each) for each in _GROUPS),
        pictures=(
            ("preprocessing", _below("preprocessing")),
            ("augmentation", _below("augmentation")),
        ),
    )


def summary_of(studio: Studio, chosen: str) -> dict[str, Any]:
    """Return what is known of the chosen data: ``state``, ``facts`` (name → value), and the job where it is one."""
    if chosen == DIGITS:
        facts = {"Kind": "image classification", "Images": "1 797, 28 x 28 px, gray", "Classes": "10"}
        return {"state": "done", "facts": facts, "job": None, "what": None, "why_not": ""}
    try:
        job = studio.jobs.get(chosen)
        what = studio.datasets.describe(chosen) if job.state == "done" else None
    except ZigguratError as error:
        return {"state": "missing", "facts": {}, "job": None, "what": None, "sentence": str(error), "why_not": ""}
    facts, why_not = ({}, "") if what is None else (_facts(what), why_not_trainable(what["kind"]))
    return {"state": job.state, "facts": facts, "job": job, "what": what, "why_not": why_not}


def input_of(form: ModelForm, what: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return shape and classes of what the network gets, as far as they are known: for a look at the network."""
    whole = _shape_of(form, what)
    classes = _DIGITS_CLASSES if what is None else len(what.get("classes") or ()) or None
    return {"input_shape": whole if all(whole) else None, "classes": classes}


def _shape_of(form: ModelForm, what: Mapping[str, Any] | None) -> list[int | None]:
    """Return height, width and channels of what the network gets; None for what is not known."""
    image = {} if what is None else what.get("image") or {}
    shape = _DIGITS_SHAPE if what is None else [image.get(name) for name in ("height_px", "width_px", "channels")]
    size, channels, crop = (form[f"preprocessing-{name}"].strip() for name in ("size", "channels", "crop"))
    sides = [int(part) for part in size.replace(",", "x").split("x") if part.strip().isdigit()]
    height, width = (sides * 2)[:2] if sides else shape[:2]
    if crop.isdigit():
        height = width = int(crop)
    return [height, width, int(channels) if channels.isdigit() else shape[2]]


def _facts(what: Mapping[str, Any]) -> dict[str, str]:
    image, splits = what.get("image") or {}, what["splits"]
    facts = {
        "Kind": str(what["kind"]).replace("-", " "),
        "Samples": ", ".join(f"{count:,} {split}".replace(",", "\u202f") for split, count in splits.items()),
    }
    if image.get("height_px"):
        color = {"1": ", gray", "3": ", color"}.get(str(image.get("channels")), "")
        facts["Images"] = f"{image['width_px']} x {image['height_px']} px{color}"
    elif image:
        facts["Images"] = "of different sizes"
    names = [each["name"] for each in what.get("classes") or ()]
    if names:
        facts["Classes"] = f"{len(names)}: {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"
    return facts


def _datasets(studio: Studio, chosen: str) -> list[tuple[str, str]]:
    found = [(DIGITS, "Handwritten digits (come with the studio)")]
    picked = "" if chosen == DIGITS or chosen.startswith("source:") else chosen
    for job in _jobs(studio, picked, kinds=("dataset",), states=_DATASET_STATES):
        waits = "" if job.state == "done" else f", {job.state}: the training waits for it"
        found.append((job.id, f"{job.name} ({job.id[:13]}{waits})"))
    if chosen.startswith("source:"):
        found.append((chosen, f"{chosen.removeprefix('source:')} (as in the cloned job)"))
    return found


def _jobs(studio: Studio, chosen: str, **wanted: Any) -> list[Job]:
    """Return the newest jobs of a kind, and the chosen one."""
    found = list(studio.jobs.page(JobFilter(limit=_SHOWN, **wanted)).jobs)
    if chosen and all(job.id != chosen for job in found):
        try:
            found.append(studio.jobs.get(chosen))
        except ZigguratError:  # deleted meanwhile; the field says so when the form is sent
            pass
    return found


def data_of(studio: Studio, form: ModelForm) -> ChosenData | None:
    """Return what is known of the chosen data; None where it is not there yet."""
    summary = summary_of(studio, form["dataset"])
    return chosen_data(form, summary, _shape_of(form, summary["what"]))


def networks_of(studio: Studio, form: ModelForm) -> list[dict[str, Any]]:
    """Return the standard networks; ``why_not`` says why one cannot be chosen for the data of the form."""
    chosen, data = form["standard_network"], data_of(studio, form)
    why_not = _why_not(studio)
    found = []
    for backend, info in backend_infos().items():
        for network in info.networks:
            fit = "" if data is None else data.why_no_fit(network)
            has_text = info.zoo is not None
            found.append(_network(f"{backend}/{network.name}", info.title, network, has_text, why_not[backend] or fit))
    if chosen and all(each["value"] != chosen for each in found):
        backend, _, name = chosen.rpartition("/")
        found.append(_network(chosen, backend_title(backend), StandardNetwork(name, name), has_text=False))
    return found


def _network(value: str, framework: str, network: StandardNetwork, has_text: bool, why_not: str = "") -> dict[str, Any]:
    shape = network.input_shape
    return {
        "value": value,
        "title": network.title,
        "framework": framework,
        "size": "any size" if shape is None else " x ".join(str(side) for side in shape),
        "task": network.task,
        "rate": network.learning_rate,
        "source": network.source,
        "has_text": has_text,
        "why_not": why_not,
    }


def _checkpoints(form: ModelForm, models: Sequence[Job]) -> list[tuple[str, str]]:
    found = [("", "Best, or else the newest"), ("latest", "Newest")]
    model = next((job for job in models if job.id == form["previous_model"]), None)
    if model is not None and (choices := checkpoint_choices(model)):
        found = [choices[0], found[1], *choices[1:]]
    chosen = form["previous_checkpoint"]
    return found if any(value == chosen for value, _ in found) else [*found, (chosen, chosen)]


def _frameworks(studio: Studio) -> list[tuple[str, str, str]]:
    """Return those that take a network file, each with why it does not work."""
    why_not = _why_not(studio)
    return [(name, info.title, why_not[name]) for name, info in backend_infos().items() if info.takes_network_files]


def _why_not(studio: Studio) -> dict[str, str]:
    """Return backend → why it does not work, as far as that is known: a page does not wait for frameworks to load."""
    found = {}
    for name, info in backend_infos().items():
        problem = why_not_usable(name)
        reason = info.unavailable or (str(problem) if problem is not None else "")
        found[name] = FrameworkState(name, info.title, reason).sentence
    return found | {each.backend: each.sentence for each in studio.machine.frameworks.known or ()}


def _devices(studio: Studio, form: ModelForm) -> list[tuple[str, str]]:
    found = [("cpu:0", "CPU only")]
    for each in studio.machine.strip()["devices"]:
        free = f"{each['free_bytes'] / 1e9:.1f} of {each['memory_bytes'] / 1e9:.1f} GB free"
        found.append((f"gpu:{each['index']}", f"GPU {each['index']}: {each['name']}, {free}"))
    known = {value for value, _ in found}
    return [*found, *((name, f"{name} (not on this machine now)") for name in form.devices if name not in known)]


def _group(form: ModelForm, problems: Mapping[str, str], name: str, title: str, ids: Sequence[str]) -> Group:
    fields = tuple(model_fields()[each] for each in ids)
    is_open = any(form.differs(each) or each.id in problems or form.is_changed(each.id) for each in fields)
    return Group(id=name, title=title, fields=fields, is_open=is_open)


def _below(owner: str) -> tuple[FormField, ...]:
    return tuple(each for each in model_fields().values() if each.owner == owner)


_MOST_LINES_AROUND: Final = 3
_MEMBERS: Final = (
    "disableAutoDataParallelism",
    "fineTuneHook",
    "gradientUpdate",
    "inference",
    "input_shape",
    "is_inference",
    "is_training",
    "loss",
    "nclasses",
    "summaries",
    "train",
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
        ``rule``, ``received``, ``advice``, ``line`` (from 1; None if unknown), ``lines`` (number and text of
        the lines around it) and ``trace``.
    """
    lines, named = text.splitlines(), error.details.get("line")
    line = named if isinstance(named, int) and 1 <= named <= len(lines) else None
    return {
        "rule": error.rule,
        "received": (error.received or "") if line is None else "",
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
    weights = {
        each["name"].removeprefix("model/"): each["count"] for each in described["variables"] if each["trainable"]
    }
    return {"nodes": nodes, "weights": weights}


def shape_text(shape: Sequence[int | None] | None) -> str:
    """Return a shape as people write it: ``N x 24 x 24 x 20``, with N for the samples of a batch."""
    if shape is None:
        return "unknown"
    return " x ".join("N" if side is None else str(side) for side in shape) or "one number"


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
    places = sorted({round(number * (count - 1) / (_TABLE_ROWS - 1)) for number in range(_TABLE_ROWS)})
    return [(curves[0]["epochs"][place], [curve["rates"][place] for curve in curves]) for place in places]


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
    name = kept.keep(*content)
    return [{**each, "set": name} for each in shown]
