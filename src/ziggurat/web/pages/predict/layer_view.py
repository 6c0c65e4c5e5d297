"""View model of a layer: its statistics, its histogram as bars, and the number of its image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["HISTOGRAM_SIZE", "LayerView", "layer_views"]

HISTOGRAM_SIZE: Final = (160, 48)
"""Width and height of the image of a histogram."""


@dataclass(frozen=True, kw_only=True)
class LayerView:
    """A layer's output, or its weights.

    Args:
        name: of the layer, or of the array.
        shape: such as ``28 × 28 × 6``.
        figures: ``mean``, ``deviation``, ``minimum`` and ``maximum``; None where no number is finite.
        not_finite: how many numbers are NaN or infinite.
        parameters: numbers in it, of weights.
        image: number of its image among those that are kept; None where there is nothing to draw.
        bars: place, height and what it says, of each bar of the histogram.
    """

    name: str
    shape: str
    figures: Mapping[str, float | None]
    not_finite: int
    parameters: int
    picture: int | None
    bars: Sequence[tuple[float, float, float, str]]


def layer_views(layers: Sequence[Mapping[str, Any]], drawn: list[bytes]) -> list[LayerView]:
    """Return what is shown of layers.

    Args:
        layers: as ``Training.activations`` gives them.
        drawn: gets their images.
    """
    return [_view(layer, drawn) for layer in layers]


def _view(layer: Mapping[str, Any], drawn: list[bytes]) -> LayerView:
    if layer["png"] is not None:
        drawn.append(layer["png"])
    return LayerView(
        name=layer["name"],
        shape=" × ".join(map(str, layer["shape"])) or "one number",
        figures={name: layer[name] for name in ("mean", "deviation", "minimum", "maximum")},
        not_finite=layer["not_finite"],
        parameters=layer.get("parameters", 0),
        picture=None if layer["png"] is None else len(drawn) - 1,
        bars=_bars(layer["histogram"]),
    )


def _bars(histogram: Mapping[str, Sequence[float]]) -> list[tuple[float, float, float, str]]:
    """Return left edge, width, height and words of each bar; heights go by the root, or one bar would hide the rest."""
    counts, edges = histogram["counts"], histogram["edges"]
    if not counts:
        return []
    width = HISTOGRAM_SIZE[0] / len(counts)
    most = math.sqrt(max(counts)) or 1.0
    return [
        (
            round(number * width, 1),
            round(width - 1, 1),
            round(HISTOGRAM_SIZE[1] * math.sqrt(count) / most, 1),
            f"{edges[number]:.3g} to {edges[number + 1]:.3g}: {count}",
        )
        for number, count in enumerate(counts)
    ]
