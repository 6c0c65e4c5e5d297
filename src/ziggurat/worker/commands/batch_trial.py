"""Test batch: some steps of a job in a separate process, to measure time, memory and learning rates.

The job is built as the worker builds it, in a folder that is removed afterwards: network, data, augmentation, batch,
precision, callbacks and monitors are those of the job, except for monitors that print. While time and memory are
measured, the learning rate is nearly 0, so that the loss cannot diverge; the learning-rate finder tries rates
afterwards.
"""

from __future__ import annotations

import math
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from ziggurat.atomic import storage_errors
from ziggurat.engine.capabilities import HasEvaluationNames, HasSummaries
from ziggurat.engine.feed import held_batch
from ziggurat.engine.program import NonFiniteStep, Program, SupportsRecording
from ziggurat.engine.run_state import seed_global_random
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import ZigguratError
from ziggurat.layout import JobFolder
from ziggurat.nvidia import Accelerators
from ziggurat.settings import load_settings
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.commands.rate_finder import RateFinder
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.worker.source import convert_old_stores
from ziggurat.zoo.backends import with_backend

__all__ = ["run_test_batch"]

_STEPS: Final = 20
_WARM_UP: Final = 4
"""Steps before the measured ones: the first one prepares the network, the next ones use the prefetched batches."""

_SETTLING: Final = 24
"""Further steps of small networks that are not measured: their backend tunes itself."""

_LEAST_MEASURED_S: Final = 1.5
"""Minimum seconds to measure: 20 fast steps would be too short for the clock."""

_MOST_MEASURED_S: Final = 60.0
_FEWEST_STEPS: Final = 3
_MOST_STEPS: Final = 1000
_NEARLY_NO_RATE: Final = 1e-12
_VALIDATION_BATCHES: Final = 20
_VALIDATION_S: Final = 4.0
_MEMORY_SHARE: Final = 0.9
"""Share of the free memory that the largest batch may take."""

_MOST_TIMES: Final = 64
"""Largest batch that is considered, in multiples of the batch size."""

_CHECKED_S: Final = 10.0
"""Seconds that the check of a larger batch may take."""

_COST: Final = "cost"
_PRINTING: Final = ("printer", "progress")


def run_test_batch(request: Mapping[str, Any]) -> dict[str, Any]:
    """Train some steps of a job and measure them; no files are kept.

    Args:
        request: ``spec`` (of a training, complete); ``find_rate`` (default true) and ``rate_budget_s``;
            ``free_bytes``: memory that the process may take; None for no search of the largest batch; ``began``:
            seconds since 1970 when the process was started; ``folder``: for its files. The caller removes it, because
            this process may be killed.

    Returns:
        ``steps``, ``step_s`` (the work of callbacks included), ``data_wait_share``, ``start_s`` (from the start of the
        process to the end of the first step), ``validation_s`` (of one validation of all its samples, None for none),
        ``checkpoint_s``, ``epoch_end_s`` (other work between epochs); ``memory_bytes`` (peak of the
        process), ``start_bytes`` (before the first step), ``device_memory_bytes`` (None without an accelerator),
        ``checkpoint_bytes``, ``batch_size``, ``input_shape``, ``sizes``, ``classes``;
        ``largest_batch`` (None if unknown) and ``largest_batch_bytes``; ``rate``: see ``RateFinder.find``, None if not
        requested.
    """
    asked = parse_spec(request["spec"], source="the request")
    assert isinstance(asked, TrainSpec)
    spec = with_backend(asked)
    seed_global_random(spec.seed)
    convert_old_stores(spec.data.source)
    settings = replace(load_settings(), progress="none")
    folder = Path(request["folder"])
    watch = _Watch(float(request.get("began") or time.time()))
    built = build_job(_short(spec), JobFolder(folder), watch, settings, is_new=True)
    # Set after the callbacks were made: they choose by the length of an epoch how often they work.
    built.trainer.steps_per_epoch = _WARM_UP
    with closing(built.trainer.program):
        return _Trial(spec, built, watch, folder).run(request)


def _short(spec: TrainSpec) -> TrainSpec:
    """Return the spec of the trial: a warm-up epoch and a measured one, without validation, with a checkpoint each.

    Nothing is printed: users could take losses at a learning rate of nearly 0 for those of the job.
    """
    checkpoints = spec.checkpoints.model_copy(
        update={"every_epochs": 1.0, "every_steps": None, "every_minutes": None, "keep_best": None}
    )
    return spec.model_copy(
        update={
            "epochs": 2,
            "learning_rate": _NEARLY_NO_RATE,
            "early_stopping": None,
            "validation": spec.validation.model_copy(update={"every_epochs": 0.0}),
            "checkpoints": checkpoints,
            "monitors": [each for each in spec.monitors if each.name not in _PRINTING],
        }
    )


