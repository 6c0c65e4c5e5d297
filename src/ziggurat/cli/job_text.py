"""Text output for the state and the events of a job."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from ziggurat.cli.output import Output
from ziggurat.events import Event, UnknownEvent
from ziggurat.workspace import JobStatus

__all__ = ["event_text", "status_text"]


def status_text(status: JobStatus, output: Output) -> str:
    """Return the state of a job in a few lines."""
    health = f" ({output.word(status.health)})" if status.health not in ("", "alive") else ""
    name = f" {status.name}" if status.name else ""
    lines = [f"{status.folder}{name}: {output.word(status.state)}{health}, attempt {status.attempt}"]
    if status.reason:
        lines.append(f"  reason      {status.reason}")
    total = f" of {status.total_steps}" if status.total_steps else ""
    if status.kind != "train":
        stage = f" ({status.stage})" if status.stage else ""
        lines.append(f"  progress    sample {status.global_step}{total}{stage}")
    else:
        lines.append(f"  progress    step {status.global_step}{total}, epoch {status.epoch} of {status.max_epoch}")
    if status.steps_per_s:
        left = "" if status.time_left_s is None else f", {status.time_left_s:.0f} s left"
        unit = "steps/s" if status.kind == "train" else "samples/s"
        lines.append(f"  speed       {status.steps_per_s:.3g} {unit}{left}")
    if status.pid is not None and status.heartbeat_age_s is not None:
        lines.append(f"  worker      process {status.pid} on {status.host}, seen {status.heartbeat_age_s:.0f} s ago")
    if status.scalars:
        lines.append("  scalars     " + ", ".join(f"{tag} {value:.5g}" for tag, value in status.scalars.items()))
    if status.last_checkpoint:
        lines.append(f"  checkpoint  {status.last_checkpoint}")
    if status.best_checkpoint:
        lines.append(f"  used        {status.best_checkpoint}")
    if status.divergence is not None and status.is_active:  # the reason of an end says it already
        lines.append(f"  {output.word('diverged')}    {status.divergence.text}")
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
