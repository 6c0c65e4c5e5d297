"""Optimizers that PyTorch has none of: FTRL-Proximal, and Adagrad with dual averaging; both as TensorFlow has them.

Both follow sums of all gradients so far, and compute each weight from them anew. An L1 penalty therefore makes weights
exactly zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from ziggurat.errors import ConfigurationError

__all__ = ["AdagradDA", "Ftrl"]

_torch: Any = torch
"""PyTorch's functions on lists of tensors, which its own optimizers use, are missing from its type stubs."""


class _DualAveraging(torch.optim.Optimizer):
    """Base of both: one step over all groups, on dense gradients.

    A learning rate of 0 changes nothing, sums included: the formulas divide by it, or forget the weights.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have gradients.

        Args:
            closure: computes the loss again and returns it.

        Raises:
            ConfigurationError: where a gradient is sparse.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            for group in self.param_groups:
                parameters = [each for each in group["params"] if each.grad is not None]
                if parameters and group["lr"] > 0:
                    self._move(group, parameters, [_dense(each.grad) for each in parameters])
        return loss

    @abstractmethod
    def _move(self, group: Mapping[str, Any], parameters: list[Any], gradients: list[Any]) -> None:
        """Change the parameters of one group."""

    def _slots(self, parameters: Sequence[torch.Tensor], firsts: Mapping[str, float]) -> list[list[Any]]:
        """Return the slots of all parameters, one list for each name.

        Args:
            parameters: whose they are.
            firsts: name of a slot → its first value.
        """
        for each in parameters:
            state = self.state[each]
            for name, first in firsts.items():
                if name not in state:
                    state[name] = torch.full_like(each, first, memory_format=torch.preserve_format)
        return [[self.state[each][name] for each in parameters] for name in firsts]


class Ftrl(_DualAveraging):
    """FTRL-Proximal (McMahan et al., "Ad click prediction: a view from the trenches", KDD 2013, algorithm 1).

    With the gradient g of step t, n the sum of squared gradients and p = −``learning_rate_power``::

        σ = ((n + g²)^p − n^p) / lr        n ← n + g²        z ← z + g − σ w
        w ← (clip(z, −l1, l1) − z) / (n^p / lr + 2 l2)

    Args:
        params: parameters, or groups of them.
        lr: learning rate.
        learning_rate_power: how the rate falls with the squares; 0 keeps it, −0.5 is the paper's.
        initial_accumulator_value: n before the first step.
        l1: strength of the L1 penalty.
        l2: strength of the L2 penalty.

    Raises:
        ConfigurationError: where a value cannot be.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.001,
        *,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        if learning_rate_power > 0:
            raise ConfigurationError(f"`learning_rate_power` is {learning_rate_power}, above 0.")
        _check_not_negative(lr=lr, initial_accumulator_value=initial_accumulator_value, l1=l1, l2=l2)
        super().__init__(
            params,
            {
                "lr": lr,
                "learning_rate_power": learning_rate_power,
                "initial_accumulator_value": initial_accumulator_value,
                "l1": l1,
                "l2": l2,
            },
        )

    def _move(self, group: Mapping[str, Any], parameters: list[Any], gradients: list[Any]) -> None:
        rate, l1, power = group["lr"], group["l1"], -group["learning_rate_power"]
        firsts = {"square_sum": group["initial_accumulator_value"], "linear": 0.0}
        squares, linear = self._slots(parameters, firsts)
        before = _powers(squares, power)
        _torch._foreach_addcmul_(squares, gradients, gradients)
        after = _powers(squares, power)
        shift = _torch._foreach_sub(after, before)
        _torch._foreach_div_(shift, rate)
        _torch._foreach_add_(linear, gradients)
        _torch._foreach_addcmul_(linear, shift, parameters, -1.0)
        _torch._foreach_div_(after, rate)
        _torch._foreach_add_(after, 2 * group["l2"])
        clipped = _torch._foreach_clamp_min(linear, -l1)
        _torch._foreach_clamp_max_(clipped, l1)
        _torch._foreach_sub_(clipped, linear)
        _torch._foreach_div_(clipped, after)
        _torch._foreach_copy_(parameters, clipped)


class AdagradDA(_DualAveraging):
    """Adagrad with dual averaging (Duchi, Hazan and Singer, JMLR 2011, section 1.1).

    With the gradient g of step t, G and n the sums of gradients and of squared gradients::

        G ← G + g        n ← n + g²        w ← −lr (G − clip(G, −l1 t, l1 t)) / (lr l2 t + √n)

    Weights start at 0 with the first step, whatever they were: it is meant for linear networks.

    Args:
        params: parameters, or groups of them.
        lr: learning rate.
        initial_accumulator_value: n before the first step; above 0.
        l1: strength of the L1 penalty.
        l2: strength of the L2 penalty.

    Raises:
        ConfigurationError: where a value cannot be.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 0.001,
        *,
        initial_accumulator_value: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
    ) -> None:
        _check_not_negative(lr=lr, l1=l1, l2=l2)
        if initial_accumulator_value <= 0:
            raise ConfigurationError(f"`initial_accumulator` is {initial_accumulator_value}, not above 0.")
        super().__init__(params, {"lr": lr, "initial_accumulator_value": initial_accumulator_value, "l1": l1, "l2": l2})

    def _move(self, group: Mapping[str, Any], parameters: list[Any], gradients: list[Any]) -> None:
        rate, l1, l2 = group["lr"], group["l1"], group["l2"]
        sums, squares = self._slots(parameters, {"sum": 0.0, "square_sum": group["initial_accumulator_value"]})
        _torch._foreach_add_(sums, gradients)
        _torch._foreach_addcmul_(squares, gradients, gradients)
        scales = _torch._foreach_sqrt(squares)
        for parameter, total, scale in zip(parameters, sums, scales, strict=True):
            state = self.state[parameter]
            state["step"] = state.get("step", 0) + 1
            kept = total - total.clamp(-l1 * state["step"], l1 * state["step"]) if l1 else total
            parameter.copy_(kept.mul(-rate).div_(scale.add_(rate * l2 * state["step"])))


def _dense(gradient: torch.Tensor) -> torch.Tensor:
    if gradient.is_sparse:
        raise ConfigurationError(
            "A gradient is sparse, and this optimizer takes dense ones.",
            advice="Make embeddings with `sparse=False`, which is the default.",
        )
    return gradient


def _powers(values: list[Any], power: float) -> list[Any]:
    return list(_torch._foreach_sqrt(values) if power == 0.5 else _torch._foreach_pow(values, power))


def _check_not_negative(**values: float) -> None:
    for name, value in values.items():
        if not value >= 0:
            raise ConfigurationError(f"`{name}` is 0 or more.", received=value)
