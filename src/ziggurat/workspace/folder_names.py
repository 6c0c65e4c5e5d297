"""Jobs and datasets of a workspace by id or name, from their folders alone: no studio is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ziggurat.errors import DataError, MissingJobError, UsageError, ZigguratError, nearest_names
from ziggurat.layout import JobFolder, job_folders
from ziggurat.records.manifest import MANIFEST_NAME

__all__ = ["FolderName", "folder_names", "named_folder"]

_SHOWN = 10


@dataclass(frozen=True)
class FolderName:
    """A folder with a job or a dataset.

    Args:
        path: of the folder; its last part is the id.
        name: what people call it; empty if it has none.
        kind: a name in ``JOB_KINDS``; empty if it is not known.
    """

    path: Path
    name: str
    kind: str


def folder_names(workspace: Path, kind: str = "") -> Iterator[FolderName]:
    """Yield the jobs and datasets of a workspace.

    Args:
        workspace: the folder of everything.
        kind: of the jobs; empty for all.
    """
    for path in job_folders(workspace):
        folder = JobFolder(path)
        spec, manifest = _content(folder.spec), path / MANIFEST_NAME
        # A person may have renamed it in a studio since, and a version of a dataset has no spec.
        name = _content(folder.record).get("name") or spec.get("name") or _content(manifest).get("name")
        found = str(spec.get("kind") or ("dataset" if manifest.is_file() else ""))
        if found and kind in ("", found):
            yield FolderName(path, str(name or ""), found)


def named_folder(workspace: Path, text: str, kind: str = "", *, suggests: bool = True) -> Path | None:
    """Return the folder of a job by its id or its name; None if there is none, and the text may be a path.

    Args:
        workspace: the folder of everything.
        text: id or name.
        kind: of the jobs that are looked for; empty for all.
        suggests: whether similar names are an error, which lists them.

    Raises:
        UsageError: if several have the name; ``details["ids"]`` has them.
        MissingJobError: if none has it, and similar ones are there.
        DataError: if datasets are looked for, and none has it.
    """
    known = list(folder_names(workspace, kind))
    found = [each for each in known if each.path.name == text] or [each for each in known if each.name == text]
    if len(found) > 1:
        ids = [each.path.name for each in found]
        raise UsageError(
            f"{len(found)} {'datasets' if kind == 'dataset' else 'jobs'} of {workspace} are called `{text}`.",
            received=", ".join(f"{each.path.name} ({each.kind})" for each in found[-_SHOWN:]),
            advice="Give the id of one of them.",
            details={"name": text, "ids": ids},
        )
    if found or not suggests or "/" in text:
        return found[0].path if found else None
    near = nearest_names(text, {each for one in known for each in (one.name, one.path.name) if each})
    if not near and kind != "dataset":
        return None
    meant = f"Did you mean {' or '.join(f'`{each}`' for each in near)}?"
    family: type[ZigguratError] = DataError if kind == "dataset" else MissingJobError
    raise family(
        f"`{text}` does not exist.",
        advice=meant if near else "List the datasets of the workspace with: ziggurat dataset list.",
        details={"job": text, "nearest": near},
    )


def _content(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
