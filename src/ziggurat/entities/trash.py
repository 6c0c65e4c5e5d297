"""Trash of a workspace: deleted jobs, pretrained weights, uploads and saved items until they are too old."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.errors import JobError, MissingEntryError, StorageError, UsageError
from ziggurat.layout import DATASETS_FOLDER, JOBS_FOLDER, UPLOADS_FOLDER, WEIGHTS_FOLDER, lies_in, present_path

__all__ = ["SAVED", "UPLOAD", "WEIGHTS", "Discarded", "Trash", "not_in_trash"]

TRASH_FOLDER: Final = ".trash"
"""Its name in the workspace."""

WEIGHTS: Final = "weights"
"""Kind of deleted pretrained weights."""

UPLOAD: Final = "upload"
"""Kind of deleted uploads."""

SAVED: Final = ("view", "preset")
"""Kinds of deleted saved items."""

_HIDDEN: Final = f"{TRASH_FOLDER}-"
"""Begins the name of a discarded folder that stays on its own disk."""

_DOOMED: Final = ".removed-"
"""Begins the name of a folder of the trash that is being removed: half of one must not be restored."""

_FOLDERS: Final = (JOBS_FOLDER, DATASETS_FOLDER, WEIGHTS_FOLDER, UPLOADS_FOLDER)
_NAMESAKES: Final = 5
_ID_BYTES: Final = 4


@dataclass(frozen=True)
class Discarded:
    """Something in the trash.

    Args:
        path: where it lies now.
        id: of the job or upload that it was; made up for others.
        since: when it was discarded, in seconds since 1970.
        kind: of the job, ``WEIGHTS``, ``UPLOAD`` or one of ``SAVED``; empty where nothing is known of it.
        name: of what was deleted.
        place: where its folder lay; None where nothing is known of it, or it had none.
        owner: the only user who sees it; empty where all do.
        content: JSON value that was kept instead of a folder.
        size_bytes: of its files; None if they were not counted.
    """

    path: Path
    id: str
    since: float
    kind: str = ""
    name: str = ""
    place: Path | None = None
    owner: str = ""
    content: Any = None
    size_bytes: int | None = None

    @property
    def is_job(self) -> bool:
        """Whether it was a job, such as a training, a dataset or an evaluation."""
        return self.kind not in (WEIGHTS, UPLOAD, *SAVED)

    @property
    def can_be_restored(self) -> bool:
        """Whether it is known what it was and where it belongs."""
        return self.place is not None or self.kind in SAVED


class Trash:
    """The trash of a workspace. Processes may use it at the same time.

    A folder is there under ``ID.SECONDS``, beside ``ID.SECONDS.json``, which says what it was and where it lay. That
    of something without a folder of its own, such as a saved view, is empty, and its content stands in that file.

    Args:
        workspace: the folder of everything; nothing outside of it is ever removed.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self.folder = workspace / TRASH_FOLDER
        self._changing = threading.Lock()
        self._sizes: dict[Path, int] = {}  # what is in the trash does not change

    def discard(
        self, path: Path, item_id: str, now: float, *, kind: str = "", name: str = "", size_bytes: int | None = None
    ) -> Discarded | None:
        """Move a folder into the trash; None where it is not there.

        A folder on another disk stays there, under a hidden name.

        Args:
            path: of the folder.
            item_id: of the job or upload; empty for one that is made up.
            now: seconds since 1970.
            kind: as in ``Discarded``.
            name: for people who look into the trash.
            size_bytes: of its files, where they were counted.

        Raises:
            JobError: where it is none of the workspace.
            StorageError: where it cannot be moved.
        """
        if not os.path.lexists(path):
            return None
        if not _is_deletable(path, self._workspace):
            raise JobError(
                "Only folders of the workspace are deleted.",
                received=f"{path}, outside of {self._workspace}",
                advice="Delete it by hand if it is not needed any more.",
            )
        try:
            target = self._new_entry(item_id or _new_id(kind), now)
            facts: dict[str, Any] = {"kind": kind, "name": name}
            facts["folder"] = os.path.relpath(path.absolute(), self._workspace.absolute())
            # Before it is moved: what cannot be told where it belongs could not be restored. Deleting must work on a
            # full disk, where nothing stays in the trash anyhow.
            with suppress(StorageError):
                known = {} if size_bytes is None else {"size_bytes": size_bytes}
                atomic_write_text(_label(target), json.dumps({**facts, **known}), "What was deleted")
            try:
                path.rename(target)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    _label(target).unlink(missing_ok=True)
                    raise
                self._discard_in_place(path, target)
            item_id = _id_and_time(target.name)[0]
            return Discarded(target, item_id, float(int(now)), kind, name, path, size_bytes=size_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(
                f"{path} could not be moved into the trash, {self.folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Mend the rights of both folders, then delete it again.",
            ) from error

    def keep(self, kind: str, name: str, content: Any, now: float, *, owner: str) -> Discarded:
        """Take in something that has no folder, before it is deleted elsewhere.

        Args:
            kind: one of ``SAVED``.
            name: of the saved item.
            content: JSON value, which brings it back.
            now: seconds since 1970.
            owner: the only user who sees it.

        Raises:
            StorageError: where it cannot be written.
        """
        with storage_errors(self.folder):
            target = self._new_entry(_new_id(kind), now)
            facts = {"kind": kind, "name": name, "owner": owner, "content": [content]}
            atomic_write_text(_label(target), json.dumps(facts), "What was deleted")
            target.mkdir()
        return Discarded(
            target, _id_and_time(target.name)[0], float(int(now)), kind, name, owner=owner, content=content
        )

    def _new_entry(self, item_id: str, now: float) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return _free(self.folder / f"{item_id}.{int(now)}")

    def _discard_in_place(self, path: Path, link: Path) -> None:
        """Rename it on its own disk, and leave a link in the trash, so that it is found when the trash is emptied."""
        hidden = path.absolute().with_name(f"{_HIDDEN}{link.name}")
        link.symlink_to(os.path.relpath(hidden, self.folder.absolute()))  # it moves with the workspace
        path.rename(hidden)

    def restore(self, item: Discarded) -> bool:
        """Move a folder back to where it lay; return False where it is not in the trash any more.

        Args:
            item: with a ``place``.

        Raises:
            JobError: where something else lies there now.
            StorageError: where it cannot be moved.
        """
        place = item.place
        assert place is not None
        with self._changing:
            if not os.path.lexists(item.path):
                return False
            if os.path.lexists(place):
                if not os.path.lexists(_present(item.path, self._workspace)):  # another process has just restored it
                    return False
                raise _occupied(item, place)
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                _present(item.path, self._workspace).rename(place)
                self._sizes.pop(item.path, None)
                if item.path.is_symlink():
                    item.path.unlink()
                _label(item.path).unlink(missing_ok=True)
            except FileNotFoundError:  # another process restored or removed it
                return False
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _occupied(item, place) from None
                raise StorageError(
                    f"The folder of {_what(item)} could not be moved back to {place}.",
                    received=f"{error.strerror} (errno {error.errno})",
                    advice="Mend the rights of the folder, then restore it again.",
                ) from error
            return True

    def find(self, kind: str, text: str, *, owner: str = "") -> Discarded:
        """Return what can be restored of a kind.

        Args:
            kind: ``WEIGHTS``, ``UPLOAD`` or one of ``SAVED``.
            text: its id or, where no other has it, its name.
            owner: the only user who sees it; empty for what all see.

        Raises:
            MissingEntryError: where there is nothing of that name: it was not deleted, or is removed from the disk.
            UsageError: where several have the name.
        """
        known = [each for each in self.content() if (each.kind, each.owner) == (kind, owner) and each.can_be_restored]
        found = [each for each in known if each.id == text] or [each for each in known if each.name == text]
        if not found:
            raise not_in_trash(kind, text)
        if len(found) > 1:
            raise UsageError(
                f"The name `{text}` is that of {len(found)} deleted {kind if kind == WEIGHTS else f'{kind}s'}.",
                received=", ".join(each.id for each in found[-_NAMESAKES:]),
                advice="Give the id of one of them; the newest is the last one.",
                details={"name": text, "ids": [each.id for each in found]},
            )
        return found[0]

    def remove(self, *items: Discarded) -> bool:
        """Remove something of the trash from the disk now; return whether some of it was still there."""
        return sum(self._remove(each) for each in items) > 0

    def content(self) -> list[Discarded]:
        """Return what is in the trash, oldest first."""
        return sorted(self._found(), key=lambda each: (each.since, each.path))

    def size_bytes(self, item: Discarded) -> int:
        """Return how much of the disk is free once something is removed; files are counted once."""
        if item.size_bytes is not None:
            return item.size_bytes
        if item.path not in self._sizes:
            self._sizes[item.path] = sum(_sizes(_present(item.path, self._workspace))) + _size(_label(item.path))
        return self._sizes[item.path]

    def empty(self, older_than: float) -> list[str]:
        """Remove from the disk what was discarded before a moment; return the ids.

        What cannot be removed is tried again the next time.
        """
        removed = [each.id for each in self.content() if each.since <= older_than and self._remove(each)]
        for path in self._paths():
            item_id, since = _id_and_time(path.name.removesuffix(".json"))
            # What a kill left: half of what was being removed, and what was said of a folder that was never moved.
            if path.name.startswith(_DOOMED):
                self._erase(path)
            elif (
                path.suffix == ".json" and item_id and since <= older_than and not os.path.lexists(path.with_suffix(""))
            ):
                path.unlink(missing_ok=True)
        return removed

    def _remove(self, item: Discarded) -> bool:
        """Remove it from the disk; return whether it was this call that took it out of the trash."""
        doomed = self.folder / f"{_DOOMED}{item.path.name}-{secrets.token_hex(_ID_BYTES)}"
        with self._changing:
            try:
                item.path.rename(doomed)  # first, so that half of it cannot be restored
            except OSError:  # restored or removed meanwhile, or the disk refuses
                return False
            _label(item.path).unlink(missing_ok=True)
            self._sizes.pop(item.path, None)
        return self._erase(doomed)

    def _erase(self, path: Path) -> bool:
        """Remove a folder, or what a link of ours points at; return whether it is gone."""
        if path.is_symlink():
            hidden = _present(path, self._workspace)
            is_ours = hidden.name.startswith(_HIDDEN) and _is_deletable(hidden, self._workspace)
            if is_ours:
                shutil.rmtree(hidden, ignore_errors=True)
            if not os.path.lexists(hidden) or not is_ours:
                path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
        return not os.path.lexists(path)

    def _paths(self) -> list[Path]:
        try:
            return list(self.folder.iterdir())
        except OSError:
            return []

    def _found(self) -> Iterator[Discarded]:
        for path in self._paths():
            item_id, since = _id_and_time(path.name)
            if item_id and not path.name.startswith(_DOOMED):
                yield Discarded(path, item_id, since, **self._facts(path))

    def _facts(self, path: Path) -> dict[str, Any]:
        try:
            facts = json.loads(_label(path).read_bytes())
            known: dict[str, Any] = {"kind": str(facts["kind"]), "name": str(facts["name"])}
            if "content" in facts:
                return {**known, "owner": str(facts["owner"]), "content": facts["content"][0]}
            place = self._workspace / facts["folder"]
            size = facts.get("size_bytes")
        except (OSError, ValueError, KeyError, TypeError, IndexError):  # an older version put it there, or it is cut
            return {}
        known["size_bytes"] = size if isinstance(size, int) else None
        return {**known, "place": place} if _is_deletable(place, self._workspace) else known


def not_in_trash(kind: str, text: str) -> MissingEntryError:
    """Return the error for something that is no job and cannot be restored."""
    return MissingEntryError(
        f"There are no deleted weights `{text}`." if kind == WEIGHTS else f"There is no deleted {kind} `{text}`.",
        advice="List what can be restored with: ziggurat trash list. The rest is removed from the disk.",
    )


def _occupied(item: Discarded, place: Path) -> JobError:
    return JobError(
        f"Something else lies where {_what(item)} lay.",
        received=str(place),
        advice=f"Move it away, then restore {'the job' if item.is_job else item.id} again.",
    )


def _what(item: Discarded) -> str:
    return f"the job {item.id}" if item.is_job else f"the {item.kind} {item.name or item.id}"


def _new_id(kind: str) -> str:
    return f"{kind}-{secrets.token_hex(_ID_BYTES)}"


def _id_and_time(name: str) -> tuple[str, float]:
    """Return what the name of a folder of the trash tells; an empty id where it is none."""
    item_id, _, since = name.rpartition(".")  # an id may have dots
    since = since.partition("-")[0]
    return (item_id, float(since)) if item_id and since.isdecimal() else ("", 0.0)


def _is_deletable(path: Path, workspace: Path) -> bool:
    return lies_in(path, workspace, among=_FOLDERS)


def _label(path: Path) -> Path:
    """Return the file that says what a folder of the trash was."""
    return path.with_name(f"{path.name}.json")


def _present(path: Path, workspace: Path) -> Path:
    """Return where a folder of the trash is: a link of ours points at it where it stayed on its own disk."""
    if not path.is_symlink():
        return path
    return Path(present_path(os.path.join(os.path.realpath(path.parent), path.readlink()), workspace))


def _sizes(folder: Path) -> Iterator[int]:
    """Yield the size of every file below a folder, in bytes."""
    for root, _, names in os.walk(folder):
        yield from (_size(Path(root, name)) for name in names)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _free(path: Path) -> Path:
    """Return the path, or one with a number behind it that nothing has."""
    target, number = path, 0
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{path.name}-{number}")
    return target
