"""Owns ``ziggurat demo``: a training in seconds, watched in TensorBoard."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.studio import open_workspace
from ziggurat.cli.training import execute
from ziggurat.entities import EXIT_DONE
from ziggurat.errors import JobError, MissingDependencyError
from ziggurat.layout import JobFolder
from ziggurat.settings import has_display
from ziggurat.workspace.demo import demo_spec
from ziggurat.workspace.tensorboard import TensorBoard, wait_for_signal

__all__ = ["demo"]


@click.command(cls=Command)
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Job folder; else a new one.")
@click.option("--epochs", default=20, show_default=True, help="How long it trains.")
@click.option("--no-browser", is_flag=True, help="Open no browser.")
@click.option("--exit", "leave", is_flag=True, help="End after the training instead of serving on.")
@click.pass_obj
def demo(application: Application, out: Path | None, epochs: int, no_browser: bool, leave: bool) -> int:
    """Train a small network on pictures of digits and show its curves in TensorBoard."""
    folder = open_workspace(application).start_training(demo_spec(epochs), out)
    with _shown(application, folder, browser=not no_browser) as address:
        code = execute(application, folder)
        if address and not leave and code == EXIT_DONE:
            application.output.note(f"TensorBoard goes on at {address}; press Ctrl-C to end it.")
            wait_for_signal()
    return code


@contextmanager
def _shown(application: Application, folder: Path, *, browser: bool) -> Iterator[str]:
    """Serve the job's curves while the block is executed; yield the address, empty where that is not possible."""
    try:
        board = TensorBoard(JobFolder(folder).tensorboard)
    except (MissingDependencyError, JobError) as error:
        application.output.note(f"No TensorBoard: {error}")
        yield ""
        return
    with board:
        application.output.note(f"TensorBoard: {board.address}")
        if browser and application.settings.browser and has_display():
            webbrowser.open(board.address)
        yield board.address
