"""Pre-flight check of a training: findings, each with its level, one sentence, and its numbers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from ziggurat.entities import Job
from ziggurat.errors import NetworkCodeError, ZigguratError
from ziggurat.formatting import as_bytes
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.workspace.new_jobs import network_name
from ziggurat.workspace.studio.machine import Machine
from ziggurat.workspace.studio.training_estimates import (
    EarlierJobs,
    NetworkSize,
    checkpoints_kept,
    earlier_jobs,
    network_size,
)
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.training_checks import known_data, problem_sentence

__all__ = ["DataFacts", "Preflight", "class_findings", "disk_finding", "memory_finding"]

Level = Literal["ok", "unknown", "warning", "error"]
_LIMIT_S: Final = 120.0

_MUCH_WAITING: Final = 0.3
"""Share of the time above which waiting for data is worth a word."""

_NEARLY_AS_FAST: Final = 0.8
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400

_NAMES: Final = {"network": "network", "backend": "network", "pretrained": "network", "batch_size": "batch"}
"""Field of a spec → finding that it belongs to, where that is not the data."""

_WORDS: Final = {"train": "training", "val": "validation", "test": "the test"}


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


@dataclass(frozen=True)
class Preflight:
    """Looks at a training before it is started. Nothing is kept: the next look finds what is there then.

    Args:
        tasks: measure the data and describe the network.
        machine: what it has.
        finished: gives trainings that are done, the newest first.
    """

    tasks: Tasks
    machine: Machine
    finished: Callable[[], Sequence[Job]]

    def refuse(self, spec: TrainSpec, *, jobs: int, problems: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Return what is found of a training that cannot succeed.

        Args:
            spec: of the training, complete; of a sweep, the first.
            jobs: how many trainings the sweep has.
            problems: as ``ziggurat.workspace.training_checks`` lists them.
        """
        machine = self.machine.strip()
        findings = [_problem_finding(each) for each in problems]
        findings += [device_finding(spec, machine), disk_finding(spec, None, None, jobs, machine["disk"])]
        return {"findings": findings, "steps": None, "steps_per_epoch": None, "parameters": None}

    def check(self, spec: TrainSpec, *, jobs: int, dataset: Job | None, describe: bool) -> dict[str, Any]:
        """Return what is found.

        Args:
            spec: of the training, complete; of a sweep, the first.
            jobs: how many trainings the sweep has.
            dataset: that it trains on, where it is one of the studio.
            describe: whether the data is measured and the network built, which takes seconds.
        """
        findings: list[dict[str, Any]] = []
        data = self._data(spec, dataset, describe, findings)
        steps_per_epoch = _steps_per_epoch(spec, data)
        steps = None if steps_per_epoch is None else steps_per_epoch * spec.epochs
        described = self._described(spec, data, findings) if describe and data.input_shape is not None else None
        size = None if described is None else network_size(described, spec)
        samples = (
            None if steps_per_epoch is None else steps_per_epoch * spec.batch_size * spec.gradient_accumulation_steps
        )
        earlier = earlier_jobs(self.finished(), spec, network_name(spec), samples)
        machine = self.machine.strip()
        findings += [
            *data_findings(spec, data, earlier),
            *class_findings(spec, data, described),
            *batch_finding(spec, data, steps_per_epoch),
            device_finding(spec, machine),
            *([] if _has(findings, "memory") else [memory_finding(spec, size, machine, describe=describe)]),
            disk_finding(spec, size, steps, jobs, machine["disk"]),
            time_finding(samples, spec.epochs, jobs, earlier),
        ]
        return {
            "findings": findings,
            "steps": steps,
            "steps_per_epoch": steps_per_epoch,
            "parameters": _parameters(size),
        }

    def _data(self, spec: TrainSpec, dataset: Job | None, describe: bool, findings: list[dict[str, Any]]) -> DataFacts:
        """Return what is known of the data; what hinders is among the findings."""
        if dataset is not None and dataset.state != "done":
            word = "is not made yet: the training waits for it, and its size is not known before"
            findings.append(finding("data", "warning", f"The dataset `{dataset.name}` {word}."))
            return DataFacts()
        try:
            if describe:
                return DataFacts.of(self.tasks.loading(spec.model_dump(mode="json"), time_limit_s=_LIMIT_S))
            known = known_data(spec.data.source, spec.data.options)
            return DataFacts(sizes=known.sizes, classes=known.classes)
        except ZigguratError as error:
            findings.append(finding("data", "error", f"The data cannot be trained on. {error}"))
            return DataFacts()

    def _described(self, spec: TrainSpec, data: DataFacts, findings: list[dict[str, Any]]) -> Mapping[str, Any] | None:
        network = spec.network
        options = {"backend": spec.backend, "input_shape": list(data.input_shape or ()), "classes": data.classes}
        with ExitStack() as stack:
            if not isinstance(network, FileNetwork):
                place = network.name
            elif network.text is None:
                place = network.path
            else:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ziggurat-"))
                place = str(Path(folder) / "network.py")
                Path(place).write_text(network.text, encoding="utf-8")
            try:
                return self.tasks.describe(place, time_limit_s=_LIMIT_S, **options)
            except NetworkCodeError as error:
                findings.append(finding("memory", "error", f"The network cannot be built. {error}"))
            except ZigguratError as error:
                findings.append(finding("memory", "unknown", f"The memory that it needs is not known. {error}"))
        return None


