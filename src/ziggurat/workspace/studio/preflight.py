"""Owns the check before a training is started: what is found out of it in numbers, and one sentence on each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import DataError, NetworkCodeError, SpecError, ZigguratError
from ziggurat.records.manifest import MANIFEST_NAME, Manifest
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.workspace.quarter_turns import refuse_turned_oblongs
from ziggurat.workspace.studio.new_jobs import network_name
from ziggurat.workspace.studio.preflight_findings import (
    DataFacts,
    batch_finding,
    class_findings,
    data_findings,
    device_finding,
    disk_finding,
    finding,
    memory_finding,
    time_finding,
)
from ziggurat.workspace.studio.training_estimates import NetworkSize, earlier_jobs, network_size
from ziggurat.workspace.tasks import Tasks

__all__ = ["Preflight"]

_LIMIT_S: Final = 120.0
_KINDS: Final = ("image-classification",)


@dataclass(frozen=True)
class Preflight:
    """Looks at a training before it is started. Nothing is kept: the next look finds what is there then.

    Args:
        tasks: measure the data and describe the network.
        machine: what it has.
        finished: gives trainings that are done, the newest first.
    """

    tasks: Tasks
    machine: Any
    finished: Callable[[], Sequence[Job]]

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
        samples = None if steps_per_epoch is None else steps_per_epoch * spec.batch_size * spec.accumulate
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
        try:
            refuse_turned_oblongs(spec)
        except SpecError as error:
            findings.append(finding("data", "error", str(error)))
            return DataFacts()
        if dataset is not None and dataset.state != "done":
            word = "is not made yet: the training waits for it, and its size is not known before"
            findings.append(finding("data", "warning", f"The data set `{dataset.name}` {word}."))
            return DataFacts()
        try:
            if describe:
                return DataFacts.of(self.tasks.loading(spec.model_dump(mode="json"), time_limit_s=_LIMIT_S))
            return _facts_of_manifest(Path(spec.data.source))
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
                findings.append(finding("memory", "ok", f"The memory that it needs is not known. {error}"))
        return None


def _facts_of_manifest(folder: Path) -> DataFacts:
    """Return what a data set says of itself; nothing where the source is none."""
    if not (folder / MANIFEST_NAME).is_file():
        return DataFacts()
    manifest = Manifest.load(folder)
    kind = manifest.schema.kind
    if kind not in _KINDS:
        raise DataError(f"Networks are trained on data sets of kind {' or '.join(_KINDS)}.", received=f"kind {kind}")
    return DataFacts(
        sizes={split: note.count for split, note in manifest.splits.items()}, classes=len(manifest.schema.class_names)
    )


def _steps_per_epoch(spec: TrainSpec, data: DataFacts) -> int | None:
    if spec.steps_per_epoch is not None:
        return spec.steps_per_epoch
    train = data.sizes.get("train")
    return None if train is None else train // (spec.batch_size * spec.accumulate) or None


def _parameters(size: NetworkSize | None) -> int | None:
    return None if size is None else size.parameters


def _has(findings: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(each["name"] == name for each in findings)
