"""Findings of the pre-flight check: each with its level and its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ziggurat.specs import TrainSpec
from ziggurat.workspace.studio.training_estimates import EarlierJobs, NetworkSize, checkpoints_kept

__all__ = [
    "DataFacts",
    "batch_finding",
    "class_findings",
    "data_findings",
    "device_finding",
    "disk_finding",
    "finding",
    "memory_finding",
    "time_finding",
]

Level = Literal["ok", "unknown", "warning", "error"]

_MUCH_WAITING: Final = 0.3
"""Share of the time above which waiting for data is worth a word."""

_NEARLY_AS_FAST: Final = 0.8
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """What is known of the data of a training; see ``ziggurat.worker.commands.previews.loading``."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    classes: int | None = None
    input_shape: tuple[int, ...] | None = None
    in_memory: bool = False
    records_per_s: float | None = None
    threads: int = 1

    @classmethod
    def of(cls, measured: Mapping[str, Any]) -> DataFacts:
        """Return them from what a task measured."""
        return cls(
            sizes=measured["sizes"],
            classes=measured["classes"],
            input_shape=tuple(measured["input_shape"]),
            in_memory=measured["in_memory"],
            records_per_s=measured["records_per_s"],
            threads=measured["threads"],
        )


def finding(name: str, level: Level, sentence: str, **numbers: Any) -> dict[str, Any]:
    """Return a finding as JSON values."""
    return {"name": name, "level": level, "sentence": sentence, **numbers}


def data_findings(spec: TrainSpec, data: DataFacts, earlier: EarlierJobs | None) -> list[dict[str, Any]]:
    """Say how much data there is, and whether reading it will hold up the training."""
    if not data.sizes:
        return []
    found = [_amount(spec, data)]
    speed = data.records_per_s
    wait = None if earlier is None else earlier.data_wait_share
    if speed is not None:
        found.append(_reading(spec, data, speed, earlier))
    if wait is not None and wait > _MUCH_WAITING:
        text = f"Earlier trainings like this one waited for data in {wait:.0%} of their time."
        found.append(finding("data", "warning", text, data_wait_share=wait))
    return found


def _amount(spec: TrainSpec, data: DataFacts) -> dict[str, Any]:
    counts = ", ".join(f"{count:,} samples for {_WORDS.get(split, split)}" for split, count in data.sizes.items())
    text = f"{counts}; {data.classes} classes."
    if not data.sizes.get("val") and spec.validation.every_epochs:
        advice = "There are no samples for validation: nothing will tell how good the network is on new ones."
        return finding("data", "warning", f"{text} {advice}", sizes=dict(data.sizes), classes=data.classes)
    return finding("data", "ok", text, sizes=dict(data.sizes), classes=data.classes)


_WORDS: Final = {"train": "training", "val": "validation", "test": "the test"}


def _reading(spec: TrainSpec, data: DataFacts, speed: float, earlier: EarlierJobs | None) -> dict[str, Any]:
    numbers = {"records_per_s": speed, "threads": data.threads, "in_memory": data.in_memory}
    batches = speed / (spec.batch_size * spec.gradient_accumulation_steps)
    if data.in_memory:
        text = f"All images fit into memory; {speed:,.0f} a second are varied, {_few(batches)} steps."
        return finding("data", "ok", text, **numbers)
    most = speed * data.threads
    text = f"One thread makes {speed:,.0f} images a second ready, {_few(batches)} steps; {data.threads} do."
    if earlier is not None and earlier.samples_per_s > _NEARLY_AS_FAST * most:
        text += f" Earlier trainings used {earlier.samples_per_s:,.0f}: reading may hold this one up."
        return finding("data", "warning", text, **numbers)
    return finding("data", "ok", text, **numbers)


