"""Shared parts of the worker tests: tiny jobs, and comparisons of jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.waiting import PROCESS_S, wait_until
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.entities import Heartbeat, read_heartbeat
from ziggurat.entities.json_lines import read_lines
from ziggurat.events import AttemptEnded, ErrorRaised, Event, Message, effective_scalars, read_events
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec

STEPS = 6
"""Steps in an epoch of the tiny job."""

LAST = 2 * STEPS
"""Its last step."""

MEASURED = {
    "Throughput (samples/sec)": "measured by the clock",
    "Throughput (steps/sec)": "measured by the clock",
    "StepTime/p50_ms": "measured by the clock",
    "StepTime/p99_ms": "measured by the clock",
}
"""Curves that differ between two executions of the same job, and why."""

MAY_DIFFER = {
    **{f"latest/{tag}": why for tag, why in MEASURED.items()},
    **{f"callbacks/JSONWriter/values/{tag}": why for tag, why in MEASURED.items()},
    "callbacks/ModelSaver/saved_at": "times of saves; and a stop saves one checkpoint more",
    "callbacks/ModelSaver/keep_from": "a time: which checkpoints are kept for their age",
}
"""What differs in the meta of a checkpoint between two executions of the same job, and why. Nothing else may."""

MAY_DIFFER_WITH_THREADS = {
    **MAY_DIFFER,
    "batches/source/children": "how far threads had read ahead; the position itself, `delivered`, is equal",
}
"""The same of a job whose images are decoded by threads."""


def make_data(folder: Path) -> Path:
    """Make a set of 50 images (8, 8) of 3 classes to train on, 20 to validate and 20 to test, as idx files."""
    random = np.random.default_rng(5)
    for split, count in (("train", 50), ("val", 20), ("t10k", 20)):
        labels = np.arange(count, dtype=np.uint8) % 3
        pictures = random.integers(0, 90, (count, 8, 8)).astype(np.uint8)
        for number, label in enumerate(labels):
            pictures[number, 2 * label : 2 * label + 3] += 120
        _write_idx(folder / f"{split}-images-idx3-ubyte", pictures)
        _write_idx(folder / f"{split}-labels-idx1-ubyte", labels)
    return folder


def make_pictures(folder: Path, file_format: str = "png") -> Path:
    """Make a folder of three classes with 22 files (10, 12) each."""
    random = np.random.default_rng(6)
    for label in range(3):
        (folder / f"class{label}").mkdir()
        for number in range(22):
            pixels = random.integers(0, 80, (10, 12, 3)).astype(np.uint8)
            pixels[2 * label : 2 * label + 3] += 120
            Image.fromarray(pixels).save(folder / f"class{label}" / f"{number:02d}.{file_format}")
    return folder


def _write_idx(path: Path, values: np.ndarray) -> None:
    header = bytes((0, 0, 8, values.ndim)) + b"".join(size.to_bytes(4) for size in values.shape)
    path.write_bytes(header + values.tobytes())


def tiny_spec(data: Path, **changes: Any) -> dict[str, Any]:
    """Return the spec of a job of two epochs with everything that a resume must bring back."""
    content: dict[str, Any] = {
        "kind": "train",
        "version": 1,
        "backend": "null",
        "backend_options": {"hidden": 8, "dropout": 0.3},
        "network": "mlp",
        "data": str(data),
        "epochs": 2,
        "batch_size": 8,
        "learning_rate": 0.2,
        "schedule": "cosine",
        "seed": 11,
        "preprocessing": {"crop": 7, "mean": "image"},
        "augmentation": {"noise": 0.05, "flip": "fliplr"},
        "checkpoints": {"every_steps": 4, "keep_last": 3, "keep_best": "validation_error"},
        "early_stopping": {"tag": "validation_cost", "patience": 40},
        "callbacks": ["test_strike", "test_draws"],
        "monitors": ["events", "stats", "tensorboard"],
        "heartbeat_s": 0.2,
    }
    return content | changes


def make_job(folder: Path, data: Path, **changes: Any) -> Path:
    """Make a job folder, as ``ziggurat train`` does."""
    folder.mkdir(parents=True)
    save_spec(parse_spec(tiny_spec(data, **changes)), JobFolder(folder).spec)
    return folder


def wait_for_step(folder: Path, step: int) -> Heartbeat:
    """Wait until a heartbeat says that ``step`` steps are done in training."""
    path = JobFolder(folder).heartbeat

    def reached() -> Heartbeat | None:
        heartbeat = read_heartbeat(path)
        is_there = heartbeat is not None and heartbeat.phase == "training" and heartbeat.global_step >= step
        return heartbeat if is_there else None

    return wait_until(reached, PROCESS_S, what=f"step {step}")


def events_of(folder: Path, kind: type[Event] = Event) -> list[Any]:
    """Return the events of a type."""
    return [event for event in read_events(JobFolder(folder).events)[0] if isinstance(event, kind)]


def end_of(folder: Path) -> AttemptEnded:
    """Return what the newest attempt said last."""
    last = events_of(folder)[-1]
    assert isinstance(last, AttemptEnded), last
    return last


def error_of(folder: Path) -> ErrorRaised:
    """Return the error that ended the newest attempt."""
    return events_of(folder, ErrorRaised)[-1]


def messages_of(folder: Path) -> list[str]:
    """Return the warnings."""
    return [event.text for event in events_of(folder, Message) if event.level == "warning"]


def steps_of(folder: Path) -> list[int]:
    """Return the steps of the checkpoints that load."""
    store = CheckpointStore(JobFolder(folder).checkpoints, writable=False)
    for info in store.list():
        store.load(info.name)
    return [info.step for info in store.list()]


def curves_of(folder: Path) -> dict[str, list[tuple[int, int, float]]]:
    """Return tag → (step, epoch, value), of what holds and is no measurement."""
    curves: dict[str, list[tuple[int, int, float]]] = {}
    for point in effective_scalars(events_of(folder)):
        if point.tag not in MEASURED:
            curves.setdefault(point.tag, []).append((point.step, point.epoch, point.value))
    return curves


def outcome_of(folder: Path, may_differ: dict[str, str] = MAY_DIFFER) -> dict[str, Any]:
    """Return everything of a job that must not depend on how often it was interrupted, flat and by name."""
    store = CheckpointStore(JobFolder(folder).checkpoints, writable=False)
    newest = store.latest()
    assert newest is not None
    info, state, problems = newest
    assert problems == []
    lines = [json.loads(line) for line in JobFolder(folder).stats.read_text().splitlines()]
    return {
        "checkpoint": info.name,
        **{f"arrays/{name}": array.tolist() for name, array in state.arrays.items()},
        **{f"meta/{name}": value for name, value in _flat(state.meta, may_differ).items() if name not in may_differ},
        **{f"names/{given}": name for given, name in store.names().items()},
        **{f"curves/{tag}": points for tag, points in curves_of(folder).items()},
        "samples": [{**line, "time": 0} for line in read_lines(JobFolder(folder).sample_predictions)],
        "stats": [{tag: value for tag, value in line.items() if tag not in MEASURED} for line in lines],
    }


def _flat(value: Any, whole: dict[str, str], name: str = "") -> dict[str, Any]:
    """Return nested dicts as one, but for those that are named in ``whole``."""
    if not isinstance(value, dict) or name in whole:
        return {name: value}
    parts = [_flat(part, whole, f"{name}/{key}" if name else str(key)) for key, part in value.items()]
    return {name: value for part in parts for name, value in part.items()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the names of what differs; NaN equals NaN."""
    return [name for name in {**one, **other} if json.dumps(one.get(name)) != json.dumps(other.get(name))]
