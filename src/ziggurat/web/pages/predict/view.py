"""View model of the prediction page: the model's checkpoints, devices, splits, and earlier predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import ZigguratError
from ziggurat.workspace.checkpoints import checkpoint_choices
from ziggurat.workspace.studio import Studio

__all__ = ["SPLITS", "TABS", "ModelTest", "SplitChoice", "model_test"]

TABS: Final = {"one": "One image", "many": "Many images", "splits": "Splits of the data"}
SPLITS: Final = {"val": "Validation", "test": "Test", "train": "Training"}
_EARLIER: Final = 50


@dataclass(frozen=True, kw_only=True)
class SplitChoice:
    """A split that the model may be measured on.

    Args:
        name: ``train``, ``val`` or ``test``.
        title: what stands on the page.
        count: samples; None if unknown.
        openings: how often the test split was measured on; None for other splits, and if unknown.
    """

    name: str
    title: str
    count: int | None
    openings: int | None


@dataclass(frozen=True, kw_only=True)
class ModelTest:
    """What the page shows of a model.

    Args:
        job: its training.
        checkpoints: value and text of each that may be chosen.
        devices: value and text of each.
        dataset: that it was trained on; None where it is none of the studio's.
        splits: of its data.
        earlier: jobs that used it, the newest first.
        earlier_left: so many more are not shown.
        takes_address: whether an image may be named by its address.
    """

    job: Job
    checkpoints: list[tuple[str, str]]
    devices: list[tuple[str, str]]
    dataset: Job | None
    splits: list[SplitChoice]
    earlier: list[Job]
    earlier_left: int
    takes_address: bool

    @property
    def is_ready(self) -> bool:
        """Whether it has a checkpoint."""
        return bool(self.checkpoints)


def model_test(studio: Studio, job: Job, tab: str) -> ModelTest:
    """Return what the page shows of a model.

    Args:
        studio: where it is.
        job: of kind ``train``.
        tab: that is shown; what only others show is left out.
    """
    is_about_splits = tab == "splits"
    needed = studio.jobs.some(job.depends_on)
    dataset = next((each for each in needed.values() if each.kind == "dataset"), None)
    earlier = [] if tab == "one" else studio.evaluations.of_model(job.id)
    return ModelTest(
        job=job,
        checkpoints=checkpoint_choices(job),
        devices=_devices(studio.machine.strip()["devices"], job),
        dataset=dataset,
        splits=_splits(studio, dataset) if is_about_splits else [],
        earlier=earlier[:_EARLIER],
        earlier_left=max(0, len(earlier) - _EARLIER),
        takes_address=studio.web_pictures.is_on,
    )


def _devices(devices: list[Mapping[str, Any]], job: Job) -> list[tuple[str, str]]:
    usual = f"GPU {', '.join(map(str, job.devices))}" if job.devices else "CPU"
    chosen = [(str(each["index"]), f"GPU {each['index']}: {each['name']}") for each in devices if each["usable"]]
    return [("", f"As in the training ({usual})"), ("cpu", "CPU"), *chosen]


def _splits(studio: Studio, dataset: Job | None) -> list[SplitChoice]:
    counts: Mapping[str, int] | None = None
    openings: int | None = None
    try:
        if dataset is not None:
            about = studio.datasets.describe(dataset.id)
            counts, openings = about["splits"], about["test_openings"]
    except ZigguratError:  # it is not whole any more; the job will say why
        counts = None
    return [
        SplitChoice(
            name=name,
            title=title,
            count=None if counts is None else counts.get(name, 0),
            openings=openings if name == "test" else None,
        )
        for name, title in SPLITS.items()
        if counts is None or counts.get(name)
    ]
