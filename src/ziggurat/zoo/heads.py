"""Last layer of networks by the published names of its weights: it starts fresh for other classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["head_beginning", "head_classes", "head_keys", "own_name"]

_HEADS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("resnet18", "resnet34", "resnet50", "efficientnet_lite0"), "fc."),
    "vgg16": "classifier.6.",
    **dict.fromkeys(("mobilenet_v2", "efficientnet_b0"), "classifier.1."),
    "convnext_tiny": "classifier.2.",
    "vit_small": "head.",
    **dict.fromkeys(("convnet", "multilabel"), "logits."),
    **dict.fromkeys(("detector_nano", "detector_small", "detector_medium", "detector_lite0", "unet_lite0"), "head"),
}
"""Network → what the names of its last layer begin with, in torchvision, timm and ours."""

_LEVELS: Final = ".classes."
"""In the names of the layers of a head that depend on the classes, beside others: one for each level of a detector."""

_BEGINNINGS: Final = ("fc", "classifier", "head", "logits")


def head_beginning(network: str) -> str:
    """Return what the names of the last layer of a standard network begin with; empty where it has no published name.

    Args:
        network: its name.
    """
    return _HEADS.get(network, "")


def own_name(network: str, published: str) -> str:
    """Return what a standard network calls weights of a published name; the same name for most networks.

    Args:
        network: its name.
        published: name in the file of its publisher, such as ``_blocks.0._bn1.weight`` of EfficientNet-Lite0.
    """
    return re.sub(r"(^|\.)_", r"\1", published) if network == "efficientnet_lite0" else published


def head_keys(network: str, shapes: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
    """Return the names of the weights of the last layer; none where no layer looks like it.

    Args:
        network: name of the standard network; of another one, it is the last fully connected layer whose name begins
            with ``fc``, ``classifier``, ``head`` or ``logits``.
        shapes: published name → shape.
    """
    beginning = head_beginning(network)
    levels = tuple(name for name in shapes if beginning == "head" and name.startswith(beginning) and _LEVELS in name)
    if levels:
        return levels
    if not any(name.startswith(beginning) for name in shapes):
        beginning = ""
    if not beginning:
        layers = [
            name.removesuffix("weight")
            for name, shape in shapes.items()
            if name.endswith(".weight") and len(shape) == 2 and name.split(".")[0] in _BEGINNINGS
        ]
        if not layers:
            return ()
        beginning = max(layers, key=_natural)
    return tuple(name for name in shapes if name.startswith(beginning))


def head_classes(network: str, shapes: Mapping[str, Sequence[int]]) -> int:
    """Return for how many classes the last layer is; 0 if unknown."""
    weights = [shapes[name] for name in head_keys(network, shapes) if len(shapes[name]) > 1]
    return int(weights[-1][0]) if weights else 0


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which ``classifier.10.`` stands behind ``classifier.9.``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"\.", name)]
