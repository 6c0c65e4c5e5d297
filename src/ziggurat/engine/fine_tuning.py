"""Rates of fine-tuning: which weights are the head of a network, and how fast each other one is trained.

Names are those of trained weights in a checkpoint, in the order of the network: ``model/layer4.0.conv1.weight`` on
PyTorch, ``model/layer4/0/conv1/weight`` on TensorFlow. Both give the same answer, for dots and slashes mean the same
here. It depends on names and shapes alone, never on which weights a pretrained model had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ziggurat.errors import ConfigurationError

__all__ = [
    "BACKBONE_RATE",
    "FineTuningRequest",
    "head_of",
    "no_linear_head",
    "rate_factors",
    "rates_of",
    "stages_of",
]

BACKBONE_RATE: Final = "backbone_rate"
"""Hyperparameter of programs that fine-tune: 1 for the rates that were asked for, 0 for a frozen backbone."""

_SCOPE: Final = "model."
_SEPARATOR: Final = re.compile(r"[/.]")
_NUMBERED: Final = re.compile(r"\d")


@dataclass(frozen=True, kw_only=True)
class FineTuningRequest:
    """What a backend is told of fine-tuning.

    Args:
        head: what the names of the head begin with, with dots and without ``model/``, such as ``classifier.6.``; empty
            for the last layer with weights.
        backbone_rate: factor of the learning rate of everything but the head, in (0, 1].
        layer_decay: factor of the rate of a stage, relative to that of the stage behind it, in (0, 1].
    """

    head: str = ""
    backbone_rate: float = 1.0
    layer_decay: float = 1.0


def rates_of(request: FineTuningRequest, shapes: Mapping[str, Sequence[int]]) -> Mapping[str, float | None]:
    """Return name → factor of the learning rate for each weight of the backbone, None for each of the head.

    Args:
        request: what was asked.
        shapes: name → shape of all weights that a training may change, in the order of the network.

    Raises:
        ConfigurationError: where no weight is the head, or all are.
    """
    head = set(head_of(shapes, request.head))
    if not head or len(head) == len(shapes):
        raise ConfigurationError(
            "Fine-tuning needs a network with a last layer and layers before it.",
            received=f"{len(head)} of {len(shapes)} weights in the last layer",
            advice="Leave `fine_tuning` out for this network.",
        )
    factors = rate_factors(list(shapes), head, request.backbone_rate, request.layer_decay)
    return {name: None if name in head else factors[name] for name in shapes}


def head_of(shapes: Mapping[str, Sequence[int]], beginning: str = "") -> tuple[str, ...]:
    """Return the names of the weights of the head.

    Args:
        shapes: name → shape, in the order of the network.
        beginning: as in ``FineTuningRequest``; where no name begins so, the head is the last layer whose weights have
            two axes or more, with all that lies in it.
    """
    if beginning:
        named = tuple(name for name in shapes if _dotted(name).startswith(beginning))
        if named:
            return named
    last = next((name for name in reversed(list(shapes)) if len(shapes[name]) > 1), None)
    if last is None:
        return ()
    layer, dot, _ = _dotted(last).rpartition(".")
    if not dot:  # weights without a layer: the last one, and the biases behind it
        names = list(shapes)
        return tuple(names[names.index(last) :])
    return tuple(name for name in shapes if _dotted(name).startswith(f"{layer}."))


def no_linear_head(received: str) -> ConfigurationError:
    """Return the error of a network whose head is not one fully connected layer.

    Args:
        received: what the head is instead.
    """
    return ConfigurationError(
        "The last layer of this network is not one fully connected layer that takes one vector for each sample.",
        received=received,
        advice="Choose a network that ends in one, such as `efficientnet_lite0`.",
    )


def rate_factors(
    names: Sequence[str], head: Iterable[str], backbone_rate: float, layer_decay: float
) -> Mapping[str, float]:
    """Return name → factor of the learning rate: 1 for the head.

    The last stage before the head has ``backbone_rate``; each stage has the rate of the one behind it, times
    ``layer_decay`` (Howard and Ruder, "Universal language model fine-tuning", ACL 2018, section 3.2; by stage as in
    Clark et al., "ELECTRA", ICLR 2020).

    Args:
        names: of all trained weights, in the order of the network.
        head: those of the head.
        backbone_rate: factor of the last stage before the head.
        layer_decay: factor from a stage to the one before it.
    """
    ends = set(head)
    stages = stages_of([name for name in names if name not in ends])
    last = max(stages.values(), default=0)
    factors = {name: backbone_rate * layer_decay ** (last - stage) for name, stage in stages.items()}
    return {name: factors.get(name, 1.0) for name in names}


def stages_of(names: Iterable[str]) -> Mapping[str, int]:
    """Return name → number of its stage, from 0, in the order of first appearance.

    A stage is a name up to and including its first part that has a number, such as ``layer4``, ``features.7`` or
    ``conv1``. Names without any that stand side by side are one stage: frameworks order them differently.
    """
    numbers: dict[str, int] = {}
    found: dict[str, int] = {}
    count, is_plain = 0, False
    for name in names:
        stage = _numbered_stage(name)
        if stage is None:
            count += not is_plain
            found[name] = count - 1
        else:
            if stage not in numbers:
                numbers[stage] = count
                count += 1
            found[name] = numbers[stage]
        is_plain = stage is None
    return found


def _numbered_stage(name: str) -> str | None:
    """Return the stage of a name; None where no part of it has a number."""
    parts = _dotted(name).split(".")
    for place, part in enumerate(parts):
        if _NUMBERED.search(part):
            return ".".join(parts[: place + 1])
    return None


def _dotted(name: str) -> str:
    """Return a name with dots, without the scope of the network."""
    return _SEPARATOR.sub(".", name).removeprefix(_SCOPE)
