"""Choices of the new-model form: datasets, networks, models, frameworks, devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import StandardNetwork, backend_infos, backend_title
from ziggurat.errors import ZigguratError
from ziggurat.web.pages.new_model.fields import FormField, model_fields
from ziggurat.web.pages.new_model.fit import ChosenData, chosen_data
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.frameworks import FrameworkState
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.models import PublishedModel
from ziggurat.workspace.training_checks import why_not_trainable
from ziggurat.zoo.backends import why_not_usable

__all__ = ["Choices", "Group", "choices_of", "data_of", "input_of", "networks_of", "summary_of"]

_SHOWN: Final = 200
"""Datasets and models that are offered; further ones are found on the first page."""

_DATASET_STATES: Final = ("done", "running", "queued", "stopping")
_DIGITS_SHAPE: Final = (28, 28, 1)
_DIGITS_CLASSES: Final = 10
_SOLVER: Final = ("epochs", "batch_size", "learning_rate")
_GROUPS: Final = (
    (
        "update",
        "More on the updates",
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
        """Return why a backend does not work; empty where it works, or nobody has looked yet."""
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
