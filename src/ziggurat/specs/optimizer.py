"""Optimizer specs: one pydantic model for each optimizer, with its own parameters."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ziggurat.specs.base import SpecModel, bare_text, spec_field

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "FtrlOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "RmspropOptimizer",
    "SgdOptimizer",
]

_GROUP = "Optimizer"


def _parameter(default: float | bool, title: str, help: str, **bounds: Any) -> Any:  # noqa: A002
    return spec_field(default, title=title, help=help, group=_GROUP, **bounds)


def _share(default: float, title: str, help: str) -> Any:  # noqa: A002
    return _parameter(default, title, help, ge=0, lt=1)


def _epsilon(default: float) -> Any:
    return _parameter(default, "Epsilon", "Keeps a division from zero; typical: 1e-10 to 1e-6.", gt=0)


class SgdOptimizer(SpecModel):
    """Plain stochastic gradient descent."""

    name: Literal["sgd"] = "sgd"


class MomentumOptimizer(SpecModel):
    """Gradient descent with momentum; with ``nesterov`` in the form of Sutskever et al. (ICML 2013)."""

    name: Literal["momentum"] = "momentum"
    momentum: float = _share(0.9, "Momentum", "Share of the last update that is kept; typical: 0.9 to 0.99.")
    nesterov: bool = _parameter(False, "Nesterov", "Takes the gradient at the place to which the momentum leads.")


class _Adam(SpecModel):
    """What both forms of Adam have."""

    beta_1: float = _share(0.9, "Beta 1", "Memory of the gradients' mean; typical: 0.8 to 0.95.")
    beta_2: float = _share(0.999, "Beta 2", "Memory of the gradients' squares; typical: 0.95 to 0.999.")
    epsilon: float = _epsilon(1e-8)


class AdamOptimizer(_Adam):
    """Adam (Kingma and Ba, ICLR 2015)."""

    name: Literal["adam"] = "adam"


class AdamWOptimizer(_Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019)."""

    name: Literal["adamw"] = "adamw"


class RmspropOptimizer(SpecModel):
    """RMSProp (Tieleman and Hinton, 2012)."""

    name: Literal["rmsprop"] = "rmsprop"
    decay: float = _share(0.9, "Decay", "Memory of the gradients' squares; typical: 0.9 to 0.99.")
    momentum: float = _share(0.0, "Momentum", "Share of the last update that is kept; typical: 0 to 0.9.")
    epsilon: float = _epsilon(1e-8)


class AdagradOptimizer(SpecModel):
    """Adagrad (Duchi, Hazan and Singer, JMLR 2011)."""

    name: Literal["adagrad"] = "adagrad"
    initial_accumulator: float = _parameter(
        0.1, "First squares", "What the sum of squares starts with; typical: 0 to 0.1.", ge=0
    )


class AdagradDaOptimizer(SpecModel):
    """Adagrad with dual averaging (Duchi, Hazan and Singer, JMLR 2011), for sparse linear networks."""

    name: Literal["adagrad_da"] = "adagrad_da"
    initial_accumulator: float = _parameter(
        0.1, "First squares", "What the sum of squares starts with; typical: 0.1.", gt=0
    )
    l1: float = _parameter(0.0, "L1", "Strength of the L1 penalty; typical: 0 to 0.01.", ge=0)
    l2: float = _parameter(0.0, "L2", "Strength of the L2 penalty; typical: 0 to 0.01.", ge=0)


class AdadeltaOptimizer(SpecModel):
    """Adadelta (Zeiler, 2012)."""

    name: Literal["adadelta"] = "adadelta"
    rho: float = _share(0.95, "Rho", "Memory of the squares; typical: 0.9 to 0.99.")
    epsilon: float = _epsilon(1e-8)


class FtrlOptimizer(SpecModel):
    """FTRL-Proximal (McMahan et al., KDD 2013)."""

    name: Literal["ftrl"] = "ftrl"
    learning_rate_power: float = _parameter(
        -0.5, "Power", "How the rate falls with the squares; 0 keeps it, -0.5 is usual.", le=0
    )
    l1: float = _parameter(0.0, "L1", "Strength of the L1 penalty; typical: 0 to 0.01.", ge=0)
    l2: float = _parameter(0.0, "L2", "Strength of the L2 penalty; typical: 0 to 0.01.", ge=0)


Optimizer = Annotated[
    SgdOptimizer
    | MomentumOptimizer
    | AdamOptimizer
    | AdamWOptimizer
    | RmspropOptimizer
    | AdagradOptimizer
    | AdagradDaOptimizer
    | AdadeltaOptimizer
    | FtrlOptimizer,
    Field(discriminator="name"),
    bare_text("name"),
]
"""Any of the optimizers, told apart by ``name``. A backend may know fewer, and says which."""
