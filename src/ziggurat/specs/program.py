"""Spec of a job that runs a program, version 1: which script, with which arguments, on what of the machine."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from ziggurat.specs.base import SpecModel, spec_field

__all__ = ["ProgramSpec"]

_JOB, _PROGRAM, _MACHINE = "Job", "Program", "Machine"


class ProgramSpec(SpecModel):
    """What a job that runs a program was asked for. Its files are in the folder ``program`` of the job."""

    kind: Literal["program"] = "program"
    version: Literal[1] = 1

    name: str = spec_field("", title="Name", help="Name of the job; any text.", group=_JOB, max_length=200)
    script: str = spec_field(
        title="Script",
        help="Python file that runs as `__main__`, relative to the folder of the program, such as `train.py`.",
        group=_PROGRAM,
        min_length=1,
        max_length=500,
    )
    arguments: list[str] = spec_field(
        factory=list, title="Arguments", help="What follows the script on its command line.", group=_PROGRAM
    )
    origin: str = spec_field(
        "",
        title="Origin",
        help="Folder that its files were copied from, with the commit of its Git repository; for people to read.",
        group=_PROGRAM,
        max_length=2000,
    )
    seed: int = spec_field(
        0,
        title="Seed",
        help="Of `random`, `numpy.random` and data flows before the program begins, so that each attempt begins alike.",
        group=_PROGRAM,
        ge=0,
        lt=2**32,
    )
    capture: list[Literal["wandb", "mlflow"]] = spec_field(
        factory=list,
        title="Capture",
        help="Tracking packages whose metrics become curves of the job where they are not installed: wandb, mlflow.",
        group=_PROGRAM,
    )
    gpus: int = spec_field(
        0,
        title="GPUs",
        help="Accelerators that it gets on each node, numbered from 0; 0 for a program on the processors.",
        group=_MACHINE,
        ge=0,
        le=64,
    )
    nodes: int = spec_field(
        1,
        title="Nodes",
        help="Machines of a Ray cluster on which it runs, with a process for each GPU and the variables of torchrun.",
        group=_MACHINE,
        ge=1,
        le=64,
    )
    memory_gb: float = spec_field(
        0.0,
        title="Memory",
        help="Memory that it needs on each node; it waits until so much is free. 0 if unknown.",
        unit="GB",
        group=_MACHINE,
        ge=0,
        le=100_000,
    )
    heartbeat_s: float = spec_field(
        1.0, title="Heartbeat", help="Seconds between heartbeats; typical: 1 to 5.", unit="s", group=_JOB,
        gt=0, le=10,
    )  # fmt: skip
    hung_after_s: float = spec_field(
        120.0, title="Hung after", help="Longest time for one step of a training before it is reported as hung.",
        unit="s", group=_JOB, gt=0,
    )  # fmt: skip
    machine_load_s: float = spec_field(
        2.0,
        title="Machine load every",
        help="Seconds between samples of CPU, memory, GPU and disk load; typical: 1 to 10, 0 for none.",
        unit="s",
        group=_JOB,
        ge=0,
    )

    @field_validator("script")
    @classmethod
    def _check_script(cls, value: str) -> str:
        path = PurePosixPath(value)
        if path.is_absolute() or ".." in path.parts or "\\" in value or path.suffix != ".py":
            raise PydanticCustomError(
                "rule",
                "rule",
                {
                    "field": "script",
                    "rule": "must be a Python file below the folder of the program",
                    "received": value,
                    "advice": "Name it as in `train.py` or `src/train.py`.",
                },
            )
        return str(path)
