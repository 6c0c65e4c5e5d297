"""Commands for jobs in folders: ``status``, ``events``, ``checkpoint``; trainings on this machine."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import psutil

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.job_places import JOB, JOB_OR_FILE
from ziggurat.cli.output import Output, table
from ziggurat.cli.spec import note_former_names
from ziggurat.cli.training import (
    check_says_something,
    lacks_network,
    local_recipe,
    test_batch_text,
    with_fine_tuning,
    with_recipe,
)
from ziggurat.cli.value_completion import complete_checkpoint
from ziggurat.cli.weights import average, is_job, show_differences, show_weights, strip
from ziggurat.cli.word_completion import complete_among
from ziggurat.entities import EXIT_DONE, RUN_KINDS
from ziggurat.entities.arithmetic import NOT_RECORDED
from ziggurat.entities.jobs import DIVERGED
from ziggurat.errors import TrainingError, UnknownNameError
from ziggurat.events import EVENT_TYPES, Event, UnknownEvent, encode_event
from ziggurat.specs import TrainSpec, read_content, spec_from_flags, spec_json
from ziggurat.workspace import JobStatus, Workspace, open_folders
from ziggurat.workspace.checkpoints import CheckpointSummary
from ziggurat.workspace.datasets import finished_dataset
from ziggurat.workspace.job_folders import JobFolders
from ziggurat.workspace.training_checks import DIGITS, obstacle_of
from ziggurat.workspace.training_estimates import with_times
from ziggurat.zoo.backends import with_backend

__all__ = ["checkpoint", "events", "execute", "open_workspace", "status", "status_text", "train_here"]

_FOLDER = click.argument("folder", metavar="JOB", type=JOB)
_JOB_OR_FILE = click.argument("folder", metavar="JOB", type=JOB_OR_FILE)
_NAME = click.argument("name", default="latest", shell_complete=complete_checkpoint)


def open_workspace(application: Application) -> Workspace[JobFolders]:
    """Return the workspace of this call."""
    if application.worker_command is None:
        return open_folders(application.settings)
    return open_folders(application.settings, worker_command=application.worker_command)


def train_here(
    application: Application,
    spec: Path | None,
    out: Path | None,
    assignments: tuple[str, ...],
    detach: bool,
    **chosen: Any,
) -> int:
    """Train on this machine; return the exit code.

    Args:
        application: of this call.
        spec: its file; None for flags alone.
        out: folder of the job; None for a new one of the workspace.
        assignments: texts ``PATH=VALUE``.
        detach: whether it runs in the background.
        chosen: ``recipe``, ``fine_tune``, ``test_batch`` and ``dry_run``, and the flags of the spec's fields.
    """
    names = ("recipe", "fine_tune", "test_batch", "dry_run")
    recipe, fine_tune, test_batch, dry_run = (chosen.pop(name) for name in names)
    base = None if spec is None else read_content(spec)
    given: dict[str, str] = {name: text for name, text in chosen.items() if text is not None}
    if spec is None and not recipe:
        check_says_something(given, assignments)
    note_former_names(application, base, given, assignments)
    if "data" in given:
        given["data"] = _place_of(application, given["data"])
    if fine_tune:
        base = with_fine_tuning(application, base, given, assignments)
    if recipe or (spec is None and lacks_network(given, assignments)):
        base = with_recipe(application, base, given, assignments, local_recipe, is_asked=recipe)
    asked = spec_from_flags(given, assignments=assignments, base=base)
    if dry_run:
        click.echo(spec_json(asked), nl=False)
        return 0
    if test_batch:
        return _test_batch(application, asked)
    folder = open_workspace(application).jobs.create(asked, out)
    return execute(application, folder, detach=detach)


def _place_of(application: Application, source: str) -> str:
    """Return the folder of the dataset of the workspace that a source names; any other source as it is."""
    if source == DIGITS or Path(source).exists():
        return source
    return finished_dataset(application.settings.workspace.expanduser(), source) or source


def _test_batch(application: Application, spec: TrainSpec) -> int:
    """Train some steps without making a job, and show the measurements."""
    obstacle = obstacle_of(spec, workspace=application.settings.workspace.expanduser())
    if obstacle is not None:
        raise obstacle
    open_workspace(application).weights.add_named(spec.pretrained)
    complete = with_backend(spec)
    free = psutil.virtual_memory().available
    tasks = open_workspace(application).tasks
    found = with_times(tasks.test_batch(complete.model_dump(mode="json"), free_bytes=free), complete)
    application.output.document(found, test_batch_text(found))
    return 0


def execute(application: Application, folder: Path, *, detach: bool = False) -> int:
    """Execute the job in a folder, attended or not; return the exit code: that of the worker, but 6 if it diverged."""
    jobs, output = open_workspace(application).jobs, application.output
    if detach:
        pid = jobs.detach(str(folder))
        output.document({"folder": str(folder), "pid": pid}, f"Process {pid} works in {folder}")
        return 0
    jobs.get(str(folder))  # an error of a folder that is no job comes before any other word
    output.note(f"Job folder: {folder}")
    # Standard output is for the JSON document alone.
    extra: dict[str, Any] = {"output": sys.stderr} if application.as_json else {}
    code = jobs.attend(str(folder), say=output.note, **extra).wait()
    status = jobs.get(str(folder))
    output.document(status.as_dict(), status_text(status, output))
    # What follows in a script would use a model that is worth nothing.
    return TrainingError.exit_code if code == EXIT_DONE and status.outcome == DIVERGED else code


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, type=JOB, metavar="JOB...")
@click.pass_obj
def status(application: Application, folders: tuple[Path, ...]) -> None:
    """Show the status of JOBs; with --json, one line each."""
    jobs, output = open_workspace(application).jobs, application.output
    for folder in folders:
        found = jobs.get(str(folder))
        output.line(found.as_dict(), status_text(found, output))


@click.command(cls=Command)
@_FOLDER
@click.option("--follow", is_flag=True, help="Follow until the job ends.")
@click.option(
    "--type",
    "types",
    multiple=True,
    metavar="TYPE",
    shell_complete=complete_among(lambda: EVENT_TYPES),
    help="Only this type, such as scalar; repeatable.",
)
@click.option("--tag", "tags", multiple=True, help="Only this metric; repeatable.")
@click.pass_obj
def events(application: Application, folder: Path, follow: bool, types: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Show the events of JOB; with --json, the lines of its events.jsonl."""
    for name in types:
        if name not in EVENT_TYPES:
            raise UnknownNameError("type of event", name, EVENT_TYPES)
    outputs, output = open_workspace(application).outputs, application.output
    for event in outputs.follow_events(str(folder)) if follow else outputs.events(str(folder)):
        if _is_wanted(event, types, tags):
            output.line(json.loads(encode_event(event)), event_text(event))


