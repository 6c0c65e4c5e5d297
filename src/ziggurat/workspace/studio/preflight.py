"""Pre-flight check of a training: figures, and one sentence on each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.errors import NetworkCodeError, ZigguratError
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.workspace.studio.machine import Machine
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
from ziggurat.workspace.training_checks import known_data, problem_sentence

__all__ = ["Preflight"]

_LIMIT_S: Final = 120.0
_NAMES: Final = {"network": "network", "backend": "network", "pretrained": "network", "batch_size": "batch"}
"""Field of a spec → finding that it belongs to, where that is not the data."""


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
