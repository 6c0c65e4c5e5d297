"""``ziggurat job load``, ``samples`` and ``timeline``: records of a training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.formatting import as_bytes, as_number, as_percent, as_time

__all__ = ["job_load", "job_samples", "job_timeline"]

_NONE_RECORDED: Final = "No load was recorded."


@click.command("load", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@reaches_studio
@click.pass_obj
def job_load(application: Application, job_id: str, **studio: Any) -> None:
    """Show the load of the machine while the training ID ran; `--json` has all samples."""
    with studio_client(application, studio) as client:
        found = client.machine_load(job_id)
    application.output.document(found, _load_text(found["curves"]))


@click.command("samples", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@click.option("--epoch", type=click.FloatRange(min=0), help="After this epoch; default: the newest.")
@reaches_studio
@click.pass_obj
def job_samples(application: Application, job_id: str, epoch: float | None, **studio: Any) -> None:
    """Show what the training ID predicted for a few validation samples, after its newest validation."""
    with studio_client(application, studio) as client:
        found = client.sample_predictions(job_id)
    application.output.document(found, _samples_text(found, epoch))


@click.command("timeline", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@reaches_studio
@click.pass_obj
def job_timeline(application: Application, job_id: str, **studio: Any) -> None:
    """List the events of the training ID, oldest first; numbers are those of the flags on its charts."""
    with studio_client(application, studio) as client:
        found = client.timeline(job_id)
        stopping = client.early_stopping(job_id)
    rows = [
        (
            "" if each["number"] is None else str(each["number"]),
            str(each["step"]),
            "" if each["epoch"] is None else str(each["epoch"]),
            as_time(each["time_s"]),
            ", ".join(
                part for part in (each["text"], each["detail"], f"by {each['by']}" if each["by"] else "") if part
            ),
        )
        for each in found
    ]
    text = table(rows, ("number", "step", "epoch", "time", "event"))
    if stopping is not None:
        text += f"\nEarly stopping: {stopping['waited']} of {stopping['patience']} epochs without gain"
        text += f" ({stopping['tag']})."
    application.output.document({"events": found, "early_stopping": stopping}, text)


def _load_text(curves: Sequence[Mapping[str, Any]]) -> str:
    rows = []
    for curve in curves:
        values = [value for value in curve["values"] if value is not None]
        if values:
            shown = (values[-1], sum(values) / len(values), max(values))
            rows.append((curve["title"], *(_with_unit(value, curve["unit"]) for value in shown)))
    return table(rows, ("load", "last", "mean", "maximum")) if rows else _NONE_RECORDED


def _with_unit(value: float, unit: str) -> str:
    if unit == "%":
        return as_percent(value / 100, 0)
    if unit.startswith("bytes"):
        return as_bytes(value) + unit.removeprefix("bytes")
    return f"{as_number(value, 3)} {unit}"


def _samples_text(found: Mapping[str, Any], epoch: float | None) -> str:
    records = [each for each in found["records"] if epoch is None or each["epoch"] <= epoch]
    if not records:
        return "No sample predictions were recorded."
    names, newest = found["class_names"], records[-1]
    rows = []
    for sample, said in zip(found["samples"], newest["predictions"], strict=True):
        label, predicted = (_class_name(names, number) for number in (sample["label"], said.get("class")))
        score = "–" if said.get("score") is None else as_percent(said["score"], 0)
        rows.append((sample["key"], label, predicted, score, "correct" if label == predicted else "wrong"))
    title = f"After epoch {newest['epoch']:g}, step {newest['step']}:\n"
    return title + table(rows, ("sample", "label", "predicted", "score", ""))


def _class_name(names: Sequence[str], number: Any) -> str:
    return names[number] if isinstance(number, int) and 0 <= number < len(names) else str(number)
