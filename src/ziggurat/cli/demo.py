"""``ziggurat demo``: a studio in a workspace of its own, which trains on handwritten digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ziggurat.atomic import private_files
from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.server import Place, serve_studio
from ziggurat.cli.studio_parts import studio_module
from ziggurat.errors import UsageError
from ziggurat.workspace.ports import take_port
from ziggurat.workspace.server_state import refuse_second

__all__ = ["demo"]

_HOST: Final = "127.0.0.1"


@click.command(cls=Command)
@click.option(
    "--out",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Workspace of the demo.",
)
@click.option("--port", default=5000, show_default=True, help="Port to listen at; another one where it is taken.")
@click.option("--epochs", default=30, show_default=True, help="How long it trains.")
@click.option("--open/--no-open", "browser", default=None, help="Whether a browser is opened; else where it can be.")
@click.pass_obj
def demo(application: Application, out: Path, port: int, epochs: int, browser: bool | None) -> None:
    """Start a studio and train LeNet on handwritten digits in it; its page opens in the browser."""
    if epochs < 1:
        raise UsageError("`--epochs` must be at least 1.", received=epochs)
    application.use_workspace(out.absolute())
    refuse_second(application.settings.workspace)
    place = Place(host=_HOST, port=port, prefix="", hosts=(), database=None)
    start_demo = studio_module("ziggurat.workspace.studio.demo").start_demo

    def begin(studio: Any, address: str) -> str:
        job = start_demo(studio, epochs=epochs)
        page = f"{address}models/{job.id}"
        application.output.note(f"{job.name} trains; watch and test it at {page}")
        return page

    with private_files(out), _port(port) as listener:
        serve_studio(application, place, listener, browser=browser, begin=begin)


def _port(port: int) -> Any:
    try:
        return take_port(_HOST, port)
    except UsageError:  # somebody else has it, perhaps a studio: a demo need not fail for that
        return take_port(_HOST, 0)
