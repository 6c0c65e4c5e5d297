"""Network and learning rate that the form for a new model fills in by itself, and which networks fit the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ziggurat.entities.backend_info import StandardNetwork
from ziggurat.web.pages.new_model.fields import model_fields
from ziggurat.web.pages.new_model.form import DIGITS, ModelForm
from ziggurat.workspace.studio.networks import usual_network
from ziggurat.workspace.training_checks import why_no_fit, why_not_trainable

__all__ = ["ChosenData", "chosen_data", "fill_in", "untouched", "usual_rate"]

_RATE = "learning_rate"


@dataclass(frozen=True, kw_only=True)
class ChosenData:
    """What is known of the data that is chosen in a form.

    Args:
        kind: of the dataset.
        size: (height, width) of what a network gets; None where it is not known.
        channels: of it.
    """

    kind: str
    size: tuple[int, int] | None
    channels: int | None

    def why_no_fit(self, network: StandardNetwork) -> str:
        """Return why a standard network cannot be trained on it; empty where it can, or where the set is no use."""
        return "" if why_not_trainable(self.kind) else why_no_fit(network, self.kind, self.size)


def chosen_data(form: ModelForm, summary: Mapping[str, Any], shape: Sequence[int | None]) -> ChosenData | None:
    """Return what is known of the chosen data; None where it is not there yet.

    Args:
        form: that it is chosen in.
        summary: of the dataset.
        shape: height, width and channels of what a network gets; None for what is not known.
    """
    what = summary["what"]
    if what is None and form["dataset"] != DIGITS:
        return None
    height, width, channels = shape
    size = None if height is None or width is None else (height, width)
    return ChosenData(kind="image-classification" if what is None else what["kind"], size=size, channels=channels)


def fill_in(form: ModelForm, data: ChosenData | None, networks: list[dict[str, Any]]) -> None:
    """Choose the network that fits the data, and its default rate, unless others were chosen.

    Args:
        form: its network and its rate are changed where they are as this function left them.
        data: that is chosen.
        networks: that can be chosen, with ``value`` and ``rate``.
    """
    if form["method"] != "standard" or form.parent is not None:
        return
    if data is not None and form["standard_network"] == form["picked_network"] and not why_not_trainable(data.kind):
        form.values["standard_network"] = form.values["picked_network"] = usual_network(data.size, data.channels)
    rate = usual_rate(form, networks)
    if rate is not None and form[_RATE].strip() == form["picked_rate"]:
        form.values[_RATE] = form.values["picked_rate"] = f"{rate:g}"


def usual_rate(form: ModelForm, networks: list[dict[str, Any]]) -> float | None:
    """Return the usual learning rate of the chosen standard network; None where none is known, or none is chosen."""
    if form["method"] != "standard":
        return None
    return next((each["rate"] for each in networks if each["value"] == form["standard_network"]), None)


def untouched(form: ModelForm) -> ModelForm:
    """Return an untouched form, marked so that ``fill_in`` may choose."""
    form.values["picked_network"] = form["standard_network"]
    form.values["picked_rate"] = model_fields()[_RATE].default
    return form
