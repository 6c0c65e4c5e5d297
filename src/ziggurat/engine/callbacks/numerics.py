"""NaN and infinity: checks of values, and the black box with the last batches before them."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ziggurat.engine.callback import Callback, NeedsFolder, missing_folder
from ziggurat.engine.callbacks.batches import batch_arrays, batch_keys, plain_array, write_arrays
from ziggurat.engine.callbacks.saving import newest_checkpoint
from ziggurat.engine.feed import held_batch
from ziggurat.engine.monitors.json_writers import to_json
from ziggurat.engine.step_values import StepSeries
from ziggurat.entities.jobs import TRAINING_LOSSES
from ziggurat.errors import ConfigurationError, NonFiniteError, StorageError
from ziggurat.layout import JobFolder

if TYPE_CHECKING:
    from ziggurat.engine.trainer import Trainer

__all__ = ["BlackBox", "CheckNumerics"]


class CheckNumerics(Callback):
    """Ends the training with ``NonFiniteError`` when a value is NaN or infinite.

    Args:
        names: values of the program to watch; None for its weights and everything else of its state.
        run_as_trigger: look at the end of each epoch: at the last step's values, or at the weights.
        run_step: look after every step. For weights this copies them all, every step.

    Raises:
        NonFiniteError: from the training; ``details`` has step, tag, the keys of the batch where it carries any, and
            the last good checkpoint.
    """

    def __init__(self, names: Sequence[str] | None = None, run_as_trigger: bool = True, run_step: bool = False) -> None:
        self._names = None if names is None else tuple(names)
        self._run_as_trigger = run_as_trigger
        self._run_step = run_step

    def hooks(self) -> frozenset[str]:
        """Leave out what was not asked for."""
        if self._names is not None:
            return super().hooks() - {"trigger_step", "trigger_epoch"}
        off = set() if self._run_step else {"trigger_step"}
        return super().hooks() - off - {"before_run", "after_run"}

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names or ()

    def before_run(self) -> Sequence[str]:
        """Ask for the values of every step, or of the last one of the epoch."""
        is_last = self.trainer.local_step + 1 == self.trainer.steps_per_epoch
        return self._names or () if self._run_step or (self._run_as_trigger and is_last) else ()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Look at the values of the step."""
        for name in self._names or ():
            if name in values and not is_finite(values[name]):
                raise non_finite_error(self.trainer, name, values[name])

    def trigger_step(self) -> None:
        """Look at the weights after a step."""
        self._check_state()

    def trigger(self) -> None:
        """Look at the weights."""
        if self._run_as_trigger:
            self._check_state()

    def _check_state(self) -> None:
        for name, array in self.trainer.program.state().items():
            if not is_finite(array):
                raise non_finite_error(self.trainer, name, array)


