"""Hyperparameters read during training from a text file, which users edit and the studio's slider writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ziggurat.engine.callbacks.hyperparameters import HyperParam
from ziggurat.engine.callbacks.learning_rate import schedules_of
from ziggurat.engine.callbacks.recurring import Period
from ziggurat.engine.callbacks.setters import HyperParamSetter, setters_of
from ziggurat.engine.monitors.binding import NeedsFolder, innermost
from ziggurat.engine.monitors.messages import say
from ziggurat.errors import nearest_names
from ziggurat.layout import JobFolder

__all__ = ["HumanHyperParamSetter"]


class HumanHyperParamSetter(HyperParamSetter, NeedsFolder):
    """Sets a parameter to what the line ``name: value`` of a text file says.

    The file is read before the first step, after every epoch, and after every k-th step. It need not exist. A value
    holds as long as its line stands there: schedules of the same parameter rest meanwhile. Once the line is gone, a
    ``LearningRateSchedule`` sets the next step; of a resumed training too, where the line went before it was resumed.
    A line that is wrong is reported once, and changes nothing. ``#`` begins a comment.

    Args:
        param: a parameter, or the name of one of the program.
        file_name: the file; a relative name is taken in the folder of the job where ``place()`` gave one, and in the
            current folder otherwise.
        every_k_steps: also read it within an epoch; None for not.
    """

    source = "person"

    def __init__(
        self, param: str | HyperParam, file_name: str | Path = "hyper.txt", *, every_k_steps: int | None = None
    ) -> None:
        super().__init__(param)
        self.path = Path(file_name)
        self._period = Period(every_k_steps, 1)
        self._reported = ""

    def use_folder(self, folder: JobFolder) -> None:
        """Look for a relative name in this job."""
        self.path = folder.path / self.path

    def hooks(self) -> frozenset[str]:
        """Steps are of interest only where they were asked for."""
        return super().hooks() - self._period.idle_hooks()

    def before_train(self) -> None:
        """Take the value that held, then the file as it is now."""
        if not self.is_holding and self._is_alone_with_schedule():
            self._resumed_value = None  # a schedule knows its rate: that of the next epoch where one has just ended
        super().before_train()
        self.set_now()

    def set_now(self) -> None:
        """Set what the file says; where a person has let go, give the parameter back to its schedule."""
        was_holding = self.is_holding
        super().set_now()
        if was_holding and not self.is_holding:
            for schedule in schedules_of(self.trainer, self.param.readable_name):
                schedule.take_over()

    def state(self) -> Any:
        """Return the value that holds, and whether a person holds it."""
        return {**super().state(), "is_holding": self.is_holding}

    def load_state(self, state: Any) -> None:
        """Take back what ``state()`` gave: schedules rest until the file has been read."""
        super().load_state(state)
        self.is_holding = state.get("is_holding", False)  # checkpoints of before have only the value

    def trigger_step(self) -> None:
        """Read the file where the step is due."""
        if self._period.is_step_due(self.trainer):
            self.trigger()

    def get_value_to_set(self) -> float | None:
        """Return the value in the file, or None where it has none."""
        values, problems = self._read()
        self.is_holding = self.param.readable_name in values
        self._report(problems)
        return values.get(self.param.readable_name)

    def _read(self) -> tuple[dict[str, float], list[str]]:
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return {}, []
        except (OSError, UnicodeDecodeError) as error:
            return {}, [f"it cannot be read ({error})"]
        values, problems = {}, []
        for number, line in enumerate(lines, start=1):
            name, colon, text = line.partition("#")[0].rpartition(":")
            value = _finite(text)
            if colon and value is not None:
                values[name.strip()] = value
            elif (name + text).strip():
                problems.append(f"line {number} is not `name: value` with a finite number: {line.strip()!r}")
        return values, problems + self._unknown(values)

    def _unknown(self, values: dict[str, float]) -> list[str]:
        others: Any = [innermost(callback) for callback in self.trainer.callbacks]
        known = {other.param.readable_name for other in others if isinstance(other, HumanHyperParamSetter)}
        problems = []
        for name in sorted(values.keys() - known):
            nearest = " or ".join(f"`{each}`" for each in nearest_names(name, known))
            problems.append(f"`{name}` cannot be set here" + (f" (did you mean {nearest}?)" if nearest else ""))
        return problems

    def _report(self, problems: list[str]) -> None:
        text = "; ".join(problems)
        if text and text != self._reported and self._is_spokesman():
            say(self.trainer, f"{self.path.name}: {text}. The rest of the file holds.", level="warning")
        self._reported = text

    def _is_alone_with_schedule(self) -> bool:
        """Return whether nobody but a schedule sets the parameter as well."""
        name = self.param.readable_name
        return bool(schedules_of(self.trainer, name)) and setters_of(self.trainer, name) == [self]

    def _is_spokesman(self) -> bool:
        """Return whether this is the first of all that read the file: one report is enough."""
        others: Any = [innermost(callback) for callback in self.trainer.callbacks]
        readers = [one for one in others if isinstance(one, HumanHyperParamSetter) and one.path == self.path]
        return not readers or readers[0] is self or self not in readers


def _finite(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
