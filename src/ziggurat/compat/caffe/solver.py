"""Solver of Caffe as fields of a training's spec: optimizer, rate, schedule, decay and duration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.text import Message, parse_text

__all__ = ["Solver", "read_solver"]

_TYPES: Final = ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam")
_OLD_TYPES: Final = ("SGD", "NESTEROV", "ADAGRAD", "RMSPROP", "ADADELTA", "ADAM")
_KNOWN_TEXT: Final = (
    "net net_param train_net test_net train_net_param test_net_param train_state test_state test_iter "
    "test_interval test_compute_loss test_initialization base_lr display average_loss max_iter iter_size "
    "lr_policy gamma power momentum weight_decay regularization_type stepsize stepvalue clip_gradients "
    "snapshot snapshot_prefix snapshot_diff snapshot_format solver_mode device_id random_seed type delta "
    "momentum2 rms_decay debug_info snapshot_after_train solver_type layer_wise_reduce"
)


@dataclass(frozen=True)
class Solver:
    """What a solver asks for.

    Args:
        fields: of a training's spec.
        weight_decay: factor of the squared weights in the loss, halved.
        scales_rates: whether its optimizer moves weights in proportion to their gradients, so that ``lr_mult`` can be
            a factor of these.
        notes: what was decided, for people.
    """

    fields: dict[str, Any]
    weight_decay: float
    scales_rates: bool
    notes: list[str] = field(default_factory=list)


def read_solver(text: str) -> Solver:
    """Return what a ``solver.prototxt`` asks for.

    Raises:
        CaffeError: if it is not valid, or asks for what a training does not know; names the line.
    """
    root = parse_text(text)
    root.kind = "the solver"
    root.only(*_KNOWN_TEXT.split())
    notes: list[str] = []
    steps = root.integer("max_iter", 0, 1)
    rate = root.number("base_lr", 0.0)
    if not steps or rate <= 0:
        name = "base_lr" if steps else "max_iter"
        raise CaffeError(f"A solver has a `{name}` above 0.", line=root.line_of(name))
    kind, duration = _kind(root), _duration(root, steps, notes)
    total = duration["epochs"] * duration["steps_per_epoch"]
    fields: dict[str, Any] = {
        "learning_rate": rate,
        "schedule": _schedule(root, total, notes),
        "optimizer": _optimizer(root, kind),
        **duration,
    }
    if root.choice("regularization_type", ("L2", "L1"), "L2") == "L1" and root.number("weight_decay", 0.0):
        raise CaffeError(
            "Weight decay is of the type `L2`.",
            line=root.line_of("regularization_type"),
            received="`L1`",
            advice="Take the line out, and write the penalty into `loss` of the network file.",
        )
    clip = root.number("clip_gradients", -1.0)
    if clip > 0:
        fields["gradient_clip"] = clip
    parts = root.integer("iter_size", 1, 1, 1 << 16)
    if parts > 1:
        fields["gradient_accumulation_steps"] = parts
    seed = root.integer("random_seed", -1, -1, (1 << 32) - 1)
    if seed >= 0:
        fields["seed"] = seed
    shown = {"momentum": "SGD", "sgd": "SGD"}.get(fields["optimizer"]["name"], kind)
    notes.insert(0, f"Solver: {shown}, rate {rate:g}, policy {fields['schedule']['policy']}, {steps:,} steps.")
    return Solver(fields, root.number("weight_decay", 0.0), kind in ("SGD", "Nesterov"), notes)


def _kind(root: Message) -> str:
    if root.has("type"):
        return root.choice("type", _TYPES, "SGD")
    return _TYPES[_OLD_TYPES.index(root.choice("solver_type", _OLD_TYPES, "SGD"))]


def _optimizer(root: Message, kind: str) -> dict[str, Any]:
    momentum, delta = root.number("momentum", 0.0), root.number("delta", 1e-8)
    if not 0 <= momentum < 1:
        raise CaffeError("`momentum` is from 0 to below 1.", line=root.line_of("momentum"), received=f"{momentum:g}")
    if kind in ("SGD", "Nesterov"):
        if not momentum:
            return {"name": "sgd"}
        return {"name": "momentum", "momentum": momentum, "nesterov": kind == "Nesterov"}
    if kind == "AdaGrad":
        return {"name": "adagrad", "initial_accumulator": 0.0}
    if kind == "RMSProp":
        return {"name": "rmsprop", "decay": root.number("rms_decay", 0.99), "epsilon": delta}
    if kind == "AdaDelta":
        return {"name": "adadelta", "rho": momentum, "epsilon": delta}
    return {"name": "adam", "beta_1": momentum, "beta_2": root.number("momentum2", 0.999), "epsilon": delta}


def _schedule(root: Message, steps: int, notes: list[str]) -> dict[str, Any]:
    """Return the schedule: Caffe counts steps, a schedule percents of the training."""
    policy = root.choice("lr_policy", ("fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"), "fixed")
    gamma, size = root.number("gamma", 0.0), root.integer("stepsize", 0)
    found: dict[str, Any] = {"policy": policy}
    if policy in ("step", "exp", "inv", "multistep") and gamma <= 0:
        raise CaffeError(f"The policy `{policy}` has a `gamma` above 0.", line=root.line_of("gamma"))
    if policy == "step":
        if not size:
            raise CaffeError("The policy `step` has a `stepsize`.", line=root.line_of("stepsize"))
        if size >= steps:
            notes.append("`stepsize` is not reached before the end: the rate is fixed.")
            return {"policy": "fixed"}
        found |= {"step_percent": 100 * size / steps, "gamma": gamma}
    elif policy == "multistep":
        points = [point for point in root.integers("stepvalue") if point < steps]
        if not points:
            notes.append("No `stepvalue` is reached before the end: the rate is fixed.")
            return {"policy": "fixed"}
        found |= {"at_percent": [100 * point / steps for point in points], "gamma": gamma}
    elif policy == "exp":
        if gamma > 1:
            raise CaffeError(
                f"The policy `exp` has a `gamma` of {gamma:g}, above 1.",
                line=root.line_of("gamma"),
            )
        found["gamma"] = max(gamma ** (steps / 100), 1e-300)
    elif policy == "inv":
        power = root.number("power", 0.0)
        if power <= 0:
            raise CaffeError("The policy `inv` has a `power` above 0.", line=root.line_of("power"))
        found |= {"gamma": gamma * steps / 100, "power": power}
    elif policy == "poly":
        power = root.number("power", 0.0)
        if power <= 0:
            notes.append("The power of the policy `poly` is 0: the rate is fixed.")
            return {"policy": "fixed"}
        found["power"] = power
    elif policy == "sigmoid":
        if gamma >= 0:
            raise CaffeError("The policy `sigmoid` has a `gamma` below 0: rates fall.", line=root.line_of("gamma"))
        found |= {"step_percent": min(100.0, 100 * size / steps), "gamma": -gamma * steps / 100}
    return found


def _duration(root: Message, steps: int, notes: list[str]) -> dict[str, Any]:
    """Return epochs of so many steps that the training has the steps, and the validations, of the solver."""
    interval = root.integer("test_interval", 0)
    length = interval if 0 < interval < steps else _nearest_part(steps, _part(steps))
    epochs = math.ceil(steps / length)
    if epochs > 1_000_000:
        length, epochs = steps, 1
    notes.append(
        f"{steps:,} steps became {epochs:,} epochs of {length:,} steps, with a validation after each; "
        "leave `steps_per_epoch` out, and set `epochs`, to count passes over the dataset."
    )
    if epochs * length != steps:
        notes.append(f"That is {epochs * length - steps:,} steps more than `max_iter`.")
    return {"epochs": epochs, "steps_per_epoch": length}


def _part(steps: int) -> int:
    return max(1, steps // 10)


def _nearest_part(steps: int, wanted: int) -> int:
    """Return a length near the wanted one that divides the steps; the wanted one where none does."""
    candidates: Sequence[int] = range(wanted, min(steps, 2 * wanted) + 1)
    return next((length for length in candidates if steps % length == 0), wanted)
