"""Configuration of a training in one object, and its start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ziggurat.engine.callback import Callback
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.run_state import RunState
from ziggurat.errors import ConfigurationError
from ziggurat.tf import logger
from ziggurat.tf.inputs.base import FeedInput, InputSource
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.inputs.staging import staged_for
from ziggurat.tf.model import ModelDescBase
from ziggurat.tf.process_states import newest_of_all
from ziggurat.tf.processes import environment_place
from ziggurat.tf.sessions import NewSessionCreator, SessionInit
from ziggurat.tf.trainers import SimpleTrainer, SingleCostTrainer

__all__ = ["AutoResumeTrainConfig", "TrainConfig", "launch_train_with_config"]


class TrainConfig:
    """What a training is made of.

    Args:
        dataflow: batches of a data flow.
        data: an input source in its place.
        model: inputs, tower function and optimizer.
        callbacks: the own callbacks, in the order in which their hooks are called.
        extra_callbacks: callbacks behind them, in place of ``DEFAULT_CALLBACKS()``.
        monitors: in place of ``DEFAULT_MONITORS()``.
        session_creator: how the session is made; None for ``NewSessionCreator(config=session_config)``.
        session_config: a ``tf.ConfigProto``.
        session_init: gives variables their values.
        starting_epoch: number of the first epoch, from 1.
        steps_per_epoch: steps in an epoch; the batches of the input where it is None.
        max_epoch: number of the last epoch.

    Raises:
        ConfigurationError: where neither or both of ``dataflow`` and ``data`` are given, or both of
            ``session_creator`` and ``session_config``.
    """

    def __init__(
        self,
        dataflow: Iterable[Any] | None = None,
        data: InputSource | None = None,
        model: ModelDescBase | None = None,
        callbacks: Sequence[Callback] | None = None,
        extra_callbacks: Sequence[Callback] | None = None,
        monitors: Sequence[Monitor] | None = None,
        session_creator: Any = None,
        session_config: Any = None,
        session_init: SessionInit | None = None,
        starting_epoch: int = 1,
        steps_per_epoch: int | None = None,
        max_epoch: int = 99999,
        **others: Any,
    ) -> None:
        if (dataflow is None) == (data is None):
            raise ConfigurationError(
                "Both `dataflow` and `data` are given: a training has one."
                if data is not None
                else "Neither `dataflow` nor `data` is given.",
                advice="Give a data flow, or an input source as `data`.",
            )
        if session_creator is not None and session_config is not None:
            raise ConfigurationError(
                "Both `session_creator` and `session_config` are given, and a session is made by one.",
                advice="Give the creator the configuration.",
            )
        if isinstance(dataflow, InputSource):
            dataflow, data = None, dataflow
        self.dataflow = dataflow
        self.data = data
        self.model = model
        self.callbacks = list(callbacks or ())
        self.extra_callbacks = None if extra_callbacks is None else list(extra_callbacks)
        self.monitors = None if monitors is None else list(monitors)
        self.session_creator = session_creator or NewSessionCreator(config=session_config)
        self.session_init = session_init
        self.starting_epoch = int(starting_epoch)
        self.steps_per_epoch = steps_per_epoch
        self.max_epoch = int(max_epoch)
        self.run_state: RunState | None = None
        """State that the training goes on from."""
        # Of trainers that were started with the configuration alone, before 0.8.5.
        self.nr_tower = others.pop("nr_tower", 1)
        self.tower = others.pop("tower", None)
        if others:
            raise ConfigurationError(
                f"`TrainConfig` has no argument {', '.join(sorted(others))}.",
                advice="See its documentation for the names.",
            )


class AutoResumeTrainConfig(TrainConfig):
    """A training that goes on where the one in the logger's folder ended: weights, optimizer, callbacks, data position.

    Args:
        always_resume: go on even where ``session_init`` or ``starting_epoch`` is given.
        arguments: those of ``TrainConfig``.
    """

    def __init__(self, always_resume: bool = True, **arguments: Any) -> None:
        super().__init__(**arguments)
        chosen = self.session_init is not None or self.starting_epoch != 1
        if chosen and not always_resume:
            return
        folder = logger.get_logger_dir()
        found = None if folder is None else newest_run_state(Path(folder))
        if found is None:
            return
        self.run_state = found
        self.session_init = None
        logger.info("The training goes on after step %d.", found.meta["global_step"])


def newest_run_state(folder: Path) -> RunState | None:
    """Return the newest state that a folder holds for this process; None where it holds none.

    Of a training over processes, it is the newest that all of them have saved.
    """
    return newest_of_all(folder, environment_place())


def launch_train_with_config(config: TrainConfig, trainer: SingleCostTrainer) -> None:
    """Set a trainer up and train.

    A data flow is fed directly to a ``SimpleTrainer`` and by a queue to any other. Over several GPUs, the batches of a
    queue are staged on them.

    Args:
        config: what it is made of.
        trainer: how it is trained.
    """
    model = config.model
    if model is None:
        raise ConfigurationError("`model` is None, and a training has one.", advice="Give `model=`.")
    source = config.data
    if source is None:
        assert config.dataflow is not None
        source = FeedInput(config.dataflow) if type(trainer) is SimpleTrainer else QueueInput(config.dataflow)
    source = staged_for(source, getattr(trainer, "devices", ()))
    tower_function = getattr(model, "build_graph_get_cost", model.build_graph)
    get_optimizer: Any = getattr(model, "get_optimizer", None)
    trainer.setup_graph(model.get_input_signature(), source, tower_function, get_optimizer)
    trainer.resume_from(config.run_state)
    trainer.train_with_defaults(
        callbacks=config.callbacks,
        monitors=config.monitors,
        extra_callbacks=config.extra_callbacks,
        session_creator=config.session_creator,
        session_init=config.session_init,
        steps_per_epoch=config.steps_per_epoch,
        starting_epoch=config.starting_epoch,
        max_epoch=config.max_epoch,
    )
