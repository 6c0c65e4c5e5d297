"""Optimizers of a loss: one, or of a network that is fine-tuned one for each rate that its stages have.

Each has its own counters, as those of Adam's bias correction: the backbone's begin with its own first step, which may
come after epochs of the head alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ziggurat.backends.tensorflow.optimizers import make_optimizer
from ziggurat.engine.fine_tuning import BACKBONE_RATE, FineTuningRequest, rates_of

__all__ = ["LossOptimizers", "OptimizerChoice", "stage_factors"]

_ONE_RATE: None = None


@dataclass(frozen=True, kw_only=True)
class OptimizerChoice:
    """What all optimizers of a graph are made of.

    Args:
        name: of the optimizer.
        options: its parameters.
        hyperparameters: name → variable.
        factors: name of a variable → factor of its learning rate, None for the head; empty for one rate.
    """

    name: str
    options: Mapping[str, Any]
    hyperparameters: Mapping[str, Any]
    factors: Mapping[str, float | None] = field(default_factory=dict)


def stage_factors(request: FineTuningRequest | None, variables: Iterable[Any]) -> Mapping[str, float | None]:
    """Return name → factor of the learning rate of the trained variables, None for the head; empty for one rate.

    Args:
        request: what was asked; None for one rate.
        variables: those that are trained, in the order of the network.

    Raises:
        ConfigurationError: where the network has no head, or no backbone.
    """
    if request is None:
        return {}
    return rates_of(request, {each.op.name: tuple(each.shape.as_list()) for each in variables})


class LossOptimizers:
    """The optimizers of one loss.

    Args:
        choice: what they are made of.
    """

    def __init__(self, choice: OptimizerChoice) -> None:
        self._choice = choice
        self._made: dict[float | None, Any] = {}
        self.first = self._optimizer(_ONE_RATE)
        """That of the head, or of everything."""

    def groups(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[float | None, Any, list[tuple[Any, Any]]]]:
        """Return (factor, optimizer, pairs) for each rate.

        Args:
            pairs: (gradient, variable) of all that a step changes.
        """
        factors = self._choice.factors
        found: dict[float | None, list[tuple[Any, Any]]] = {}
        for pair in pairs:
            found.setdefault(factors.get(pair[1].op.name), []).append(pair)
        return [(factor, self._optimizer(factor), chosen) for factor, chosen in found.items()]

    def rate(self, factor: float | None) -> Any:
        """Return the learning rate for a factor, a scalar tensor; None for that of the head, or of everything."""
        known = self._choice.hyperparameters
        rate = known["learning_rate"].read_value()
        return rate if factor is None else rate * (known[BACKBONE_RATE].read_value() * factor)

    def _optimizer(self, factor: float | None) -> Any:
        if factor not in self._made:
            choice = self._choice
            momentum = choice.hyperparameters.get("momentum")
            rate = self.rate(factor)
            self._made[factor] = make_optimizer(
                choice.name, choice.options, rate, None if momentum is None else momentum.read_value()
            )
        return self._made[factor]
