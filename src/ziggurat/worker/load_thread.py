"""Thread of the worker that samples the machine's load into the job folder: CPU, memory, GPUs, disk, throughput."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from ziggurat.engine.trainer import Trainer
from ziggurat.entities.json_lines import append_line, read_lines, replace_lines
from ziggurat.entities.machine_load import MOST_SAMPLES, thinned
from ziggurat.errors import StorageError
from ziggurat.nvidia import Accelerators

__all__ = ["LoadSampler", "LoadThread"]

_LOG: Final = logging.getLogger(__name__)
_WHAT: Final = "The load of the machine"
_FIRST_S: Final = 0.5
"""Seconds until the second sample, so that rates are known soon."""

_COST: Final = 100
"""The pause between samples is at least so many times the CPU time of a sample: 1 % of a core at most."""

_STEPS_OVER: Final = 5
"""Samples over which the throughput is measured: a step may take longer than the time between two samples."""


class LoadSampler:
    """Reads the load of the machine, and of this process with its children. Call it from one thread.

    Args:
        folder: on the disk whose free space is sampled.
        samples_per_step: samples in a step, over all devices.
        environment: variables of the process: ``CUDA_VISIBLE_DEVICES`` says which GPUs it may use.
        driver: module with the functions of ``pynvml``; the installed one where it is not given.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        folder: Path,
        samples_per_step: int,
        *,
        environment: Mapping[str, str] | None = None,
        driver: Any = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._samples_per_step = samples_per_step
        self._monotonic = monotonic
        self._process = psutil.Process()
        given = os.environ if environment is None else environment
        self._gpus = Accelerators(given, driver=driver)
        self._cores = len(os.sched_getaffinity(0))
        self._before: tuple[float, float, dict[int, tuple[int, int]]] | None = None
        self._steps: deque[tuple[float, int]] = deque(maxlen=_STEPS_OVER)

    def machine(self) -> dict[str, Any]:
        """Return what the machine has, as JSON values."""
        return {
            "host": socket.gethostname(),
            "cores": self._cores,
            "memory_bytes": psutil.virtual_memory().total,
            "disk_bytes": shutil.disk_usage(self._folder).total,
            "gpus": [
                {"index": each.device.index, "name": each.device.name, "memory_bytes": each.device.memory_bytes}
                for each in self._gpus.read()
                if not each.error
            ],
        }

    def begin(self, global_step: int) -> None:
        """Start to measure the throughput; steps before a resume do not count. Any thread may call it.

        Args:
            global_step: at which the attempt starts.
        """
        self._steps.append((self._monotonic(), global_step))

    def sample(self, global_step: int) -> dict[str, float]:
        """Return the load now; rates are those since the call before, and absent at the first.

        Args:
            global_step: steps done; they count once ``begin`` was called.
        """
        now, (cpu_s, memory_bytes, moved) = self._monotonic(), self._of_job()
        memory = psutil.virtual_memory()
        found: dict[str, float] = {
            "machine_cpu_percent": psutil.cpu_percent(),
            "job_memory_bytes": memory_bytes,
            "machine_memory_bytes": memory.total - memory.available,
            "disk_free_bytes": shutil.disk_usage(self._folder).free,
        }
        if self._before is None:
            del found["machine_cpu_percent"]  # psutil counts from the call before
        elif now > self._before[0]:
            before_s, before_cpu_s, before_moved = self._before
            length_s = now - before_s
            read, written = _moved_since(before_moved, moved)
            found["job_cpu_percent"] = min(100.0, 100 * max(0.0, cpu_s - before_cpu_s) / length_s / self._cores)
            found["disk_read_bytes_per_s"] = read / length_s
            found["disk_write_bytes_per_s"] = written / length_s
        self._before = now, cpu_s, moved
        if self._steps and global_step >= self._steps[-1][1]:
            since_s, since_step = self._steps[0]
            if now > since_s:
                found["images_per_s"] = (global_step - since_step) * self._samples_per_step / (now - since_s)
            self._steps.append((now, global_step))
        for each in self._gpus.read():
            if each.error:
                continue
            device = each.device
            if device.load is not None:
                found[f"gpu_{device.index}_utilization_percent"] = 100 * device.load
            found[f"gpu_{device.index}_memory_bytes"] = device.memory_bytes - device.free_bytes
        return {name: round(value, 2) for name, value in found.items()}

    def _of_job(self) -> tuple[float, int, dict[int, tuple[int, int]]]:
        """Return CPU seconds, memory in bytes, and process → bytes read and written, of this process and its children.

        A process counts the time of its children that have ended, so none is lost.
        """
        cpu_s, memory_bytes, moved = 0.0, 0, {}
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                with process.oneshot():
                    times = process.cpu_times()
                    cpu_s += times.user + times.system + times.children_user + times.children_system
                    memory_bytes += process.memory_info().rss
                    counters = process.io_counters()
                    moved[process.pid] = (counters.read_bytes, counters.write_bytes)
            except (psutil.Error, OSError):
                continue  # it has just ended, or may not be read
        return cpu_s, memory_bytes, moved


def _moved_since(before: Mapping[int, tuple[int, int]], now: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    pairs = [(now[pid], before.get(pid, (0, 0))) for pid in now]
    read, written = (sum(max(0, new[part] - old[part]) for new, old in pairs) for part in (0, 1))
    return read, written


class LoadThread:
    """Appends a sample every ``every_s`` seconds to the file of a job until it is closed.

    It never ends a training: if the load cannot be read or written, the thread logs why and ends.

    Args:
        path: ``machine_load.jsonl`` of the job; what earlier attempts wrote stays.
        sampler: reads the load.
        trainer: returns the one that trains; None while it is built.
        every_s: seconds between samples.
        clock: seconds since 1970.
    """

    def __init__(
        self,
        path: Path,
        sampler: LoadSampler,
        trainer: Callable[[], Trainer | None],
        every_s: float,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._sampler = sampler
        self._trainer = trainer
        self._every_s = every_s
        self._clock = clock
        self._attempt = round(clock(), 3)
        self._count = 0
        self._machine: dict[str, Any] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample_until_ended, name="machine-load", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread; closing twice does nothing."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _sample_until_ended(self) -> None:
        try:
            self._machine = self._sampler.machine()
            self._count = len(read_lines(self._path))
            append_line(self._path, {"time": self._attempt, "machine": self._machine}, _WHAT, durable=False)
            pause_s = min(self._every_s, _FIRST_S)
            while True:
                began_s = time.thread_time()
                self._sample_once()
                if self._ended.wait(max(pause_s, _COST * (time.thread_time() - began_s))):
                    self._sample_once()  # the end of a training that took no longer than a few samples
                    return
                pause_s = self._every_s
        except (OSError, StorageError, psutil.Error, RuntimeError) as error:
            _LOG.warning("The load of the machine is not recorded any more: %s", error)

    def _sample_once(self) -> None:
        trainer = self._trainer()
        step = trainer.global_step if trainer is not None else 0
        sample = {"time": round(self._clock(), 3), "attempt": self._attempt, "step": step, **self._sampler.sample(step)}
        append_line(self._path, sample, _WHAT, durable=False)
        self._count += 1
        if self._count > MOST_SAMPLES:
            kept = thinned([each for each in read_lines(self._path) if "attempt" in each])
            replace_lines(self._path, [{"time": self._attempt, "machine": self._machine}, *kept], _WHAT)
            self._count = len(kept)
