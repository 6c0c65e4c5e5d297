"""Files of an import: single ones, an archive of DIGITS's *Download Model*, or a folder of a DIGITS job."""

from __future__ import annotations

import io
import json
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.datasets.sources.archives import is_archive, unpack
from ziggurat.datasets.sources.cache import SourceLimits
from ziggurat.entities.leftovers import temporary_folder

__all__ = ["TORCH_SUFFIXES", "ImportFiles", "given_files", "load_status"]

TORCH_SUFFIXES: Final = (".lua", ".t7")
"""Endings of networks of Torch."""

_MOST_STATUS_BYTES: Final = 256 << 20
_NETWORKS: Final = ("train_val.prototxt", "original.prototxt", "deploy.prototxt", "model.lua")
_WEIGHTS: Final = {".prototxt": ".caffemodel", ".lua": ".t7"}
_STEP: Final = re.compile(r"(\d+)\D*\Z")
_NOT_CAFFE: Final = {
    ".py": "A network file in Python is none of Caffe; see the guide on networks of DIGITS.",
    ".h5": "Weights are read from a `.caffemodel`, not from HDF5.",
}


@dataclass(frozen=True, kw_only=True)
class ImportFiles:
    """What an import reads; None where there is none.

    Args:
        network: ``.prototxt`` with the layers.
        weights: ``.caffemodel``.
        mean: ``.binaryproto``.
        labels: class names, one a line.
        solver: ``solver.prototxt``.
        deploy: another ``.prototxt`` of the network, that knows the size of its images.
        name: of the model, where a file says it.
    """

    network: Path
    weights: Path | None = None
    mean: Path | None = None
    labels: Path | None = None
    solver: Path | None = None
    deploy: Path | None = None
    name: str = ""


@contextmanager
def given_files(files: ImportFiles) -> Iterator[ImportFiles]:
    """Give the files of an import; what an archive or folder holds is found by name, what was given goes first.

    Raises:
        CaffeError: where there is no network of Caffe.
        DataError: where an archive is damaged, or leads out of its folder.
    """
    path = files.network
    if path.is_dir():
        yield _over(files, _of_folder(path))
    elif path.suffix.lower() not in (".prototxt", *TORCH_SUFFIXES) and path.is_file() and is_archive(path.name):
        with temporary_folder("caffe") as folder:
            unpack(path, folder, SourceLimits())
            yield _over(files, _of_folder(_inner(folder)))
    else:
        if path.suffix.lower() in _NOT_CAFFE:
            raise CaffeError(_NOT_CAFFE[path.suffix.lower()], received=f"`{path.name}`")
        yield files


def load_status(content: bytes) -> Any:
    """Return what a ``status.pickle`` of DIGITS holds; of its classes only their attributes.

    Nothing but plain values is made: every class and function that it names becomes a dictionary.

    Raises:
        CaffeError: if it is damaged.
    """
    try:
        return _StatusReader(io.BytesIO(content), encoding="latin1").load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ValueError, IndexError, KeyError, TypeError) as error:
        raise CaffeError("`status.pickle` must be a whole pickle.", received=str(error)[:100]) from None
    except (ImportError, MemoryError, OverflowError, RecursionError, SystemError) as error:
        raise CaffeError("`status.pickle` must be a pickle of DIGITS.", received=str(error)[:100]) from None


class _Record(dict[str, Any]):
    """An object of any class: its attributes."""

    def __init__(self, *_arguments: Any, **_named: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        for part in state if isinstance(state, tuple) else (state,):
            if isinstance(part, dict):
                self.update({key: value for key, value in part.items() if isinstance(key, str)})

    def append(self, _value: Any) -> None:
        """Take an item of a list of an unknown class."""

    def extend(self, _values: Any) -> None:
        """Take items of a list of an unknown class."""

    def add(self, _value: Any) -> None:
        """Take an item of a set of an unknown class."""


class _StatusReader(pickle.Unpickler):
    """Unpickler that makes records only."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return the record, whatever class is named."""
        return _Record


def _of_folder(folder: Path) -> ImportFiles:
    """Return the files of an archive or job of DIGITS."""
    info = _info(folder / "info.json")
    status = _status(folder / "status.pickle")
    framework = str(info.get("framework") or _framework(status) or "caffe").lower()
    names = {each.name: each for each in sorted(folder.iterdir()) if each.is_file()}
    network = next((names[name] for name in _NETWORKS if name in names), None)
    if network is None:
        others = [each for name, each in names.items() if name.endswith((".prototxt", ".lua")) and "solver" not in name]
        network = others[0] if len(others) == 1 else None
    if network is None or framework not in ("caffe", "torch", ""):
        raise CaffeError(
            "The folder or archive has no network of Caffe or Torch.",
            received=f"framework {framework}"
            if framework not in ("caffe", "torch", "")
            else ", ".join(list(names)[:8]) or "no files",
            advice="Networks of DIGITS for TensorFlow are taken as they are.",
        )
    dataset = _dataset_folder(folder, status)

    def found(key: str, usual: str) -> Path | None:
        said = names.get(Path(str(info.get(key) or "")).name) or names.get(usual)
        beside = dataset / usual if dataset is not None else None
        return said or (beside if beside is not None and beside.is_file() else None)

    snapshot = names.get(Path(str(info.get("snapshot file") or "")).name)
    snapshots = [each for name, each in names.items() if name.endswith(_WEIGHTS[network.suffix.lower()])]
    latest = max(snapshots, key=lambda each: _step(each.stem), default=None)
    return ImportFiles(
        network=network,
        weights=snapshot or latest,
        mean=found("mean file", "mean.binaryproto") or (names.get("mean.jpg") if network.suffix == ".lua" else None),
        labels=found("labels file", "labels.txt"),
        solver=names.get("solver.prototxt"),
        deploy=names.get("deploy.prototxt"),
        name=str(info.get("name") or _attribute(status, "_name") or "")[:200],
    )


def _step(stem: str) -> int:
    match = _STEP.search(stem)
    return int(match.group(1)[:18]) if match else -1


def _over(given: ImportFiles, found: ImportFiles) -> ImportFiles:
    chosen = {name: getattr(given, name) for name in ("weights", "mean", "labels", "solver") if getattr(given, name)}
    return replace(found, **chosen)


def _inner(folder: Path) -> Path:
    """Return the one folder inside, where an archive holds nothing else."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def _info(path: Path) -> dict[str, Any]:
    if not path.is_file() or path.stat().st_size > 1 << 20:
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise CaffeError("`info.json` must be JSON.", received=str(error)[:100]) from None
    return content if isinstance(content, dict) else {}


def _status(path: Path) -> Any:
    if not path.is_file():
        return {}
    if path.stat().st_size > _MOST_STATUS_BYTES:
        raise CaffeError(f"`status.pickle` has {path.stat().st_size:,} bytes; it is read up to 256 MiB.")
    return load_status(path.read_bytes())


def _attribute(status: Any, name: str) -> str:
    value = status.get(name) if isinstance(status, dict) else None
    return value if isinstance(value, str) else ""


def _framework(status: Any) -> str:
    tasks = status.get("tasks") if isinstance(status, dict) else None
    for task in tasks if isinstance(tasks, list) else []:
        if name := _attribute(task, "framework_id"):
            return name
    return ""


def _dataset_folder(folder: Path, status: Any) -> Path | None:
    """Return the folder of the dataset job beside a model job; None where it is not there."""
    name = _attribute(status, "dataset_id")
    if not re.fullmatch(r"[\w-]{1,100}", name):
        return None
    beside = folder.resolve().parent / name
    return beside if beside.is_dir() else None
