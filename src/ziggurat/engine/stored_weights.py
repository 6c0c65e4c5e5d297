"""Weights by name in files: arrays of NumPy, and checkpoints of Ziggurat; what belongs to a training alone."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.engine.checkpoints import CheckpointStore, with_averages
from ziggurat.errors import CheckpointError, MissingCheckpointError
from ziggurat.layout import CHECKPOINT_NAMES, CheckpointFiles, JobFolder
from ziggurat.records.plain_pickle import ARRAY_NAMES, load_plain_pickle

__all__ = ["StoredWeights", "is_training_name", "open_plain_weights"]

_OF_TRAINING: Final = re.compile(
    r"(^|/)(learning_rate|global_step|beta[12]_power(_\d+)?"
    r"|(Adam|Adagrad|Momentum|RMSProp|AdaDelta|Ftrl|Adadelta|AMSGrad|AdamW)(_\d+)?"
    r"|AccumGrad(/counter|_\d+)?|apply_gradients/.*)$"
    r"|(^|/)(EMA|EMA_summary|ziggurat)/|/(EMA_summary|local_step|biased)$"
)


@dataclass(frozen=True)
class StoredWeights:
    """Arrays by name that are read when they are asked for.

    Args:
        source: where they come from, for messages.
        shapes: name → shape.
        get: returns an array by its name.
    """

    source: str
    shapes: Mapping[str, tuple[int, ...]]
    get: Callable[[str], np.ndarray]

    @classmethod
    def of(cls, arrays: Mapping[str, Any], source: str = "a dict") -> StoredWeights:
        """Return arrays that are in memory; a name that ends in ``:0`` is that without it."""
        plain = {name.removesuffix(":0"): np.asarray(array) for name, array in arrays.items()}
        return cls(source, {name: array.shape for name, array in plain.items()}, plain.__getitem__)

    def all(self) -> dict[str, np.ndarray]:
        """Return every array."""
        return {name: self.get(name) for name in self.shapes}


def open_plain_weights(path: str | Path) -> StoredWeights | None:
    """Return the weights in an npz or npy file or in a checkpoint of Ziggurat; None for any other path.

    Where averages of weights are kept beside them, these are returned.

    Args:
        path: the file; the folder of a checkpoint, a name that points at one (``checkpoints/best``), the folder of
            checkpoints or that of a job.

    Raises:
        MissingCheckpointError: where there is no such file.
        CheckpointError: where it is damaged.
    """
    place = Path(path)
    if place.suffix in (".npz", ".npy"):
        return StoredWeights.of(_read_file(place), str(path))
    return _run_state(place)


def is_training_name(name: str) -> bool:
    """Return whether a name looks like one of the training alone: a rate, a counter, a slot of an optimizer."""
    return _OF_TRAINING.search(name.removesuffix(":0")) is not None


def _read_file(path: Path) -> dict[str, Any]:
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as content:
                return {name: content[name] for name in content.files}
        return _read_npy(path)
    except FileNotFoundError as error:
        raise MissingCheckpointError(f"There is no file {path}.") from error
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise CheckpointError(
            f"The file {path} cannot be read as arrays by name: {str(error).rstrip('.')}.",
            advice="Write it by `numpy.savez`.",
        ) from error


def _read_npy(path: Path) -> dict[str, Any]:
    """Return the dict in an npy file: it is pickled there, so only plain values and arrays are read."""
    with path.open("rb") as file:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
        if shape != () or not dtype.hasobject:
            raise ValueError(f"an array of shape {shape}, and not a dict")
        content: Any = load_plain_pickle(file.read(), names=ARRAY_NAMES, encoding="latin1")
    item = content.item() if isinstance(content, np.ndarray) else content
    if not isinstance(item, dict):
        raise ValueError(f"a {type(item).__name__}, and not a dict")
    return item


def _run_state(place: Path) -> StoredWeights | None:
    """Return the weights of a checkpoint of Ziggurat; None where the path is none."""
    if CheckpointFiles(place).state.is_file() or _is_given_name(place):
        store, name = CheckpointStore(place.parent, writable=False), place.name
    elif place.is_dir() and not (place / "checkpoint").is_file():
        folder = JobFolder(place).checkpoints
        store = CheckpointStore(folder if folder.is_dir() else place, writable=False)
        stored = store.list()
        if not stored:
            return None
        name = stored[-1].name
    else:
        return None
    return StoredWeights.of(with_averages(store.load(name).arrays), str(store.folder / name))


def _is_given_name(place: Path) -> bool:
    has_names = (place.parent / CHECKPOINT_NAMES).is_file()
    return has_names and place.name in CheckpointStore(place.parent, writable=False).names()
