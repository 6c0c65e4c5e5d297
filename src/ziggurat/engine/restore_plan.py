"""Start from a pretrained model: which variables of a network take which arrays, and which of them are trained."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ziggurat.errors import CheckpointError

__all__ = ["RestorePlan", "freezes", "plan_restore"]

FROZEN_SUFFIX: Final = "_not_in_use"
"""A variable or scope with this suffix takes the value of the one without it, and is not trained."""

_LISTED: Final = 12
"""Names of a sentence from which on it has only the first ones and their number."""

_SHOWN: Final = 3
"""Names that an error shows of each side."""

_NOT_WEIGHTS: Final = ("ziggurat/", "global_step", "optimizer/", "train/")

_PARTS: Final = re.compile(r"([/.])")
"""What separates the parts of a name: `conv1/weights` in TensorFlow, `conv1.weight` in PyTorch."""


@dataclass(frozen=True)
class RestorePlan:
    """What happens to each variable of a network that starts from a pretrained model.

    Args:
        restored: variable → checkpoint variable whose value it gets, and trains on.
        frozen: variable → checkpoint variable whose value it gets, and keeps.
        fresh: variables that start from their initializers.
        unexpected: checkpoint variables that no variable takes.
    """

    restored: dict[str, str] = field(default_factory=dict)
    frozen: dict[str, str] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return the report for people, one sentence a line; warnings first. Of many names, it has their number."""
        return [f"{title}: {_listed(names)}." for title, names in self._parts()]

    def details(self) -> list[str]:
        """Return the sentences of which the report leaves out names, with all of them."""
        return [f"{title}: {', '.join(names)}." for title, names in self._parts() if len(names) > _LISTED]

    def _parts(self) -> list[tuple[str, list[str]]]:
        parts = [
            ("Not in the pretrained model, so started fresh", self.fresh),
            ("Only in the pretrained model, so left out", self.unexpected),
            ("Restored and frozen", list(self.frozen)),
            ("Restored and trained on", list(self.restored)),
        ]
        return [(title, names) for title, names in parts if names]


def plan_restore(
    variables: Mapping[str, Sequence[int]], checkpoint: Mapping[str, np.ndarray], freeze: Sequence[str] = ()
) -> RestorePlan:
    """Match the variables of a network with those of a checkpoint, by name.

    Args:
        variables: name → shape of the network's weights and averages.
        checkpoint: name → array.
        freeze: patterns of names that are not trained.

    Raises:
        CheckpointError: where a name is in both with different shapes, of which it names all; or where no weight of
            the checkpoint fits, as those of a network whose layers were renamed since.
    """
    plan = RestorePlan()
    problems = []
    for name, shape in variables.items():
        source = _source(name, checkpoint)
        if source is None:
            plan.fresh.append(name)
        elif tuple(checkpoint[source].shape) != tuple(shape):
            problems.append(f"{name} has shape {tuple(shape)}, in the checkpoint {tuple(checkpoint[source].shape)}")
        elif freezes(name, checkpoint, freeze):
            plan.frozen[name] = source
        else:
            plan.restored[name] = source
    if problems:
        raise CheckpointError(
            "A layer that takes its weights from a pretrained model has the shape it had there.",
            received="; ".join(problems),
            advice="Rename the layer to start it fresh, or give it its old size.",
            details={"problems": problems},
        )
    taken = {*plan.restored.values(), *plan.frozen.values()}
    plan.unexpected.extend(name for name in checkpoint if name not in taken and not _is_of_training(name, checkpoint))
    if plan.fresh and plan.unexpected and not taken:
        raise CheckpointError(
            "A pretrained model must have at least one layer by the name that the network gives it.",
            received=f"{_some(plan.unexpected)} in the pretrained model, {_some(plan.fresh)} in the network",
            advice="Fine-tune with the network file that the model was trained with: each job keeps its own, and "
            "standard networks had other names of layers in release 0.1. Or leave the pretrained model out.",
            details={"network": plan.fresh, "pretrained": plan.unexpected},
        )
    return plan


def freezes(name: str, checkpoint: Mapping[str, np.ndarray] | None, freeze: Sequence[str] = ()) -> bool:
    """Return whether a variable is not to be trained.

    Args:
        name: of the variable, with or without the scope ``model/``.
        checkpoint: the pretrained model; None where the job starts fresh.
        freeze: patterns such as ``conv*``, matched against the name and against each scope it lies in.
    """
    if FROZEN_SUFFIX in name and checkpoint is not None and _source(name, checkpoint) is not None:
        return True
    inner = name.removeprefix("model/")
    prefixes = {inner[: each.start()] for each in _PARTS.finditer(inner)} | {inner}
    return any(fnmatch.fnmatchcase(each, pattern) for pattern in freeze for each in {*prefixes, name})


def _listed(names: Sequence[str]) -> str:
    """Return all names of a short list, and the number of a long one."""
    if len(names) <= _LISTED:
        return ", ".join(names)
    return f"{len(names)} arrays, {names[0]} to {names[-1]}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _source(name: str, checkpoint: Mapping[str, np.ndarray]) -> str | None:
    if name in checkpoint:
        return name
    bare = "".join(part.removesuffix(FROZEN_SUFFIX) for part in _PARTS.split(name))
    return bare if bare != name and bare in checkpoint else None


def _is_of_training(name: str, checkpoint: Mapping[str, np.ndarray]) -> bool:
    """Return whether a name is a slot of an optimizer or a counter: it is not needed."""
    return name.startswith(_NOT_WEIGHTS) or name.endswith("_power") or name.rsplit("/", 1)[0] in checkpoint
