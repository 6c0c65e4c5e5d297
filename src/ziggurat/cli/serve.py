"""Command ``serve``: exported models over HTTP."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.word_completion import complete_in_workspace
from ziggurat.errors import MissingDependencyError, UsageError
from ziggurat.serving.manifest import public_key_of
from ziggurat.serving.versions import ModelVersions

__all__ = ["serve"]

_MIB = 1 << 20
_COMPLETE = complete_in_workspace(lambda root: ModelVersions(root).names())


@click.command(cls=Command)
@click.argument("models", nargs=-1, required=True, metavar="MODEL[:ALIAS]|FOLDER...", shell_complete=_COMPLETE)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8600, show_default=True, help="0: any.")
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of ONNX Runtime for a batch; default: half of the cores.",
)
@click.option(
    "--max-batch", metavar="N", type=click.IntRange(1, 4096), default=64, show_default=True, help="Samples of a batch."
)
@click.option(
    "--max-wait-ms",
    metavar="MS",
    type=click.FloatRange(0, 1000),
    default=2.0,
    show_default=True,
    help="Longest time that a batch gathers under load; a request that is alone never waits.",
)
@click.option(
    "--max-body-mb", metavar="N", type=click.IntRange(1, 1024), default=32, show_default=True, help="MiB of a request."
)
@click.option("--exact", is_flag=True, help="Compute each sample alone, so that its bits depend on no other request.")
@click.option(
    "--key",
    "key_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Public key (PEM) that must have signed the exports; default: also unsigned ones are served.",
)
@click.option("--until-input-ends", is_flag=True, hidden=True)
@click.pass_obj
def serve(
    application: Application,
    models: tuple[str, ...],
    threads: int | None,
    key_file: Path | None,
    until_input_ends: bool,
    **given: float,
) -> None:
    """Serve exported models over HTTP: the folders of ONNX exports, or models of the workspace.

    MODEL is a name of `ziggurat model versions`; it follows the alias champion, or the ALIAS or version that you name.
    A version answers only if it is intact and gives the same as when it was exported. Ends with Ctrl-C or SIGTERM.
    """
    if until_input_ends:
        _end_with_input()
    serving = _serving_module("server")
    if find_spec("onnxruntime") is None:  # imported when a model is opened, which is after the URL was shown
        raise MissingDependencyError("onnxruntime", extra="serve", purpose="serving models")
    options = serving.ServeOptions(
        host=str(given["host"]),
        port=int(given["port"]),
        threads=threads or max(1, (os.cpu_count() or 1) // 2),
        max_body_bytes=int(given["max_body_mb"]) * _MIB,
        limits=_serving_module("batcher").BatchLimits(
            max_batch=int(given["max_batch"]), max_wait_s=given["max_wait_ms"] / 1000, exact=bool(given["exact"])
        ),
        keys=None if key_file is None else [_key(key_file)],
    )
    logging.getLogger("ziggurat.serving").setLevel(logging.INFO)

    def listening(url: str) -> None:
        application.output.document({"url": url, "models": list(models)}, f"{url}/predict  (Ctrl-C ends)")

    reason = serving.serve_models(models, application.settings.workspace.expanduser(), options, listening)
    application.output.note(f"Ended by {reason}.")


def _end_with_input() -> None:
    """End this process when its standard input ends: the studio that holds it stopped, or was killed."""

    def watch() -> None:
        while sys.stdin.buffer.read(1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="input watch", daemon=True).start()


def _serving_module(name: str) -> Any:
    """Import a module that needs the extra ``serve``."""
    try:
        return import_module(f"ziggurat.serving.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in ("", "ziggurat"):
            raise
        raise MissingDependencyError(missing, extra="serve", purpose="serving models") from None


def _key(path: Path) -> object:
    try:
        return public_key_of(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(
            f"`{path}` cannot be read: {error.strerror or str(error)}.", advice="Check the path."
        ) from None
