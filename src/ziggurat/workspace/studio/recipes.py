"""Cards of the standard networks: memory and time on a dataset, and why some of them cannot be trained on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ziggurat.entities import Job
from ziggurat.entities.backend_info import StandardNetwork, backend_infos
from ziggurat.formatting import as_bytes
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.tasks import Task, tasks
from ziggurat.workspace.recipes import PHOTO_PX, learned_task
from ziggurat.workspace.studio.measurements import Measurements
from ziggurat.workspace.training_checks import KnownData, why_no_fit, why_not_trainable
from ziggurat.workspace.training_estimates import earlier_jobs, network_size, whole_time
from ziggurat.zoo.backends import why_not_usable

__all__ = ["CardFigures", "NetworkCard", "NetworkFigures", "better_run", "network_cards"]

Badge = Literal["", "Recommended", "Fastest", "Too large"]

_ANY_SIZE: Final = {"table": "any columns", "text": "any length"}
_ACCURACY: Final = "validation_accuracy"


@dataclass(frozen=True, kw_only=True)
class NetworkFigures:
    """Figures of a network on a dataset that are known without building it; None if unknown.

    Args:
        parameters: number of trained parameters.
        epoch_s: seconds of an epoch, measured on this machine.
        memory_bytes: at the given batch size.
        memory_total_bytes: of the device.
    """

    parameters: int | None = None
    epoch_s: float | None = None
    memory_bytes: int | None = None
    memory_total_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkCard:
    """A standard network as a page shows it.

    Args:
        name: as ``backend/name``.
        title: displayed name.
        year: of its paper; empty if there is none.
        about: kind of network, and the image size that it is trained at, or designed for if no data is chosen.
        input_text: height, width and channels that it is designed for.
        parameters: number of trained parameters; None if unknown.
        epoch_s: seconds of an epoch on this machine; None if unknown.
        memory_bytes: of a training with the given batch size; None if unknown.
        badge: ``Recommended``, ``Fastest``, ``Too large`` or empty.
        why_not: why it cannot be trained on the dataset; empty if it can.
    """

    name: str
    title: str
    year: str
    about: str
    input_text: str
    parameters: int | None
    epoch_s: float | None
    memory_bytes: int | None
    badge: Badge
    why_not: str


def network_cards(
    data: KnownData | None, figures: Mapping[str, NetworkFigures], recommended: str = "", pretrained: str = ""
) -> list[NetworkCard]:
    """Return a card for each standard network, those that fit first.

    Args:
        data: of the training; None if not chosen yet.
        figures: network (``backend/name``) → its figures.
        recommended: name of the network of the recipe; empty for none.
        pretrained: name of the network that its recipe starts from pretrained weights; empty for none.
    """
    cards = []
    for backend, info in backend_infos().items():
        problem = why_not_usable(backend)
        for network in info.networks:
            known = figures.get(f"{backend}/{network.name}", NetworkFigures())
            why_not = _why_not(network, data) if problem is None else str(problem)
            cards.append(_card(backend, network, known, why_not, data))
    timed = [card for card in cards if not card.why_not and card.epoch_s is not None]
    fastest = min(timed, key=lambda card: card.epoch_s or 0.0).name if len(timed) > 1 else ""
    cards = [replace(card, about=f"{card.about}, pretrained") if card.name == pretrained else card for card in cards]
    return sorted((_with_badge(card, recommended, fastest) for card in cards), key=_place)


def _card(
    backend: str, network: StandardNetwork, known: NetworkFigures, why_not: str, data: KnownData | None
) -> NetworkCard:
    title, _, year = network.title.partition(" (")
    shape = network.input_shape
    any_size = _ANY_SIZE.get(network.input, "any size")
    text = any_size if shape is None else " x ".join(str(side) for side in shape)
    learned = _learned(network, data)
    task = _task_title(network.task if learned is None else learned.name)
    side = any_size if shape is None else _side_text(shape)
    if data is not None and data.size is not None and not why_not:
        side = _side_text(data.size)  # images of a dataset are trained on as they are
    needed, total = known.memory_bytes, known.memory_total_bytes
    is_large = needed is not None and total is not None and needed > total
    if not why_not and is_large:
        why_not = f"Needs {as_bytes(needed or 0)} of memory; there is {as_bytes(total or 0)}"
    return NetworkCard(
        name=f"{backend}/{network.name}",
        title=title,
        year=year.removesuffix(")"),
        about=f"{task}, {side}",
        input_text=text,
        parameters=known.parameters,
        epoch_s=known.epoch_s,
        memory_bytes=needed,
        badge="Too large" if is_large else "",
        why_not=why_not,
    )


def _why_not(network: StandardNetwork, data: KnownData | None) -> str:
    if data is None:
        return ""
    sentence = why_not_trainable(data.kind, data.known_classes)
    if sentence:
        return sentence
    return why_no_fit(network, data.kind, data.size, data.known_classes)


def _learned(network: StandardNetwork, data: KnownData | None) -> Task | None:
    """Return the task that a network learns from data; None where it learns none, or no data is chosen."""
    return None if data is None else learned_task(data, network)


def _task_title(name: str) -> str:
    """Return the title of a task; the name of one that is not installed."""
    found = tasks().get(name)
    title = name if found is None else found.title
    return title[:1].upper() + title[1:]


def _side_text(shape: Sequence[int]) -> str:
    return f"{shape[0]} px" if shape[0] == shape[1] else f"{shape[1]} x {shape[0]} px"


def _with_badge(card: NetworkCard, recommended: str, fastest: str) -> NetworkCard:
    badge: Badge = card.badge or ("Recommended" if card.name == recommended else "")
    badge = badge or ("Fastest" if card.name == fastest else "")
    return NetworkCard(**{**card.__dict__, "badge": badge})


def _place(card: NetworkCard) -> tuple[bool, bool]:
    return bool(card.why_not), card.badge != "Recommended"


@dataclass(frozen=True)
class CardFigures:
    """Figures of networks on a dataset, from test batches, earlier trainings and the facts of the networks.

    Args:
        kept: stored descriptions and test batches.
        memory_bytes: of the machine.
        finished: trainings that are done, the newest first.
    """

    kept: Measurements
    memory_bytes: int
    finished: Sequence[Job]

    def all(self, data: KnownData, source: str, batch_size: int) -> dict[str, NetworkFigures]:
        """Return network (``backend/name``) → its figures.

        Args:
            data: of the trainings.
            source: of the data.
            batch_size: of the trainings.
        """
        return {
            f"{backend}/{network.name}": self._of(backend, network, data, source, batch_size)
            for backend, info in backend_infos().items()
            for network in info.networks
        }

    def _of(
        self, backend: str, network: StandardNetwork, data: KnownData, source: str, batch_size: int
    ) -> NetworkFigures:
        spec = _spec_of(backend, network.name, source, batch_size)
        shape = _input_shape(data)
        facts = None if shape is None else self.kept.facts(backend, network.name, shape, data.classes)
        measured = self.kept.like(backend, network.name, source, batch_size)
        memory: int | None = None
        epoch_s: float | None = None
        if measured is not None:
            memory, epoch_s = int(measured["memory_bytes"]), whole_time(measured, spec).epoch_s
        elif facts is not None:
            memory = network_size(facts, spec).training_bytes + (self.kept.base_bytes(backend) or 0)
        if epoch_s is None:
            epoch_s = self._epoch_s(spec, network.name, data)
        return NetworkFigures(
            parameters=None if facts is None else facts.parameters,
            epoch_s=epoch_s,
            memory_bytes=memory,
            memory_total_bytes=self.memory_bytes,
        )

    def _epoch_s(self, spec: TrainSpec, network: str, data: KnownData) -> float | None:
        samples = data.sizes.get("train")
        earlier = None if samples is None else earlier_jobs(self.finished, spec, network, samples)
        return None if earlier is None or samples is None else samples / earlier.samples_per_s


def better_run(finished: Sequence[Job], source: str, network: str) -> str:
    """Return a sentence about the best earlier run on the data, if it used another network; else an empty text.

    Args:
        finished: trainings that are done.
        source: of the data.
        network: that is recommended, as ``backend/name``.
    """
    best: dict[str, tuple[float, Job]] = {}
    for job in finished:
        curve = job.scalars.get(_ACCURACY)
        data = job.spec.get("data")
        if curve is None or (data.get("source") if isinstance(data, Mapping) else data) != source:
            continue
        name = f"{job.framework}/{job.network}"
        if name not in best or curve.maximum > best[name][0]:
            best[name] = (curve.maximum, job)
    if not best:
        return ""
    name, (accuracy, job) = max(best.items(), key=lambda each: each[1][0])
    if name == network or accuracy <= best.get(network, (0.0, job))[0]:
        return ""
    return f"An earlier run with another network did better: `{job.name}` ({job.network}), accuracy {accuracy:.1%}."


def _spec_of(backend: str, network: str, source: str, batch_size: int) -> TrainSpec:
    content = {"kind": "train", "version": 1, "backend": backend, "network": network, "data": source}
    spec = parse_spec({**content, "batch_size": batch_size}, source="a card")
    assert isinstance(spec, TrainSpec)
    return spec


def _input_shape(data: KnownData) -> tuple[int, int, int] | None:
    """Return the input shape of a network with the recommended recipe."""
    size = data.size or (PHOTO_PX, PHOTO_PX)
    channels = data.channels or (3 if data.size is None else None)
    return None if channels is None else (size[0], size[1], channels)