class _Watch(StepClock):
    """Measures the time of steps and of the work between epochs; it is the first callback, like the clock of a worker.

    Args:
        began: when the process was started, in seconds since 1970.
    """

    def __init__(self, began: float) -> None:
        super().__init__()
        self.began = began
        self.names: Sequence[str] = ()
        self.start_s = 0.0
        self.start_bytes = 0
        self.ended: list[float] = []
        self.epoch_ended = 0.0
        self._wait_s = 0.0
        self.measured_from = 0
        self.wait_share = 0.0

    def declares(self) -> Sequence[str]:
        """Return the cost and the values of a validation."""
        return self.names

    def setup_graph(self) -> None:
        """Read the available values from the program."""
        super().setup_graph()
        self.names = [_COST, *(name for name in _validation_names(self.trainer.program) if name != _COST)]

    def before_train(self) -> None:
        """Store the memory of the process before the first step."""
        super().before_train()
        self.start_bytes = psutil.Process().memory_info().rss

    def before_epoch(self) -> None:
        """Set the number of measured steps by the duration of a step."""
        if self.epoch_num != 2:
            return
        step_s = max(self.ended[-1] - self.ended[-2], 1e-6)
        settling = _SETTLING if step_s * _SETTLING < _LEAST_MEASURED_S else 0
        enough = math.ceil(_LEAST_MEASURED_S / step_s)
        most = max(_FEWEST_STEPS, int(_MOST_MEASURED_S / step_s))
        self.trainer.steps_per_epoch = 1 + settling + max(min(max(_STEPS, enough), most, _MOST_STEPS), _FEWEST_STEPS)
        self.measured_from = len(self.ended) + settling

    def trigger_step(self) -> None:
        """Store the end of a step, which includes the callbacks of the step before."""
        super().trigger_step()
        self.ended.append(time.perf_counter())
        if len(self.ended) == 1:
            self.start_s = time.time() - self.began
        if len(self.ended) == self.measured_from + 1:
            self._wait_s = self.trainer.timing.wait_s

    def after_epoch(self) -> None:
        """Store the share of time that the steps waited for data."""
        self.epoch_ended = time.perf_counter()
        took_s = self.ended[-1] - self.ended[self.measured_from]
        self.wait_share = (self.trainer.timing.wait_s - self._wait_s) / took_s if took_s > 0 else 0.0

    @property
    def steps(self) -> int:
        """Number of measured steps."""
        return len(self.ended) - self.measured_from - 1

    @property
    def step_s(self) -> float:
        """Mean seconds of a measured step."""
        return (self.ended[-1] - self.ended[self.measured_from]) / self.steps


