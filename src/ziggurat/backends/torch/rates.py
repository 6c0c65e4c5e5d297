"""Rates of fine-tuning: parameter groups for the stages of a network, and a backbone that can stand still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import nn

from ziggurat.backends.torch.network import MODEL
from ziggurat.engine.fine_tuning import FineTuningRequest, rates_of

__all__ = ["StageRates"]

_FACTOR: Final = "ziggurat_factor"
"""Key of a parameter group: its factor of the learning rate; None for the head."""


class StageRates:
    """Gives the stages of a network learning rates of their own.

    The groups of each optimizer are split; its slots stay where they are, for they belong to single parameters.

    Args:
        request: what was asked.
        module: the network; only its parameters that have gradients take part.
        optimizers: those that train it.

    Raises:
        ConfigurationError: where the network has no head, or no backbone.
    """

    def __init__(
        self, request: FineTuningRequest, module: nn.Module, optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        trained = {f"{MODEL}{name}": each for name, each in module.named_parameters() if each.requires_grad}
        factors = rates_of(request, {name: tuple(each.shape) for name, each in trained.items()})
        self._backbone = [each for name, each in trained.items() if factors[name] is not None]
        self._optimizers = list(optimizers)
        by_parameter = {id(each): factors[name] for name, each in trained.items()}
        for optimizer in optimizers:
            groups = [part for group in optimizer.param_groups for part in _split(group, by_parameter.__getitem__)]
            optimizer.param_groups[:] = groups
        self.is_frozen = False
        """Whether only the head is trained."""

    def set(self, learning_rate: float, backbone_rate: float) -> bool:
        """Set the rates from the next step on; a backbone of rate 0 has no gradients.

        Args:
            learning_rate: of the head.
            backbone_rate: factor of all other rates.

        Returns:
            whether the backbone stands still now and did not before, or the other way round.
        """
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                factor = group[_FACTOR]
                group["lr"] = learning_rate if factor is None else learning_rate * factor * backbone_rate
        if self.is_frozen == (backbone_rate == 0):
            return False
        self.is_frozen = not self.is_frozen
        for parameter in self._backbone:
            parameter.requires_grad_(not self.is_frozen)
        return True


def _split(group: dict[str, Any], factor_of: Callable[[int], float | None]) -> list[dict[str, Any]]:
    """Return a parameter group as one for each factor, in the order of the parameters."""
    parts: dict[float | None, list[nn.Parameter]] = {}
    for parameter in group["params"]:
        parts.setdefault(factor_of(id(parameter)), []).append(parameter)
    return [{**group, "params": parameters, _FACTOR: factor} for factor, parameters in parts.items()]
