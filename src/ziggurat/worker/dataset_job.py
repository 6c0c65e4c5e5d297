"""Owns the execution of a job that makes a data set: spec to request, progress to events, a stop between chunks."""

from __future__ import annotations

from ziggurat.datasets.creation import CreationRequest, CreationStopped, create_dataset
from ziggurat.datasets.splitting.rule import SplitRule
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.events import EventFile
from ziggurat.layout import JobFolder
from ziggurat.records.manifest import ImageForm, Manifest
from ziggurat.specs import DatasetSpec
from ziggurat.worker.event_watch import EventWatch, say_end, say_start
from ziggurat.worker.pulse import StepClock
from ziggurat.worker.stopping import StopRequest

__all__ = ["creation_request", "run_creation"]


def run_creation(
    spec: DatasetSpec,
    folder: JobFolder,
    request: StopRequest,
    events: EventFile,
    clock: StepClock,
    *,
    attempt: int,
    progress: str,
) -> int:
    """Make the data set, or go on with it; return the exit code.

    Args:
        spec: what was asked.
        folder: the job folder, which becomes the data set.
        request: to stop.
        events: are told of start, progress, warnings and end.
        clock: is told that it goes on.
        attempt: number of this attempt, from 1.
        progress: how people are shown it: ``bar``, ``lines``, ``none``, or ``auto``.

    Raises:
        ZigguratError: where it cannot be made.
    """
    say_start(events, attempt)
    watch = EventWatch(request, events, clock, progress)
    clock.phase = "creating"
    try:
        manifest = create_dataset(creation_request(spec), folder.path, watch)
    except CreationStopped:
        return say_end(events, watch.done, "stopped", EXIT_STOPPED, request.reason or "asked to stop")
    finally:
        watch.close()
        clock.phase = "stopping"
    return say_end(events, watch.done, "done", EXIT_DONE, _summary(manifest))


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
        workers=spec.workers,
        spec=spec.model_dump(mode="json", exclude={"workers", "heartbeat_s", "hung_after_s"}),
    )


def _summary(manifest: Manifest) -> str:
    counts = ", ".join(f"{split} {note.count}" for split, note in manifest.splits.items())
    problems = sum(manifest.problems.values())
    said = "no problems" if not problems else "1 problem" if problems == 1 else f"{problems} problems"
    return f"{counts} samples; {said}"
