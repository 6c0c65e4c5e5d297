"""One run of the worker: command line, lock of the job folder, an attempt from start to end, and its exit code."""

from __future__ import annotations

import argparse
import logging
import math
import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from ziggurat import __version__
from ziggurat.atomic import ProcessLock, hold_fence, private_files
from ziggurat.engine.backend import ProcessPlace
from ziggurat.engine.callbacks.stopping import divergence_of
from ziggurat.engine.run_state import seed_global_random
from ziggurat.engine.trainer import Trainer
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.entities.heartbeat import reserve_last_words, write_last_words
from ziggurat.entities.jobs import divergence_of_error
from ziggurat.entities.parent_watch import ParentWatch
from ziggurat.errors import JobError, StorageError, TrainingError, ZigguratError, memory_error
from ziggurat.events import AttemptEnded, AttemptStarted, ErrorRaised, EventFile, Message, read_events
from ziggurat.layout import JobFolder
from ziggurat.logs import set_up_logging
from ziggurat.settings import RESUMED_ON_VARIABLE, Settings, load_settings
from ziggurat.specs import (
    DatasetSpec,
    EmbedSpec,
    EvaluateSpec,
    FileNetwork,
    InferSpec,
    ProgramSpec,
    Spec,
    TrainSpec,
    load_spec,
    save_spec,
)
from ziggurat.worker.arithmetic_events import arithmetic_events
from ziggurat.worker.baselines import keep_baselines
from ziggurat.worker.build import BuildLimit, BuiltJob, build_job
from ziggurat.worker.commands.embedding import embed_dataset
from ziggurat.worker.commands.evaluation import evaluate_split
from ziggurat.worker.commands.prediction import predict_many
from ziggurat.worker.commands.program import failure_of_program, run_program
from ziggurat.worker.dataset_job import make_dataset
from ziggurat.worker.event_watch import EventWatch, say_end, say_start
from ziggurat.worker.fetch_limits import keep_to_addresses
from ziggurat.worker.following import follow_training
from ziggurat.worker.heartbeat_thread import HeartbeatThread, StepClock
from ziggurat.worker.load_thread import LoadSampler, LoadThread
from ziggurat.worker.memory_advice import with_memory_advice
from ziggurat.worker.node_process import place_of_process
from ziggurat.worker.program_curves import ProgramCurves
from ziggurat.worker.program_trainings import JobTrainings, ProgramStopped
from ziggurat.worker.source import convert_old_stores
from ziggurat.worker.stopping import StopRequest, StopSignals
from ziggurat.worker.unlisted_checkpoint import unlisted_checkpoint
from ziggurat.worker.unseen_samples import unseen_samples
from ziggurat.zoo.backends import AUTO, with_backend

__all__ = ["main"]

_LOG: Final = logging.getLogger(__name__)


class FolderLock(ProcessLock):
    """The lock of a job folder.

    Args:
        path: the lock file.

    Raises:
        JobError: where another process holds it.
        StorageError: where the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        def taken(holder: str) -> JobError:
            return JobError(
                f"Process {holder} trains in {path.parent} already.",
                advice=f"Wait for it to end, or ask it to with: ziggurat stop {path.parent}.",
            )

        super().__init__(path, taken, f"A worker locks its folder by the file {path}.")


_CODES = """
exit codes:
  0   the job is complete
  75  a stop was requested; everything is saved, and it can be resumed
  76  a later worker has taken the folder; nothing was written since
  1   an unexpected error
  2   the worker was called wrongly
  3   the spec, a setting or an option is not valid, or a name is unknown
  4   the data cannot be used
  5   the network file failed
  6   the training cannot go on
  7   no checkpoint can be loaded
  8   a package is not installed
  9   a plugin failed
  10  there is no job in the folder, or another worker is at it
  11  the disk is full or not writable
