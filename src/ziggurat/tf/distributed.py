"""Data parallel training over processes: every process trains one tower on batches of its own."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, Literal

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import Callback as EngineCallback
from ziggurat.engine.callback import innermost
from ziggurat.engine.run_state import RunState
from ziggurat.errors import ConfigurationError, MissingDependencyError, TrainingError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.gloo import PEER_LOST, GlooGroup
from ziggurat.tf.inputs.base import InputSource
from ziggurat.tf.models.tower_mean import PROCESS_MEAN, ProcessMean
from ziggurat.tf.processes import CollectiveGroup, ProcessGroup, SingleProcess, environment_place
from ziggurat.tf.savers import ModelSaver
from ziggurat.tf.sessions import NewSessionCreator, get_default_sess_config
from ziggurat.tf.tower import TowerFunc, TrainTowerContext
from ziggurat.tf.trainers import SingleCostTrainer

__all__ = ["DistributedTrainer", "HorovodTrainer"]

_ENGINES: Final = ("collectives", "gloo", "horovod")


class DistributedTrainer(SingleCostTrainer):
    """Trains one tower in each process, with gradients averaged over all of them.

    Every process builds the same graph and takes its own batches, so the total batch is the batch times the processes.
    An epoch has the steps of the process with the fewest. Variables begin with the values of process 0; hyperparameters
    have its values again at the beginning of each epoch. A stop that is asked for in one process, or a callback that
    finds the training complete, ends all of them after the same step; a process that is killed ends the others with an
    error.

    Args:
        average: whether gradients are averaged; otherwise they are added.
        engine: ``collectives`` of TensorFlow, ``gloo`` of PyTorch (where that is installed), or ``horovod``.
        compression: of Horovod's; None for none.

    Raises:
        ConfigurationError: for an unknown engine, or where the variables of the launcher do not fit together.
    """

    may_use_own_thread: ClassVar[bool] = False  # a sum waits for other processes

    def __init__(
        self,
        average: bool = True,
        *,
        engine: Literal["collectives", "gloo", "horovod"] = "collectives",
        compression: Any = None,
    ) -> None:
        super().__init__()
        if engine not in _ENGINES:
            raise ConfigurationError(
                f"`engine` is {engine}, not one of {', '.join(_ENGINES)}.", advice="`collectives` needs nothing else."
            )
        self.average = average
        self.group = _group(engine, compression)
        self.is_chief = self.group.place.rank == 0
        self._stops: Any = None
        self.asked_to_stop: str | None = None
        """Why this process was asked to stop, or finds the training complete."""
        self.is_agreed = False
        """Whether all processes leave after the step under way."""
        self._is_complete = False
        self._epochs = (1, 0)

    def initialize(self, session_creator: Any, session_init: Any) -> None:
        """Take how the session is made; it must reach the other processes, so only its configuration is used."""
        config = getattr(session_creator, "config", None) or get_default_sess_config()
        if config.gpu_options.visible_device_list == "" and self.group.place.size > 1:
            config.gpu_options.visible_device_list = str(self.group.place.local_rank)
        super().initialize(self.group.session_creator(config), session_init)

    def _setup_graph(
        self, source: InputSource, get_cost_fn: TowerFunc, get_opt_fn: Callable[[], Any]
    ) -> Sequence[EngineCallback]:
        tf.add_to_collection(PROCESS_MEAN, ProcessMean(self._means, self.group.place.size))
        with TrainTowerContext(""):
            pairs = self.get_grads(source, get_cost_fn, get_opt_fn)
            asked = tf.get_variable(
                "ziggurat/stop_asked", (), initializer=tf.zeros_initializer(), trainable=False, collections=[]
            )
            gradients = [tf.convert_to_tensor(gradient) for gradient, _ in pairs]
            # With the gradients, whether some process was asked to stop: all of them leave after the same step.
            *reduced, stops = self.group.reduce([*gradients, asked.read_value()], "gradients", average=self.average)
            self._stops = tf.identity(stops, name="ziggurat/stops")
            shaped = [(gradient, variable) for gradient, (_, variable) in zip(reduced, pairs, strict=True)]
            self.train_op = get_opt_fn().apply_gradients(shaped, name="train_op")
        return [_StopTogether(self, asked)]

    def load_state(self, state: RunState) -> None:
        """Take back a run state; the next ``train`` goes on from there.

        Raises:
            CheckpointError: where the state is of another network or another epoch length.
        """
        super().load_state(state)
        # What processes do not share, such as averages of batch normalization, is again that of this one.
        self.program.assign(state.arrays)

    def register_callback(self, cb: EngineCallback | Sequence[EngineCallback]) -> bool:
        """Add a callback, before the training; return whether it is used in this process.

        A ``ModelSaver`` saves the part of this process, where the process has a folder.
        """
        is_saver = isinstance(cb, EngineCallback) and isinstance(innermost(cb), ModelSaver)
        if is_saver and not self.is_chief and logger.get_logger_dir() is None:
            return False
        return super().register_callback(cb)

    def _means(self, tensors: Sequence[Any], name: str) -> list[Any]:
        return self.group.reduce(tensors, name, average=True)

    def main_loop(self, steps_per_epoch: int | None, starting_epoch: int, max_epoch: int) -> None:
        """Run the loop; ``train`` does it.

        Raises:
            ConfigurationError: where the processes do not begin and end alike.
        """
        self._epochs = (starting_epoch, max_epoch)
        try:
            super().main_loop(steps_per_epoch, starting_epoch, max_epoch)
        except tf.errors.OpError as error:  # of a sum outside of the steps: first values, rates of an epoch
            cause = self.explained(error)
            if cause is error:
                raise
            raise cause from error

    def _length_of_epoch(self, steps_per_epoch: int | None) -> int:
        """Return the steps that every process can take in an epoch, once all of them begin and end alike."""
        own = super()._length_of_epoch(steps_per_epoch)
        resumed = 0 if self._resume_from is None else int(self._resume_from.meta["global_step"])
        said = self.group.told_by_all([resumed, *self._epochs, own])
        if any(each[:3] != said[0][:3] for each in said):
            raise ConfigurationError(
                "All processes of a training begin at the same step and end with the same epoch.",
                received="; ".join(
                    f"rank {rank} begins at step {step}, epochs {first} to {last}"
                    for rank, (step, first, last, _) in enumerate(said)
                ),
                advice="Start them with the same arguments. To resume, give every process the folder of the training "
                "by `logger.set_logger_dir`.",
            )
        self.group.watch(self._close_session)
        fewest = min(each[3] for each in said)
        if fewest < own:
            logger.warning("An epoch has %d steps, and not %d: another process has fewer batches.", fewest, own)
        return fewest

    def _close_session(self) -> None:
        """Cancel what waits in the session; before there is one, the sum of the first values fails, or is ended."""
        if hasattr(self, "program"):
            self.program.close()

    def finish(self, reason: str) -> None:
        """Declare the training complete: all processes end, within two steps."""
        if self.group.place.size == 1:
            super().finish(reason)
        else:
            self._ask(reason, is_complete=True)

    def end_of_input(self, reason: str) -> None:
        """Take note that this process has no further batch: it ends, and the others miss it."""
        super().finish(reason)

    def request_stop(self, reason: str = "asked to stop") -> None:
        """Ask for an end of all processes, within two steps."""
        if self.group.place.size == 1:
            super().request_stop(reason)
        else:
            self._ask(reason, is_complete=False)

    def _ask(self, reason: str, *, is_complete: bool) -> None:
        if self.asked_to_stop is None:
            self.asked_to_stop, self._is_complete = reason, is_complete

    def stop_here(self, reason: str) -> None:
        """Stop this process behind the step under way: all processes do so."""
        self.is_agreed = True
        if self._is_complete:
            super().finish(self.asked_to_stop or reason)
        else:
            super().request_stop(self.asked_to_stop or reason)

    def explained(self, error: Exception) -> Exception:
        """Return what an error of the sums over processes means."""
        is_lost = isinstance(error, tf.errors.UnavailableError | tf.errors.AbortedError) or PEER_LOST in str(error)
        if not is_lost and self.group.lost is None:
            return error
        return self.group.peer_lost(str(error).splitlines()[0])


class HorovodTrainer(DistributedTrainer):
    """Tensorpack's name of ``DistributedTrainer``: by Horovod where it is installed, else by collectives.

    Args:
        average: whether gradients are averaged.
        compression: of Horovod's; None for none.
    """

    def __init__(self, average: bool = True, compression: Any = None) -> None:
        has_horovod = importlib.util.find_spec("horovod") is not None
        if compression is not None and not has_horovod:
            raise MissingDependencyError("horovod", extra="", purpose="compressed gradients")
        super().__init__(average, engine="horovod" if has_horovod else "collectives", compression=compression)


class _StopTogether(Callback):
    """Gives all processes the variables of the first, and lets them stop after the same step."""

    chief_only = False

    def __init__(self, owner: DistributedTrainer, asked: Any) -> None:
        self._owner = owner
        self._group = owner.group
        self._asked = asked
        self._is_told = False

    def _setup_graph(self) -> None:
        program = self.trainer.program
        with self.graph.as_default():
            shared = [*tf.global_variables(), *tf.local_variables()]
            program.run_after_init(self._asked.initializer)
            program.run_after_init(self._group.taken_from_first(shared, "ziggurat/broadcast"))
            rates = program.hyperparameters()
            numbers = [each for each in shared if each.op.name in rates]
            self._share = self._group.taken_from_first(numbers, "ziggurat/rates")
            self._tell = self._asked.assign(1.0, read_value=False)

    def before_epoch(self) -> None:
        self.trainer.sess.run(self._share)  # some callbacks that set them are in the first process alone

    def after_train(self) -> None:
        trainer = self.trainer
        is_done = not trainer.in_epoch and trainer.epoch_num >= trainer.max_epoch
        self._group.leave(in_order=self._group.lost is None and (is_done or self._owner.is_agreed))

    def declares(self) -> Sequence[str]:
        return ("ziggurat/stops:0",) if self._group.place.size > 1 else ()

    def before_run(self) -> Sequence[str]:
        if self._owner.asked_to_stop is not None and not self._is_told:
            self._is_told = True
            self.trainer.sess.run(self._tell)
        return self.declares()

    def after_run(self, values: Any) -> None:
        if values.get("ziggurat/stops:0", 0.0) > 0:
            self._owner.stop_here("another process was asked to stop")


class _HorovodGroup(ProcessGroup):
    """Sums by Horovod."""

    def __init__(self, compression: Any) -> None:
        hvd: Any = importlib.import_module("horovod.tensorflow")
        hvd.init()
        place = environment_place()
        super().__init__(type(place)(hvd.rank(), hvd.size(), hvd.local_rank(), place.address, place.port))
        self._hvd = hvd
        self._options = {} if compression is None else {"compression": compression}

    def session_creator(self, config: Any) -> Any:
        return NewSessionCreator(config=config)

    def summed(self, buffer: Any, name: str) -> Any:
        return self._hvd.allreduce(buffer, op=self._hvd.Sum, name=name.replace("/", "_"), **self._options)


def _group(engine: str, compression: Any) -> ProcessGroup:
    if engine == "horovod":
        if importlib.util.find_spec("horovod") is None:
            raise MissingDependencyError("horovod", extra="", purpose="training over processes by Horovod")
        return _HorovodGroup(compression)
    place = environment_place()
    if place.size == 1:
        return SingleProcess(place)
    try:
        return GlooGroup(place) if engine == "gloo" else CollectiveGroup(place)
    except (OSError, RuntimeError) as error:
        raise TrainingError(
            "Processes of a training reach each other.",
            received=str(error).splitlines()[0],
            advice="Check MASTER_ADDR and MASTER_PORT, and that the port above it is free.",
        ) from error