def _is_wanted(event: Event, types: tuple[str, ...], tags: tuple[str, ...]) -> bool:
    return (not types or event.type in types) and (not tags or getattr(event, "tag", None) in tags)


@click.group(cls=Group)
def checkpoint() -> None:
    """List, show, compare and delete the checkpoints of a job, and work with weights in files.

    NAME is a folder name such as step-00000042, a given name such as best, or latest. Files of weights are TensorFlow
    checkpoints (model-100), npz files and checkpoints of Ziggurat.
    """


checkpoint.add_command(strip)
checkpoint.add_command(average)


@checkpoint.command("list")
@_JOB_OR_FILE
@click.pass_obj
def checkpoint_list(application: Application, folder: Path) -> None:
    """List the checkpoints of JOB, oldest first; of a file of weights, its arrays."""
    if not is_job(folder):
        show_weights(application, folder)
        return
    found = open_workspace(application).outputs.checkpoints(str(folder))
    rows = [(each.name, str(each.step), f"{each.size_bytes:,}", _checkpoint_names(each)) for each in found]
    text = table(rows, ("checkpoint", "step", "bytes", "names"))
    application.output.document([each.as_dict() for each in found], text)


@checkpoint.command()
@_JOB_OR_FILE
@_NAME
@click.pass_obj
def show(application: Application, folder: Path, name: str) -> None:
    """Show the content of a checkpoint: step, scalars, and arrays."""
    found = open_workspace(application).outputs.checkpoint(str(folder), name)
    rows = [(each.name, str(each.shape), each.dtype, f"{each.size_bytes:,}") for each in found.arrays]
    scalars = ", ".join(f"{tag} {value:.5g}" for tag, value in found.scalars.items())
    head = f"{found.summary.name}: step {found.summary.step}, epoch {found.epoch}. {scalars}".rstrip()
    application.output.document(found.as_dict(), f"{head}\n{table(rows, ('array', 'shape', 'type', 'bytes'))}")


