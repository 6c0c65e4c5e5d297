"""Views inside a trained network: activations and weights of layers, and Grad-CAM (Selvaraju et al., 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import cv2
import numpy as np

from ziggurat.dataflow.images import encode_image
from ziggurat.engine.capabilities import SupportsGradients, TrainedNetwork
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import NonFiniteError, UnknownNameError, UsageError
from ziggurat.worker.inference.handlers import WarmModel, decoded_image, fitted_image, top_of

__all__ = [
    "HEAT_COLORS",
    "ShowsLayers",
    "activations",
    "class_number_of",
    "colored",
    "draw_activation",
    "draw_heat",
    "draw_overlay",
    "draw_weights",
    "figures",
    "grad_cam",
    "heat_of",
    "resized",
    "weights_of",
]


def grad_cam(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return where in one image the network finds what speaks for a class.

    Args:
        model: the open network.
        request: ``pictures`` with one image; ``class``: a number, or a name (default: the likeliest); ``layer``: with
            maps (default: the one of the last convolution); ``top`` (default 5).

    Returns:
        ``file`` and what is predicted; ``class``, ``number`` and ``probability`` of the class that was looked at;
        ``layer``, and the ``layers`` that may be asked for; ``heat``: rows of numbers from 0 to 1, one for each place
        of the layer; ``largest``, the value that stands for 1, 0 where nothing speaks for the class; ``png``, the
        image as the network sees it in gray with the heat over it; ``heat_png``, the heat alone; and ``colours``,
        from no heat to the most.

    Raises:
        UsageError: where the network gives no gradients, does not classify, or has no convolution.
        UnknownNameError: where it has no such class, or no such layer with maps.
        NonFiniteError: where it computes with NaN or infinities.
    """
    network, image = model.network, decoded_image(model, request)
    if not isinstance(network, SupportsGradients):
        titles = [info.title for info in backend_infos().values() if SupportsGradients.__name__ in info.capabilities]
        raise UsageError(
            f"Grad-CAM needs a network that gives gradients: one of the {' or '.join(titles)} backend.",
            received=f"a network of the backend {model.job.spec.backend}",
        )
    outputs = {key: np.asarray(value)[0] for key, value in network.predict(image.x).items()}
    layer = _layer(network, outputs, str(request.get("layer") or ""))
    number = class_number_of(request.get("class"), model.job.class_names, outputs["probabilities"])
    maps, gradients = (np.asarray(each)[0] for each in network.maps_and_gradients(image.x, layer, number))
    if not (np.isfinite(maps).all() and np.isfinite(gradients).all()):
        raise NonFiniteError(f"The layer `{layer}` gives NaN or infinities, and Grad-CAM needs finite numbers.")
    heat, largest = heat_of(maps, gradients)
    return {
        "file": image.name,
        **model.job.task.decode(model.job.context, outputs, top=top_of(request)),
        "class": model.job.class_names[number],
        "number": number,
        "probability": float(outputs["probabilities"][number]),
        "layer": layer,
        "layers": list(network.map_layers()[0]),
        "heat": np.round(heat, 4).tolist(),
        "largest": largest,
        "png": draw_overlay(image.seen, heat),
        "heat_png": draw_heat(heat, image.seen.shape[:2]),
        "colours": [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in HEAT_COLORS],
    }


def class_number_of(asked: Any, class_names: Sequence[str], probabilities: np.ndarray) -> int:
    """Return the number of the class that is asked for.

    Args:
        asked: a number, also as a text; else a name; None or an empty text for the likeliest.
        class_names: by class number.
        probabilities: of one image, by class number.

    Raises:
        UnknownNameError: where there is no such class.
    """
    text = "" if asked is None else str(asked).strip()
    if not text:
        return int(np.argmax(probabilities))
    if text.isascii() and text.isdigit() and int(text[:9]) < len(class_names):
        return int(text[:9])
    if text in class_names:
        return list(class_names).index(text)
    raise UnknownNameError("class of this network", text, class_names)