def is_finite(value: Any) -> bool:
    """Return whether a number, or every number of an array, is finite; what is no number counts as finite."""
    if isinstance(value, float):
        return math.isfinite(value)
    array = plain_array(value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def non_finite_error(
    trainer: Trainer, tag: str, value: Any = None, details: Mapping[str, Any] | None = None
) -> NonFiniteError:
    """Return the error for a value of the newest step.

    Args:
        trainer: whose step.
        tag: name of the value.
        value: number or array; None if it is not known.
        details: further values for machines.
    """
    keys, checkpoint = batch_keys(trainer.batch), newest_checkpoint(trainer)
    resume = f" The last checkpoint is {checkpoint}." if checkpoint else ""
    kind = "" if value is None else "NaN" if bool(np.isnan(plain_array(value)).any()) else "infinite"
    what = "The loss" if tag in TRAINING_LOSSES else f"`{tag}`"
    known = {
        "step": trainer.global_step,
        "epoch": trainer.epoch_num,
        "tag": tag,
        "non_finite": kind,
        "learning_rate": trainer.program.hyperparameters().get("learning_rate"),
    }
    return NonFiniteError(
        f"{what} became {kind or 'NaN or infinite'} at step {trainer.global_step} (epoch {trainer.epoch_num}).",
        advice=f"Try decreasing the learning rate, and look at the last batches.{resume}",
        details={**known, "keys": keys, "checkpoint": checkpoint, **(details or {})},
    )


class BlackBox(Callback, NeedsFolder):
    """Watches values of every step; when one is NaN or infinite, writes the last batches down and ends the training.

    It writes ``step-XXXXXXXX.npz`` for each of the last steps (``batch/0``, …, ``value/cost``, …) and
    ``black_box.json``, which says what they are, whether each array is finite, and its least and largest number; see
    ``ziggurat.entities.black_box``. It holds ``last_n`` batches in memory: ``last_n`` times the bytes of a
    batch. An array with its own memory, or with that of a pool which waits for it, is held as it is; one that looks
    into other memory (the ring of a data pipeline) is copied, because its owner may write over it.

    Args:
        names: values of the program to watch. Single numbers are looked at where they are computed by a program that
            ``SupportsRecording``, on every step and whatever a wrapper says; every other value is fetched for it.
        folder: where to; where it is left out, ``bind_folder`` gives the job's ``black_box/``.
        last_n: how many steps to hold, at least 1.
        describe: returns JSON values on the batch of the last step, such as which samples are in it; written as
            ``batch``. Called with the batch and the position of the data behind it (``Feed.position()``).

    Raises:
        NonFiniteError: from the training; ``details`` has step, tag, the keys of the batch where it carries any, the
            last good checkpoint, and the folder.
    """

    def __init__(
        self,
        names: Sequence[str],
        folder: Path | None = None,
        last_n: int = 8,
        describe: Callable[[Any, Any], Mapping[str, Any]] | None = None,
    ) -> None:
        if last_n < 1:
            raise ConfigurationError("`last_n` must be at least 1.", received=last_n, advice="Set it so.")
        self._names = tuple(names)
        self._folder = None if folder is None else Path(folder)
        self._describe = describe
        # (global_step, epoch, batch, fetched values) of a step; a tuple, because each step makes one.
        self._frames: deque[tuple[int, int, Any, dict[str, Any]]] = deque(maxlen=last_n)
        self._series: StepSeries | None = None
        self._is_in_step = False

    def use_folder(self, folder: JobFolder) -> None:
        """Write into this job, unless another folder was given."""
        self._folder = self._folder or folder.black_box

    def setup_graph(self) -> None:
        """Find the folder, so that a missing one is an error before any work is done; ask for the values."""
        if self._folder is None:
            raise missing_folder(self)
        self._series = self.trainer.step_values.series(self._names, last=self._frames.maxlen, callback=self)
        self.trainer.step_values.watch(self, self._names, self._found)

    def hooks(self) -> frozenset[str]:
        """Ask for nothing that the program keeps."""
        return super().hooks() - (frozenset() if self._series is None else self._series.idle_hooks())

    def declares(self) -> Sequence[str]:
        """Return the names."""
        return self._names

    def before_run(self) -> Sequence[str]:
        """Take part in the step; ask for the values that the program does not watch."""
        self._is_in_step = True
        return () if self._series is None else self._series.before_run()

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Hold the step; write all that is held where a value is not finite."""
        trainer, series = self.trainer, self._series
        if series is None or not series.fetched:
            self._frames.append((trainer.global_step, trainer.epoch_num, held_batch(trainer.batch), {}))
            self._is_in_step = False
            return
        fetched = {name: values[name] for name in series.fetched}
        self._hold(fetched)
        for name, value in fetched.items():
            if not is_finite(value):
                self._end(name)

    def after_train(self) -> None:
        """Let go of the batches."""
        self._frames.clear()

    def _hold(self, fetched: dict[str, Any]) -> None:
        trainer = self.trainer
        self._frames.append((trainer.global_step, trainer.epoch_num, held_batch(trainer.batch), fetched))
        self._is_in_step = False

    def _found(self, tag: str) -> None:
        """End the training where the program found it, before any callback had the values of the step."""
        if self._is_in_step or (self._series is not None and self._series.is_of_every_step):
            self._hold({})
        self._end(tag)

    def _end(self, tag: str) -> None:
        """Write what is held, and end the training."""
        for name, column in ({} if self._series is None else self._series.take()).items():
            for (*_, values), value in zip(reversed(self._frames), reversed(column), strict=False):
                values[name] = value
        value = self._frames[-1][3].get(tag) if self._frames else None
        folder = self._write(tag)
        raise non_finite_error(self.trainer, tag, value, {"black_box": str(folder)})

    def _write(self, tag: str) -> Path:
        assert self._folder is not None
        steps = []
        for step, epoch, batch, values in self._frames:
            name = f"step-{step:08d}.npz"
            arrays = {key: plain_array(value) for key, value in values.items()}
            named = {f"value/{key}": array for key, array in arrays.items()}
            components = dict(batch_arrays(batch))
            write_arrays(self._folder / name, {**components, **named})
            single = {key: to_json(float(array)) for key, array in arrays.items() if array.size == 1}
            known = {"file": name, "step": step, "epoch": epoch, "keys": batch_keys(batch), "values": single}
            steps.append({**known, "arrays": {key: _summary(array) for key, array in components.items()}})
        rates = {key: to_json(value) for key, value in self.trainer.program.hyperparameters().items()}
        content = {"step": self.global_step, "tag": tag, "hyperparameters": rates, "steps": steps}
        feed = self.trainer.feed
        if self._describe is not None and self._frames and feed is not None:
            content["batch"] = dict(self._describe(self._frames[-1][2], feed.position()))
        try:
            (self._folder / "black_box.json").write_text(json.dumps(content, indent=1, allow_nan=False))
        except OSError as error:
            raise StorageError(
                f"The black box must be written to {self._folder}.",
                received=f"{error.strerror} (errno {error.errno})",
                advice="Free space on the disk or mend the folder's rights.",
            ) from error
        return self._folder


def _summary(array: np.ndarray) -> dict[str, Any]:
    """Return shape, type and, of numbers, whether all are finite, and the least and the largest finite one."""
    known: dict[str, Any] = {"shape": list(array.shape), "dtype": str(array.dtype)}
    if array.dtype.kind not in "biuf":
        return known
    finite = array[np.isfinite(array)]
    ends = {"least": finite.min().item(), "largest": finite.max().item()} if finite.size else {}
    return {**known, "finite": finite.size == array.size, **ends}
