"""Run of a network: state, curves, and what is done with the trained network; the same with and without a studio."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, overload

from ziggurat.entities.best_checkpoint import metric_text, metric_title
from ziggurat.errors import DataError, JobError, TrainingError, ZigguratError, error_of_family
from ziggurat.formatting import as_heading
from ziggurat.interactive.curves import Curves
from ziggurat.interactive.evaluation import Evaluation
from ziggurat.interactive.exported import ExportedModel
from ziggurat.interactive.frames import frame
from ziggurat.interactive.home import Home, InputKind, JobState, ModelInputs
from ziggurat.interactive.inputs import model_inputs
from ziggurat.interactive.markup import block, facts, table
from ziggurat.interactive.metrics import is_result, main_metrics
from ziggurat.interactive.prediction import Prediction, Predictions
from ziggurat.interactive.progress import shown_progress

__all__ = ["Run", "Runs", "finish", "predicted"]

_DIVERGED: Final = "diverged"


class Run:
    """A training, under way or done, and its network.

    Args:
        home: place of the run.
        id: id in a studio; without one, the path of its folder.

    Attributes:
        id: the same.
    """

    def __init__(self, home: Home, id: str) -> None:  # noqa: A002 - the word of every face
        self._home = home
        self.id = id
        self._name = home.state(id).name
        self._input_kind: InputKind | None = None

    # ---- looking

    @property
    def name(self) -> str:
        """Name that pages show."""
        return self._name

    @property
    def state(self) -> str:
        """``queued``, ``running``, ``stopping``, ``done``, ``failed``, ``stopped`` or ``diverged``."""
        found = self._home.state(self.id)
        return found.outcome or found.state

    @property
    def metrics(self) -> dict[str, float]:
        """Tag → newest value, such as ``validation_accuracy``."""
        scalars = self._home.state(self.id).scalars
        return {tag: value for tag, value in scalars.items() if is_result(tag, scalars)}

    @property
    def curves(self) -> Curves:
        """Curves as they are now."""
        return Curves(self._name, self._home.curves(self.id))

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the training was asked for: the decoded spec."""
        return dict(self._home.spec(self.id))

    @property
    def folder(self) -> Path:
        """Folder of the run, on the machine of its home."""
        return self._home.folder(self.id)

    @property
    def page(self) -> str:
        """Address of its page in the studio; empty without a studio."""
        return self._home.page(self.id)

    @property
    def log(self) -> str:
        """Log of the worker."""
        return self._home.log(self.id)

    # ---- doing

    def wait(self, *, progress: bool = True) -> Run:
        """Wait until a run that another process executes has ended; return it.

        Args:
            progress: whether a bar is shown.

        Raises:
            ZigguratError: if it failed or diverged.
        """
        with shown_progress(self._name, is_shown=progress) as bar:
            self._home.follow(self.id, bar.show)
        _check(self._home, self.id)
        return self

    def stop(self) -> None:
        """Ask a running training to save a checkpoint and end; ``resume`` goes on with it.

        Raises:
            JobError: if it is not running.
        """
        self._home.stop(self.id)

    def resume(self, *, progress: bool = True) -> Run:
        """Go on with a stopped or failed run from its newest checkpoint, and wait for its end; return it.

        Args:
            progress: whether a bar is shown.

        Raises:
            JobError: if it is complete, or a worker is at it.
            ZigguratError: if it fails or diverges.
            KeyboardInterrupt: after Ctrl-C, once a checkpoint is saved.
        """
        self._home.resume(self.id)
        finish(self._home, self.id, progress=progress)
        return self

    def evaluate(self, split: str = "val", *, checkpoint: str | None = None) -> Evaluation:
        """Evaluate the network on every sample of a split.

        Args:
            split: ``val``, ``test`` or ``train``.
            checkpoint: name of a checkpoint, ``best`` or ``latest``; None for the best, else the latest.

        Raises:
            UnknownNameError: if the data has no such split.
            CheckpointError: if there is no such checkpoint.
        """
        return Evaluation(self._name, self._home.evaluate(self.id, split, checkpoint))

    @overload
    def predict(self, inputs: list[Any], *, top: int = 5, checkpoint: str | None = None) -> Predictions: ...

    @overload
    def predict(self, inputs: Any, *, top: int = 5, checkpoint: str | None = None) -> Any: ...

    def predict(self, inputs: Any, *, top: int = 5, checkpoint: str | None = None) -> Any:
        """Predict for an input, or for a list of inputs.

        Args:
            inputs: what the network takes: an image (path, array (H, W) or (H, W, C) uint8, image of Pillow), a row of
                a table (dict), or a text; or a list of these, a batch of images (N, H, W, C), or a DataFrame.
            top: number of classes in the answer.
            checkpoint: as for ``evaluate``.

        Returns:
            ``Prediction``; of a list, batch or DataFrame ``Predictions``, in the same order.

        Raises:
            UsageError: if the network takes something else.
            DataError: if an input cannot be read.
        """
        if self._input_kind is None:
            self._input_kind = self._home.input_kind(self.id)
        read, is_single = model_inputs(self._input_kind, inputs)
        return predicted(self._home.predict(self.id, read, top, checkpoint), read, is_single=is_single)

    def export(
        self,
        format: str = "onnx",  # noqa: A002 - the word of every face
        out: str | Path | None = None,
        *,
        checkpoint: str | None = None,
    ) -> ExportedModel:
        """Write the network for other programs, with the proof that it gives the same.

        Args:
            format: ``onnx``; of TensorFlow also ``savedmodel``, ``pb``, ``tflite``, ``checkpoint``; of PyTorch also
                ``pt2``, ``safetensors``.
            out: new folder; ``NAME-FORMAT`` in the current folder by default.
            checkpoint: as for ``evaluate``.

        Raises:
            UnknownNameError: if the framework has no such format.
            ConfigurationError: if the folder holds something.
        """
        folder = Path(out).expanduser() if out is not None else Path(f"{_file_name(self._name)}-{format}")
        self._home.export(self.id, format, folder, checkpoint)
        return ExportedModel(folder)

    # ---- showing

    def __repr__(self) -> str:
        found = self._home.state(self.id)
        epochs = f"epoch {found.epoch} of {found.max_epoch}" if found.max_epoch else ""
        figures = [
            f"{metric_title(tag)} {metric_text(tag, value)}" for tag, value in main_metrics(found.scalars)[::-1][:1]
        ]
        return f"Run({', '.join([repr(self._name), found.outcome or found.state, *filter(None, [epochs]), *figures])})"

    def _repr_html_(self) -> str:
        found = self._home.state(self.id)
        pairs = [
            ("State", found.outcome or found.state),
            ("Epoch", f"{found.epoch} of {found.max_epoch}" if found.max_epoch else ""),
            *((as_heading(metric_title(tag)), metric_text(tag, value)) for tag, value in main_metrics(found.scalars)),
            ("Result", found.baselines),
            ("", found.reason if found.state == "failed" else ""),
            ("Page", self.page),
        ]
        return block(self._name, facts(pairs), self.curves.charts())


