"""Optimizers by the names that every backend has, on PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from ziggurat.backends.torch.dual_averaging import AdagradDA, Ftrl
from ziggurat.errors import ConfigurationError, UnknownNameError

__all__ = ["OPTIMIZERS", "first_momentum", "make_optimizer"]

_NAMES: Final[Mapping[str, str]] = {
    "epsilon": "eps",
    "initial_accumulator": "initial_accumulator_value",
    "decay": "alpha",
    "momentum": "momentum",
    "nesterov": "nesterov",
    "rho": "rho",
    "learning_rate_power": "learning_rate_power",
    "l1": "l1",
    "l2": "l2",
}
"""Parameter of a spec → that of PyTorch."""

OPTIMIZERS: Final[Mapping[str, tuple[Callable[..., torch.optim.Optimizer], frozenset[str]]]] = {
    "sgd": (torch.optim.SGD, frozenset()),
    "momentum": (torch.optim.SGD, frozenset({"momentum", "nesterov"})),
    "nesterov": (torch.optim.SGD, frozenset({"momentum"})),
    "adadelta": (torch.optim.Adadelta, frozenset({"rho", "epsilon"})),
    "adagrad": (torch.optim.Adagrad, frozenset({"initial_accumulator"})),
    "adagrad_da": (AdagradDA, frozenset({"initial_accumulator", "l1", "l2"})),
    "adam": (torch.optim.Adam, frozenset({"beta_1", "beta_2", "epsilon"})),
    "adamw": (torch.optim.AdamW, frozenset({"beta_1", "beta_2", "epsilon"})),
    "ftrl": (Ftrl, frozenset({"learning_rate_power", "initial_accumulator", "l1", "l2"})),
    "rmsprop": (torch.optim.RMSprop, frozenset({"momentum", "decay", "epsilon"})),
}
"""name → (class, names of its parameters). Weight decay is added to the gradients; ``adamw`` decouples it."""

_WITH_MOMENTUM: Final = {"momentum": 0.9, "nesterov": 0.9, "rmsprop": 0.9}


def make_optimizer(
    name: str, options: Mapping[str, Any], parameters: Sequence[nn.Parameter], rate: float, weight_decay: float
) -> torch.optim.Optimizer:
    """Return an optimizer.

    Args:
        name: one of ``OPTIMIZERS``.
        options: its parameters; what is left out has the default of every backend.
        parameters: what it trains.
        rate: the first learning rate.
        weight_decay: factor of decoupled decay, for ``adamw`` and weights of two axes or more; others leave it out.

    Raises:
        UnknownNameError: where the name or a parameter is not known.
        ConfigurationError: where PyTorch refuses a parameter's value.
    """
    if name not in OPTIMIZERS:
        raise UnknownNameError("optimizer of the PyTorch backend", name, OPTIMIZERS)
    maker, known = OPTIMIZERS[name]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"parameter of the optimizer {name}", option, known)
    chosen = {_NAMES[key]: value for key, value in options.items() if key in _NAMES}
    if "beta_1" in known:
        chosen["betas"] = (options.get("beta_1", 0.9), options.get("beta_2", 0.999))
    momentum = first_momentum(name, options)
    if momentum is not None:
        chosen["momentum"] = momentum
    if name == "nesterov":
        chosen["nesterov"] = True
    if name == "adagrad":
        chosen.setdefault("initial_accumulator_value", 0.1)
    if name == "rmsprop":
        chosen.setdefault("alpha", 0.9)
    groups: list[dict[str, Any]] = [{"params": list(parameters), "weight_decay": 0.0}]
    if name == "adamw" and weight_decay:
        groups = [
            {"params": [each for each in parameters if each.ndim > 1], "weight_decay": weight_decay},
            {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},
        ]
    try:
        return maker([each for each in groups if each["params"]], lr=rate, **chosen)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(
            f"The optimizer {name} refuses a parameter: {str(error).rstrip('.')}.", advice="Look at its reference page."
        ) from error


def first_momentum(name: str, options: Mapping[str, Any]) -> float | None:
    """Return the momentum that the optimizer starts with; None where it has none."""
    return float(options.get("momentum", _WITH_MOMENTUM[name])) if name in _WITH_MOMENTUM else None
