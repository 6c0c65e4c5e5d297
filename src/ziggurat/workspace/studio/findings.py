"""Findings of the pre-flight check: each with its mark, a title, a value, a sentence, its field and its numbers.

A mark is never ``ok`` where nothing is known: then it is ``unknown``, and the sentence says how to find out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ziggurat.entities.backend_info import StandardNetwork, backend_infos
from ziggurat.formatting import as_bytes, as_count, as_duration, as_percent, as_rough_duration, plural
from ziggurat.specs import TrainSpec
from ziggurat.workspace.recipes import UNBALANCED, balanced_weights, typical_rate
from ziggurat.workspace.training_checks import problem_sentence
from ziggurat.workspace.training_estimates import (
    EarlierJobs,
    NetworkSize,
    checkpoints_kept,
    whole_time,
)

__all__ = [
    "DataFacts",
    "balance_finding",
    "batch_finding",
    "class_findings",
    "data_finding",
    "device_finding",
    "disk_finding",
    "finding",
    "fit_finding",
    "loading_finding",
    "memory_finding",
    "one_row",
    "problem_finding",
    "rate_finding",
    "time_finding",
]

Level = Literal["ok", "unknown", "warning", "error"]

_MUCH_WAITING: Final = 0.3
"""Share of the time spent waiting for data above which the finding is a warning."""

_IMAGE_AXES: Final = 3
"""Height, width and channels: a row of a table or the tokens of a text have one axis."""

_EVEN: Final = 1.5
_NEARLY_AS_FAST: Final = 0.8
_FAR_SMALLER: Final = 0.75
"""Share of the side that a network was designed for below which images are too small for it."""

_MANY_TIMES: Final = 10.0
"""Factor above the typical learning rate from which the finding is a warning; below it, the square of the factor."""

_TITLES: Final = {
    "memory": "Memory",
    "time": "Time",
    "data": "Dataset and network",
    "network": "Network",
    "disk": "Disk",
    "classes": "Class balance",
    "loading": "Data loading",
    "batch": "Batch",
    "device": "Device",
    "rate": "Learning rate",
}

_WORSE: Final = ("ok", "unknown", "warning", "error")

_NAMES: Final = {
    "network": "network",
    "backend": "network",
    "pretrained": "network",
    "batch_size": "batch",
    "class_weights": "classes",
}
"""Field of a spec → its finding; the finding of other fields is ``data``."""

_TEST: Final = "A test batch measures it."


@dataclass(frozen=True, kw_only=True)
class DataFacts:
    """Known facts about the data of a training; see ``ziggurat.worker.commands.previews.loading``."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    classes: int | None = None
    input_shape: tuple[int, ...] | None = None
    in_memory: bool = False
    records_per_s: float | None = None
    threads: int = 1
    class_names: Sequence[str] = ()
    class_counts: Sequence[int] = ()

    @property
    def has_images(self) -> bool:
        """Whether the network gets images, as far as it is known."""
        return self.input_shape is None or len(self.input_shape) == _IMAGE_AXES

    @classmethod
    def of(cls, measured: Mapping[str, Any]) -> DataFacts:
        """Return the facts that a task measured."""
        return cls(
            sizes=measured["sizes"],
            classes=measured["classes"] or None,
            input_shape=tuple(measured["input_shape"]),
            in_memory=measured["in_memory"],
            records_per_s=measured["records_per_s"],
            threads=measured["threads"],
        )


def finding(
    name: str, level: Level, sentence: str, *, value: str = "", field: str = "", **numbers: Any
) -> dict[str, Any]:
    """Return a finding as JSON values.

    Args:
        name: such as ``memory``.
        level: of the finding.
        sentence: the result, and what to do.
        value: the result in a few words; ``unknown`` where nothing is known.
        field: of the spec that decides the result, such as ``batch_size``; empty for none.
        numbers: the result is based on them; ``fix`` has ``title`` and ``fields`` (path in the spec → value).
    """
    text = value or ("unknown" if level == "unknown" else "")
    return {
        "name": name,
        "level": level,
        "title": _TITLES[name],
        "value": text,
        "sentence": sentence,
        "field": field,
        **numbers,
    }


