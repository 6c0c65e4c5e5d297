"""One attempt from start to end: build, resume from the newest checkpoint, train, report the outcome."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from ziggurat import __version__
from ziggurat.engine.callbacks.stopping import divergence_of
from ziggurat.engine.run_state import seed_global_random
from ziggurat.engine.trainer import Trainer
from ziggurat.entities import EXIT_DONE, EXIT_STOPPED
from ziggurat.entities.last_events import reserve_last_words, write_last_words
from ziggurat.errors import StorageError, ZigguratError
from ziggurat.events import AttemptEnded, AttemptStarted, EventFile, Message, read_events
from ziggurat.layout import JobFolder
from ziggurat.logs import set_up_logging
from ziggurat.settings import Settings, load_settings
from ziggurat.specs import DatasetSpec, EvaluateSpec, FileNetwork, InferSpec, Spec, TrainSpec, load_spec, save_spec
from ziggurat.worker.build import BuiltJob, build_job
from ziggurat.worker.build_limit import BuildLimit
from ziggurat.worker.dataset_job import make_dataset
from ziggurat.worker.evaluate_job import evaluate
from ziggurat.worker.event_watch import EventWatch, say_end, say_start
from ziggurat.worker.failures import report_failure
from ziggurat.worker.fetch_limits import keep_to_addresses
from ziggurat.worker.heartbeat_thread import HeartbeatThread, StepClock
from ziggurat.worker.infer_job import predict_many
from ziggurat.worker.parent_watch import ParentWatch
from ziggurat.worker.stopping import StopRequest
from ziggurat.zoo.backends import AUTO, with_backend

__all__ = ["run_attempt"]


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
            return report_failure(error, folder, events, attempt.trainer, with_traceback=settings.debug)
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
        self._heartbeat_thread: HeartbeatThread | None = None
        self._folder = folder
        self._request = request
        self._parent = parent
        self._events = events

    def execute(self, settings: Settings) -> int:
        """Do the job, and say how it ended; return the exit code."""
        spec = self._settled(load_spec(self._folder.spec))
        clock = StepClock()
        # The last beat comes before the last event, so that nobody takes it for the first of a new attempt.
        with closing(self._heartbeat(spec, clock)) as heartbeat:
            self._heartbeat_thread = heartbeat
            heartbeat.start()
            if not isinstance(spec, TrainSpec):
                return self._go_through_samples(spec, clock, settings)
            self._build_and_train(spec, clock, settings)
        return self._end()

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
            clock.phase = "stopping"
        if said is None:
            reason = self._request.reason or "asked to stop"
            return say_end(self._events, watch.done, "stopped", EXIT_STOPPED, reason)
        return say_end(self._events, watch.done, "done", EXIT_DONE, said)

    def _heartbeat(self, spec: Spec, clock: StepClock) -> HeartbeatThread:
        return HeartbeatThread(
            self._folder,
            clock,
            self._request,
            self._events,
            parent=self._parent,
            every_s=spec.heartbeat_s,
            hung_after_s=spec.hung_after_s,
        )

    def _build_and_train(self, spec: TrainSpec, clock: StepClock, settings: Settings) -> None:
        if self._request.reason is not None:
            return  # nothing was done, so there is nothing to save
        seed_global_random(spec.seed)
        network = spec.network.path if isinstance(spec.network, FileNetwork) else f"{spec.network.name}.py"
        limit = BuildLimit(settings.build_limit_s, network, self._end_at_once)
        built = build_job(spec, self._folder, clock, settings, limit)
        with closing(built.trainer.program):
            if self._request.reason is not None:
                return
            self.trainer = trainer = built.trainer
            self._go_on(built, spec)
            self._request.listen(trainer.request_stop, trainer.break_off_waiting)
            trainer.train(spec.epochs)

    def _end_at_once(self, error: ZigguratError, stack: str) -> None:
        """Say what went wrong where the main thread cannot, and end the process. Any thread may call it."""
        if self._heartbeat_thread is not None:
            self._heartbeat_thread.close()  # its last beat comes before the last event
        code = report_failure(error, self._folder, self._events, None, with_traceback=False, stack=stack)
        self._folder.stop_request.unlink(missing_ok=True)
        sys.stderr.flush()
        os._exit(code)

    def _go_on(self, built: BuiltJob, spec: TrainSpec) -> None:
        """Restore the newest whole checkpoint, and say where the attempt starts."""
        trainer, store = built.trainer, built.store
        trainer.max_epoch = spec.epochs
        newest = store.latest()
        name, problems = "", []
        if newest is not None:
            info, state, problems = newest
            trainer.load_state(state)
            store.remove_after(info.step)
            name = info.name
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
        said = [Message(time=time.time(), level="warning", text=text, step=trainer.global_step) for text in texts]
        self._events.write(started, *said)

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
    EvaluateSpec: ("evaluating", evaluate),
    InferSpec: ("predicting", predict_many),
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
