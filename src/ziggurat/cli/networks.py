"""Commands that examine a network before training: ``debug``, ``graph`` and ``network check``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.job_folders import open_workspace
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_data, complete_framework, complete_network
from ziggurat.cli.word_completion import complete_among
from ziggurat.errors import ConfigurationError, NetworkCodeError, UsageError
from ziggurat.plugins import available
from ziggurat.specs import FileNetwork
from ziggurat.workspace.network_checks import check_network
from ziggurat.zoo.backends import AUTO, file_backend

__all__ = ["debug", "graph", "network"]

_NETWORK = click.argument("network", metavar="NETWORK", shell_complete=complete_network)
_FRAMEWORK = click.option(
    "--framework",
    default=AUTO,
    show_default=True,
    shell_complete=complete_framework,
    help="Backend that the network is for; auto: told by the file.",
)
_TIME_LIMIT = click.option(
    "--time-limit", metavar="S", type=click.FloatRange(min=0, min_open=True), default=120.0, show_default=True,
    help="Time limit in seconds.",
)  # fmt: skip


@click.command(cls=Command)
@_NETWORK
@click.option(
    "--data", default="digits", show_default=True, shell_complete=complete_data, help="Dataset or folder of the batch."
)
@click.option("--batch-size", metavar="N", type=click.IntRange(min=1), default=16, show_default=True, help="Samples.")
@_FRAMEWORK
@_TIME_LIMIT
@click.pass_obj
def debug(
    application: Application, network: str, data: str, batch_size: int, framework: str, time_limit: float
) -> int | None:
    """Run NETWORK (a file, or a standard network) eagerly on one real batch.

    What it prints is shown, every layer is listed with its output, and an error stops at the user's line.
    """
    options = {"backend": _chosen(framework), "data": data, "batch_size": batch_size, "time_limit_s": time_limit}
    try:
        found = open_workspace(application).tasks.debug(network, **options)
    except NetworkCodeError as error:
        return _show_with_trace(application, error)
    application.output.document(found, _debug_text(found))
    return None


@click.command(cls=Command)
@_NETWORK
@click.option(
    "--input-shape",
    metavar="HxWxC|N",
    help="Image size, or numbers of a row or text; default: that of the network, or 28x28x1.",
)
@click.option(
    "--task",
    metavar="NAME",
    shell_complete=complete_among(lambda: [each.name for each in available("tasks")]),
    help="What it learns; default: what the network declares, or classification.",
)
@click.option("--classes", metavar="N", type=click.IntRange(min=1), help="Number of classes; default 10.")
@click.option("--operations", is_flag=True, help="Also list every operation (always in JSON).")
@click.option(
    "--tensorboard",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the training graph into this folder for TensorBoard.",
)
@_FRAMEWORK
@_TIME_LIMIT
@click.pass_obj
def graph(
    application: Application,
    network: str,
    input_shape: str | None,
    operations: bool,
    tensorboard: Path | None,
    framework: str,
    **options: Any,
) -> None:
    """Describe NETWORK (a file, or a standard network): layers, shapes, variables, cost."""
    options |= {"backend": _chosen(framework), "input_shape": _shape_of(input_shape)}
    options["time_limit_s"] = options.pop("time_limit")
    if tensorboard is not None:
        options["tensorboard"] = str(tensorboard.absolute())
    found = open_workspace(application).tasks.describe(network, **options)
    application.output.document(found, _graph_text(found, operations=operations))
    if tensorboard is not None and found["tensorboard"]["problem"]:
        raise ConfigurationError(f"TensorBoard cannot show the graph: {found['tensorboard']['problem']}")


@click.group(cls=Group)
def network() -> None:
    """Check the code of a network without running it."""


@network.command(cls=Command)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_FRAMEWORK
@click.pass_obj
def check(application: Application, file: Path, framework: str) -> int | None:
    """Check the code in FILE at once: syntax, the contract, and names that do not exist. Nothing is executed."""
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The network file {file} cannot be read as text in UTF-8: {str(error).rstrip('.')}."
        ) from error
    backend = _chosen(framework) or file_backend(FileNetwork(path=str(file), text=text))
    found = check_network(text, backend=backend)
    lines = [f"{file}:{each.line}:{each.column}: {each.level}: {each.sentence}" for each in found]
    document = {"file": str(file), "findings": [asdict(each) for each in found]}
    application.output.document(document, "\n".join(lines) or f"{file}: no mistakes found.")
    return NetworkCodeError.exit_code if any(each.level == "error" for each in found) else None


def _chosen(framework: str) -> str:
    """Return the backend that was asked for; empty where the network tells."""
    return "" if framework == AUTO else framework


def _show_with_trace(application: Application, error: NetworkCodeError) -> int:
    """Show the user's line first, then how Python came there."""
    trace = error.details.get("traceback", "")
    if application.as_json or not trace:
        raise error
    application.output.note(f"Error: {error}\n\n{trace.rstrip()}")
    return error.exit_code


def _shape_of(text: str | None) -> list[int] | None:
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) not in (1, 3) or not all(part.isdigit() and int(part) for part in parts):
        raise UsageError(
            f"`{text}` is not HxWxC or N, which `--input-shape` takes.", advice="Write it as in 28x28x1, or 13."
        )
    return [int(part) for part in parts]


def _debug_text(found: dict[str, Any]) -> str:
    batch = ", ".join(f"{name} {_shape(shape)}" for name, shape in zip(("x", "y"), found["batch"]))
    layers = [
        (
            "" if each["line"] is None else str(each["line"]),
            each["layer"],
            each["scope"],
            _shape(each["shape"]),
            f"{each['mean']:.5g}",
            f"{each['deviation']:.5g}",
        )
        for each in found["layers"]
    ]
    variables = [(name, _shape(shape)) for name, shape in found["variables"].items()]
    return "\n".join(
        [
            f"batch: {batch}",
            "",
            table(layers, ("line", "layer", "scope", "output", "mean", "deviation")),
            "",
            table(variables, ("variable", "shape")),
            "",
            f"outputs: {', '.join(_shape(shape) for shape in found['output_shapes'])}",
            f"loss: {found['loss']:.6g}",
            *found["notes"],
        ]
    )


def _graph_text(found: dict[str, Any], *, operations: bool) -> str:
    layers = [
        (each["name"], _shape(each["shape"]), f"{each['parameters']:,}", str(each["operations"]))
        for each in found["layers"]
    ]
    variables = [
        (each["name"], _shape(each["shape"]), f"{each['count']:,}", "yes" if each["trainable"] else "no")
        for each in found["variables"]
    ]
    parts = [
        table(layers, ("layer", "output", "parameters", "operations")),
        table(variables, ("variable", "shape", "numbers", "trained")),
    ]
    if operations:
        rows = [
            (each["name"], each["kind"], _shape(each["shape"]), ", ".join(each["inputs"]))
            for each in found["operations"]
        ]
        parts.append(table(rows, ("operation", "type", "output", "inputs")))
    parts.append(
        f"input (N, {', '.join(map(str, found['input_shape']))}), "
        f"outputs {', '.join(_shape(shape) for shape in found['outputs'])}\n"
        f"{found['parameters']:,} parameters, {found['multiply_adds']:,} multiply-adds a sample"
    )
    if file := found.get("tensorboard", {}).get("file"):
        parts.append(f"Look at the graph with: tensorboard --logdir {shlex.quote(str(Path(file).parent))}")
    return "\n\n".join(parts)


def _shape(shape: Sequence[int | None] | None) -> str:
    return "?" if shape is None else f"({', '.join('N' if side is None else str(side) for side in shape)})"
