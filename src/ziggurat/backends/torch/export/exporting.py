"""Export of a trained network: written, run again by the format's own runtime, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch

from ziggurat.backends.torch.export.formats import FORMATS, ExportFormat, Runner, Written, format_named
from ziggurat.backends.torch.export.serving import ServingModule
from ziggurat.backends.torch.network import source_of
from ziggurat.backends.torch.trained import TrainedTorch, trained_network
from ziggurat.dataflow import standalone_prediction
from ziggurat.engine.backend import ProgramRequest
from ziggurat.engine.capabilities import ExportOrder, ExportResult
from ziggurat.engine.detection_parity import detection_rule
from ziggurat.engine.network_files import line_in_words
from ziggurat.engine.parity import Run, parity_report
from ziggurat.errors import ConfigurationError, NetworkCodeError, ZigguratError

__all__ = ["export_network"]


def export_network(request: ProgramRequest, arrays: Mapping[str, np.ndarray], order: ExportOrder) -> ExportResult:
    """Write a model, run what was written by its own runtime, and compare.

    Raises:
        UnknownNameError: where the format is not known.
        ConfigurationError: where the format cannot hold the network.
        MissingDependencyError: where its package is not installed.
    """
    chosen = format_named(order.format)
    plain = replace(request, precision="float32", devices=("cpu",))  # exports compute so, whatever the training did
    text, _ = source_of(plain)
    network = trained_network(plain, arrays)
    rule = detection_rule(order.context)
    module = ServingModule(network, order.context.preprocessing, inside=order.inside, rule=rule)
    with _held_by(chosen):
        path = chosen.write(Written(module, network, text), order.folder)
        runner = chosen.runner(path)
    with torch.no_grad():
        shapes = {name: [None, *each.shape[1:]] for name, each in module(module.samples(2)).items()}
    with closing(TrainedTorch(plain, arrays)) as original:
        report = parity_report(
            chosen.name,
            path,
            lambda samples: original.predict(order.preprocess(samples)),
            _whole(chosen, runner, order, module.input_dtype),
            samples=order.samples,
            targets=order.targets,
            context=order.context,
        )
    return ExportResult(
        title=chosen.title,
        file=path.name,
        parity=asdict(report),
        input_shape=[None, *module.input_shape],
        input_dtype=module.input_dtype,
        outputs=shapes,
        parameters=sum(each.numel() for each in network.module.state_dict().values()),
        script=Path(standalone_prediction.__file__),
        packages=chosen.packages,
        framework=f"PyTorch {torch.__version__}",
    )


def _whole(chosen: ExportFormat, runner: Runner, order: ExportOrder, dtype: str) -> Run:
    """Return a runner that takes decoded inputs, whatever the model itself takes."""

    def run(samples: np.ndarray) -> Mapping[str, np.ndarray]:
        taken = samples if order.inside else order.preprocess(samples)
        with _held_by(chosen):
            return runner(np.ascontiguousarray(taken, dtype))

    return run


@contextmanager
def _held_by(chosen: ExportFormat) -> Iterator[None]:
    """Turn what an exporter or runtime raises into the reason why a format cannot hold a network."""
    try:
        yield
    except NetworkCodeError as error:  # raised at a line of the user's file, while it was traced
        found = error.details
        place = line_in_words(found.get("file", "the network"), found.get("line"), found.get("source", ""))
        raise _not_held(chosen, f"{place}: {_first_line(error.__cause__ or error)}") from error
    except (ZigguratError, OSError, MemoryError):
        raise
    except Exception as error:  # each of them has errors of its own
        raise _not_held(chosen, _first_line(error)) from error


def _not_held(chosen: ExportFormat, received: str) -> ConfigurationError:
    others = [each for each in FORMATS if each != chosen.name]
    return ConfigurationError(
        f"The format `{chosen.name}` cannot hold this network: {received.rstrip('.')}.",
        advice=f"Choose another one: {', '.join(others)}.",
    )


def _first_line(error: BaseException) -> str:
    """Return the first line of the error that others were raised from."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("specialized it to be a constant" in line for line in lines):
        return "it makes a constant of the number of samples, as `int(x.shape[0])` does; write `x.shape[0]`"
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
