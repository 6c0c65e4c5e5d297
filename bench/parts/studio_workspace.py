"""Workspace of many jobs for benchmarks: folders with real files, and the store rebuilt from them.

The folders are written first, as workers would leave them. The store reads them as ``ziggurat reindex`` does, so that
the store itself writes every row in it.
"""

from __future__ import annotations

import json
import math
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ziggurat.entities import NewJob, ResourceRequest
from ziggurat.jobs.job_file import record_of, write_job_file
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec
from ziggurat.store import JobOnDisk, Store

__all__ = ["Size", "Workspace", "fill_store", "make_folders"]

_FIRST: Final = 1_750_000_000.0
_KINDS: Final = ("train",) * 14 + ("dataset",) * 2 + ("evaluate", "evaluate", "infer", "export")
_ENDED: Final = ("done",) * 8 + ("failed", "stopped")
_NETWORKS: Final = ("lenet", "alexnet", "resnet18", "resnet50", "mlp")
_TAGS: Final = ("train/loss", "train/accuracy", "validation/loss", "validation/accuracy", "learning_rate")
_WORDS: Final = ("baseline", "wide", "night", "flowers", "street", "warm", "cold", "retry", "paper", "draft")
_ACTIVE: Final = 8
_STOPPING: Final = 2


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the workspace is.

    Args:
        jobs: of all kinds and states.
        points: of all curves together.
        long_curves: curves, two of one job, that have ``long_points`` each.
        long_points: points of a long curve.
        queued: jobs that wait.
    """

    jobs: int = 10_000
    points: int = 1_000_000
    long_curves: int = 4
    long_points: int = 100_000
    queued: int = 200


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What was made.

    Args:
        folder: of the workspace.
        jobs: as the store shall have them.
        active: ids of the jobs that workers are at.
        long: ids of the jobs with long curves.
        ended: ids of trainings that are done.
    """

    folder: Path
    jobs: dict[str, JobOnDisk]
    active: tuple[str, ...]
    long: tuple[str, ...]
    ended: tuple[str, ...]


def make_folders(folder: Path, size: Size, *, seed: int = 0) -> Workspace:
    """Write the folders of all jobs: spec, what people say of it, and events.

    Args:
        folder: of the workspace.
        size: how many.
        seed: of what differs between jobs; the same one makes the same workspace.
    """
    chance = random.Random(seed)
    jobs: dict[str, JobOnDisk] = {}
    active, long, ended, datasets = [], [], [], []
    kinds = [chance.choice(_KINDS) for _ in range(size.jobs)]
    trained = sum(1 for kind in kinds if kind == "train") - size.queued - size.long_curves // 2
    short = max(1, (size.points - size.long_curves * size.long_points) // max(1, trained * len(_TAGS)))
    for number, kind in enumerate(kinds):
        queued = size.jobs - number <= size.queued
        new = _new_job(folder, number, "train" if queued else kind, chance, datasets)
        state = "queued" if queued else chance.choice(_ENDED)
        points = [] if queued else _points(new, short if kind == "train" else 0)
        if new.kind == "train" and not queued:
            if len(long) < size.long_curves // 2:
                long.append(new.id)
                state, points = "done", _points(new, size.long_points, _TAGS[:2])
            elif len(active) < _ACTIVE + _STOPPING:
                state = "running" if len(active) < _ACTIVE else "stopping"
                active.append(new.id)
            elif state == "done":
                ended.append(new.id)
        elif new.kind == "dataset" and state == "done":
            datasets.append(new.id)
        _write(new, state, points, chance)
        jobs[new.id] = JobOnDisk(job=new, state=state, fields=_fields(new, state, chance))
    return Workspace(folder=folder, jobs=jobs, active=tuple(active), long=tuple(long), ended=tuple(ended))


def fill_store(workspace: Workspace, address: str) -> int:
    """Let a store read the folders, and return how many events it took.

    Args:
        workspace: as ``make_folders`` returned it.
        address: path or URL of the store.
    """
    with Store.open(address) as store:
        report = store.reindex(workspace.folder, lambda folder: workspace.jobs[folder.name])
        store.settings.set("cpu_slots", _ACTIVE + _STOPPING)  # all of them are taken, so that nothing is started
    if report.damaged:
        raise RuntimeError(f"the store did not take {len(report.damaged)} jobs: {next(iter(report.damaged.items()))}")
    return report.events


def _new_job(folder: Path, number: int, kind: str, chance: random.Random, datasets: list[str]) -> NewJob:
    created = _FIRST + 600.0 * number
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(created))
    job_id = f"{stamp}-{number % 65536:04x}"
    network = chance.choice(_NETWORKS) if kind != "dataset" else ""
    dataset = chance.choice(datasets) if datasets and kind == "train" else ""
    words = chance.sample(_WORDS, 3)
    return NewJob(
        id=job_id,
        kind=kind,
        name=f"{' '.join(words[:2])} {number}",
        folder=str(folder / ("datasets" if kind == "dataset" else "jobs") / job_id),
        spec=_spec(kind, network, number, chance),
        project=f"project {number % 12}" if number % 13 else "",
        owner=f"person{number % 7}",
        group=f"sweep-{number // 16}" if number % 5 == 0 else "",
        depends_on=(dataset,) if dataset else (),
        needs=ResourceRequest(slot="dataset" if kind == "dataset" else "cpu"),
        priority=chance.choice((0, 0, 0, 5)),
        framework="" if kind == "dataset" else "tensorflow",
        network=network,
        created=created,
        tags=tuple(words[: number % 4]),
        notes=f"Number {number}: what was seen of {words[2]} and why it was tried once more. " * (number % 4),
    )


