"""Map of a small dataset in a studio whose jobs nobody starts: its worker runs in the process of the test."""

from __future__ import annotations

from typing import Any, cast

from ziggurat.entities import Job, NewJob
from ziggurat.layout import JobFolder
from ziggurat.specs import EmbedSpec
from ziggurat.worker.commands.embedding import embed_dataset
from ziggurat.worker.event_watch import EventWatch
from ziggurat.workspace.studio import Studio

__all__ = ["add_map"]


class _Quiet:
    def progress(self, _stage: str, _done: int, _total: int) -> None:
        pass

    def stop_requested(self) -> bool:
        return False


def add_map(studio: Studio, dataset: str, number: int = 1, **options: Any) -> Job:
    """Return the job of a map by the samples' own features, which is done.

    Args:
        studio: gets it.
        dataset: id.
        number: of the map, from 1; a later one is newer.
        options: further fields of its spec.
    """
    folder = studio.root / "jobs" / f"20260103-000000-{number:04d}"
    folder.mkdir(parents=True)
    asked = {"features": "own", "tsne": False, **options}
    spec = EmbedSpec(dataset=str(studio.datasets.folder(dataset)), name=f"map {number}", **asked)
    embed_dataset(spec, JobFolder(folder), cast(EventWatch, _Quiet()))
    new = NewJob(
        id=folder.name,
        kind="embed",
        name=spec.name,
        folder=str(folder),
        spec=spec.model_dump(mode="json"),
        depends_on=(dataset,),
        created=float(number),
    )
    return studio.datasets.take_in(new, {})