class Runs(Sequence[Run]):
    """Runs of a home, newest first.

    Args:
        items: runs.
        title: name of the home.
    """

    def __init__(self, items: Sequence[Run], title: str) -> None:
        self._items = list(items)
        self._title = title

    @overload
    def __getitem__(self, index: int) -> Run: ...

    @overload
    def __getitem__(self, index: slice) -> Runs: ...

    def __getitem__(self, index: int | slice) -> Run | Runs:
        """Return one run, or those of a slice."""
        return Runs(self._items[index], self._title) if isinstance(index, slice) else self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        lines = "".join(f"\n  {each!r}" for each in self._items)
        return f"Runs in {self._title}: {lines or 'none'}"

    def to_pandas(self) -> Any:
        """Return a DataFrame with a row for each run: ``name``, ``id``, ``state`` and its metrics.

        Raises:
            MissingDependencyError: if pandas is not installed.
        """
        return frame([{"name": each.name, "id": each.id, "state": each.state, **each.metrics} for each in self._items])

    def _repr_html_(self) -> str:
        rows = [self._row(each) for each in self._items]
        return block(
            f"Runs in {self._title}", table(rows, ("run", "state", "result", "id")) if rows else "<p>None yet.</p>"
        )

    def _row(self, run: Run) -> tuple[str, ...]:
        figures = main_metrics(run.metrics)[::-1][:1]
        result = ", ".join(f"{metric_title(tag)} {metric_text(tag, value)}" for tag, value in figures)
        return run.name, run.state, result, os.path.basename(run.id)


