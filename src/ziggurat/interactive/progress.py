"""Progress of a job: one bar in a terminal or notebook, a line for each epoch elsewhere, and sentences."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from ziggurat.entities.best_checkpoint import metric_text, metric_title
from ziggurat.interactive.home import ENDED, JobState
from ziggurat.interactive.metrics import main_metrics

__all__ = ["ProgressBar", "say", "shown_progress"]


def say(text: str, *, is_shown: bool = True) -> None:
    """Show a sentence: below the cell of a notebook, or on standard error of a program."""
    if is_shown:
        stream = sys.stdout if _is_notebook() else sys.stderr
        stream.write(f"{text}\n")
        stream.flush()


class ProgressBar:
    """A bar over the steps of a job.

    Args:
        title: text before the bar.
        is_shown: whether anything is shown.
    """

    def __init__(self, title: str, *, is_shown: bool) -> None:
        self._title = title
        self._is_shown = is_shown
        self._bar: Any = None
        self._said = ""
        self._last: JobState | None = None

    def show(self, state: JobState) -> None:
        """Show the state of the job."""
        if not self._is_shown:
            return
        if not _is_notebook() and not sys.stderr.isatty():
            self._say(state)
            return
        if self._bar is None:
            self._bar = _make_bar(self._title)
        if state.total_steps and self._bar.total != state.total_steps:
            self._bar.reset(total=state.total_steps)
        self._bar.n = min(state.step, state.total_steps or state.step)
        self._bar.set_postfix_str(_postfix(state), refresh=False)
        self._bar.refresh()

    def _say(self, state: JobState) -> None:
        """Show the last that was known of an epoch, once the next one began or the job ended."""
        if self._last and (state.epoch > self._last.epoch or state.state in ENDED):
            known = state if state.state in ENDED else self._last
            if main_metrics(known.scalars) and _postfix(known) != self._said:
                self._said = _postfix(known)
                say(f"{self._title}: {self._said}")
        self._last = state

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def shown_progress(title: str, *, is_shown: bool) -> Iterator[ProgressBar]:
    """Give a bar, and close it."""
    bar = ProgressBar(title, is_shown=is_shown)
    try:
        yield bar
    finally:
        bar.close()


def _is_notebook() -> bool:
    return "ipykernel" in sys.modules


def _make_bar(title: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without ipywidgets a notebook gets a bar of text, which is enough
        from tqdm.auto import tqdm

    form = "{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"
    return tqdm(total=1, desc=title, bar_format=form, dynamic_ncols=True)


def _postfix(state: JobState) -> str:
    if state.state == "queued":
        return f"waits: {state.reason}" if state.reason else "waits"
    epoch = f"epoch {state.epoch}/{state.max_epoch}" if state.max_epoch else ""
    figures = [f"{metric_title(tag)} {metric_text(tag, value)}" for tag, value in main_metrics(state.scalars)]
    return ", ".join(filter(None, [state.stage, epoch, *figures]))
