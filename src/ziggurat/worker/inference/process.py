"""Main loop of an inference process: opens a job's network, reports readiness, serves requests until shutdown."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from ziggurat.errors import NetworkCodeError, UnknownNameError, UsageError, ZigguratError, memory_error
from ziggurat.logs import set_up_logging
from ziggurat.records.codec import write_frame
from ziggurat.settings import load_settings
from ziggurat.worker.inference.generation import generate
from ziggurat.worker.inference.handlers import PredictRequest, Requests, WarmModel, evaluate, predict
from ziggurat.worker.inference.samples import samples
from ziggurat.worker.inference.views import activations, grad_cam
from ziggurat.worker.stopping import end_with

__all__ = ["main"]

_UNEXPECTED: Final = 1
_IDLE_S: Final = 600.0

REQUESTS: Final[dict[str, Callable[[WarmModel, Mapping[str, Any]], dict[str, Any]]]] = {
    "predict": lambda model, request: _predict_together(model, [request])[0],
    "evaluate": evaluate,
    "activations": activations,
    "grad_cam": grad_cam,
    "generate": generate,
    "samples": samples,
    "describe": lambda model, _request: model.describe(),
    "ping": lambda _model, _request: {"pid": os.getpid()},
}
"""What a request may ask to ``do``. Each has an ``id`` beside it, which its answer repeats."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve requests from standard input until there are none; return the exit code: 0, or that of an error's family.

    The first message out has the ``id`` 0, and as its ``result`` what ``describe`` gives, once the network is open; or
    an ``error``. Whatever else the process writes goes to standard error.
    """
    parser = argparse.ArgumentParser(prog="python -m ziggurat.worker.inference", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of a job that has trained a network")
    parser.add_argument("--checkpoint", help="its name, a given name, `best` or `latest`; the best, else the latest")
    parser.add_argument("--device", default="", help="index of an accelerator, or `cpu`; else as in training")
    parser.add_argument(
        "--idle", type=float, default=_IDLE_S, metavar="SECONDS", help="end after so long without a request"
    )
    parser.add_argument("--end-with", type=int, metavar="PID", help="end when this parent process is gone")
    given = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    warnings.filterwarnings("default", module="network")
    source, target = _take_pipes()
    if given.end_with is not None:
        end_with(given.end_with)
    answers = _Answers(target)
    try:
        _hide_devices(given.device)
        settings = load_settings()
        with set_up_logging(settings.log_level, color=settings.use_color(sys.stderr)):
            return _serve(given, source, answers)
    except BrokenPipeError:
        return 0  # the reader of the answers is gone
    except BaseException as error:
        return answers.fail(0, error)


def _serve(given: argparse.Namespace, source: IO[bytes], answers: _Answers) -> int:
    requests = Requests(source)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: requests.end())
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a thread that waits for signals itself may have started this
    model = WarmModel(given.folder, given.checkpoint, given.device)
    answers.give(0, model.describe())
    while group := requests.take(given.idle):
        _answer(model, group, answers)
    model.close()
    return 0


def _answer(model: WarmModel, group: Sequence[Mapping[str, Any]], answers: _Answers) -> None:
    """Answer requests: one of any kind, or several for predictions."""
    try:
        if group[0].get("do") != "ping":
            model.follow()
        if len(group) > 1:
            results = _predict_together(model, group)
        else:
            results = [_named(group[0].get("do"))(model, group[0])]
    except BrokenPipeError:
        raise
    except BaseException as error:
        if len(group) == 1:
            answers.fail(group[0].get("id"), error)
            return
        for request in group:  # what one of them did wrong is no fault of the others
            _answer(model, [request], answers)
        return
    for request, result in zip(group, results, strict=True):
        answers.give(request.get("id"), result)


def _predict_together(model: WarmModel, group: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    asked = [PredictRequest.of(model, request) for request in group]
    predict(model, asked)
    summary = model.job.prediction_summary()
    return [{**summary, "predictions": each.predictions, "failures": each.failures} for each in asked]


def _named(name: Any) -> Callable[[WarmModel, Mapping[str, Any]], dict[str, Any]]:
    if name not in REQUESTS:
        raise UnknownNameError("request to a warm process", str(name), REQUESTS)
    return REQUESTS[name]


@dataclass(frozen=True)
class _Answers:
    """Writes answers: ``id``, and ``result``, or ``error`` (JSON shape) with the ``exit_code`` of its family."""

    target: IO[bytes]

    def give(self, number: Any, result: Mapping[str, Any]) -> None:
        try:
            write_frame(self.target, {"id": number, "result": result})
        except ZigguratError as error:  # the user's network gave something that is no array of numbers
            self.fail(number, error)

    def fail(self, number: Any, error: BaseException) -> int:
        known = _known(error)
        try:
            write_frame(self.target, {"id": number, "error": known.as_dict(), "exit_code": known.exit_code})
        except BrokenPipeError:
            pass
        return known.exit_code


def _known(error: BaseException) -> ZigguratError:
    """Return an error of the tree for whatever was raised; unexpected errors are logged as well."""
    if isinstance(error, ZigguratError):
        return error
    if isinstance(error, SystemExit):
        return NetworkCodeError(
            "A network file does not end the process.",
            received=f"sys.exit({error.code!r})",
            advice="Take the call out.",
        )
    trace = "".join(traceback.format_exception(error))
    with suppress(OSError):  # its disk may be full
        sys.stderr.write(trace)
    message = f"{type(error).__name__}: {error}"
    return memory_error(error) or ZigguratError(
        "Ziggurat itself must not fail like this.", received=message, details={"traceback": trace}
    )


def _hide_devices(device: str) -> None:
    """Let frameworks see one accelerator or none. They look when they are imported, which is after this."""
    if not device:
        return
    if device != "cpu" and not device.isdecimal():
        raise UsageError(f"`--device` is {device!r}, not `cpu` or the index of an accelerator.")
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as the driver's tools number them
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1" if device == "cpu" else device


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return standard input and output for messages alone; prints go to standard error, and input is empty for code."""
    source, target = os.dup(0), os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # pyright: ignore[reportAttributeAccessIssue]
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return os.fdopen(source, "rb"), os.fdopen(target, "wb")
