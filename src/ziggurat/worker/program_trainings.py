"""The part that a job takes in the trainings of the program that it runs: heartbeat, events, checkpoints, requests."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ziggurat.engine.callback import Callback, bind_folder, innermost
from ziggurat.engine.callbacks.learning_rate import HumanHyperParamSetter
from ziggurat.engine.callbacks.progress import EstimatedTimeLeft
from ziggurat.engine.callbacks.saving import ModelSaver, has_model_saver
from ziggurat.engine.callbacks.summaries import LogScalars, MovingAverageSummary
from ziggurat.engine.callbacks.timing import StepTimes, ThroughputTracker
from ziggurat.engine.callbacks.validation import InferenceRunner
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.monitors.json_writers import EventWriter, JSONWriter
from ziggurat.engine.monitors.tensorboard import TFEventWriter
from ziggurat.engine.run_state import RunState
from ziggurat.engine.trainer import Trainer
from ziggurat.entities import EXIT_STOPPED
from ziggurat.errors import CheckpointError
from ziggurat.events import EventFile, Message, Progress
from ziggurat.layout import JobFolder
from ziggurat.worker.arithmetic_events import arithmetic_events
from ziggurat.worker.heartbeat_thread import StepClock
from ziggurat.worker.stopping import StopRequest

__all__ = ["JobTrainings", "ProgramStopped"]

_RATE: Final = "learning_rate"
_SHOWN: Final = ("cost", "accuracy", "error")
_POINTS: Final = 8
_SAVE_EVERY_MINUTES: Final = 10.0
"""Besides after each epoch: of a long epoch, no more than that is lost by a kill."""

_MOST_EPOCHS: Final = 99_999
"""So many epochs, or more, stand for a training without an end."""


class ProgramStopped(SystemExit):
    """Ends a program after a request to stop: what follows on its training must not take it for complete."""

    def __init__(self) -> None:
        super().__init__(EXIT_STOPPED)


class JobTrainings:
    """Takes part in the trainings of a program, as ``ziggurat.engine.host.TrainingHost``.

    The first training of the program is the one of the job: it has the curves and the checkpoints, and goes on from
    the newest of them. Further ones beat and stop like it, and are done again by each attempt.

    Args:
        folder: the job folder.
        events: of the job, for what is said outside of a training.
        clock: what the heartbeat reads.
        request: to stop.
        found: called with the trainer of the job, once it is there.

    Raises:
        CheckpointError: where the job has checkpoints, and none of them loads.
    """

    def __init__(
        self,
        folder: JobFolder,
        events: EventFile,
        clock: StepClock,
        request: StopRequest,
        found: Callable[[Trainer], None],
    ) -> None:
        self.trainer: Trainer | None = None
        """That of the job; None before the program has set one up."""
        self._folder = folder
        self._events = events
        self._clock = clock
        self._request = request
        self._found = found
        self._store = CheckpointStore(folder.checkpoints)
        self._newest: tuple[CheckpointInfo, RunState, list[CheckpointError]] | None = self._store.latest()
        self._is_interrupted = False
        self._is_second_said = False

    @property
    def checkpoint(self) -> CheckpointInfo | None:
        """The checkpoint that the job goes on from; None for none."""
        return None if self._newest is None else self._newest[0]

    def problems(self) -> list[Message]:
        """Return what is to be said of newer checkpoints that do not load."""
        if self._newest is None:
            return []
        info, _, errors = self._newest
        texts = [f"{each} It goes on from {info.name}." for each in errors]
        return [Message(time=time.time(), level="warning", text=text, step=info.step) for text in texts]

    def listen(self) -> None:
        """Let a request to stop end the program while it trains nothing."""
        self._clock.phase, self._clock.step_began = "running", 0.0  # of its own work no one knows how long it may take
        if self._clock.clocked is not None:
            self._clock.clocked.progressed_at = 0.0
        self._request.listen(lambda _reason: self._interrupt(), _stop)

    def close(self) -> None:
        """Leave requests alone: the program has ended."""
        self._request.listen(lambda _reason: None, lambda: None)

    # ---- the host

    def attach(self, trainer: Trainer) -> None:
        """Add what a job needs to the first trainer, and the heartbeat to any other one."""
        if self.trainer is not None:
            trainer.add(first=[self._clock])
            self._say_second()
            return
        self.trainer = trainer
        bind_folder(trainer.callbacks, self._folder)
        trainer.add(first=[self._clock], last=self._callbacks(trainer), monitors=self._monitors(trainer))
        bind_folder(trainer.callbacks, self._folder)
        self._found(trainer)

    def begin(self, trainer: Trainer) -> None:
        """Go on from the newest checkpoint, say what is known now, and pass requests to stop on."""
        if trainer is self.trainer:
            newest = self._newest
            self._go_on(trainer)
            name, before = ("", None) if newest is None else (newest[0].name, newest[1].meta.get("arithmetic"))
            self._events.write(*arithmetic_events(trainer, name, before))
            self._say_length(trainer)
        self._request.listen(trainer.request_stop, trainer.break_off_waiting)

    def end(self, trainer: Trainer) -> None:
        """Leave the program where the training was stopped; otherwise let it go on.

        Raises:
            ProgramStopped: where a stop was requested before the training was complete.
        """
        is_left = self._request.reason is not None and trainer.outcome == "stopped"
        self._is_interrupted = self._is_interrupted or is_left
        self.listen()
        if is_left:
            raise ProgramStopped

    # ---- within

    def _interrupt(self) -> None:
        if not self._is_interrupted:  # a second time, it would end what the program does to end in order
            self._is_interrupted = True
            self._request.insist()

    def _go_on(self, trainer: Trainer) -> None:
        newest, self._newest = self._newest, None
        if newest is None:
            return
        info, state, _ = newest
        if trainer.global_step != info.step or not info.step:  # the program may have resumed by itself
            trainer.load_state(state)
        self._store.remove_after(info.step)

    def _say_length(self, trainer: Trainer) -> None:
        if trainer.max_epoch >= _MOST_EPOCHS:
            return
        trainer.monitors.put_event(
            Progress(
                time=trainer.monitors.now(),
                epoch=trainer.epoch_num,
                global_step=trainer.global_step,
                total_steps=trainer.max_epoch * trainer.steps_per_epoch,
                max_epoch=trainer.max_epoch,
            )
        )

    def _say_second(self) -> None:
        if self._is_second_said:
            return
        self._is_second_said = True
        text = (
            "The program trains more than once. Curves and checkpoints of the job are those of its first training; "
            "the others begin anew in each attempt."
        )
        self._events.write(Message(time=time.time(), level="warning", text=text))

    def _monitors(self, trainer: Trainer) -> list[Monitor]:
        own = list(trainer.monitors)
        added: list[Monitor] = []
        job = self._folder.path.absolute()
        if not any(isinstance(each, EventWriter) and _path(each) == job for each in own):
            added.append(EventWriter(self._folder.path))
        if not any(isinstance(each, TFEventWriter) for each in own):
            added.append(TFEventWriter())
        if not any(isinstance(each, JSONWriter) for each in own):
            added.append(JSONWriter())
        return added

    def _callbacks(self, trainer: Trainer) -> list[Callback]:
        own = [innermost(each) for each in trainer.callbacks]

        def has(*kinds: type[Callback]) -> bool:
            return any(isinstance(each, kinds) for each in own)

        added: list[Callback] = []
        if not any(isinstance(each, HumanHyperParamSetter) and each.param.readable_name == _RATE for each in own):
            added.append(RateByHand(trainer.steps_per_epoch))
        if not has(LogScalars, MovingAverageSummary, InferenceRunner):
            known = trainer.program.names()
            added.append(LogScalars([each for each in _SHOWN if each in known], per_epoch=_POINTS, mean=True))
        added.append(RateCurve())
        if not has_model_saver(trainer, self._folder.checkpoints):
            added.append(ModelSaver(self._store, every_minutes=_SAVE_EVERY_MINUTES))
        made: list[Callback] = [ThroughputTracker(), StepTimes(), EstimatedTimeLeft()]
        return added + [each for each in made if not has(type(each))]


class RateByHand(HumanHyperParamSetter):
    """Sets the learning rate that people give on the page of the job, where the program has one.

    Args:
        steps_per_epoch: the file is read ten times in so many steps.
    """

    name = "RateByHand"

    def __init__(self, steps_per_epoch: int) -> None:
        super().__init__(_RATE, every_k_steps=max(1, steps_per_epoch // 10))
        self._is_there = False

    def setup_graph(self) -> None:
        """Wait: what the program has is known once it is set up."""

    def before_train(self) -> None:
        """Find the learning rate, and take the value that holds."""
        self._is_there = _RATE in self.trainer.program.hyperparameters()
        if self._is_there:
            self.param.bind(self.trainer)
            super().before_train()

    def trigger_step(self) -> None:
        """Read the file where the step is due."""
        if self._is_there:
            super().trigger_step()

    def trigger(self) -> None:
        """Read the file."""
        if self._is_there:
            super().trigger()

    def state(self) -> Any:
        """Return the value that holds; None where the program has no learning rate."""
        return super().state() if self._is_there else None


class RateCurve(Callback):
    """Puts the learning rate of a program that has one, at the start and after each epoch, unless the program does."""

    name = "RateCurve"

    def before_train(self) -> None:
        """Put the rate of the first step; that of a resumed training is on the curve."""
        if not self.global_step:
            self.trigger()

    def trigger(self) -> None:
        """Put the rate of now."""
        rate = self.trainer.program.hyperparameters().get(_RATE)
        monitors = self.trainer.monitors
        is_put = _RATE in monitors.latest() and monitors.get_history(_RATE)[-1][0] == self.global_step
        if rate is not None and not is_put:
            self.trainer.put(_RATE, rate)


def _path(writer: EventWriter) -> Path | None:
    return None if writer.folder is None else writer.folder.path.absolute()


def _stop() -> None:
    raise ProgramStopped
