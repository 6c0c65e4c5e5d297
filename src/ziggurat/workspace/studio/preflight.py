"""Pre-flight check of a training: what is known of its memory, time, data and disk before it is started."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import Job
from ziggurat.entities.backend_info import backend_infos
from ziggurat.entities.leftovers import temporary_folder
from ziggurat.errors import NetworkCodeError, ZigguratError
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.tasks import AUTO_TASK, Task
from ziggurat.workspace.new_jobs import network_name
from ziggurat.workspace.recipes import learned_task, takes_class_weights
from ziggurat.workspace.studio.findings import (
    DataFacts,
    balance_finding,
    batch_finding,
    class_findings,
    data_finding,
    device_finding,
    disk_finding,
    finding,
    fit_finding,
    loading_finding,
    memory_finding,
    one_row,
    problem_finding,
    rate_finding,
    time_finding,
)
from ziggurat.workspace.studio.machine import Machine
from ziggurat.workspace.studio.measurements import Measurements, key_of_spec
from ziggurat.workspace.tasks import Tasks
from ziggurat.workspace.training_checks import input_size, known_data, standard_network
from ziggurat.workspace.training_estimates import NetworkFacts, earlier_jobs, network_size, rough_time_s
from ziggurat.zoo.network_task import file_task

__all__ = ["Preflight"]

_LIMIT_S: Final = 120.0


@dataclass(frozen=True)
class Preflight:
    """Looks at a training before it is started.

    Args:
        tasks: measure the data and describe the network.
        machine: what it has.
        accelerators: returns how many accelerators each node has for jobs.
        finished: gives trainings that are done, the newest first.
        kept: what descriptions and test batches found.
    """

    tasks: Tasks
    machine: Machine
    accelerators: Callable[[], Mapping[str, int]]
    finished: Callable[[], Sequence[Job]]
    kept: Measurements

    def refuse(self, spec: TrainSpec, *, jobs: int, problems: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Return what is found of a training that cannot succeed.

        Args:
            spec: of the training, complete; of a sweep, the first.
            jobs: how many trainings the sweep has.
            problems: as ``ziggurat.workspace.training_checks`` lists them.
        """
        machine = self.machine.strip()
        findings = [problem_finding(each) for each in problems]
        findings += [
            device_finding(spec, machine, self.accelerators()),
            disk_finding(spec, None, None, jobs, machine["disk"]),
        ]
        return {"findings": one_row(findings), "steps": None, "steps_per_epoch": None, "parameters": None}

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
        facts = self._facts(spec, data, describe)
        measured = self.kept.test_batch(spec)
        size = None if facts is None else network_size(facts, spec)
        batch = spec.batch_size * spec.gradient_accumulation_steps
        samples = None if steps_per_epoch is None else steps_per_epoch * batch
        earlier = earlier_jobs(self.finished(), spec, network_name(spec), samples)
        machine, network = self.machine.strip(), standard_network(spec)
        learned = _learned(spec)
        has_weights = takes_class_weights(learned)
        # A network for several tasks is described for its first one.
        is_described = network is None or learned is None or learned.name == network.task
        outputs = facts.outputs if facts is not None and is_described else None
        shape = data.input_shape
        failure = "" if shape is None else self.kept.failure(spec.backend, key_of_spec(spec), shape, data.classes)
        checkpoint_bytes = None if size is None else size.checkpoint_bytes
        if checkpoint_bytes is None and measured is not None:
            checkpoint_bytes = measured["checkpoint_bytes"]
        findings += [
            memory_finding(spec, size, machine, measured, self.kept.base_bytes(spec.backend)),
            time_finding(spec, samples, jobs, earlier, measured, self._rough_s(spec, data, facts, steps)),
            *data_finding(spec, data),
            *fit_finding(network, data.input_shape, builds=facts is not None or measured is not None, failure=failure),
            *(class_findings(spec, data, outputs) if has_weights else ()),
            disk_finding(spec, checkpoint_bytes, steps, jobs, machine["disk"]),
            *(balance_finding(spec, data) if has_weights else ()),
            loading_finding(spec, data, earlier, measured),
            rate_finding(spec, network, measured),
            *batch_finding(spec, data, steps_per_epoch),
            device_finding(spec, machine, self.accelerators()),
        ]
        return {
            "findings": one_row(findings),
            "steps": steps,
            "steps_per_epoch": steps_per_epoch,
            "parameters": None if size is None else size.parameters,
        }

    def _rough_s(self, spec: TrainSpec, data: DataFacts, facts: NetworkFacts | None, steps: int | None) -> float | None:
        """Return a guess of the time on the CPU; None on an accelerator, whose speed is unknown."""
        info = backend_infos().get(spec.backend)
        may_accelerate = info is not None and bool(info.accelerators) and bool(self.accelerators())
        is_open = not spec.devices and spec.nodes == 1
        on_device = any("gpu" in each.lower() for each in spec.devices) or (is_open and may_accelerate)
        on_device = on_device or spec.gpus_per_node > 0
        if facts is None or steps is None or on_device:
            return None
        return rough_time_s(facts, spec, steps, data.sizes.get("val", 0), self.machine.multiply_adds_per_s)

    def _data(self, spec: TrainSpec, dataset: Job | None, describe: bool, findings: list[dict[str, Any]]) -> DataFacts:
        """Return what is known of the data; what hinders is among the findings."""
        if dataset is not None and dataset.state != "done":
            word = "is not created yet: the training waits for it, and its size is not known before"
            text = f"The dataset `{dataset.name}` {word}."
            findings.append(finding("data", "warning", text, value=dataset.state, field="data.source"))
            return DataFacts()
        try:
            known = known_data(spec.data.source, spec.data.options)
            size = input_size(spec, known)
            channels = spec.preprocessing.channels or known.channels
            facts = DataFacts(
                sizes=known.sizes,
                classes=known.classes,
                input_shape=None if size is None or channels is None else (*size, channels),
                class_names=known.class_names,
                class_counts=known.class_counts,
            )
            if not describe:
                return facts
            measured = DataFacts.of(self.tasks.loading(spec.model_dump(mode="json"), time_limit_s=_LIMIT_S))
            return DataFacts(**{**vars(measured), "class_names": facts.class_names, "class_counts": facts.class_counts})
        except ZigguratError as error:
            findings.append(finding("data", "error", f"The data cannot be trained on. {error}", field="data.source"))
            return DataFacts()

    def _facts(self, spec: TrainSpec, data: DataFacts, describe: bool) -> NetworkFacts | None:
        """Return the facts of the network, built where they are not known and that is asked for."""
        if data.input_shape is None:
            return None
        key = key_of_spec(spec)
        known = self.kept.facts(spec.backend, key, data.input_shape, data.classes)
        if known is not None or not describe:
            return known
        try:
            described = self._describe(spec, data)
        except NetworkCodeError as error:
            self.kept.note_failure(spec.backend, key, data.input_shape, data.classes, str(error))
            return None
        except ZigguratError:  # a backend that describes no networks
            return None
        self.kept.note_description(spec.backend, key, {**described, "classes": data.classes})
        return self.kept.facts(spec.backend, key, data.input_shape, data.classes)

    def _describe(self, spec: TrainSpec, data: DataFacts) -> Mapping[str, Any]:
        network = spec.network
        options = {"backend": spec.backend, "input_shape": list(data.input_shape or ()), "classes": data.classes}
        with ExitStack() as stack:
            if not isinstance(network, FileNetwork):
                place = network.name
            elif network.text is None:
                place = network.path
            else:
                folder = stack.enter_context(temporary_folder("network"))
                place = str(Path(folder) / "network.py")
                Path(place).write_text(network.text, encoding="utf-8")
            return self.tasks.describe(place, time_limit_s=_LIMIT_S, **options)


def _learned(spec: TrainSpec) -> Task | None:
    """Return the task of a training; None where it is not known."""
    try:
        known = known_data(spec.data.source, spec.data.options)
    except ZigguratError:  # another finding tells of it
        return None
    declared = file_task(spec.network) if isinstance(spec.network, FileNetwork) else ""
    name = declared if declared and spec.task == AUTO_TASK else spec.task
    return learned_task(known, standard_network(spec), name)


def _steps_per_epoch(spec: TrainSpec, data: DataFacts) -> int | None:
    if spec.steps_per_epoch is not None:
        return spec.steps_per_epoch
    train = data.sizes.get("train")
    return None if train is None else train // (spec.batch_size * spec.gradient_accumulation_steps) or None