class _Trial:
    """One trial of a job that is built.

    Args:
        spec: of the job.
        built: the job, short.
        watch: its clock.
        folder: for files of the trial.
    """

    def __init__(self, spec: TrainSpec, built: BuiltJob, watch: _Watch, folder: Path) -> None:
        self._spec = spec
        self._built = built
        self._watch = watch
        self._trainer: Trainer = built.trainer
        self._first_state = folder / "first.npz"

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Take the steps; see ``run_test_batch``."""
        trainer, watch = self._trainer, self._watch
        trainer.setup()
        first: dict[str, Any] = trainer.program.state()
        with storage_errors(self._first_state):
            np.savez(self._first_state, **first)
        first.clear()  # a job does not hold them in memory
        trainer.train(2)
        between_s = time.perf_counter() - watch.epoch_ended
        checkpoint_s, checkpoint_bytes = self._save()
        validation_s = self._validate()
        found = {
            "steps": watch.steps,
            "step_s": watch.step_s,
            "data_wait_share": min(1.0, watch.wait_share),
            "start_s": watch.start_s,
            "validation_s": validation_s,
            "checkpoint_s": checkpoint_s,
            "epoch_end_s": max(0.0, between_s - checkpoint_s),
            "memory_bytes": _peak_bytes(),
            "start_bytes": watch.start_bytes,
            "device_memory_bytes": _device_bytes(),
            "checkpoint_bytes": checkpoint_bytes,
            "input_shape": list(self._built.data.context.preprocessing.shape),
            "sizes": dict(self._built.data.sizes),
            "classes": len(self._built.data.class_names),
            "batch_size": self._spec.batch_size,
        }
        next_batch = _batches_of(trainer)
        try:
            found |= self._largest_batch(found, next_batch, request.get("free_bytes"))
            found["rate"] = None
            if request.get("find_rate", True):
                found["rate"] = self._finder(next_batch, request).find(self._spec.learning_rate)
        finally:
            trainer.batches.close()
        return found

    def _save(self) -> tuple[float, int]:
        """Write a checkpoint; return its duration in seconds and its size in bytes."""
        began = time.perf_counter()
        self._built.store.save(self._trainer.state())
        took_s = time.perf_counter() - began
        newest = max(self._built.store.folder.glob("step-*"))
        return took_s, sum(each.stat().st_size for each in newest.iterdir())

    def _validate(self) -> float | None:
        """Return the seconds of a whole validation; None if the job has none."""
        flow = self._built.data.evaluation.get("val")
        if flow is None or not self._spec.validation.every_epochs:
            return None
        names, program = self._watch.names, self._trainer.program
        wanted = [name for name in names if name in _validation_names(program)]
        batches = math.ceil(self._built.data.sizes["val"] / (self._spec.batch_size * _parts(self._spec)))
        taken, began, first_s = 0, time.perf_counter(), 0.0
        with closing(flow):
            for batch in flow:
                program.evaluate(batch, wanted)
                taken += 1
                now = time.perf_counter()
                if taken == 1:
                    first_s, began = now - began, now
                if taken > _VALIDATION_BATCHES or (taken > 1 and now - began > _VALIDATION_S):
                    break
        if taken <= 1:
            return first_s
        return (time.perf_counter() - began) / (taken - 1) * batches

    def _largest_batch(
        self, found: Mapping[str, Any], next_batch: Callable[[], Any], free_bytes: int | None
    ) -> dict[str, Any]:
        """Return the largest batch, in doublings, whose memory fits: measured at two sizes, checked at a third."""
        unknown = {"largest_batch": None, "largest_batch_bytes": None}
        if free_bytes is None or found["device_memory_bytes"] is not None or not sys.platform.startswith("linux"):
            return unknown
        size, most = self._spec.batch_size, int(found["memory_bytes"] + free_bytes * _MEMORY_SHARE)
        train = found["sizes"]["train"] // _parts(self._spec)
        batch = [np.array(part) for part in next_batch()]
        read_ahead = (2 + self._spec.loading.prefetch) * sum(part.nbytes for part in batch) / size
        peaks = {size: found["memory_bytes"]}
        grown = max(0, found["memory_bytes"] - found["start_bytes"])
        step_s = found["step_s"]
        for times in (2, 4):
            # The next doubling adds at most the memory of the first steps.
            expected = peaks[size * times // 2] + (grown if times == 2 else 2 * (peaks[2 * size] - peaks[size]))
            if size * times > train or expected > most or times * step_s * 2 > _CHECKED_S:
                break
            if not self._can_step([np.concatenate([part] * times) for part in batch]):
                return unknown
            peaks[size * times] = max(_peak_bytes(), peaks[size])
        slope = read_ahead + (
            max((peaks[2 * size] - peaks[size]) / size, (max(peaks.values()) - peaks[size]) / (max(peaks) - size))
            if len(peaks) > 1
            else grown / size
        )
        largest = size
        while largest * 2 <= min(train, size * _MOST_TIMES) and peaks[size] + slope * (largest * 2 - size) <= most:
            largest *= 2
        return {"largest_batch": largest, "largest_batch_bytes": int(peaks[size] + slope * (largest - size))}

    def _can_step(self, batch: Sequence[np.ndarray]) -> bool:
        program = self._trainer.program
        try:
            for _ in range(2):
                program.step(batch, ())
        except NonFiniteStep:
            return True
        except ZigguratError:  # a network of one batch size
            return False
        return True

    def _finder(self, next_batch: Callable[[], Any], request: Mapping[str, Any]) -> RateFinder:
        def first() -> Mapping[str, np.ndarray]:
            with np.load(self._first_state) as arrays:
                return dict(arrays)

        return RateFinder(
            self._trainer.program,
            next_batch,
            first,
            step_s=self._watch.step_s,
            budget_s=float(request.get("rate_budget_s") or 30.0),
        )


def _validation_names(program: Program) -> list[str]:
    """Return the values that a validation of a job fetches; see ``ziggurat.worker.build``."""
    offered = program.evaluation_names() if isinstance(program, HasEvaluationNames) else program.names()
    shown = program.summary_names() if isinstance(program, HasSummaries) else ["accuracy"]
    return [name for name in dict.fromkeys([_COST, *shown, "error"]) if name in offered]


def _parts(spec: TrainSpec) -> int:
    return spec.gradient_accumulation_steps


def _batches_of(trainer: Trainer) -> Callable[[], Any]:
    """Return a function that gives further batches after the training, and discards the values of earlier steps."""
    passes = iter(trainer.batches)
    program = trainer.program

    def following() -> Any:
        if isinstance(program, SupportsRecording):
            program.recorded()
        return held_batch(next(passes))

    return following


def _peak_bytes() -> int:
    """Return the peak memory of this process plus the present memory of its children."""
    own = psutil.Process()
    others = 0
    for child in own.children(recursive=True):
        try:
            others += child.memory_info().rss
        except psutil.Error:
            continue
    return _own_peak_bytes() + others


def _own_peak_bytes() -> int:
    try:
        # Not that of ``getrusage``, which includes the peak of the parent process before the fork.
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            peak = next(line for line in lines if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024
    except (OSError, StopIteration, ValueError):
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _device_bytes() -> int | None:
    """Return the accelerator memory of this process; None if it uses none."""
    held = [
        process.memory_bytes
        for each in Accelerators(os.environ).read()
        for process in each.processes
        if process.pid == os.getpid() and process.memory_bytes is not None
    ]
    return sum(held) if held else None