def finish(home: Home, job: str, *, progress: bool) -> None:
    """Have a job done, with a bar.

    Raises:
        KeyboardInterrupt: after Ctrl-C; its text says how to go on.
        ZigguratError: if the job fails, or its training diverges.
    """
    name = home.state(job).name
    try:
        with shown_progress(name, is_shown=progress) as bar:
            home.work(job, bar.show)
    except KeyboardInterrupt:
        found = home.state(job)
        if found.state == "done":
            return  # it was done before it could be stopped
        raise KeyboardInterrupt(_interrupted(found, job)) from None
    _check(home, job)


def predicted(answer: dict[str, Any], inputs: ModelInputs, *, is_single: bool) -> Prediction | Predictions:
    """Return the predictions of an answer; warn if thresholds were chosen that it does not obey.

    Raises:
        DataError: if an input could not be read; the first sentences name them.
    """
    if problem := answer.get("operating_point", {}).get("problem"):
        warnings.warn(problem, stacklevel=3)
    failures = answer["failures"]
    if failures:
        first = error_of_family(failures[0], DataError.exit_code)
        if len(failures) == 1 and len(inputs) == 1:
            raise first
        raise DataError(
            f"{len(failures)} of {len(inputs)} inputs cannot be read.",
            received=str(first),
            advice="Leave them out, or mend them.",
            details={"failures": failures},
        )
    given: list[Any] = [*(content for _, content in inputs.images), *inputs.rows, *inputs.texts]
    names = [name for name, _ in inputs.images]
    items = []
    for number, (row, source) in enumerate(zip(answer["predictions"], given, strict=True)):
        data = {name: value for name, value in row.items() if name not in ("picture", "input")}
        data["file"] = names[number] if names else data.get("file", "")
        items.append(Prediction(data, source, row.get("picture")))
    return items[0] if is_single else Predictions(items)


def _interrupted(found: JobState, job: str) -> str:
    where = f"at epoch {found.epoch} of {found.max_epoch}" if found.max_epoch else f"at step {found.step}"
    saved = "a checkpoint is saved. " if found.state == "stopped" else ""
    return f"{found.name} was stopped {where}; {saved}Go on with: ziggurat.load({job!r}).resume()"


def _check(home: Home, job: str) -> None:
    """Raise what ended a job, if that was no success."""
    found = home.state(job)
    where = f"The log is in {home.folder(job) / 'log.txt'}"
    where += f", the page at {home.page(job)}." if home.page(job) else "."
    details = {"run": job, "log": str(home.folder(job) / "log.txt")}
    if found.outcome == _DIVERGED:
        raise TrainingError(
            _first(found, f"{found.name} diverged."), advice=f"Lower the learning rate. {where}", details=details
        )
    if found.state == "failed":
        raise _failure(found, where, details)
    if found.state == "stopped":
        raise JobError(
            f"{found.name} was stopped: {found.reason or 'no reason is known'}.".replace("..", "."),
            advice="Go on with it by resume().",
            details=details,
        )


def _failure(found: JobState, where: str, details: dict[str, Any]) -> ZigguratError:
    shape = dict(found.error or {"error": "job", "rule": found.reason or f"{found.name} failed."})
    shape["advice"] = f"{shape.get('advice', '')} {where}".strip()
    shape["details"] = {**(shape.get("details") or {}), **details}
    return error_of_family(shape, _exit_code_of(str(shape["error"])))


def _first(found: JobState, otherwise: str) -> str:
    return found.reason if found.reason.lower().startswith(_DIVERGED) else otherwise


def _exit_code_of(code: str) -> int:
    families = [ZigguratError]
    while families:
        family = families.pop()
        if family.code == code:
            return family.exit_code
        families += family.__subclasses__()
    return ZigguratError.exit_code


def _file_name(name: str) -> str:
    return (
        "-".join("".join(letter if letter.isalnum() or letter in "._" else " " for letter in name).split()) or "model"
    )
