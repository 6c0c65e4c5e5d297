"""Execution of a dataset creation job: spec to request, progress to events, stop requests checked between chunks."""

from __future__ import annotations

from ziggurat.datasets.creation import CreationRequest, CreationStopped, create_dataset
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import ImageForm, Manifest
from ziggurat.specs import DatasetSpec
from ziggurat.worker.event_watch import EventWatch

__all__ = ["creation_request", "make_dataset"]


def make_dataset(spec: DatasetSpec, folder: JobFolder, watch: EventWatch) -> str | None:
    """Make the dataset, or go on with it; return its result, None if a stop was requested.

    Args:
        spec: what was asked.
        folder: the job folder, which becomes the dataset.
        watch: is told of progress and warnings, and asked whether to stop.

    Raises:
        ZigguratError: where it cannot be made.
    """
    try:
        return _summary(create_dataset(creation_request(spec), folder.path, watch))
    except CreationStopped:
        return None


def creation_request(spec: DatasetSpec) -> CreationRequest:
    """Return in plain values what a spec asks for."""
    sized = spec.size is not None
    splits = spec.splits
    return CreationRequest(
        name=spec.name,
        source=spec.source,
        format=spec.format,
        options=spec.options,
        rule=SplitRule(
            method=splits.method,
            val_share=splits.val_share,
            test_share=splits.test_share,
            seed=spec.seed,
            stratify=splits.stratify,
            pattern=splits.pattern,
            lists=splits.lists,
            max_distance=splits.max_distance,
            min_per_class=splits.min_per_class,
            max_per_class=splits.max_per_class,
        ),
        image=ImageForm(
            encoding="" if spec.encoding == "auto" else spec.encoding,
            resize_mode=spec.resize_mode if sized else "none",
            height_px=spec.size[0] if spec.size is not None else None,
            width_px=spec.size[1] if spec.size is not None else None,
            channels=spec.channels,
            quality=spec.quality,
        ),
        store=spec.store,
        mean=spec.mean,
        near_duplicates=spec.near_duplicates,
        check="" if spec.check == "auto" else spec.check,
        losses=spec.losses,
        again_of=spec.again_of,
        workers=spec.workers,
        spec=spec.model_dump(mode="json", exclude={"workers", "heartbeat_s", "hung_after_s"}),
    )


def _summary(manifest: Manifest) -> str:
    counts = ", ".join(f"{split} {note.count}" for split, note in manifest.splits.items())
    problems = sum(manifest.problems.values())
    said = "no problems" if not problems else "1 problem" if problems == 1 else f"{problems} problems"
    return f"{counts} samples; {said}" + "".join(f"; {each['text'].rstrip('.')}" for each in manifest.losses)
