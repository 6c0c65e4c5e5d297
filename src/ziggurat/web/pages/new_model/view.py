"""Choices of the new-model page: datasets, networks as cards, models to start from, devices, sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job, JobFilter
from ziggurat.entities.backend_info import DEFAULT_BACKEND, StandardNetwork, backend_infos, backend_title
from ziggurat.errors import ZigguratError
from ziggurat.formatting import as_bytes, as_count, as_duration
from ziggurat.web.forms import small_number
from ziggurat.web.pages.new_model.chosen_data import input_form, learned_by
from ziggurat.web.pages.new_model.folds import Fold, folds_of
from ziggurat.web.pages.new_model.form import DIGITS, FormField, ModelForm, model_fields
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.frameworks import FrameworkState
from ziggurat.workspace.recipes import joins_objects, mixes_samples, oversamples, task, weights_classes
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.models import PublishedModel
from ziggurat.workspace.studio.recipes import NetworkCard
from ziggurat.workspace.training_checks import KnownData, input_part, why_no_fit, why_not_trainable
from ziggurat.zoo.backends import why_not_usable

__all__ = ["Choices", "checkpoints_of", "choices_of", "framework_choices", "input_of", "summary_of"]


_SHOWN: Final = 200
"""Datasets and models that are offered; further ones are found on the first page."""

_DATASET_STATES: Final = ("done", "running", "queued", "stopping")
_DIGITS_SHAPE: Final = (28, 28, 1)
_DIGITS_CLASSES: Final = 10
_FIRST_CARDS: Final = 8
_STRIP: Final = 10


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What can be chosen.

    Args:
        datasets: (value, text) of each.
        networks: standard networks; ``why_not`` says why one cannot be chosen.
        first: how many of them are shown at first.
        models: trainings to start from, the newest first.
        published: published models, to start from.
        weights: pretrained weights: (value, text) of each.
        checkpoints: of the chosen one: (value, text).
        frameworks: (backend, name, why it does not work) of those that take a network file.
        shown: backend whose standard networks are shown.
        devices: (value, text) of each.
        elsewhere: names of the other machines that have GPUs.
        has_cluster: whether there are nodes that can train together.
        projects: names.
        folds: sections with the others.
    """

    datasets: list[tuple[str, str]]
    networks: list[dict[str, Any]]
    first: int
    models: list[Job]
    published: list[PublishedModel]
    weights: list[tuple[str, str]]
    checkpoints: list[tuple[str, str]]
    frameworks: list[tuple[str, str, str]]
    shown: str
    devices: list[tuple[str, str]]
    elsewhere: list[str]
    has_cluster: bool
    projects: list[str]
    folds: tuple[Fold, ...]

    @property
    def first_networks(self) -> list[dict[str, Any]]:
        """The cards that are shown at first: those that fit, and the chosen one; all kinds if none fits."""
        return self.networks[: self.first]

    @property
    def more_networks(self) -> list[dict[str, Any]]:
        """The cards behind "Show more"."""
        return self.networks[self.first :]

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


def choices_of(
    studio: Studio,
    form: ModelForm,
    what: Mapping[str, Any] | None,
    problems: Mapping[str, str],
    data: KnownData | None,
) -> Choices:
    """Return what can be chosen, whatever stands in the form among it.

    Args:
        studio: that is held.
        form: what stands in it.
        what: of the chosen dataset, as ``summary_of`` has it.
        problems: id of a field → what is wrong there.
        data: that is chosen; None where nothing is known of it.
    """
    models, networks = _models(studio, form), networks_of(studio, form, what)
    first = sum(not each["why_not"] or each["value"] == form["standard_network"] for each in networks[:_FIRST_CARDS])
    return Choices(
        datasets=_datasets(studio, form["dataset"]),
        networks=networks,
        first=first or _FIRST_CARDS,
        models=models,
        published=studio.published.all(),
        weights=_weights(studio, form["pretrained_weights"]),
        checkpoints=_checkpoints(form, models),
        frameworks=framework_choices(studio),
        shown=shown_framework(form),
        devices=_devices(studio, form),
        elsewhere=[
            node.name
            for node in studio.jobs.nodes()
            if node.executor != "local" and any(device.usable for device in node.devices)
        ],
        has_cluster=any(node.executor != "local" for node in studio.jobs.nodes()),
        projects=studio.projects.names(),
        folds=folds_of(form, problems, data),
    )


def _weights(studio: Studio, chosen: str) -> list[tuple[str, str]]:
    """Return value and text of the pretrained weights that can be chosen; the chosen ones also where they are gone."""
    there = studio.weights.all()
    names = {each.name for each in there}
    to_add = [each for each in studio.weights.public if each.can_be_added and each.name not in names]
    known = [(each.name, f"{each.title} ({each.network or each.name})") for each in (*there, *to_add)]
    gone = [(chosen, f"{chosen} (deleted)")] if chosen and chosen not in dict(known) else []
    return [("", "Choose weights"), *known, *gone]


