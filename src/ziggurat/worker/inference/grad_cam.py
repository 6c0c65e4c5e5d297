"""Grad-CAM: the image regions that support a class for a trained network (Selvaraju et al., 2017)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ziggurat.engine.capabilities import SupportsGradients
from ziggurat.entities.backend_info import backend_infos
from ziggurat.errors import NonFiniteError, UnknownNameError, UsageError
from ziggurat.worker.commands.prediction import described
from ziggurat.worker.inference.handlers import decoded_picture, top_of
from ziggurat.worker.inference.heat import HEAT_COLOURS, draw_heat, draw_overlay, heat_of
from ziggurat.worker.inference.model import WarmModel

__all__ = ["class_number_of", "grad_cam"]


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
    network, picture = model.network, decoded_picture(model, request)
    if not isinstance(network, SupportsGradients):
        titles = [info.title for info in backend_infos().values() if SupportsGradients.__name__ in info.capabilities]
        raise UsageError(
            f"Grad-CAM needs a network that gives gradients: one of the {' or '.join(titles)} backend.",
            received=f"a network of the backend {model.job.spec.backend}",
        )
    outputs = {key: np.asarray(value)[0] for key, value in network.predict(picture.x).items()}
    layer = _layer(network, outputs, str(request.get("layer") or ""))
    number = class_number_of(request.get("class"), model.job.class_names, outputs["probabilities"])
    maps, gradients = (np.asarray(each)[0] for each in network.maps_and_gradients(picture.x, layer, number))
    if not (np.isfinite(maps).all() and np.isfinite(gradients).all()):
        raise NonFiniteError(f"Grad-CAM needs finite numbers at the layer `{layer}`.", received="NaN or infinities")
    heat, largest = heat_of(maps, gradients)
    return {
        "file": picture.name,
        **described(outputs, model.job.class_names, top_of(request)),
        "class": model.job.class_names[number],
        "number": number,
        "probability": float(outputs["probabilities"][number]),
        "layer": layer,
        "layers": list(network.map_layers()[0]),
        "heat": np.round(heat, 4).tolist(),
        "largest": largest,
        "png": draw_overlay(picture.seen, heat),
        "heat_png": draw_heat(heat, picture.seen.shape[:2]),
        "colours": [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in HEAT_COLOURS],
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
        raise UsageError(
            "Grad-CAM is for networks that tell classes apart.",
            received="a network without one number for each class",
        )
    layers, usual = network.map_layers()
    if not layers:
        raise UsageError(
            "Grad-CAM needs a layer with maps: what a convolution gives, before the dense layers.",
            received="a network without one",
        )
    if asked and asked not in layers:
        raise UnknownNameError("layer with maps", asked, layers)
    return asked or usual
