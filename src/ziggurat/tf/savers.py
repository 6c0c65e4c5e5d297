"""Savers of trainings on graphs: the run state for an exact resume, and TensorFlow's own checkpoints beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.engine.callback import innermost
from ziggurat.engine.callbacks.saving import MinSaver as EngineMinSaver
from ziggurat.engine.callbacks.saving import ModelSaver as EngineModelSaver
from ziggurat.engine.checkpoints import CheckpointInfo, CheckpointStore
from ziggurat.errors import ConfigurationError, StorageError
from ziggurat.layout import JobFolder, checkpoint_step
from ziggurat.tf import logger
from ziggurat.tf.process_states import PartStore
from ziggurat.tf.tower import MOVING_SUMMARIES
from ziggurat.tf.varmanip import save_checkpoint_vars

__all__ = ["MaxSaver", "MinSaver", "ModelSaver"]

_RUN_STATES: Final = 2
"""Run states that are kept beside those with a name: the newest, and one for the case that it is damaged."""


class _TensorFlowFolder:
    """The folder of TensorFlow's checkpoints: that of the training, or a given one."""

    checkpoint_dir: Path | None
    _store: CheckpointStore | None

    def _take_folder(self, folder: JobFolder) -> None:
        self.checkpoint_dir = self.checkpoint_dir or folder.path

    def _take_given(self, checkpoint_dir: str | Path | None) -> None:
        self.checkpoint_dir = None if checkpoint_dir is None else Path(checkpoint_dir)

    def _use_own_folder(self) -> None:
        """Keep the run state below the given folder where the training has none."""
        if self._store is None and self.checkpoint_dir is not None:
            self._store = CheckpointStore(JobFolder(self.checkpoint_dir).checkpoints)


