"""Owns one attempt from start to exit code: take the folder, build, train, say how it ended."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from ziggurat import __version__
from ziggurat.engine.trainer import Trainer
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.errors import JobError, StorageError, ZigguratError
from ziggurat.events import AttemptEnded, AttemptStarted, ErrorRaised, Event, EventFile, Message, read_events
from ziggurat.layout import JobFolder
from ziggurat.logs import set_up_logging
from ziggurat.settings import Settings, load_settings
from ziggurat.specs import TrainSpec, load_spec
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.lock import FolderLock
from ziggurat.worker.pulse import HeartbeatThread, StepClock
from ziggurat.worker.stopping import ParentWatch, StopSignals

__all__ = ["main", "run_attempt"]

_UNEXPECTED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the job in a folder once, or go on with it; return the exit code.

    0: complete. 75: asked to stop, saved, can be resumed. Others: the codes of the error families.
    """
    parser = argparse.ArgumentParser(prog="python -m ziggurat.worker", description=__doc__)
    parser.add_argument("folder", type=Path, help="job folder with a spec.json")
    parser.add_argument("--end-with", type=int, metavar="PID", help="save and end when this parent process is gone")
    given = parser.parse_args(arguments)
    signals = StopSignals()
    folder = JobFolder(given.folder)
    try:
        if not folder.spec.is_file():
            raise JobError(
                "A job folder has a spec.json.",
                received=str(folder.path),
                advice="Start a job there with: ziggurat train --out FOLDER.",
            )
        with FolderLock(folder.lock):
            return run_attempt(folder, signals, parent=None if given.end_with is None else ParentWatch(given.end_with))
    except ZigguratError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def run_attempt(folder: JobFolder, signals: StopSignals, *, parent: ParentWatch | None = None) -> int:
    """Execute one attempt in a folder that this process has locked; return the exit code."""
    settings = load_settings()
    set_up_logging(settings.log_level, color=settings.use_color(sys.stderr), job_log=folder.log)
    folder.stop_request.unlink(missing_ok=True)
    events = EventFile(folder.events)
    trainer: Trainer | None = None
    try:
        trainer, beat = _start(folder, signals, parent, events, settings)
        try:
            trainer.train(trainer.max_epoch)
        finally:
            beat.close()
            trainer.program.close()
    except BaseException as error:
        return _failed(events, error, trainer)
    reason = trainer.stop_reason or trainer.finish_reason or "all epochs are done"
    code = EXIT_STOPPED if trainer.outcome == "stopped" else EXIT_DONE
    events.write(_ended(trainer.outcome, code, reason, trainer))
    events.close()
    return code


def _start(
    folder: JobFolder, signals: StopSignals, parent: ParentWatch | None, events: EventFile, settings: Settings
) -> tuple[Trainer, HeartbeatThread]:
    spec = load_spec(folder.spec)
    clock = StepClock()
    waiting: list[str] = []
    beat = HeartbeatThread(
        folder,
        clock,
        lambda reason: _ask(clock, waiting, reason),
        parent=parent,
        every_s=spec.heartbeat_s,
        hung_after_s=spec.hung_after_s,
    )
    beat.start()
    try:
        built = build_job(spec, folder, clock, settings)
    except BaseException:
        beat.close()
        raise
    _go_on(built, folder, spec, events)
    signals.listen(built.trainer.request_stop)
    for reason in waiting:
        built.trainer.request_stop(reason)
    return built.trainer, beat


def _ask(clock: StepClock, waiting: list[str], reason: str) -> None:
    """Ask the trainer to stop, or keep the request until there is one."""
    trainer = getattr(clock, "trainer", None)
    if trainer is None:
        waiting.append(reason)
    else:
        trainer.request_stop(reason)


def _go_on(built: BuiltJob, folder: JobFolder, spec: TrainSpec, events: EventFile) -> None:
    """Restore the newest whole checkpoint, and say where the attempt starts."""
    trainer = built.trainer
    trainer.max_epoch = spec.epochs
    newest = built.store.latest()
    name = ""
    if newest is not None:
        info, state, problems = newest
        trainer.load_state(state)
        built.store.remove_after(info.step)
        name = info.name
        for problem in problems:
            events.write(Message(time=time.time(), level="warning", text=str(problem), step=info.step))
    events.write(
        AttemptStarted(
            time=time.time(),
            attempt=1 + _attempts(folder),
            pid=os.getpid(),
            host=socket.gethostname(),
            backend=spec.backend,
            release=__version__,
            global_step=trainer.global_step,
            max_epoch=spec.epochs,
            steps_per_epoch=trainer.steps_per_epoch,
            checkpoint=name,
        )
    )


def _attempts(folder: JobFolder) -> int:
    count, offset = 0, 0
    while True:
        batch, after = read_events(folder.events, offset)
        count += sum(isinstance(event, AttemptStarted) for event in batch)
        if after == offset:
            return count
        offset = after


def _failed(events: EventFile, error: BaseException, trainer: Trainer | None) -> int:
    """Write down why the attempt failed; return the exit code of the error's family."""
    known = isinstance(error, ZigguratError)
    code = error.exit_code if known else _UNEXPECTED
    shape = error.as_dict() if known else {"error": "unexpected", "message": f"{type(error).__name__}: {error}"}
    text = "".join(traceback.format_exception(error))
    sys.stderr.write(text)
    step = trainer.global_step if trainer is not None else 0
    lines: list[Event] = [
        ErrorRaised(time=time.time(), error=shape, traceback=text, step=step),
        _ended("failed", code, shape["message"], trainer),
    ]
    try:
        events.write(*lines)
        events.close()
    except StorageError as full:
        sys.stderr.write(f"{full}\n")
    return code


def _ended(outcome: str, code: int, reason: str, trainer: Trainer | None) -> AttemptEnded:
    return AttemptEnded(
        time=time.time(),
        outcome=outcome,
        exit_code=code,
        reason=reason,
        global_step=trainer.global_step if trainer is not None else 0,
        epoch=trainer.epoch_num if trainer is not None else 0,
    )
