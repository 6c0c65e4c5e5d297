"""Protocol of a one-shot process: one JSON request in, one JSON result or error out."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ziggurat.errors import NetworkCodeError, UnknownNameError, UsageError, ZigguratError, memory_error
from ziggurat.logs import set_up_logging
from ziggurat.settings import load_settings
from ziggurat.worker.commands.batch_trial import run_test_batch
from ziggurat.worker.commands.dataset_previews import preview_dataset
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.foreign import inspect_model, predict_with_model
from ziggurat.worker.commands.networks import debug, describe
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.commands.pretrained_weights import convert_weights
from ziggurat.worker.commands.previews import augmented, loading
from ziggurat.worker.commands.videos import write_frames
from ziggurat.worker.commands.weights import weights
from ziggurat.worker.fetch_limits import keep_to_addresses
from ziggurat.worker.stopping import end_with

__all__ = ["main"]

Task = Callable[[Mapping[str, Any]], dict[str, Any]]

TASKS: Final[dict[str, Task]] = {
    "evaluate": evaluate,
    "predict": predict,
    "export": export,
    "describe": describe,
    "debug": debug,
    "inspect_model": inspect_model,
    "predict_with_model": predict_with_model,
    "augmented": augmented,
    "loading": loading,
    "video_frames": write_frames,
    "preview_dataset": preview_dataset,
    "test_batch": run_test_batch,
    "weights": weights,
    "convert_weights": convert_weights,
}
"""Name → what it does. Requests and results are JSON objects."""

_UNEXPECTED: Final = 1


def main(arguments: Sequence[str] | None = None, tasks: Mapping[str, Task] = TASKS) -> int:
    """Perform one task in this process; return the exit code: 0, or that of the error's family.

    The result, or the error's JSON shape, goes to what was standard output when the process began. What user code
    prints goes to standard error, and standard input is empty for it.

    Args:
        arguments: the words of the command line; those of the process where they are not given.
        tasks: name → what it does.
    """
    parser = argparse.ArgumentParser(prog="python -m ziggurat.worker.commands", description=__doc__)
    parser.add_argument("name", help=f"one of {', '.join(tasks)}")
    parser.add_argument("request", nargs="?", type=Path, help="file with the request; else it is read from input")
    parser.add_argument("--end-with", type=int, metavar="PID", help="end when this parent process is gone")
    given = parser.parse_args(arguments)
    # Warnings of frameworks are noise; those of a network file are for its author.
    warnings.filterwarnings("ignore")
    warnings.filterwarnings("default", module="network")
    text = sys.stdin.read() if given.request is None else given.request.read_text(encoding="utf-8")
    with os.fdopen(_take_output(), "w", encoding="utf-8") as answer:
        if given.end_with is not None:
            end_with(given.end_with)
        content, code = perform(given.name, text, tasks)
        json.dump(content, answer, default=_plain, ensure_ascii=False)
    return code


def perform(name: str, text: str, tasks: Mapping[str, Task] = TASKS) -> tuple[dict[str, Any], int]:
    """Perform a task; return its result or its error's JSON shape, and the exit code.

    Args:
        name: of the task.
        text: the request, a JSON object.
        tasks: name → what it does.
    """
    try:
        settings = load_settings()
        keep_to_addresses(settings)
        with set_up_logging(settings.log_level, color=settings.use_color(sys.stderr)):
            return _task(name, tasks)(_request(text)), 0
    except ZigguratError as error:
        return error.as_dict(), error.exit_code
    except SystemExit as error:
        ended = NetworkCodeError(
            "A network file does not end the process.",
            received=f"sys.exit({error.code!r})",
            advice="Take the call out.",
        )
        return ended.as_dict(), ended.exit_code
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        sys.stderr.write(trace)
        message = f"{type(error).__name__}: {error}"
        shape = memory_error(error) or ZigguratError(
            "Ziggurat itself must not fail like this.", received=message, details={"traceback": trace}
        )
        return shape.as_dict(), _UNEXPECTED


def _task(name: str, tasks: Mapping[str, Task]) -> Task:
    if name not in tasks:
        raise UnknownNameError("task", name, tasks)
    return tasks[name]


def _request(text: str) -> Mapping[str, Any]:
    try:
        content = json.loads(text)
    except ValueError as error:
        raise UsageError("The request of a task is a JSON object.", received=str(error)) from error
    if not isinstance(content, dict):
        raise UsageError("The request of a task is a JSON object.", received=type(content).__name__)
    return content


def _take_output() -> int:
    """Return a descriptor of its own for the answer; let prints go to standard error, and input be empty."""
    answer = os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return answer


def _plain(value: Any) -> Any:
    """Return what JSON does not know in its own types."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