def checkpoints_of(studio: Studio, form: ModelForm) -> list[tuple[str, str]]:
    """Return value and text of each checkpoint of the chosen model."""
    return _checkpoints(form, _models(studio, form))


def summary_of(studio: Studio, form: ModelForm, data: KnownData | None) -> dict[str, Any]:
    """Return what is known of the chosen data.

    Args:
        studio: that is held.
        form: what stands in it.
        data: that is chosen; None where nothing is known of it.

    Returns:
        ``state``, ``facts`` (name → value), ``job`` and ``what`` (its description) where it is one of the studio,
        ``why_not`` (why nothing is trained on it), ``strip`` (images), ``input`` (what the network gets), and
        ``weights`` (whether classes may be weighted).
    """
    learned = learned_by(form, data)
    found: dict[str, Any] = {
        "state": "done",
        "facts": {},
        "job": None,
        "what": None,
        "why_not": "",
        "strip": [],
        "input": input_form(data),
        "weights": weights_classes(data),
        "mixes": mixes_samples(data),
        "has_classes": oversamples(data),
        "joins": "" if data is None else "yes" if joins_objects(data) else "no",
    }
    task = {} if learned is None else {"Task": learned.title[:1].upper() + learned.title[1:]}
    chosen = form["dataset"]
    if chosen == DIGITS:
        return {**found, "facts": {"Training images": "1,252", "Classes": "10", **task, "Size": "28 × 28 px"}}
    try:
        job = studio.jobs.get(chosen)
        what = studio.datasets.describe(chosen) if job.state == "done" else None
    except ZigguratError as error:
        return {**found, "state": "missing", "sentence": str(error)}
    found |= {"state": job.state, "job": job, "what": what, "strip": _strip(what)}
    if what is not None:
        found["facts"] = _facts(what, task)
        found["why_not"] = why_not_trainable(what["kind"], tuple(what.get("classes") or ()))
    return found


