"""Pretrained weights of a workspace as a job starts from them: checked, without a last layer for other classes."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ziggurat.entities.pretrained_weights import weights_name
from ziggurat.errors import MissingEntryError
from ziggurat.layout import WEIGHTS_FOLDER, JobFolder, workspace_of
from ziggurat.settings import Settings
from ziggurat.zoo.heads import head_classes, head_keys
from ziggurat.zoo.weights_folder import WeightsFolder

__all__ = ["read_weights", "weights_folders", "without_other_head"]

_SCOPE: Final = "model/"
"""Before every name of a weight in programs and checkpoints."""

_NAMES: Final = {"tensorflow": "ziggurat.zoo.names:to_tensorflow"}
"""Backend → what returns its variables for published weights; the others have the same names behind ``model/``."""

_logger = logging.getLogger(__name__)


def weights_folders(folder: JobFolder, settings: Settings) -> tuple[Path, ...]:
    """Return where the weights that a job names may be: in the workspace of its folder, and in that of the settings."""
    roots = (workspace_of(folder.path), settings.workspace.expanduser())
    return tuple(dict.fromkeys(root / WEIGHTS_FOLDER for root in roots if root is not None))


def read_weights(
    reference: str, folders: Sequence[Path], *, network: str, classes: Sequence[str], backend: str
) -> dict[str, np.ndarray]:
    """Return variable → array of pretrained weights; the report of the job says what is left out.

    Args:
        reference: ``weights:NAME`` of a spec.
        folders: with weights, the first that has them is taken.
        network: name of the standard network that starts from them; empty for a file, whose layers have the names of
            the network that the weights are of.
        classes: names of those of the job; none where it has none.
        backend: that builds the network.

    Raises:
        MissingEntryError: if none of the folders has them.
        CheckpointError: if the file is damaged, or is not the one that was added.
    """
    name = weights_name(reference)
    found = next((each for each in map(WeightsFolder, folders) if each.has(name)), None)
    if found is None:
        raise MissingEntryError(
            f"There are no pretrained weights `{name}` in {' and '.join(map(str, folders)) or 'the workspace'}.",
            advice="List them with `ziggurat weights list`, and add the file again.",
        )
    entry = found.get(name)
    arrays, sentence = without_other_head(found.arrays(name), entry.network or network, classes, entry.classes)
    _logger.info("starts from %s: %s arrays of `%s`", reference, len(arrays), entry.title)
    if sentence:
        _logger.warning("%s", sentence)
    return _variables(backend, arrays, entry.network or network)


def without_other_head(
    arrays: Mapping[str, np.ndarray], network: str, classes: Sequence[str], learned: Sequence[str] = ()
) -> tuple[dict[str, np.ndarray], str]:
    """Return the weights without a last layer for other classes, and a sentence where it is left out.

    Classes are other ones where their number or, if both sides have names, a name differs: a last layer that is sure of
    other classes must first unlearn them.

    Args:
        arrays: published name → array.
        network: name of the standard network.
        classes: names of those of the job; none where it has none.
        learned: names of those of the weights; none where they are not known.
    """
    shapes = {name: array.shape for name, array in arrays.items()}
    there, here = head_classes(network, shapes), len(classes)
    if not there or (there == here and not _are_others(classes, learned)):
        return dict(arrays), ""
    left_out = set(head_keys(network, shapes))
    kept = {name: array for name, array in arrays.items() if name not in left_out}
    if there == here:
        return kept, f"Classes such as `{learned[0]}` there, `{classes[0]}` here: the last layer starts fresh."
    return kept, f"{there} classes there, {here or 'none'} here: the last layer starts fresh."


def _are_others(classes: Sequence[str], learned: Sequence[str]) -> bool:
    """Return whether the names of classes differ; unknown ones do not."""
    return bool(learned) and [each.casefold() for each in classes] != [each.casefold() for each in learned]


def _variables(backend: str, arrays: Mapping[str, np.ndarray], network: str) -> dict[str, np.ndarray]:
    """Return the arrays under the names, and with the axes, that a network has on a backend."""
    if backend not in _NAMES:
        return {f"{_SCOPE}{key}": array for key, array in arrays.items()}
    module, _, function = _NAMES[backend].partition(":")
    return getattr(importlib.import_module(module), function)(arrays, network)
