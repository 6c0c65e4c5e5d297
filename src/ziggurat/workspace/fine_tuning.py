"""Preset "Fine-tune": fields of a training that goes on from a pretrained model, for page, command line and docs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["FINE_TUNE_SUMMARY", "fine_tune_fields"]

_FIELDS: Final[Mapping[str, Any]] = {
    "fine_tuning.frozen_epochs": 2,
    "fine_tuning.backbone_rate": 0.3,
    "fine_tuning.layer_decay": 0.8,
    "schedule.policy": "cosine",
    "epochs": 15,
}
"""A fresh last layer has large gradients at first, which would spoil the layers before it (Kumar et al., "Fine-tuning
can distort pretrained features", ICLR 2022): so they wait. First layers see edges and colors, which are much the same
everywhere (Yosinski et al., "How transferable are features in deep neural networks?", NeurIPS 2014): so they move
least."""

_RATE: Final = 0.05
"""Of the last layer, which is fresh: with few samples, and so few steps, it learns too little at 0.01."""

_ADAPTIVE_RATE: Final = 0.001
_ADAPTIVE: Final = frozenset({"adam", "adamw", "rmsprop"})
"""Optimizers whose steps have about the length of the rate, whatever the gradients are."""

FINE_TUNE_SUMMARY: Final = (
    "Trains the last layer alone for 2 epochs, then all layers, each at a lower rate than the one behind it."
)
"""What the preset does, one sentence."""


def fine_tune_fields(optimizer: str) -> Mapping[str, Any]:
    """Return path in the spec → value.

    Args:
        optimizer: name of the one that is chosen, for its rate.
    """
    return {**_FIELDS, "learning_rate": _ADAPTIVE_RATE if optimizer in _ADAPTIVE else _RATE}
