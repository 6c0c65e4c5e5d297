"""Import of another tool's network inside a studio: one at a time, with its weights added to those of the studio."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Identity
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.operations import weights as operations
from ziggurat.settings import Settings
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.networks import turn
from ziggurat.workspace.weights import NewWeights

__all__ = ["Importer", "free_name", "import_into_studio"]

Importer = Callable[[Settings, Mapping[str, Any]], dict[str, Any]]
"""Runs an import in a process of its own; takes the settings and a request, returns the report."""

_WAIT_S: Final = 30.0
_MOST_NAMES: Final = 1000
_free = threading.BoundedSemaphore(1)
"""One import at a time: the comparison takes all processors."""


def import_into_studio(
    studio: Studio, who: Identity, run: Importer, request: Mapping[str, Any], *, name: str = "", source: str = ""
) -> dict[str, Any]:
    """Import a network; return the report, with ``pretrained`` where its weights were added.

    Args:
        studio: gets the weights.
        who: user who asks.
        run: import of the tool.
        request: of the import.
        name: under which the weights are added; empty to drop them.
        source: tool that the weights come from.

    Raises:
        ZigguratError: of the import; or the name is taken, or there are no weights to add.
    """
    with turn(_free, _WAIT_S), temporary_folder("import") as folder:
        whole = dict(request)
        if name:
            studio.weights.folder.check_free(name)
            whole["out"] = str(folder / "out")
        found = run(studio.settings, whole)
        found.pop("out", None)
        if name:
            found["pretrained"] = _added(studio, who, folder / "out", name, found["name"] or name, source)
        return found


def free_name(studio: Studio, tool: str, file: str) -> str:
    """Return a name for weights that is not taken.

    Args:
        studio: has the names.
        tool: first part, such as ``caffe``.
        file: name of the file that they come from.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", Path(file).stem.lower()).strip("-")[:60] or "weights"
    for number in range(1, _MOST_NAMES):
        name = f"{tool}-{stem}" + (f"-{number}" if number > 1 else "")
        try:
            studio.weights.folder.check_free(name)
        except ZigguratError:
            continue
        return name
    raise UsageError(f"Too many weights are called `{stem}`.", advice="Delete some under Pretrained.")


def _added(studio: Studio, who: Identity, folder: Path, name: str, title: str, source: str) -> str:
    """Add the weights of an import to those of the studio; return what names them in a spec."""
    file = folder / "weights.safetensors"
    if not file.is_file():
        raise UsageError(f"The import `{name}` has no weights to keep.", details={"field": "name"})
    labels = folder / "labels.txt"
    classes = tuple(labels.read_text(encoding="utf-8").splitlines()) if labels.is_file() else ()
    new = NewWeights(name=name, title=title, source=source, classes=classes)
    return str(operations.add(studio, who, file, new).reference)