def _spec(kind: str, network: str, number: int, chance: random.Random) -> dict[str, Any]:
    if kind == "dataset":
        spec = {"kind": kind, "version": 1, "source": f"/data/{chance.choice(_WORDS)}", "name": f"images {number}"}
        return parse_spec(spec, source="the benchmark").model_dump(mode="json")
    spec = {
        "kind": "train",
        "version": 1,
        "backend": "null",
        "network": network,
        "data": "digits",
        "epochs": chance.choice((10, 30, 90)),
        "batch_size": chance.choice((32, 64, 128, 256)),
        "learning_rate": round(10 ** chance.uniform(-4, -1), 5),
        "seed": number,
        "weight_decay": chance.choice((0.0, 1e-4, 5e-4)),
    }
    return {**parse_spec(spec, source="the benchmark").model_dump(mode="json"), "kind": kind}


def _fields(new: NewJob, state: str, chance: random.Random) -> dict[str, Any]:
    fields: dict[str, Any] = {"host": socket.gethostname() if state != "queued" else ""}
    if state == "failed":
        sentence = "The loss must be finite; it was NaN in step 40."
        fields |= {"reason": sentence, "exit_code": 6, "error": {"error": "TrainingError", "message": sentence}}
    elif state in ("done", "stopped"):
        fields |= {"reason": "", "exit_code": 0 if state == "done" else 75, "devices": [chance.randrange(4)]}
    if new.kind == "dataset" and state == "done":
        fields["facts"] = {"samples": chance.randrange(1000, 60_000), "classes": chance.randrange(2, 1000)}
    return fields


def _points(new: NewJob, count: int, tags: tuple[str, ...] = _TAGS) -> Iterator[str]:
    """Yield lines of events: points of curves that fall or rise with noise, all tags of a step together."""
    chance = random.Random(new.id)
    end = 0.5 + chance.random() / 2
    for step in range(1, count + 1):
        moment = f"{new.created + 60 + step:.3f}"
        for place, tag in enumerate(tags):
            value = (end if place % 2 else 2.0) * math.exp(-3 * step / count) + chance.gauss(0, 0.02)
            shown = "NaN" if step % 9973 == 0 else round(1 - value if place % 2 else value, 6)
            yield (
                f'{{"type":"scalar","version":1,"time":{moment},"tag":"{tag}","value":{json.dumps(shown)},'
                f'"step":{step * 10},"epoch":{1 + step // 100}}}\n'
            )


def _write(new: NewJob, state: str, points: Any, chance: random.Random) -> None:
    folder = JobFolder(Path(new.folder))
    folder.path.mkdir(parents=True)
    write_job_file(folder.path, record_of(new))
    if state == "queued":
        return  # without a spec, so that no worker is ever started, even where the benchmark is killed
    folder.spec.write_text(json.dumps(new.spec, indent=2))
    began = new.created + 60
    with folder.events.open("w") as file:
        started = {
            "attempt": 1, "pid": 7, "host": socket.gethostname(), "backend": "null", "release": "1",
            "max_epoch": 10, "steps_per_epoch": 1000,
        }  # fmt: skip
        file.write(_line("attempt_started", began, **started))
        file.writelines(points)
        file.write(_line("message", began, level="info", text="The dataset was opened."))
        if state in ("running", "stopping"):
            file.write(_line("progress", began + 60, epoch=1, global_step=200, total_steps=10_000, remaining_s=3600.0))
        else:
            took = chance.uniform(100, 20_000)
            file.write(_line("attempt_ended", began + took, outcome=state, exit_code=0, global_step=10_000, epoch=10))


def _line(kind: str, moment: float, **fields: Any) -> str:
    return json.dumps({"type": kind, "version": 1, "time": moment, **fields}, separators=(",", ":")) + "\n"
