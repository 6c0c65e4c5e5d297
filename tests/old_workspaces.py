"""Workspaces as earlier versions left them, and what these versions answered: see ``tests/fixtures/README.md``."""

from __future__ import annotations

import functools
import json
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ziggurat.events import AttemptStarted, read_events
from ziggurat.layout import JobFolder, checkpoint_name
from ziggurat.settings import Settings
from ziggurat.specs import EvaluateSpec, load_spec, load_train_spec, save_spec
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.workspace.job_folders import JobFolders, job_status

__all__ = [
    "PICTURE",
    "RELEASES",
    "OldWorkspace",
    "answers_of",
    "check_measured_again",
    "check_resumes",
    "numbers_of",
    "unpack",
]

_FIXTURES = Path(__file__).parent / "fixtures"
PICTURE = _FIXTURES / "square.png"
"""A test image of the dataset ``shapes`` of 0.1, for which each version gave the probabilities of the classes."""
RELEASES = ("0.1.0", "0.2.0")


@dataclass(frozen=True)
class OldWorkspace:
    """A workspace at a place where it was never opened.

    Args:
        folder: of the workspace.
        answers: what the version answered that made it; of each job what is known.
    """

    folder: Path
    answers: Mapping[str, Any]

    @property
    def jobs(self) -> dict[str, dict[str, Any]]:
        """Id → what the version answered of each job."""
        return self.answers["jobs"]

    def jobs_with(self, *fields: str) -> dict[str, dict[str, Any]]:
        """Return the jobs of which these fields are known."""
        return {job_id: job for job_id, job in self.jobs.items() if set(fields) <= set(job)}

    def job_id(self, framework: str, known: str) -> str:
        """Return the id of the only training on a framework of which a field is known."""
        (found,) = (job_id for job_id, job in self.jobs_with(known).items() if job.get("framework") == framework)
        return found

    def evaluations(self, framework: str) -> dict[str, str]:
        """Return name → id of the evaluations of trainings on a framework."""
        return {
            job["name"]: job_id
            for job_id, job in self.jobs_with("summary").items()
            if job["kind"] == "evaluate" and self.jobs[job["parent"]]["framework"] == framework
        }

    def stopped(self, framework: str) -> str:
        """Return the id of the training on a framework that was stopped."""
        (found,) = (
            job_id
            for job_id, job in self.jobs.items()
            if (job.get("framework"), job["state"]) == (framework, "stopped")
        )
        return found


def unpack(release: str, target: Path) -> OldWorkspace:
    """Unpack the workspace of a release.

    Args:
        release: a name in ``RELEASES``.
        target: an existing folder, which gets the folder ``workspace``.
    """
    name = f"workspace-{release}"
    with tarfile.open(_FIXTURES / f"{name}.tar.xz") as archive:
        archive.extractall(target, filter="data")
    return OldWorkspace((target / name).rename(target / "workspace"), answers_of(release))


@functools.cache
def answers_of(release: str) -> Mapping[str, Any]:
    """Return what a release answered of its workspace."""
    return json.loads((_FIXTURES / f"workspace-{release}.json").read_text())


def check_measured_again(old: OldWorkspace, evaluation: str) -> None:
    """Evaluate a training in this process as an evaluation did, and check that it gives the same figures."""
    known = old.jobs[evaluation]
    spec = load_spec(old.folder / "jobs" / evaluation / "spec.json")
    assert isinstance(spec, EvaluateSpec)
    checkpoint = checkpoint_name(known["summary"]["step"])
    folder = old.folder / "jobs" / known["parent"]
    found = numbers_of(evaluate({"folder": str(folder), "split": spec.split, "checkpoint": checkpoint}))
    same = {name.removeprefix("metrics."): number for name, number in known["summary"].items()}
    common = found.keys() & same.keys() - {"step", "epoch", "skipped"}
    assert common
    assert {name: found[name] for name in common} == pytest.approx({name: same[name] for name in common}, abs=1e-4)


def check_resumes(old: OldWorkspace, framework: str) -> None:
    """Let a worker resume the training that was stopped, for two epochs, and check that it goes on where it was."""
    job = old.stopped(framework)
    folder, step = JobFolder(old.folder / "jobs" / job), old.jobs[job]["step"]
    spec = load_train_spec(folder.spec)
    assert spec.steps_per_epoch is not None
    epochs = step // spec.steps_per_epoch + 2
    save_spec(spec.model_copy(update={"epochs": epochs}), folder.spec)
    assert JobFolders(Settings(workspace=old.folder)).attend(str(folder.path)).wait() == 0, folder.log.read_text()
    events, _ = read_events(folder.events)
    begun = [event for event in events if isinstance(event, AttemptStarted)]
    assert [event.global_step for event in begun] == [0, step]
    status = job_status(folder.path, time.time())
    assert (status.state, status.attempt, status.epoch) == ("done", 2, epochs)
    assert status.global_step == epochs * spec.steps_per_epoch


def numbers_of(value: Any, name: str = "") -> dict[str, float]:
    """Return the numbers among JSON values by their path, such as ``metrics.mean_iou``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {name: value}
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    found = [numbers_of(part, f"{name}.{key}" if name else str(key)) for key, part in parts]
    return {each: number for part in found for each, number in part.items()}