def _strip(what: Mapping[str, Any] | None) -> list[str]:
    """Return addresses of a few training images, spread over the split, below that of the dataset."""
    count = 0 if what is None or not what.get("image") else what["splits"].get("train", 0)
    rows = sorted({number * count // _STRIP for number in range(_STRIP)}) if count else []
    return [f"pictures/train/{row}" for row in rows]


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
    parts = (small_number(part.strip()) for part in size.replace(",", "x").split("x"))
    sides = [side for side in parts if side is not None]
    height, width = (sides * 2)[:2] if sides else shape[:2]
    if (side := small_number(crop)) is not None:
        height = width = side
    known = small_number(channels)
    return [height, width, shape[2] if known is None else known]


_UNITS: Final = {"image": "images", "row": "rows", "text": "texts"}


def _facts(what: Mapping[str, Any], task: Mapping[str, str]) -> dict[str, str]:
    image, splits = what.get("image") or {}, what["splits"]
    unit = _UNITS.get(input_part(what["kind"]), "samples")
    facts = {f"Training {unit}": as_count(splits.get("train", 0))}
    if names := what.get("classes") or ():
        facts["Classes"] = as_count(len(names))
    facts |= task
    if image.get("height_px"):
        facts["Size"] = f"{image['width_px']} × {image['height_px']} px"
    elif image:
        facts["Size"] = "different"
    return facts


def _datasets(studio: Studio, chosen: str) -> list[tuple[str, str]]:
    found = [(DIGITS, "Handwritten digits (built in)")]
    picked = "" if chosen == DIGITS or chosen.startswith("source:") else chosen
    jobs = _jobs(studio, picked, kinds=("dataset",), states=_DATASET_STATES)
    names = Counter(job.name for job in jobs)
    for job in jobs:
        told = [job.id[:13]] if names[job.name] > 1 else []
        told += [] if job.state == "done" else [f"{job.state}: the training waits for it"]
        found.append((job.id, f"{job.name} ({', '.join(told)})" if told else job.name))
    if chosen.startswith("source:"):
        found.append((chosen, f"{chosen.removeprefix('source:')} (as in the cloned job)"))
    if chosen and all(value != chosen for value, _ in found):  # or the first one would be sent in its place
        found.append((chosen, f"{chosen} (deleted)"))
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


def _models(studio: Studio, form: ModelForm) -> list[Job]:
    return _jobs(studio, form["previous_model"], kinds=("train",))


def shown_framework(form: ModelForm) -> str:
    """Return the backend whose standard networks are shown: that of the chosen one, where it is a framework."""
    backend = form["standard_network"].rpartition("/")[0]
    info = backend_infos().get(backend)
    return backend if info is not None and info.takes_network_files else DEFAULT_BACKEND


def networks_of(studio: Studio, form: ModelForm, what: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the standard networks as cards, those that fit first; ``why_not`` says why one cannot be chosen."""
    chosen, why_not, shown = form["standard_network"], _why_not(studio), shown_framework(form)
    fits = _Fit.of(form, what)
    found = []
    for card in _cards(studio, form):
        backend, _, name = card.name.rpartition("/")
        info = backend_infos()[backend]
        if info.takes_network_files and backend != shown:  # behind its own button
            continue
        network = info.network(name)
        reason = why_not[backend] or ("" if network is None else fits.why_not(network, card))
        found.append(_network(card, network, info.title, has_text=info.zoo is not None, why_not=reason))
    if chosen and all(each["value"] != chosen for each in found):
        found.insert(0, _unknown_network(chosen))
    found.sort(
        key=lambda each: (bool(each["why_not"]) and each["value"] != chosen, each["is_synthetic"], each["is_free"])
    )
    place = next((number for number, each in enumerate(found) if each["value"] == chosen), 0)
    if place >= _FIRST_CARDS:  # the chosen one is always in sight
        found.insert(_FIRST_CARDS - 1, found.pop(place))
    return found


@dataclass(frozen=True)
class _Fit:
    """What is known of the chosen data.

    Args:
        kind: of the dataset; empty where it is not known.
        size: (height, width) of what a network gets; None where it is not known.
        classes: names of the classes.
    """

    kind: str
    size: tuple[int, int] | None
    classes: tuple[str, ...] | None = None

    @classmethod
    def of(cls, form: ModelForm, what: Mapping[str, Any] | None) -> _Fit:
        """Return what is known of the data of a form."""
        if what is None and form["dataset"] != DIGITS:
            return cls("", None)
        height, width, _ = _shape_of(form, what)
        kind = "image-classification" if what is None else what["kind"]
        classes = None if what is None else tuple(what.get("classes") or ())
        return cls(kind, None if height is None or width is None else (height, width), classes)

    def why_not(self, network: StandardNetwork, card: NetworkCard) -> str:
        """Return why a network cannot be trained on the data; empty where it can, or where no network can."""
        if not self.kind or why_not_trainable(self.kind, self.classes):
            return ""
        return why_no_fit(network, self.kind, self.size, self.classes) or (
            card.why_not if card.badge == "Too large" else ""
        )


def _cards(studio: Studio, form: ModelForm) -> list[NetworkCard]:
    dataset = form["dataset"]
    size = small_number(form["batch_size"].strip()) or 64
    try:
        return studio.training.cards(None if dataset.startswith("source:") else dataset or None, size)
    except ZigguratError:  # the dataset is gone; its field says so
        return studio.training.cards(None, size)


def _network(
    card: NetworkCard, network: StandardNetwork | None, framework: str, *, has_text: bool, why_not: str
) -> dict[str, Any]:
    is_synthetic = card.name.startswith("null/")
    # Its networks have the names of others.
    about = [each for each in (card.year, card.about, framework if is_synthetic else "") if each]
    return {
        "value": card.name,
        "title": card.title,
        "about": ", ".join(about),
        "framework": framework,
        "is_synthetic": is_synthetic,
        "is_free": network is not None and not task(network.task).has_best,
        "source": "" if network is None else network.source,
        "figures": [
            (name, text(value))
            for name, value, text in (
                ("Parameters", card.parameters, _short_count),
                ("Epoch", card.epoch_s, as_duration),
                ("Memory", card.memory_bytes, as_bytes),
            )
            if value is not None
        ],
        "badge": card.badge,
        "has_text": has_text,
        "why_not": why_not,
    }


def _short_count(count: float) -> str:
    """Return a large count in three digits: ``11.7 M``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f}"


def _unknown_network(value: str) -> dict[str, Any]:
    backend, _, name = value.rpartition("/")
    card = NetworkCard(
        name=value, title=name, year="", about="", input_text="", parameters=None, epoch_s=None, memory_bytes=None,
        badge="", why_not="",
    )  # fmt: skip
    return _network(card, None, backend_title(backend), has_text=False, why_not="")


def _checkpoints(form: ModelForm, models: Sequence[Job]) -> list[tuple[str, str]]:
    found = [("", "Best, or else the newest"), ("latest", "Newest")]
    model = next((job for job in models if job.id == form["previous_model"]), None)
    if model is not None and (choices := checkpoint_choices(model)):
        found = [choices[0], found[1], *choices[1:]]
    chosen = form["previous_checkpoint"]
    return found if any(value == chosen for value, _ in found) else [*found, (chosen, chosen)]


def framework_choices(studio: Studio) -> list[tuple[str, str, str]]:
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