class ModelSaver(EngineModelSaver, _TensorFlowFolder):
    """Saves the training at the end of each epoch, after the last one, and when it is stopped.

    Two sets of files: the run state in ``checkpoints/`` of the training's folder, from which
    ``AutoResumeTrainConfig`` goes on bit for bit; and a TensorFlow checkpoint ``model-<global_step>`` with
    ``checkpoint`` and, once a training, ``graph-<time>.meta``. The run state is written first; a checkpoint that a kill
    has prevented is written when the training goes on.

    Of a training over processes, the first saves all of this, and the others their own part of the run state, below
    ``processes/``: position in the data, random numbers, callbacks. Saves by ``every_minutes`` have no such parts,
    since the processes have clocks of their own.

    Args:
        max_to_keep: TensorFlow checkpoints to keep, the newest; 0 or None for all.
        keep_checkpoint_every_n_hours: also keep one for each time of this length.
        checkpoint_dir: another folder for TensorFlow's files.
        var_collections: collections with the variables to save; all global variables where it is None.
        periods: ``every_k_epochs``, ``every_k_steps``, ``every_minutes`` and ``save_on_stop`` of
            ``ziggurat.callbacks.ModelSaver``.

    Raises:
        UsageError: from the training, where there is no folder.
        ConfigurationError: from the training, where the collections are empty.
        StorageError: from the training, where the disk is full; the last checkpoint is whole.
    """

    chief_only: ClassVar[bool] = False

    def __init__(
        self,
        max_to_keep: int | None = 10,
        keep_checkpoint_every_n_hours: float | None = 0.5,
        checkpoint_dir: str | Path | None = None,
        var_collections: str | Sequence[str] | None = None,
        **periods: Any,
    ) -> None:
        super().__init__(None, _RUN_STATES, None, **periods)
        self._take_given(checkpoint_dir)
        self._of_saver = {
            "max_to_keep": max_to_keep,
            "keep_checkpoint_every_n_hours": keep_checkpoint_every_n_hours or 10_000.0,
        }
        wanted = [var_collections] if isinstance(var_collections, str) else var_collections
        self._collections = list(wanted or [tf.GraphKeys.GLOBAL_VARIABLES])
        self._is_resumed = False
        self.saver: Any = None
        """The ``tf.train.Saver``; there from ``before_train`` on."""

    def use_folder(self, folder: JobFolder) -> None:
        """Save into the folder of the training."""
        super().use_folder(folder)
        self._take_folder(folder)

    def setup_graph(self) -> None:
        """Find the folder; let the operations that save be made."""
        trainer: Any = self.trainer
        if not trainer.is_chief:
            self._store = PartStore(Path(logger.get_logger_dir() or "."), trainer.group.place.rank, self._weights)
            super().setup_graph()
            return
        self._use_own_folder()
        super().setup_graph()
        self.checkpoint_dir = self.checkpoint_dir or self.desk.store.folder.parent
        # Later callbacks may make variables, too.
        trainer.program.when_complete(self._make_saver)

    def _weights(self) -> set[str]:
        trainer: Any = self.trainer
        return {each.op.name for each in trainer.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)}

    def _make_saver(self) -> None:
        trainer: Any = self.trainer
        found = [each for key in self._collections for each in trainer.graph.get_collection(key)]
        if not found:
            raise ConfigurationError(
                f"There are no variables for a checkpoint in {', '.join(self._collections)}.",
                advice="Name other collections by `var_collections`.",
            )
        with tf.device("/cpu:0"):
            self.saver = tf.train.Saver(list(dict.fromkeys(found)), save_relative_paths=True, **self._of_saver)
            tf.add_to_collection(tf.GraphKeys.SAVERS, self.saver)

    def before_train(self) -> None:
        """Write the metagraph; of a resumed training, the checkpoint that a kill has prevented."""
        super().before_train()
        trainer: Any = self.trainer
        if not trainer.is_chief:
            return
        folder = self._folder()
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        if self._is_resumed:
            self._recover(folder)
        stamp = datetime.now().strftime("%m%d-%H%M%S")
        # What no plain TensorFlow could read again stays out.
        keys = [key for key in trainer.graph.get_all_collection_keys() if key != MOVING_SUMMARIES]
        with _disk_errors(folder), trainer.graph.as_default():
            self.saver.export_meta_graph(str(folder / f"graph-{stamp}.meta"), collection_list=keys)

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave."""
        super().load_state(state)
        self._is_resumed = True

    def _folder(self) -> Path:
        assert self.checkpoint_dir is not None
        return self.checkpoint_dir

    def _after_save(self, info: CheckpointInfo) -> None:
        super()._after_save(info)
        trainer: Any = self.trainer
        if trainer.is_chief:
            self._write()

    def _write(self) -> None:
        trainer: Any = self.trainer
        folder = self._folder()
        with _disk_errors(folder):
            self.saver.save(
                trainer.sess, str(folder / "model"), global_step=trainer.global_step, write_meta_graph=False
            )

    def _recover(self, folder: Path) -> None:
        """Let the saver know of the checkpoints of earlier attempts, so that it removes them by its rules."""
        known = tf.train.get_checkpoint_state(str(folder))
        paths = [] if known is None else known.all_model_checkpoint_paths
        self.saver.recover_last_checkpoints([path for path in paths if self._is_past(Path(path).name)])
        newest = self.desk.store.list()
        is_at_checkpoint = bool(newest) and newest[-1].step == self.global_step
        if is_at_checkpoint and not tf.train.checkpoint_exists(str(folder / f"model-{self.global_step}")):
            self._write()

    def _is_past(self, name: str) -> bool:
        step = name.rpartition("-")[2]
        return step.isdecimal() and int(step) <= self.global_step


class MinSaver(EngineMinSaver, _TensorFlowFolder):
    """Keeps the checkpoint with the smallest value of a scalar, as ``min-<monitor_stat>`` in TensorFlow's files.

    The run state of that moment stays in ``checkpoints/``, under the same name. Its place in the list does not matter:
    it judges once all callbacks have put their numbers, and a value counts only at the step that is saved. The best
    value is remembered when the training is resumed.

    Args:
        monitor_stat: the scalar.
        reverse: keep the largest instead, as ``max-<monitor_stat>``.
        filename: another name.
        checkpoint_dir: another folder for TensorFlow's files.
    """

    def __init__(
        self,
        monitor_stat: str,
        reverse: bool = False,
        filename: str | None = None,
        checkpoint_dir: str | Path | None = None,
    ) -> None:
        super().__init__(monitor_stat, reverse, filename)
        self._take_given(checkpoint_dir)
        self._file_name = (filename or f"{'max' if reverse else 'min'}-{monitor_stat}").replace("/", "-")

    def use_folder(self, folder: JobFolder) -> None:
        """Save into the folder of the training."""
        super().use_folder(folder)
        self._take_folder(folder)

    def setup_graph(self) -> None:
        """Find the saver whose files it copies."""
        self._use_own_folder()
        super().setup_graph()
        self.checkpoint_dir = self.checkpoint_dir or self.desk.store.folder.parent

    def before_train(self) -> None:
        """Give the names again, and copy again: a kill may have come between a save and its copy."""
        super().before_train()
        if self._ranks and self._step_of_copy() != checkpoint_step(self._ranks[0][1]):
            self._copy()

    def _after_save(self, info: CheckpointInfo) -> None:
        super()._after_save(info)
        # Once `ModelSaver` has written what is copied, wherever it stands.
        self.trainer.at_boundary(self._copy)

    def _copy(self) -> None:
        name = self._ranks[0][1]
        folder = self.checkpoint_dir
        assert folder is not None
        target = folder / self._file_name
        sources = [Path(f"{each}/model-{checkpoint_step(name)}") for each in self._folders_of_models()]
        source = next((each for each in sources if each.with_name(f"{each.name}.index").is_file()), None)
        with _disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            if source is None:
                self._write_from_run_state(name, target)
            else:
                _copy_checkpoint(source, target)

    def _folders_of_models(self) -> list[Path]:
        inside = (innermost(callback) for callback in self.trainer.callbacks)
        savers = [callback for callback in inside if isinstance(callback, ModelSaver)]
        return [each.checkpoint_dir for each in savers if each.checkpoint_dir is not None]

    def _write_from_run_state(self, name: str, target: Path) -> None:
        trainer: Any = self.trainer
        names = {each.op.name for each in trainer.graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)}
        arrays = self.desk.store.load(name).arrays
        save_checkpoint_vars({each: array for each, array in arrays.items() if each in names}, str(target))

    def _step_of_copy(self) -> int | None:
        """Return the step of the copy that is there; None where there is none, or it is not whole."""
        assert self.checkpoint_dir is not None
        try:
            reader = tf.train.load_checkpoint(str(self.checkpoint_dir / self._file_name))
            return int(reader.get_tensor("global_step"))
        except (tf.errors.OpError, ValueError):
            return None


class MaxSaver(MinSaver):
    """Keeps the checkpoint with the largest value of a scalar, as ``max-<monitor_stat>``.

    Args:
        monitor_stat: the scalar.
        filename: another name.
        checkpoint_dir: another folder for TensorFlow's files.
    """

    def __init__(
        self, monitor_stat: str, filename: str | None = None, checkpoint_dir: str | Path | None = None
    ) -> None:
        super().__init__(monitor_stat, reverse=True, filename=filename, checkpoint_dir=checkpoint_dir)


def _copy_checkpoint(source: Path, target: Path) -> None:
    """Copy the files of a checkpoint; each is put in place whole, the index behind the data."""
    parts = sorted(source.parent.glob(f"{source.name}.data-*"))
    for part in [*parts, source.with_name(f"{source.name}.index")]:
        final = target.with_name(target.name + part.name.removeprefix(source.name))
        temporary = final.with_name(f".tmp-{final.name}")
        shutil.copyfile(part, temporary)
        temporary.replace(final)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (tf.errors.OpError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error.message or type(error).__name__)
        raise StorageError(
            f"TensorFlow's checkpoints cannot be written to {folder}: {str(reason).splitlines()[0].rstrip('.')}.",
            advice="Free space or fix the folder's rights, then resume the training: the last checkpoint is whole.",
        ) from error
