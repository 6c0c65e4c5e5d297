"""What was deleted in a studio and can be restored: a list of all, and jobs put back or removed for good."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ziggurat.entities import ENDED_STATES, Job
from ziggurat.entities.trash import Discarded, Trash
from ziggurat.errors import MissingEntryError, UsageError
from ziggurat.jobs import Supervisor
from ziggurat.store import JobOnDisk, Store

__all__ = ["Deleted", "DeletedItem"]

_NAMESAKES: Final = 5


@dataclass(frozen=True, kw_only=True)
class DeletedItem:
    """Something that can be restored.

    Args:
        id: of the job or upload; made up for others.
        kind: of the job, or ``weights``, ``upload``, ``view`` or ``preset``.
        name: of what was deleted.
        deleted: when, in seconds since 1970.
        size_bytes: of its files.
    """

    id: str
    kind: str
    name: str
    deleted: float
    size_bytes: int


class Deleted:
    """The trash of a studio. Weights, uploads and saved items are restored where they were deleted.

    Args:
        store: takes in what is put back.
        supervisor: moves folders out of the trash.
        read_job: reads the folder of a job that is put back.
        trash: has them, and what is no job.
    """

    def __init__(
        self, store: Store, supervisor: Supervisor, read_job: Callable[[Path], JobOnDisk], trash: Trash
    ) -> None:
        self._store = store
        self._supervisor = supervisor
        self._read_job = read_job
        self._trash = trash

    def list(self, owner: str) -> builtins.list[DeletedItem]:
        """Return what a user can restore, the newest first; saved items are only their own."""
        found = (each for each in reversed(self._trash.content()) if each.owner in ("", owner))
        return [self._shown(each) for each in found if each.can_be_restored]

    def find(self, item_id: str, owner: str) -> DeletedItem:
        """Return what a user can restore, by its id; the newest of several deletions.

        Raises:
            MissingEntryError: where it is not in the trash, or is the saved item of another user.
        """
        for each in reversed(self._trash.content()):
            if each.id == item_id and each.owner in ("", owner) and each.can_be_restored:
                return self._shown(each)
        raise MissingEntryError(
            f"`{item_id}` is not in the trash any more: it was restored, or removed from the disk.",
            advice="Look at the trash again.",
        )

    def restore(self, text: str) -> Job:
        """Put a deleted job back as it was, and return it.

        Args:
            text: its id or, where no other deleted job has it, its name.

        Raises:
            UsageError: where several deleted jobs have the name.
            JobError: where it is removed from the disk, or something else lies where it lay.
            StorageError: where its folder cannot be moved.
        """
        folder = self._supervisor.restore(self._id_of(text))
        on_disk = self._read_job(folder)
        if on_disk.state not in ENDED_STATES:
            # It never began, and being put back must not start it; or its worker was killed as it was deleted.
            stopped = {**on_disk.fields, "reason": "restored", "pid": None}
            on_disk = replace(on_disk, state="stopped", fields=stopped, placed={})
        self._store.take_in(on_disk)
        self._supervisor.hub.publish("jobs", "added", folder.name)
        return self._store.jobs.get(folder.name)

    def remove(self, text: str) -> None:
        """Remove a deleted job from the disk.

        Args:
            text: as for ``restore``.

        Raises:
            UsageError: where several deleted jobs have the name.
            JobError: where it is not deleted, or is removed already.
        """
        self._supervisor.remove_now(self._id_of(text))

    def empty(self, owner: str) -> builtins.list[str]:
        """Remove from the disk what a user can restore, and what cannot be restored; return the ids."""
        found = [each for each in self._trash.content() if each.owner in ("", owner)]
        return [each.id for each in found if self._trash.remove(each)]

    def _id_of(self, text: str) -> str:
        """Return the id of the deleted job of an id or a name; the text itself where there is none."""
        found = self._supervisor.trash()
        if any(each.id == text for each in found):
            return text
        named = [each.id for each in found if each.name == text]
        if len(named) > 1:
            raise UsageError(
                f"{len(named)} deleted jobs are called `{text}`.",
                received=", ".join(named[:_NAMESAKES]),
                advice="Give the id of one of them.",
                details={"name": text, "ids": named},
            )
        return named[0] if named else text

    def _shown(self, item: Discarded) -> DeletedItem:
        return DeletedItem(
            id=item.id,
            kind=item.kind,
            name=item.name,
            deleted=item.since,
            size_bytes=self._trash.size_bytes(item),
        )