def _layer(network: SupportsGradients, outputs: Mapping[str, np.ndarray], asked: str) -> str:
    """Return the layer that is looked at."""
    if "probabilities" not in outputs:
        raise UsageError("This network does not give one number for each class, and Grad-CAM is for those that do.")
    layers, usual = network.map_layers()
    if not layers:
        raise UsageError(
            "This network has no layer with maps for Grad-CAM: what a convolution gives, before the dense layers."
        )
    if asked and asked not in layers:
        raise UnknownNameError("layer with maps", asked, layers)
    return asked or usual


BINS: Final = 20
"""Bins of a histogram."""


@runtime_checkable
class ShowsLayers(Protocol):
    """A trained network that tells what its layers give. Of one that does not, the outputs are shown."""

    def layer_outputs(self, x: np.ndarray) -> Mapping[str, np.ndarray]:
        """Return layer → its output, (N, …), in the order of the network.

        Args:
            x: (N, H, W, C) float32, preprocessed.
        """
        ...


def activations(model: WarmModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the network makes of one image, layer by layer.

    Args:
        model: the open network.
        request: ``pictures`` with one image; ``top`` (default 5); ``weights``: whether weights are shown (default
            true).

    Returns:
        ``file`` and what is predicted; ``input``, ``activations`` and ``weights``, each with the ``figures`` of its
        arrays and ``png``, a small image (None where there is nothing to draw); ``parameters`` in all weights.
    """
    name, x = fitted_image(model, request)
    outputs = {key: np.asarray(value)[0] for key, value in model.network.predict(x).items()}
    shown = {key: np.asarray(value)[0] for key, value in _layer_outputs(model.network, x).items()}
    weights = weights_of(model.job.state.arrays)
    return {
        "file": name,
        **model.job.task.decode(model.job.context, outputs, top=top_of(request)),
        "input": {"name": "input", **figures(x[0]), "png": draw_activation(x[0], as_color=True)},
        "activations": [{"name": key, **figures(value), "png": draw_activation(value)} for key, value in shown.items()],
        "weights": [
            {"name": key, "parameters": value.size, **figures(value), "png": draw_weights(value)}
            for key, value in (weights.items() if request.get("weights", True) else ())
        ],
        "parameters": sum(value.size for value in weights.values()),
    }


def figures(values: np.ndarray) -> dict[str, Any]:
    """Return the figures of an array as JSON values.

    Returns:
        ``shape``; ``mean``, ``deviation``, ``minimum`` and ``maximum`` (None where no number is finite); ``histogram``:
        ``counts`` in 20 equal bins from the minimum to the maximum, and their 21 ``edges``; ``not_finite``: how many
        numbers are NaN or infinite, which all others leave out.
    """
    numbers = np.asarray(values, np.float64).ravel()
    finite = numbers[np.isfinite(numbers)]
    found: dict[str, Any] = {"shape": list(values.shape), "not_finite": int(numbers.size - finite.size)}
    if not finite.size:
        nothing = {"mean": None, "deviation": None, "minimum": None, "maximum": None}
        return {**found, **nothing, "histogram": {"counts": [], "edges": []}}
    counts, edges = np.histogram(finite, BINS)
    return {
        **found,
        "mean": float(finite.mean()),
        "deviation": float(finite.std()),
        "minimum": float(finite.min()),
        "maximum": float(finite.max()),
        "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
    }


def weights_of(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the arrays of a checkpoint that a network computes with.

    Left out are counters and hyperparameters (single numbers and whole ones), and what an optimizer keeps for an array:
    its name is that of the array with something before or behind it.
    """
    candidates = {name: np.asarray(each) for name, each in arrays.items()}
    candidates = {name: each for name, each in candidates.items() if each.ndim and each.dtype.kind == "f"}
    return {name: each for name, each in candidates.items() if not _is_kept_for_another(name, candidates)}


def _is_kept_for_another(name: str, known: Iterable[str]) -> bool:
    """Return whether a name is another one with parts before or behind it: ``conv/W/Momentum``, ``momentum/conv/W``."""
    parts = name.split("/")
    names = set(known)
    cuts = range(1, len(parts))
    return any("/".join(parts[:cut]) in names or "/".join(parts[cut:]) in names for cut in cuts)


def _layer_outputs(network: TrainedNetwork, x: np.ndarray) -> Mapping[str, np.ndarray]:
    return network.layer_outputs(x) if isinstance(network, ShowsLayers) else network.predict(x)


HEAT_COLORS: Final = (
    (18, 8, 54),
    (70, 16, 104),
    (122, 30, 108),
    (172, 46, 92),
    (214, 74, 62),
    (240, 118, 32),
    (250, 170, 36),
    (247, 218, 98),
    (253, 253, 190),
)
"""RGB from no heat to the most, at even distances. Each is lighter than the one before, so that also who tells no red
from green, and a print without colors, keeps the order."""


_LEAST_PX: Final = 256


_MOST_PX: Final = 512


_OPACITY: Final = 0.8
"""Of the hottest place; a place without heat shows the bare image."""


def heat_of(maps: np.ndarray, gradients: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the heat (H, W) float64 from 0 to 1, and the largest value that it was divided by; 0 where there is none.

    Each map counts by the mean of its gradients; what then speaks against the class is no heat (Selvaraju et al., 2017,
    equations 1 and 2).

    Args:
        maps: of a layer, (H, W, C).
        gradients: of the score of a class by the maps, of the same shape.
    """
    weights = np.asarray(gradients, np.float64).mean(axis=(0, 1))
    heat = np.maximum(np.asarray(maps, np.float64) @ weights, 0.0)
    largest = float(heat.max(initial=0.0))
    return (heat / largest if largest > 0 else heat), largest


def resized(heat: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Return heat for each pixel of an image.

    Args:
        heat: (H, W) from 0 to 1.
        size: (height, width) of the image.
    """
    height, width = size
    return np.clip(cv2.resize(heat, (width, height), interpolation=cv2.INTER_LINEAR), 0.0, 1.0)


def colored(heat: np.ndarray) -> np.ndarray:
    """Return heat from 0 to 1 as RGB, (…, 3) uint8."""
    places = np.linspace(0, 1, len(HEAT_COLORS))
    parts = [np.interp(heat, places, [color[part] for color in HEAT_COLORS]) for part in range(3)]
    return np.rint(np.stack(parts, axis=-1)).astype(np.uint8)


def draw_overlay(image: np.ndarray, heat: np.ndarray) -> bytes:
    """Return a PNG: an image in gray, and over it the heat in color, the more opaque the hotter.

    Args:
        image: (H, W, 1 or 3) uint8.
        heat: of a layer, (h, w) from 0 to 1.
    """
    grey = _shown(image.mean(axis=2, dtype=np.float32))
    shares = resized(heat, (grey.shape[0], grey.shape[1]))
    opacity = _OPACITY * np.sqrt(shares)[:, :, None]
    mixed = grey[:, :, None] * (1 - opacity) + colored(shares) * opacity
    return encode_image(np.rint(mixed).astype(np.uint8), "png")


def draw_heat(heat: np.ndarray, size: tuple[int, int]) -> bytes:
    """Return a PNG of the heat alone, a square for each place of the layer.

    Args:
        heat: of a layer, (h, w) from 0 to 1.
        size: (height, width) of the image that it belongs to.
    """
    height, width = _shown(np.zeros(size, np.float32)).shape
    return encode_image(cv2.resize(colored(heat), (width, height), interpolation=cv2.INTER_NEAREST), "png")


def _shown(image: np.ndarray) -> np.ndarray:
    """Return (H, W) numbers as large as they are looked at: whole pixels larger, or smaller by their means."""
    longest = max(image.shape)
    factor = math.ceil(_LEAST_PX / longest)
    if factor > 1:
        return image.repeat(factor, axis=0).repeat(factor, axis=1)
    share = min(1.0, _MOST_PX / longest)
    size = (max(1, round(image.shape[1] * share)), max(1, round(image.shape[0] * share)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA) if share < 1 else image


_TILES: Final = 64


_SIDE_PX: Final = 256


_SMALLEST_PX: Final = 96


_SMALLEST_TILE_PX: Final = 12


_GAP_PX: Final = 1


_FRAME: Final = 32
"""Gray level between tiles."""


def draw_activation(values: np.ndarray, *, as_color: bool = False) -> bytes | None:
    """Return a PNG image of one sample's output of a layer; None where there is nothing to draw.

    Args:
        values: (H, W, C): the first 64 channels side by side; (H, W): one tile; (N): its numbers in rows, as square as
            may be. Other shapes are not drawn.
        as_colour: whether three channels are the colors of one image.
    """
    if not values.size or not np.isfinite(values).any():
        return None
    if values.ndim == 3 and as_color and values.shape[2] == 3:
        return encode_image(_shrunken(_levels(values)), "png")
    if values.ndim == 3:
        return _tiled(np.moveaxis(values[:, :, :_TILES], 2, 0))
    if values.ndim == 2:
        return _tiled(values[None])
    return _tiled(_in_rows(values)[None]) if values.ndim == 1 else None


def draw_weights(values: np.ndarray) -> bytes | None:
    """Return a PNG image of an array of weights; None where there is nothing to draw.

    Args:
        values: (height, width, inputs, outputs) of a convolution: 64 filters side by side; (rows, columns): one tile;
            (N): as for an activation. Other shapes are not drawn.
    """
    if values.ndim != 4:
        return draw_activation(values) if values.ndim < 3 else None
    if not values.size or not np.isfinite(values).any():
        return None
    filters = values.transpose(3, 2, 0, 1).reshape(-1, *values.shape[:2])
    return _tiled(filters[:_TILES])


def _tiled(tiles: np.ndarray) -> bytes:
    """Return an image of (N, H, W) numbers."""
    levels = _levels(tiles)
    columns = math.ceil(math.sqrt(len(levels)))
    rows = math.ceil(len(levels) / columns)
    drawn = [
        _enlarged(_shrunken(tile, _SIDE_PX // columns), max(_SMALLEST_TILE_PX, _SMALLEST_PX // columns))
        for tile in levels
    ]
    height, width = drawn[0].shape
    sheet = np.full((rows * (height + _GAP_PX) - _GAP_PX, columns * (width + _GAP_PX) - _GAP_PX), _FRAME, np.uint8)
    for number, tile in enumerate(drawn):
        top, left = (number // columns) * (height + _GAP_PX), (number % columns) * (width + _GAP_PX)
        sheet[top : top + height, left : left + width] = tile
    return encode_image(sheet, "png")


def _levels(values: np.ndarray) -> np.ndarray:
    """Return numbers as uint8, from the least of all to the largest; what is not finite is black."""
    numbers = np.asarray(values, np.float64)
    finite = np.isfinite(numbers)
    least, largest = numbers[finite].min(), numbers[finite].max()
    # Halved first: the span of the largest floats is no float.
    span = (largest / 2 - least / 2) or 1.0
    shares = np.where(finite, (numbers / 2 - least / 2) / span, 0.0)
    return np.rint(np.nan_to_num(shares) * 255).astype(np.uint8)


def _shrunken(image: np.ndarray, side_px: int = _SIDE_PX) -> np.ndarray:
    height, width = image.shape[:2]
    share = min(1.0, max(1, side_px) / max(height, width))
    if share == 1.0:
        return image
    size = (max(1, round(width * share)), max(1, round(height * share)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA)


def _enlarged(tile: np.ndarray, side_px: int) -> np.ndarray:
    factor = math.ceil(side_px / max(tile.shape))
    return tile.repeat(factor, axis=0).repeat(factor, axis=1) if factor > 1 else tile


def _in_rows(values: np.ndarray) -> np.ndarray:
    """Return (N) numbers as rows of a rectangle, the rest of the last row not finite."""
    columns = math.ceil(math.sqrt(len(values)))
    rows = math.ceil(len(values) / columns)
    filled = np.full(rows * columns, np.nan)
    filled[: len(values)] = values
    return filled.reshape(rows, columns)