def _problem_finding(problem: Mapping[str, str]) -> dict[str, Any]:
    return finding(_NAMES.get(problem["field"].partition(".")[0], "data"), "error", problem_sentence(problem))


def _steps_per_epoch(spec: TrainSpec, data: DataFacts) -> int | None:
    if spec.steps_per_epoch is not None:
        return spec.steps_per_epoch
    train = data.sizes.get("train")
    return None if train is None else train // (spec.batch_size * spec.gradient_accumulation_steps) or None


def _parameters(size: NetworkSize | None) -> int | None:
    return None if size is None else size.parameters


def _has(findings: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(each["name"] == name for each in findings)


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
        f"It needs about {as_bytes(needed)} besides the framework itself: {as_bytes(needed - size.layers_bytes)} for "
        f"{size.parameters:,} parameters, {as_bytes(size.layers_bytes)} for the layers of a batch."
    )
    if needed > total:
        return finding("memory", "error", f"{text} {place} has {as_bytes(total)}: make the batch smaller.", **numbers)
    if needed > free:
        return finding("memory", "warning", f"{text} {place} has only {as_bytes(free)} free now.", **numbers)
    return finding("memory", "ok", f"{text} {place} has {as_bytes(free)} free.", **numbers)


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
        text = f"The disk has {as_bytes(free)} free, and no job is started below {as_bytes(reserve)}: free some space."
        return finding("disk", "error", text, **numbers)
    if size is None:
        text = f"What {kept * jobs} checkpoints take is not known; the disk has {as_bytes(free)} free."
        return finding("disk", "unknown", text, **numbers)
    needed = size.checkpoint_bytes * kept * jobs
    text = f"{kept * jobs} checkpoints of {as_bytes(size.checkpoint_bytes)} take {as_bytes(needed)}"
    numbers |= {"needed_bytes": needed, "checkpoint_bytes": size.checkpoint_bytes}
    if needed > free:
        return finding("disk", "error", f"{text}, and the disk has {as_bytes(free)} free: keep fewer.", **numbers)
    if needed > free - reserve:
        return finding("disk", "warning", f"{text}; then less than {as_bytes(reserve)} of the disk is free.", **numbers)
    return finding("disk", "ok", f"{text} of the {as_bytes(free)} that are free.", **numbers)


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


def _duration(seconds: float) -> str:
    for unit_s, word in ((_DAY_S, "days"), (_HOUR_S, "hours"), (_MINUTE_S, "minutes")):
        if seconds >= 2 * unit_s:
            return f"{seconds / unit_s:.0f} {word}"
    return f"{max(1, round(seconds))} s"


def _few(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1g}"
