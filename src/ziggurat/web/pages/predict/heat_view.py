"""View model of Grad-CAM: the image with its heat map, the legend, and the other choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CHOICES", "HeatView", "heat_view"]

CHOICES: Final = 200
"""Classes that a page offers: the likeliest, where a network has more."""


@dataclass(frozen=True, kw_only=True)
class HeatView:
    """Where in an image a network found what speaks for a class.

    Args:
        class_name: of the class.
        number: of the class, as the field has it.
        probability: of the class.
        is_likeliest: whether no class is likelier.
        layer: that was looked at.
        places: of the layer, such as ``6 × 6``.
        is_empty: whether nothing speaks for the class there.
        overlay: number of the image with its heat among those that are kept.
        alone: number of the image of the heat alone.
        classes: value and text of each that may be chosen.
        layers: value and text of each that may be chosen, in the order of the network.
        stops: share of the legend, in percent, and the color there.
    """

    class_name: str
    number: str
    probability: float
    is_likeliest: bool
    layer: str
    places: str
    is_empty: bool
    overlay: int
    alone: int
    classes: Sequence[tuple[str, str]]
    layers: Sequence[tuple[str, str]]
    stops: Sequence[tuple[float, str]]


def heat_view(found: Mapping[str, Any], drawn: list[bytes]) -> HeatView:
    """Return what is shown.

    Args:
        found: as ``Training.grad_cam`` gives it, with the likeliest ``CHOICES`` classes.
        drawn: gets its images.
    """
    drawn += [found["png"], found["heat_png"]]
    named = {each["number"]: each["class"] for each in found["classes"]}
    classes = sorted({**named, found["number"]: found["class"]}.items())
    colours = found["colours"]
    return HeatView(
        class_name=found["class"],
        number=str(found["number"]),
        probability=found["probability"],
        is_likeliest=found["number"] == found["classes"][0]["number"],
        layer=found["layer"],
        places=f"{len(found['heat'])} × {len(found['heat'][0])}",
        is_empty=not found["largest"],
        overlay=len(drawn) - 2,
        alone=len(drawn) - 1,
        classes=[(str(number), name) for number, name in classes],
        layers=[(name, name) for name in found["layers"]],
        stops=[(round(100 * place / (len(colours) - 1), 1), colour) for place, colour in enumerate(colours)],
    )
