"""Folders of the workspace that a job reads, for nodes that do not see the workspace."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.cluster.exchange import digest_of
from ziggurat.entities.pretrained_weights import WEIGHTS_PREFIX, weights_name
from ziggurat.errors import JobError, ZigguratError
from ziggurat.layout import (
    DATASETS_FOLDER,
    FEATURES_FOLDER,
    JOBS_FOLDER,
    TEST_OPENINGS_FILE,
    UPLOADS_FOLDER,
    WEIGHTS_FOLDER,
    JobFolder,
    present_paths,
)
from ziggurat.records.manifest import Manifest

__all__ = ["Input", "inputs_of"]

_OWN: Final = JobFolder(Path())
_OF_A_MODEL: Final = frozenset(
    path.name
    for path in (
        _OWN.spec, _OWN.record, _OWN.task, _OWN.class_names, _OWN.network, _OWN.operating_point, _OWN.checkpoints,
        _OWN.data,
    )
)  # fmt: skip
_NOT_OF_A_DATASET: Final = frozenset(
    (
        "work", TEST_OPENINGS_FILE, _OWN.events.name, _OWN.log.name, _OWN.heartbeat.name, _OWN.last_words.name,
        _OWN.lock.name,
    )
)  # fmt: skip
_KINDS: Final = {
    DATASETS_FOLDER: "dataset",
    FEATURES_FOLDER: "features",
    JOBS_FOLDER: "model",
    UPLOADS_FOLDER: "upload",
    WEIGHTS_FOLDER: "weights",
}
"""Folder of a workspace → what people call each of its entries."""

_NO_PATHS: Final = ("name", "network", "script")
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Input:
    """A folder that a job reads.

    Args:
        title: what people call it, such as ``dataset cells``.
        folder: where it is in the workspace.
        target: path below the workspace.
        key: hash of its content; of a dataset, that of its manifest.
        files: name → size in bytes.
        is_dataset: whether it is a finished dataset.
    """

    title: str
    folder: Path
    target: str
    key: str
    files: Mapping[str, int]
    is_dataset: bool = False

    @property
    def size_bytes(self) -> int:
        """Size of all files."""
        return sum(self.files.values())


def inputs_of(job: Path, workspace: Path, node: str) -> list[Input]:
    """Return what a job reads of the workspace, beside its own folder.

    Args:
        job: the job folder.
        workspace: of the studio.
        node: name of the node, for the error.

    Raises:
        JobError: if it reads files outside of the workspace, which the node need not have.
    """
    found: dict[str, Input] = {}
    _collect(job, workspace, found, node)
    return list(found.values())


def _collect(job: Path, workspace: Path, found: dict[str, Input], node: str) -> None:
    """Add what a job reads.

    Args:
        job: the job folder.
        workspace: of the studio.
        found: what is known so far, by path below the workspace.
        node: name of the node; empty for a model that the job uses, of which only what the workspace has is taken.
    """
    content = json.loads(JobFolder(job).spec.read_text(encoding="utf-8"))
    for text in _texts({name: value for name, value in content.items() if name not in _NO_PATHS}):
        if text.startswith(WEIGHTS_PREFIX):
            _add(workspace / WEIGHTS_FOLDER / weights_name(text), workspace, found)
            continue
        path = os.path.normpath(present_paths(text, workspace))
        if not os.path.isabs(path) or not os.path.exists(path):
            continue
        real = f"{os.path.realpath(workspace)}/"
        path = f"{workspace}/{path.removeprefix(real)}" if path.startswith(real) else path
        if not path.startswith(f"{workspace}/"):
            is_argument = text in content.get("arguments", ())  # of a program: the nodes may have it as well
            if node and not is_argument:
                raise _not_there(path, workspace, node)
            continue
        added = _add(Path(path), workspace, found)
        if added is None:
            continue
        if (root := _root_of(added)) and not (root + "/").startswith(f"{workspace}/"):
            raise _not_there(root, workspace, node or "the node")
        if root:
            _add(Path(root), workspace, found)
        if added.parent.name == JOBS_FOLDER and JobFolder(added).spec.is_file():
            _collect(added, workspace, found, "")


def _not_there(path: str, workspace: Path, node: str) -> JobError:
    return JobError(
        f"`{path}` lies outside of the workspace `{workspace}`, and node {node} sees neither.",
        advice="Make a dataset that holds its images, or let the node share the folder.",
    )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _add(path: Path, workspace: Path, found: dict[str, Input]) -> Path | None:
    """Add the entry of the workspace that a path lies in, such as a dataset; return it, or None if there is no new."""
    parts = path.relative_to(workspace).parts
    is_of_a_kind = len(parts) > 1 and parts[0] in _KINDS
    entry = workspace.joinpath(*parts[: 2 if is_of_a_kind else 1])
    place = entry.relative_to(workspace).as_posix()
    if place in found or not entry.exists():
        return None
    is_file = entry.is_file()
    files = {entry.name: entry} if is_file else dict(_files(entry))
    folder = entry.parent if is_file else entry
    manifest = _manifest(entry)
    kind = _KINDS[place.partition("/")[0]] if is_of_a_kind else "folder"
    found[place] = Input(
        title=f"{kind} {entry.name if manifest is None else manifest.name}",
        folder=folder,
        target=folder.relative_to(workspace).as_posix(),
        key=_hash(files) if manifest is None else manifest.id,
        files={name: file.stat().st_size for name, file in files.items()},
        is_dataset=manifest is not None,
    )
    return entry


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and path of the files that a reader needs; links are followed: versions of a dataset share files."""
    kind = folder.parent.name
    for place, folders, names in os.walk(folder):
        inner = Path(place).relative_to(folder)
        is_top = inner == Path()
        folders[:] = sorted(each for each in folders if not each.startswith(".") and _is_read(each, kind, is_top))
        for name in sorted(names):
            path = Path(place) / name
            if not name.startswith(".") and _is_read(name, kind, is_top) and path.is_file():
                yield (inner / name).as_posix(), path


def _is_read(name: str, kind: str, is_top: bool) -> bool:
    if not is_top:
        return True
    if kind == JOBS_FOLDER:
        return name in _OF_A_MODEL
    return kind != DATASETS_FOLDER or (name not in _NOT_OF_A_DATASET and not name.startswith("pending-boxes"))


def _manifest(folder: Path) -> Manifest | None:
    if folder.parent.name != DATASETS_FOLDER:
        return None
    try:
        return Manifest.load(folder)
    except ZigguratError:
        return None


def _root_of(folder: Path) -> str:
    """Return where the files are that a dataset refers to; empty if it has all of them."""
    manifest = _manifest(folder)
    return "" if manifest is None or manifest.source is None else manifest.source.root


def _hash(files: Mapping[str, Path]) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for name, path in files.items():
        digest.update(f"{name}\n{path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while part := file.read(_READ_BYTES):
                digest.update(digest_of(part))
    return digest.hexdigest()