def class_findings(spec: TrainSpec, data: DataFacts, described: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Say where the classes of the data, of the network and of the class weights are not as many."""
    found: list[dict[str, Any]] = []
    classes = data.classes
    if classes is None:
        return found
    if spec.class_weights and len(spec.class_weights) != classes:
        text = f"There are {len(spec.class_weights)} class weights for {classes} classes: each class needs one."
        found.append(finding("data", "error", text, classes=classes))
    shapes = [] if described is None else [shape for shape in described["outputs"] if shape]
    outputs = shapes[0][-1] if shapes else None
    if outputs is not None and outputs != classes:
        level: Level = "error" if outputs < classes else "warning"
        text = f"The network gives {outputs} numbers for an image, and the data has {classes} classes."
        found.append(finding("data", level, text, classes=classes, outputs=outputs))
    return found


def batch_finding(spec: TrainSpec, data: DataFacts, steps_per_epoch: int | None) -> list[dict[str, Any]]:
    """Say how the batch fits the training split."""
    train = data.sizes.get("train")
    batch = spec.batch_size * spec.gradient_accumulation_steps
    if train is None:
        return []
    if batch > train:
        text = f"A batch of {batch:,} is larger than the training split of {train:,} samples: make it smaller."
        return [finding("batch", "error", text, batch=batch, train=train)]
    text = f"A step takes {batch:,} of {train:,} samples, an epoch {steps_per_epoch:,} steps."
    return [finding("batch", "ok", text, batch=batch, train=train)]


def device_finding(spec: TrainSpec, machine: Mapping[str, Any]) -> dict[str, Any]:
    """Say what it will train on."""
    wanted = [device for device in spec.devices if "gpu" in device.lower()]
    if not wanted:
        return finding("device", "ok", "It trains on the processors.", devices=list(spec.devices))
    known = {each["index"]: each for each in machine["devices"]}
    indices = {device: device.rpartition(":")[2] for device in wanted}
    missing = [device for device, index in indices.items() if index.isdigit() and int(index) not in known]
    if missing or not known:
        reason = machine["why_no_devices"] or f"there are {', '.join(f'gpu:{index}' for index in known)}"
        text = f"The machine has no {' and no '.join(f'`{each}`' for each in missing or wanted)}: {reason}."
        return finding("device", "error", text, devices=list(spec.devices))
    return finding("device", "ok", f"It trains on {', '.join(wanted)}.", devices=list(spec.devices))


def memory_finding(
    spec: TrainSpec, size: NetworkSize | None, machine: Mapping[str, Any], *, describe: bool
) -> dict[str, Any]:
    """Say whether it fits into memory."""
    if size is None:
        reason = "before the network and its data are looked at" if describe else "as the network was not looked at"
        return finding("memory", "unknown", f"The memory that it needs is not known {reason}.")
    free, total, place = _memory_of(spec, machine)
    needed = size.training_bytes
    numbers = {
        "needed_bytes": needed,
        "layers_bytes": size.layers_bytes,
        "weights_bytes": size.weights_bytes,
        "free_bytes": free,
        "total_bytes": total,
        "parameters": size.parameters,
    }
    text = (
        f"It needs about {_size(needed)} besides the framework itself: {_size(needed - size.layers_bytes)} for "
        f"{size.parameters:,} parameters, {_size(size.layers_bytes)} for the layers of a batch."
    )
    if needed > total:
        return finding("memory", "error", f"{text} {place} has {_size(total)}: make the batch smaller.", **numbers)
    if needed > free:
        return finding("memory", "warning", f"{text} {place} has only {_size(free)} free now.", **numbers)
    return finding("memory", "ok", f"{text} {place} has {_size(free)} free.", **numbers)


def _memory_of(spec: TrainSpec, machine: Mapping[str, Any]) -> tuple[int, int, str]:
    """Return free and total bytes of the smallest of what it trains on, and what that is."""
    indices = {device.rpartition(":")[2] for device in spec.devices if "gpu" in device.lower()}
    chosen = [each for each in machine["devices"] if str(each["index"]) in indices]
    if not chosen:
        return machine["memory"]["free_bytes"], machine["memory"]["total_bytes"], "The machine"
    least = min(chosen, key=lambda each: each["free_bytes"])
    return least["free_bytes"], least["memory_bytes"], f"gpu:{least['index']}"


def disk_finding(
    spec: TrainSpec, size: NetworkSize | None, steps: int | None, jobs: int, disk: Mapping[str, Any]
) -> dict[str, Any]:
    """Say whether the checkpoints fit on the disk."""
    free, reserve = disk["free_bytes"], disk["reserve_bytes"]
    kept = checkpoints_kept(spec, steps)
    numbers = {"free_bytes": free, "reserve_bytes": reserve, "checkpoints": kept * jobs}
    if free < reserve:
        text = f"The disk has {_size(free)} free, and no job is started below {_size(reserve)}: free some space."
        return finding("disk", "error", text, **numbers)
    if size is None:
        text = f"What {kept * jobs} checkpoints take is not known; the disk has {_size(free)} free."
        return finding("disk", "unknown", text, **numbers)
    needed = size.checkpoint_bytes * kept * jobs
    text = f"{kept * jobs} checkpoints of {_size(size.checkpoint_bytes)} take {_size(needed)}"
    numbers |= {"needed_bytes": needed, "checkpoint_bytes": size.checkpoint_bytes}
    if needed > free:
        return finding("disk", "error", f"{text}, and the disk has {_size(free)} free: keep fewer.", **numbers)
    if needed > free - reserve:
        return finding("disk", "warning", f"{text}; then less than {_size(reserve)} of the disk is free.", **numbers)
    return finding("disk", "ok", f"{text} of the {_size(free)} that are free.", **numbers)


def time_finding(epoch_samples: int | None, epochs: int, jobs: int, earlier: EarlierJobs | None) -> dict[str, Any]:
    """Say how long it will take, from earlier trainings."""
    if earlier is None or epoch_samples is None:
        text = "How long it takes is not known before the first steps: no training like it is done here."
        return finding("time", "unknown", text, expected_s=None)
    expected_s = epoch_samples * epochs / earlier.samples_per_s
    each = " each" if jobs > 1 else ""
    count = "one earlier training" if earlier.count == 1 else f"{earlier.count} earlier trainings"
    text = f"It takes about {_duration(expected_s)}{each}, by the speed of {count} like it."
    return finding("time", "ok", text, expected_s=expected_s, earlier_jobs=earlier.count)


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def _duration(seconds: float) -> str:
    for unit_s, word in ((_DAY_S, "days"), (_HOUR_S, "hours"), (_MINUTE_S, "minutes")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{max(1, round(seconds))} s"


def _few(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1g}"