def one_row(findings: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return findings with those about the dataset and the network in one: a row that passed beside one that did not
    contradicts it. The worst of them gives the mark, value and field.
    """
    rows = [each for each in findings if each["name"] == "data"]
    if len(rows) < 2:
        return list(findings)
    worst = max(rows, key=lambda each: _WORSE.index(each["level"]))
    others = [each["sentence"] for each in rows if each is not worst and each["level"] not in ("ok", "unknown")]
    row = {**worst, "sentence": " ".join([worst["sentence"], *others])}
    return [row if each is rows[0] else each for each in findings if each is rows[0] or each not in rows]


def problem_finding(problem: Mapping[str, str]) -> dict[str, Any]:
    """Return the finding of a problem as ``ziggurat.workspace.training_checks`` lists it."""
    path = problem["field"]
    name = _NAMES.get(path.partition(".")[0], "data")
    value = problem.get("received", "")
    return finding(name, "error", problem_sentence(problem), value=value if len(value) <= 40 else "", field=path)


def data_finding(spec: TrainSpec, data: DataFacts) -> list[dict[str, Any]]:
    """Return the finding about the amount of data."""
    if not data.sizes:
        return []
    words = {"train": "training", "val": "validation", "test": "the test"}
    counts = ", ".join(
        f"{plural(count, 'sample')} for {words.get(split, split)}" for split, count in data.sizes.items()
    )
    classes = plural(data.classes, "class", "classes") if data.classes else ""
    text = "; ".join(part for part in (counts, classes) if part) + "."
    parts = (classes, "" if data.input_shape is None else _size_text(data.input_shape))
    value = ", ".join(part for part in parts if part) or plural(data.sizes.get("train", 0), "sample")
    numbers = {"value": value, "field": "data.source", "sizes": dict(data.sizes)}
    if not data.sizes.get("val") and spec.validation.every_epochs:
        advice = "There is no validation split: how good the network is on new samples will be unknown."
        return [finding("data", "warning", f"{text} {advice}", classes=data.classes, **numbers)]
    return [finding("data", "ok", text, classes=data.classes, **numbers)]


def fit_finding(
    network: StandardNetwork | None, shape: Sequence[int] | None, *, builds: bool, failure: str
) -> list[dict[str, Any]]:
    """Return whether the network suits its input, or that this is unknown.

    Args:
        network: None for a network file.
        shape: of its input; None if unknown.
        builds: whether it was built since it was changed.
        failure: why it could not be built; empty where it could, or was not tried.
    """
    if failure:
        return [finding("network", "error", f"The network cannot be built. {failure}", value="error", field="network")]
    if network is None:
        if builds:
            return [finding("network", "ok", "The network was built with this data.", value="builds", field="network")]
        text = "Whether the network builds is unknown: use Visualize, or run a test batch."
        return [finding("network", "unknown", text, field="network")]
    if shape is None or len(shape) < _IMAGE_AXES or network.input_shape is None:
        return []
    made_for, side = min(network.input_shape[:2]), min(shape[:2])
    if side >= made_for * _FAR_SMALLER:
        return []
    text = (
        f"{network.title} is designed for images of {made_for} x {made_for} px; these have {shape[0]} x {shape[1]} px. "
        "Choose a network for small images, or set `preprocessing.size`."
    )
    return [finding("network", "warning", text, value=f"{made_for} px", field="preprocessing.size")]


def class_findings(spec: TrainSpec, data: DataFacts, outputs: int | None) -> list[dict[str, Any]]:
    """Return where the numbers of classes of the data, the network and the class weights differ."""
    found: list[dict[str, Any]] = []
    classes = data.classes
    if classes is None:
        return found
    weights = len(spec.class_weights)
    if weights and weights != classes:
        text = f"{plural(weights, 'class weight')} for {plural(classes, 'class', 'classes')}: each class needs one."
        found.append(
            finding("classes", "error", text, value=plural(weights, "weight"), field="class_weights", classes=classes)
        )
    if outputs is not None and outputs != classes:
        level: Level = "error" if outputs < classes else "warning"
        known = plural(classes, "class", "classes")
        text = f"The network gives {plural(outputs, 'number')} for a sample, and the data has {known}."
        value = f"{plural(outputs, 'output')}, {known}"
        found.append(finding("data", level, text, value=value, field="network", classes=classes, outputs=outputs))
    return found


def balance_finding(spec: TrainSpec, data: DataFacts) -> list[dict[str, Any]]:
    """Return whether some classes have many more samples than others."""
    counts, names = data.class_counts, data.class_names
    if data.classes is None or data.classes < 2:
        return []
    if len(counts) != data.classes:
        text = "The number of samples of each class is unknown without a dataset: create one from the data."
        return [finding("classes", "unknown", text)]
    most, least = max(counts), min(counts)
    largest, smallest = names[counts.index(most)], names[counts.index(least)]
    if not least:
        text = f"The training split has no samples of `{smallest}`, so the network cannot learn this class."
        return [finding("classes", "warning", text, value=f"{smallest} 0 samples", field="data.source")]
    ratio = most / least
    value = "even" if ratio < _EVEN else f"{largest} {ratio:.1f} x {smallest}"
    if ratio < UNBALANCED or spec.class_weights:
        weighted = " The loss uses class weights." if spec.class_weights and ratio >= UNBALANCED else ""
        text = f"The largest class has {ratio:.1f} times the samples of the smallest.{weighted}"
        return [finding("classes", "ok", text, value=value, ratio=ratio)]
    text = f"`{largest}` has {ratio:.1f} times the samples of `{smallest}`. Rare classes are learned later."
    fix = {"title": "Use class weights", "fields": {"class_weights": balanced_weights(counts)}}
    return [finding("classes", "warning", text, value=value, field="class_weights", ratio=ratio, fix=fix)]


def loading_finding(
    spec: TrainSpec, data: DataFacts, earlier: EarlierJobs | None, measured: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return whether the training will wait for data."""
    wait = measured["data_wait_share"] if measured is not None else earlier.data_wait_share if earlier else None
    numbers: dict[str, Any] = {}
    if data.records_per_s is not None:
        numbers = {"records_per_s": data.records_per_s, "threads": data.threads, "in_memory": data.in_memory}
    if wait is not None:
        source = "Measured" if measured is not None else "Earlier trainings like this one"
        value = f"{as_percent(wait, 0)} of the time" + (", measured" if measured is not None else "")
        text = f"{source}: {as_percent(wait, 0)} of the time is spent waiting for data."
        if wait > _MUCH_WAITING:
            smaller = ", or store the images in the size that the network needs" if data.has_images else ""
            text += f" To speed it up, add workers{smaller}."
            return finding(
                "loading", "warning", text, value=value, field="loading.workers", data_wait_share=wait, **numbers
            )
        return finding("loading", "ok", text, value=value, data_wait_share=wait, **numbers)
    if data.records_per_s is None:
        return finding("loading", "unknown", f"Whether the training will wait for data is unknown. {_TEST}")
    return _reading(spec, data, data.records_per_s, earlier, numbers)


def _reading(
    spec: TrainSpec, data: DataFacts, speed: float, earlier: EarlierJobs | None, numbers: Mapping[str, Any]
) -> dict[str, Any]:
    unit = "images" if data.has_images else "samples"
    batches = speed / (spec.batch_size * spec.gradient_accumulation_steps)
    if data.in_memory:
        value = f"{as_count(round(speed))} {unit}/s"
        text = f"All {unit} fit in memory. One thread prepares {value}: {_few(batches)} steps/s."
        return finding("loading", "ok", text, value=value, **numbers)
    most = speed * data.threads
    text = (
        f"One of {plural(data.threads, 'thread')} prepares {as_count(round(speed))} {unit}/s: {_few(batches)} steps/s."
    )
    value = f"{as_count(round(most))} {unit}/s"
    if earlier is None:
        # The speed of reading alone does not say whether the network waits for it.
        return finding("loading", "unknown", f"{text} Whether that is enough is unknown. {_TEST}", **numbers)
    if earlier.samples_per_s > _NEARLY_AS_FAST * most:
        used = as_count(round(earlier.samples_per_s))
        text += f" Earlier trainings used {used} {unit}/s: this one may wait for data."
        return finding("loading", "warning", text, value=value, field="loading.workers", **numbers)
    return finding("loading", "ok", text, value=value, **numbers)


def batch_finding(spec: TrainSpec, data: DataFacts, steps_per_epoch: int | None) -> list[dict[str, Any]]:
    """Return whether the batch fits the training split."""
    train = data.sizes.get("train")
    batch = spec.batch_size * spec.gradient_accumulation_steps
    if train is None:
        return []
    numbers = {
        "value": f"{as_count(batch)} of {as_count(train)}",
        "field": "batch_size",
        "batch": batch,
        "train": train,
    }
    if batch > train:
        split = f"the training split of {plural(train, 'sample')}"
        text = f"A batch of {as_count(batch)} is larger than {split}: reduce the batch size."
        return [finding("batch", "error", text, **numbers)]
    left = train % batch
    if left and not spec.shuffle and not spec.oversample_below:
        verb = "is" if left == 1 else "are"
        text = f"{plural(left, 'sample')} {verb} never trained on: the order is kept, and a last batch must be full."
        fix = {"title": "Shuffle", "fields": {"shuffle": True}}
        return [finding("batch", "warning", text, fix=fix, **numbers)]
    text = (
        f"A step takes {as_count(batch)} of {plural(train, 'sample')}, an epoch {plural(steps_per_epoch or 0, 'step')}."
    )
    return [finding("batch", "ok", text, **numbers)]


def device_finding(spec: TrainSpec, machine: Mapping[str, Any], accelerators: Mapping[str, int]) -> dict[str, Any]:
    """Return the devices of the training.

    Args:
        spec: of the training.
        machine: as the strip of a page shows it.
        accelerators: node → how many accelerators it has for jobs.
    """
    if spec.nodes > 1:
        what = plural(spec.gpus_per_node, "GPU") if spec.gpus_per_node else "the CPU"
        text = f"It trains on {spec.nodes} nodes with {what} of each, and waits until all of them are free."
        return finding("device", "ok", text, value=f"{spec.nodes} nodes", field="nodes", devices=[])
    wanted = [device for device in spec.devices if "gpu" in device.lower()]
    numbers = {"field": "devices", "devices": list(spec.devices)}
    info = backend_infos().get(spec.backend)
    is_open = not spec.devices and info is not None and bool(info.accelerators)
    if not wanted and not (is_open and accelerators):
        return finding("device", "ok", "It trains on the CPU.", value="CPU", **numbers)
    if not wanted:
        where = "" if len(accelerators) == 1 and machine["devices"] else f" of {' or '.join(accelerators)}"
        text = f"It trains on a GPU{where}, and waits until one is free."
        return finding("device", "ok", text, value="auto", **numbers)
    known = {each["index"]: each for each in machine["devices"]}
    indices = {device: device.rpartition(":")[2] for device in wanted}
    missing = [device for device, index in indices.items() if index.isdigit() and int(index) not in known]
    if missing or not known:
        reason = machine["why_no_devices"] or f"there are {', '.join(f'gpu:{index}' for index in known)}"
        text = f"The machine has no {' and no '.join(f'`{each}`' for each in missing or wanted)}: {reason}."
        return finding("device", "error", text, value="missing", **numbers)
    return finding("device", "ok", f"It trains on {', '.join(wanted)}.", value=", ".join(wanted), **numbers)


def memory_finding(
    spec: TrainSpec,
    size: NetworkSize | None,
    machine: Mapping[str, Any],
    measured: Mapping[str, Any] | None = None,
    base_bytes: int | None = None,
) -> dict[str, Any]:
    """Return whether the training fits in memory.

    Args:
        spec: of the training.
        size: of the network; None if unknown.
        machine: see ``Machine.strip``.
        measured: result of a test batch; None where there was none.
        base_bytes: memory of the framework alone; None if unknown.
    """
    free, total, place = _memory_of(spec, machine)
    numbers: dict[str, Any] = {"field": "batch_size", "free_bytes": free, "total_bytes": total}
    if size is not None:
        numbers |= {
            "layers_bytes": size.layers_bytes,
            "weights_bytes": size.weights_bytes,
            "parameters": size.parameters,
        }
    if measured is not None:
        on_device = place != "The machine" and measured["device_memory_bytes"] is not None
        held: Any = measured["device_memory_bytes"] if on_device else measured["memory_bytes"]
        needed = int(held)
        text = f"A test batch took {as_bytes(needed)}."
    elif size is not None:
        base = 0 if base_bytes is None or place != "The machine" else base_bytes
        needed = base + size.training_bytes
        fixed_bytes = size.weights_bytes + size.slots_bytes + size.gradients_bytes
        start = f"{as_bytes(base)} for the framework itself" if base else "besides the framework itself"
        text = (
            f"It needs about {as_bytes(needed)}{', ' if base else ' '}{start}: "
            f"{as_bytes(fixed_bytes)} for {plural(size.parameters, 'parameter')}, "
            f"{as_bytes(size.training_bytes - fixed_bytes)} for the layers of a batch and their gradients."
        )
    else:
        text = "The memory that it needs is unknown: Visualize estimates it, a test batch measures it."
        return finding("memory", "unknown", text)
    numbers |= {"needed_bytes": needed, "measured": measured is not None}
    value = f"{'' if measured is not None else 'about '}{as_bytes(needed)} of {as_bytes(free)}"
    if needed > total:
        text = f"{text} {place} has {as_bytes(total)}: reduce the batch size."
        return finding("memory", "error", text, value=f"{as_bytes(needed)} of {as_bytes(total)}", **numbers)
    if needed > free:
        return finding(
            "memory", "warning", f"{text} {place} has only {as_bytes(free)} free now.", value=value, **numbers
        )
    return finding("memory", "ok", f"{text} {place} has {as_bytes(free)} free.", value=value, **numbers)


def _memory_of(spec: TrainSpec, machine: Mapping[str, Any]) -> tuple[int, int, str]:
    """Return free and total bytes of the device with the least free memory, and the name of the device."""
    indices = {device.rpartition(":")[2] for device in spec.devices if "gpu" in device.lower()}
    chosen = [each for each in machine["devices"] if str(each["index"]) in indices]
    if not chosen:
        return machine["memory"]["free_bytes"], machine["memory"]["total_bytes"], "The machine"
    least = min(chosen, key=lambda each: each["free_bytes"])
    return least["free_bytes"], least["memory_bytes"], f"gpu:{least['index']}"


def disk_finding(
    spec: TrainSpec,
    checkpoint_bytes: int | None,
    steps: int | None,
    jobs: int,
    disk: Mapping[str, Any],
) -> dict[str, Any]:
    """Return whether the checkpoints fit on the disk; ``checkpoint_bytes`` is None if unknown."""
    free, reserve = disk["free_bytes"], disk["reserve_bytes"]
    kept = checkpoints_kept(spec, steps)
    numbers: dict[str, Any] = {
        "field": "checkpoints.keep_last",
        "free_bytes": free,
        "reserve_bytes": reserve,
        "checkpoints": kept * jobs,
    }
    if free < reserve:
        text = f"The disk has {as_bytes(free)} free, and no job is started below {as_bytes(reserve)}: free some space."
        return finding("disk", "error", text, value=f"{as_bytes(free)} free", **numbers)
    if checkpoint_bytes is None:
        text = (
            f"The size of {plural(kept * jobs, 'checkpoint')} is unknown: use Visualize, or run a test batch. The disk "
            f"has {as_bytes(free)} free."
        )
        return finding("disk", "unknown", text, **numbers)
    needed = checkpoint_bytes * kept * jobs
    text = (
        f"{plural(kept * jobs, 'checkpoint', 'checkpoints')} of {as_bytes(checkpoint_bytes)} "
        f"{'takes' if kept * jobs == 1 else 'take'} {as_bytes(needed)}"
    )
    numbers |= {"needed_bytes": needed, "checkpoint_bytes": checkpoint_bytes}
    value = f"{as_bytes(needed)} of {as_bytes(free)}"
    if needed > free:
        text = f"{text}, and the disk has {as_bytes(free)} free: keep fewer."
        return finding("disk", "error", text, value=value, **numbers)
    if needed > free - reserve:
        text = f"{text}; then less than {as_bytes(reserve)} of the disk is free."
        return finding("disk", "warning", text, value=value, **numbers)
    return finding("disk", "ok", f"{text} of the {as_bytes(free)} that are free.", value=value, **numbers)


def time_finding(
    spec: TrainSpec,
    epoch_samples: int | None,
    jobs: int,
    earlier: EarlierJobs | None,
    measured: Mapping[str, Any] | None,
    rough_s: float | None = None,
) -> dict[str, Any]:
    """Return how long it will take, from a test batch, from earlier trainings, or roughly from its operations.

    Args:
        spec: of the training.
        epoch_samples: samples in one of its epochs; None if unknown.
        jobs: how many trainings the sweep has.
        earlier: trainings like it; None for none.
        measured: result of a test batch; None where there was none.
        rough_s: see ``rough_time_s``; None if unknown.
    """
    each = " each" if jobs > 1 else ""
    if measured is not None:
        whole = whole_time(measured, spec)
        text = f"It takes about {as_duration(whole.total_s)}{each}, by the speed of a test batch."
        value = f"{_seconds(whole.epoch_s)} per epoch, measured"
        numbers: dict[str, Any] = {"expected_s": whole.total_s, "epoch_s": whole.epoch_s, "measured": True}
        return finding("time", "ok", text, value=value, field="epochs", **numbers)
    if (earlier is None or epoch_samples is None) and rough_s is not None:
        took = as_rough_duration(rough_s)
        text = f"It takes {took}{each}, a rough guess from its operations and the speed of this machine. {_TEST}"
        numbers = {"expected_s": rough_s, "epoch_s": rough_s / spec.epochs, "measured": False, "rough": True}
        return finding("time", "ok", text, value=f"{took}, rough", field="epochs", **numbers)
    if earlier is None or epoch_samples is None:
        text = f"How long it takes is unknown: no similar training has finished here. {_TEST}"
        return finding("time", "unknown", text, expected_s=None, epoch_s=None, measured=False)
    epoch_s = epoch_samples / earlier.samples_per_s
    count = "one earlier training" if earlier.count == 1 else f"{earlier.count} earlier trainings"
    text = f"It takes about {as_duration(epoch_s * spec.epochs)}{each}, by the speed of {count} like it."
    numbers = {"expected_s": epoch_s * spec.epochs, "epoch_s": epoch_s, "measured": False}
    value = f"about {_seconds(epoch_s)} per epoch"
    return finding("time", "ok", text, value=value, field="epochs", earlier_jobs=earlier.count, **numbers)


def rate_finding(
    spec: TrainSpec, network: StandardNetwork | None, measured: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return whether the learning rate is likely to train."""
    rate, value = spec.learning_rate, f"{spec.learning_rate:g}"
    tried = None if measured is None else measured.get("rate")
    typical = typical_rate(network, spec.optimizer.name)
    if tried is not None:
        suggested, largest = tried["suggested"], tried["largest_finite"]
        advice = "" if suggested is None else f" The test batch suggests {suggested:g}."
        fix = None if suggested is None else {"title": f"Use {suggested:g}", "fields": {"learning_rate": suggested}}
        numbers = {"field": "learning_rate", "fix": fix, "suggested": suggested, "largest_finite": largest}
        if largest is None or rate > largest:
            limit = "no rate that was tried" if largest is None else f"only rates up to {largest:.2g}"
            text = f"The loss does not stay finite at {rate:g}: in the test batch, {limit} did.{advice}"
            return finding("rate", "warning", text, value=value, **numbers)
        text = f"The loss stayed finite at rates up to {largest:.2g}.{advice}"
        return finding("rate", "ok", text, value=f"{value}, measured", **numbers)
    if typical is None:
        text = f"Whether this network trains at {rate:g} is unknown. A test batch finds rates that do."
        return finding("rate", "unknown", text, field="learning_rate")
    if not typical / _MANY_TIMES**2 <= rate <= typical * _MANY_TIMES:
        word = "far above" if rate > typical else "far below"
        text = f"{rate:g} is {word} {typical:g}, the typical rate of {network.title if network else 'the network'}."
        fix = {"title": f"Use {typical:g}", "fields": {"learning_rate": typical}}
        return finding("rate", "warning", text, value=value, field="learning_rate", fix=fix)
    text = f"{typical:g} is the typical rate of this network."
    return finding("rate", "ok", text, value=value, field="learning_rate")


def _size_text(shape: Sequence[int]) -> str:
    if len(shape) < _IMAGE_AXES:
        return f"{plural(shape[0], 'value')} each"
    height, width = shape[:2]
    return f"{height} px" if height == width else f"{width} x {height} px"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 9.95 else as_duration(seconds)


def _few(number: float) -> str:
    return as_count(round(number)) if number >= 10 else f"{number:.1g}"