"""


def main(arguments: Sequence[str] | None = None, *, request: StopRequest | None = None) -> int:
    """Execute the job in a folder once, or go on with it; return the exit code.

    0: complete. 75: asked to stop, saved, can be resumed. Others: the codes of the error families (``errors.py``), and
    1 where the error is none of them. An old stop request must be removed before the start.

    Args:
        arguments: the words of the command line; those of the process where they are not given.
        request: to stop, where signals are turned into one already.
    """
    parser = argparse.ArgumentParser(
        prog="python -m ziggurat.worker",
        description="Execute the job in a folder, or go on with it.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="job folder with a spec.json")
    parser.add_argument("--end-with", type=int, metavar="PID", help="save and end when this parent process is gone")
    parser.add_argument("--fence", type=int, metavar="NUMBER", help="end when fence.json has a higher number")
    given = parser.parse_args(arguments)
    if request is None:
        request = StopRequest()
        StopSignals(request)
    folder = JobFolder(given.folder.absolute())  # a program has a current folder of its own
    try:
        _check(folder)
        with private_files(folder.path), _locked(folder, given.fence):
            hold_fence(folder.fence, given.fence)
            parent = None if given.end_with is None else ParentWatch(given.end_with)
            return run_attempt(folder, request, parent=parent)
    except ZigguratError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code


def _locked(folder: JobFolder, fence: int | None) -> AbstractContextManager[object]:
    """Lock the folder; with a fence, go on where an earlier worker, perhaps of a lost machine, still has the lock."""
    try:
        return FolderLock(folder.lock)
    except (JobError, StorageError):
        if fence is None:
            raise
        return nullcontext()


def _check(folder: JobFolder) -> None:
    if not folder.spec.is_file():
        raise JobError(
            f"`{folder.path}` is not the folder of a job: it has no spec.json.",
            advice="Start a job there with: ziggurat train --out FOLDER.",
        )


def run_attempt(folder: JobFolder, request: StopRequest, *, parent: ParentWatch | None = None) -> int:
    """Execute one attempt in a folder that this process has locked; return the exit code.

    Args:
        folder: the job folder.
        request: to stop; may come at any time.
        parent: the process to end with; None to outlive it.

    Raises:
        StorageError: where not even the file of events can be opened.
    """
    reserve_last_words(folder.last_words)
    with closing(_open_events(folder)) as events:
        attempt = _Attempt(folder, request, parent, events)
        settings = Settings()
        try:
            settings = load_settings()
            keep_to_addresses(settings)
            log = None if settings.output_is_log else folder.log
            with set_up_logging(settings.log_level, color=settings.use_color(sys.stderr), job_log=log):
                return attempt.execute(settings)
        except BaseException as error:
            trainer, stack = attempt.trainer, attempt.stack
            return report_failure(error, folder, events, trainer, with_traceback=settings.debug, stack=stack)
        finally:
            folder.stop_request.unlink(missing_ok=True)  # it was obeyed, or the job is over all the same


def _open_events(folder: JobFolder) -> EventFile:
    try:
        return EventFile(folder.events)
    except StorageError as error:
        ended = AttemptEnded(time=time.time(), outcome="failed", exit_code=error.exit_code, reason=str(error))
        write_last_words(folder.last_words, ended)
        raise


class _Attempt:
    """What the parts of an attempt share."""

    def __init__(self, folder: JobFolder, request: StopRequest, parent: ParentWatch | None, events: EventFile) -> None:
        self.trainer: Trainer | None = None
        self.stack = ""
        """Stack trace to show of the error that ended a program; empty for that of the error itself."""
        self._sampler: LoadSampler | None = None
        self._heartbeat_thread: HeartbeatThread | None = None
        self._folder = folder
        self._request = request
        self._parent = parent
        self._events = events

    def execute(self, settings: Settings) -> int:
        """Do the job, and say how it ended; return the exit code."""
        spec = self._settled(load_spec(self._folder.spec))
        clock = StepClock()
        place = place_of_process(spec, os.environ) if isinstance(spec, TrainSpec) and spec.nodes > 1 else None
        if isinstance(spec, TrainSpec) and place is not None and place.rank:
            return self._follow(spec, clock, settings, place)
        with closing(self._heartbeat(spec, clock, spec.hung_after_s)) as heartbeat:
            self._heartbeat_thread = heartbeat
            heartbeat.start()
            if isinstance(spec, ProgramSpec):
                with closing(self._load_thread(spec)):
                    return self._run_program(spec, clock, settings)
            if not isinstance(spec, TrainSpec):
                return self._go_through_samples(spec, clock, settings)
            with closing(self._load_thread(spec)):
                self._build_and_train(spec, clock, settings, place)
        return self._end()

    def _follow(self, spec: TrainSpec, clock: StepClock, settings: Settings, place: ProcessPlace) -> int:
        """Take part in the training of rank 0, whose validations may take long: a step is never said to be hung."""
        say_start(self._events, 1 + _attempts(self._folder))
        with closing(self._heartbeat(spec, clock, math.inf)) as heartbeat:
            heartbeat.start()
            reason = follow_training(spec, self._folder, clock, settings, place)
        return say_end(self._events, 0, "done", EXIT_DONE, reason)

    def _settled(self, spec: Spec) -> Spec:
        """Return the spec with the backend that was chosen for it, which is written down: a resumed job keeps it."""
        if not isinstance(spec, TrainSpec) or spec.backend != AUTO:
            return spec
        settled = with_backend(spec)
        save_spec(settled, self._folder.spec)
        return settled

    def _go_through_samples(self, spec: Spec, clock: StepClock, settings: Settings) -> int:
        phase, work = _RUNNERS[type(spec)]
        say_start(self._events, 1 + _attempts(self._folder))
        watch = EventWatch(self._request, self._events, clock, settings.progress)
        clock.phase = phase
        try:
            said = work(spec, self._folder, watch)
        finally:
            watch.close()
            self._end_heartbeat()
        if said is None:
            reason = self._request.reason or "asked to stop"
            return say_end(self._events, watch.done, "stopped", EXIT_STOPPED, reason)
        return say_end(self._events, watch.done, "done", EXIT_DONE, said)

    def _heartbeat(self, spec: Spec, clock: StepClock, hung_after_s: float) -> HeartbeatThread:
        return HeartbeatThread(
            self._folder,
            clock,
            self._request,
            self._events,
            parent=self._parent,
            every_s=spec.heartbeat_s,
            hung_after_s=hung_after_s,
        )

    def _load_thread(self, spec: TrainSpec | ProgramSpec) -> LoadThread:
        """Return the thread that records the load of the machine; it is started unless the spec turns it off."""
        samples = spec.batch_size * spec.gradient_accumulation_steps if isinstance(spec, TrainSpec) else 1
        self._sampler = LoadSampler(self._folder.path, samples)
        thread = LoadThread(self._folder.machine_load, self._sampler, lambda: self.trainer, spec.machine_load_s)
        if spec.machine_load_s:
            thread.start()
        return thread

    def _build_and_train(
        self, spec: TrainSpec, clock: StepClock, settings: Settings, place: ProcessPlace | None
    ) -> None:
        if self._request.reason is not None:
            return  # nothing was done, so there is nothing to save
        seed_global_random(spec.seed)
        network = spec.network.path if isinstance(spec.network, FileNetwork) else f"{spec.network.name}.py"
        limit = BuildLimit(settings.build_limit_s, network, self._end_at_once)
        notices = convert_old_stores(spec.data.source)
        for notice in notices:
            _LOG.info("%s", notice)
        is_new = not _attempts(self._folder)
        built = build_job(spec, self._folder, clock, settings, limit, is_new=is_new, place=place)
        with closing(built.trainer.program):
            if self._request.reason is not None:
                return
            self.trainer = trainer = built.trainer
            self._go_on(built, spec, notices)
            if self._sampler is not None:
                self._sampler.begin(trainer.global_step)
            self._request.listen(trainer.request_stop, trainer.break_off_waiting)
            try:
                trainer.train(spec.epochs)
            except TrainingError as error:
                advised = with_memory_advice(error, spec)
                if advised is error:
                    raise
                raise advised from error
        if trainer.outcome == "done":
            keep_baselines(spec, self._folder, built.data.context, lambda: self._request.reason is not None)

    def _run_program(self, spec: ProgramSpec, clock: StepClock, settings: Settings) -> int:
        trainings = JobTrainings(self._folder, self._events, clock, self._request, self._found_trainer)
        begun = trainings.checkpoint
        self._events.write(
            AttemptStarted(
                time=time.time(),
                attempt=1 + _attempts(self._folder),
                pid=os.getpid(),
                host=socket.gethostname(),
                backend="",
                release=__version__,
                global_step=0 if begun is None else begun.step,
                checkpoint="" if begun is None else begun.name,
            ),
            *trainings.problems(),
        )
        is_whole = False
        curves = ProgramCurves(self._folder, self._events, lambda: self.trainer is not None)
        try:
            if self._request.reason is None:
                with curves:
                    is_whole = run_program(spec, self._folder, trainings, output_is_log=settings.output_is_log)
        except ProgramStopped:
            pass  # a request that came while the program was ending
        except Exception as error:
            known, self.stack = failure_of_program(error, self._folder)
            raise known from error
        finally:
            self._end_heartbeat()
        if is_whole and self.trainer is None:
            without = "no checkpoints" if curves.has_points else "no curves and no checkpoints"
            text = f"The program trained nothing with a trainer of Ziggurat: it has {without}."
            advice = "" if curves.has_points else " Log its metrics with `ziggurat.log(loss=…)`."
            self._events.write(Message(time=time.time(), level="info", text=text + advice))
        return self._end_program(is_whole, curves.last_step)

    def _found_trainer(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def _end_program(self, is_whole: bool, last_step: int) -> int:
        trainer = self.trainer
        step, epoch = (trainer.global_step, trainer.epoch_num) if trainer is not None else (last_step, 0)
        outcome, code, reason = "done", EXIT_DONE, "the program has ended"
        if not is_whole:
            outcome, code, reason = "stopped", EXIT_STOPPED, self._request.reason or "asked to stop"
        ended = AttemptEnded(
            time=time.time(), outcome=outcome, exit_code=code, reason=reason, global_step=step, epoch=epoch
        )
        self._events.write(ended)
        return code

    def _end_at_once(self, error: ZigguratError, stack: str) -> None:
        """Say what went wrong where the main thread cannot, and end the process. Any thread may call it."""
        self._end_heartbeat()
        code = report_failure(error, self._folder, self._events, None, with_traceback=False, stack=stack)
        self._folder.stop_request.unlink(missing_ok=True)
        os._exit(code)

    def _end_heartbeat(self) -> None:
        """End the heartbeats before the last event: a later one could be taken for the first of a new attempt."""
        if self._heartbeat_thread is not None:
            self._heartbeat_thread.close()

    def _go_on(self, built: BuiltJob, spec: TrainSpec, notices: Sequence[str]) -> None:
        """Restore the newest whole checkpoint, and say where the attempt starts."""
        trainer, store = built.trainer, built.store
        trainer.max_epoch = spec.epochs
        newest = store.latest()
        name, problems, before, unlisted = "", [], None, []
        if newest is not None:
            info, state, problems = newest
            trainer.load_state(state)
            store.remove_after(info.step)
            name, before = info.name, state.meta.get("arithmetic")
            unlisted = unlisted_checkpoint(self._folder, info, trainer)
        started = AttemptStarted(
            time=time.time(),
            attempt=1 + _attempts(self._folder),
            pid=os.getpid(),
            host=socket.gethostname(),
            backend=spec.backend,
            release=__version__,
            global_step=trainer.global_step,
            max_epoch=spec.epochs,
            steps_per_epoch=trainer.steps_per_epoch,
            checkpoint=name,
        )
        texts = [f"{problem} It goes on from {name}." for problem in problems]
        unseen = unseen_samples(spec, built.data)
        if unseen:
            _LOG.warning("%s", unseen)
            texts.append(unseen)
        said = [Message(time=time.time(), level="warning", text=text, step=trainer.global_step) for text in texts]
        told = [Message(time=time.time(), level="info", text=text, step=trainer.global_step) for text in notices]
        recorded = arithmetic_events(trainer, name, before, built.threads, os.environ.get(RESUMED_ON_VARIABLE, ""))
        # It was saved by the attempt before, which was killed before it wrote the event.
        self._events.write(*unlisted, started, *recorded, *told, *said)

    def _end(self) -> int:
        """Say that the attempt ended in order; return the exit code."""
        trainer = self.trainer
        if trainer is not None and trainer.outcome == "done":
            outcome, code, reason = "done", EXIT_DONE, trainer.finish_reason or "all epochs are done"
        else:
            asked = trainer.stop_reason if trainer is not None else None
            outcome, code, reason = "stopped", EXIT_STOPPED, asked or self._request.reason or ""
        held = None if trainer is None else divergence_of(trainer)
        if held is not None:
            reason = f"{reason or outcome}. {held.text}"
        self._events.write(
            AttemptEnded(
                time=time.time(),
                outcome=outcome,
                exit_code=code,
                reason=reason,
                global_step=trainer.global_step if trainer is not None else 0,
                epoch=trainer.epoch_num if trainer is not None else 0,
            )
        )
        return code


_RUNNERS: Final[dict[type[Any], tuple[str, Callable[[Any, JobFolder, EventWatch], str | None]]]] = {
    DatasetSpec: ("creating", make_dataset),
    EvaluateSpec: ("evaluating", evaluate_split),
    InferSpec: ("predicting", predict_many),
    EmbedSpec: ("embedding", embed_dataset),
}
"""Kind of spec → what executes a job that trains nothing."""


def _attempts(folder: JobFolder) -> int:
    count, offset = 0, 0
    while True:
        batch, after = read_events(folder.events, offset)
        count += sum(isinstance(event, AttemptStarted) for event in batch)
        if after == offset:
            return count
        offset = after


def report_failure(
    error: BaseException,
    folder: JobFolder,
    events: EventFile,
    trainer: Trainer | None,
    *,
    with_traceback: bool,
    stack: str = "",
) -> int:
    """Write down why an attempt failed; return the exit code of the error's family.

    Args:
        error: what was raised.
        folder: the job folder, whose log gets the traceback.
        events: get the error, its traceback, and the end of the attempt.
        trainer: where there was one already.
        with_traceback: whether standard error gets the traceback, too.
        stack: where the main thread was, of an error that was not raised there; empty for the error's own traceback.
    """
    known = error if isinstance(error, ZigguratError) else _unexpected(error)
    shape = known.as_dict() if known is error else {**known.as_dict(), "error": "unexpected"}
    text = stack or "".join(traceback.format_exception(error))
    _say(f"{text if with_traceback else ''}Error: {known}\n")
    _append(folder, text)
    step, epoch = (trainer.global_step, trainer.epoch_num) if trainer is not None else (0, 0)
    now = time.time()
    ended = AttemptEnded(
        time=now, outcome="failed", exit_code=known.exit_code, reason=str(known), global_step=step, epoch=epoch
    )
    try:
        told = divergence_of_error(shape, now, epoch)
        events.write(*filter(None, [told]), ErrorRaised(time=now, error=shape, traceback=text, step=step), ended)
    except StorageError as full:
        write_last_words(folder.last_words, ended)
        _say(f"Error: {full}\n")
    return known.exit_code


def _say(text: str) -> None:
    """Write to standard error, which may be a log on a full disk; that must not hide the error."""
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def _unexpected(error: BaseException) -> ZigguratError:
    """Return an error that is none of ours in the usual form, with the notes on which callback raised it."""
    short = memory_error(error)
    if short is not None:
        return short
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    notes = " ".join(getattr(error, "__notes__", ()))
    return ZigguratError(
        "The attempt ended by an error that Ziggurat does not know.",
        received=f"{said} ({notes.rstrip('.')})" if notes else said,
        advice="Its traceback is in log.txt of the job; mend the cause, then resume the job.",
    )


def _append(folder: JobFolder, text: str) -> None:
    """Append to the log; one that cannot be written hides no error."""
    try:
        with folder.log.open("a", encoding="utf-8") as log:
            log.write(text)
    except OSError:
        pass
