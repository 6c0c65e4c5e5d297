"""Links from the samples of an evaluation to their images and to their pages in the dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.workspace.studio import Studio

__all__ = ["SampleSource", "sample_source"]

_TINY_PX: Final = 64
_PICTURE_PX: Final = 160


@dataclass(frozen=True, kw_only=True)
class SampleSource:
    """Where the samples of a job are.

    Args:
        job: id of the job.
        dataset: id of the dataset; empty where the studio has it not.
        kind: ``evaluate`` or ``infer``.
        tiny: whether images are so small that their pixels are shown as squares.
    """

    job: str
    dataset: str
    kind: str
    tiny: bool

    def picture(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's image; empty where nobody has it."""
        if self.kind == "infer":
            return f"/api/v1/evaluations/{self.job}/pictures/{sample['row']}"
        return f"/api/v1/datasets/{self.dataset}/pictures/{sample['split']}/{sample['row']}" if self.dataset else ""

    def page(self, sample: Mapping[str, Any]) -> str:
        """Return the path of a sample's page, where its label can be changed; empty where there is none."""
        return f"/datasets/{self.dataset}/samples/{sample['split']}/{sample['row']}" if self.dataset else ""

    @property
    def picture_px(self) -> int:
        """The longer side of an image at most."""
        return _PICTURE_PX


def sample_source(studio: Studio, job: Job, summary: Mapping[str, Any]) -> SampleSource:
    """Return where the samples of a job are.

    Args:
        studio: where it is.
        job: of kind ``evaluate`` or ``infer``, done.
        summary: as ``Evaluations.summary`` gives it.
    """
    dataset_id = str(summary["dataset"])
    dataset = studio.jobs.some([dataset_id]).get(dataset_id) if dataset_id else None
    size = dataset.spec.get("size") if dataset is not None else None
    is_tiny = isinstance(size, list | tuple) and bool(size) and max(size) <= _TINY_PX
    return SampleSource(job=job.id, dataset=dataset_id, kind=job.kind, tiny=is_tiny)