@checkpoint.command()
@_JOB_OR_FILE
@click.argument("first", shell_complete=complete_checkpoint)
@click.argument("second", default="latest", shell_complete=complete_checkpoint)
@click.option(
    "--other",
    metavar="JOB",
    type=JOB,
    help="Job of the second checkpoint; default: the same job.",
)
@click.pass_obj
def diff(application: Application, folder: Path, first: str, second: str, other: Path | None) -> None:
    """Compare the arrays of two checkpoints of JOB, or of the two files JOB and FIRST."""
    if not is_job(folder):
        show_differences(application, folder, Path(first))
        return
    found = open_workspace(application).outputs.checkpoint_differences(str(folder), first, str(other or folder), second)
    rows = [(each.name, each.kind, _number(each.largest), _number(each.mean)) for each in found]
    text = table(rows, ("array", "difference", "largest", "mean"))
    application.output.document([each.as_dict() for each in found], text)


@checkpoint.command("delete")
@_JOB_OR_FILE
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_checkpoint)
@click.pass_obj
def remove(application: Application, folder: Path, names: tuple[str, ...]) -> None:
    """Delete checkpoints of a job that is not running."""
    outputs = open_workspace(application).outputs
    for name in names:
        removed = outputs.remove_checkpoint(str(folder), name)
        application.output.line({"removed": removed}, f"Removed {removed}")


def _checkpoint_names(found: CheckpointSummary) -> str:
    """Return the names of a checkpoint, and of the best one by what it is that."""
    best = [f"best by {found.best_by}"] if found.best_by else []
    return ", ".join([*(name for name in found.given_names if name != "best" or not best), *best])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def status_text(status: JobStatus, output: Output) -> str:
    """Return the state of a job in a few lines."""
    health = f" ({output.word(status.health)})" if status.health not in ("", "alive") else ""
    diverged = f", {output.word(status.outcome)}" if status.outcome == DIVERGED else ""
    name = f" {status.name}" if status.name else ""
    lines = [f"{status.folder}{name}: {output.word(status.state)}{diverged}{health}, attempt {status.attempt}"]
    if status.reason:
        lines.append(f"  reason      {status.reason}")
    total = f" of {status.total_steps}" if status.total_steps else ""
    if status.kind not in RUN_KINDS:
        stage = f" ({status.stage})" if status.stage else ""
        lines.append(f"  progress    sample {status.global_step}{total}{stage}")
    else:
        epochs = f" of {status.max_epoch}" if status.max_epoch else ""
        stage = f" ({status.stage})" if status.stage else ""
        lines.append(f"  progress    step {status.global_step}{total}, epoch {status.epoch}{epochs}{stage}")
    if status.steps_per_s:
        left = "" if status.time_left_s is None else f", {status.time_left_s:.0f} s left"
        unit = "steps/s" if status.kind in RUN_KINDS else "samples/s"
        lines.append(f"  speed       {status.steps_per_s:.3g} {unit}{left}")
    if status.pid is not None and status.heartbeat_age_s is not None:
        lines.append(f"  worker      process {status.pid} on {status.host}, seen {status.heartbeat_age_s:.0f} s ago")
    if status.scalars:
        lines.append("  scalars     " + ", ".join(f"{tag} {value:.5g}" for tag, value in status.scalars.items()))
    if status.last_checkpoint:
        lines.append(f"  checkpoint  {status.last_checkpoint}")
    if status.best_checkpoint:
        lines.append(f"  used        {status.best_checkpoint}")
    if status.baselines:
        lines.append(f"  baselines   {status.baselines}")
    if status.kind in RUN_KINDS and status.attempt > 1:
        said = f"{NOT_RECORDED}." if status.arithmetic is None else status.arithmetic.text
        lines += [f"  arithmetic  {said}"] if said else []
    if status.divergence is not None and status.divergence.text not in status.reason:
        lines.append(f"  {output.word('diverged')}    {status.divergence.text.removeprefix('Diverged: ')}")
        if status.divergence.value is not None:
            lines.append("              A loss that grows like this soon becomes NaN: lower the learning rate.")
    if not status.is_active and status.can_resume:
        lines.append(f"  go on with  ziggurat resume {status.folder}")
    return "\n".join(lines)


def event_text(event: Event) -> str:
    """Return an event in one line: time, type, and what it says."""
    content = event.content if isinstance(event, UnknownEvent) else asdict(event)
    said = " ".join(f"{name}={_short(value)}" for name, value in content.items() if _is_said(name, value))
    return f"{time.strftime('%H:%M:%S', time.localtime(event.time))} {event.type:<16} {said}".rstrip()


def _is_said(name: str, value: Any) -> bool:
    return name not in ("time", "traceback") and value not in (None, "", {})


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict):
        return str(value.get("message", value))
    return str(value)
