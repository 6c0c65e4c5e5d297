"""Commands that run a program of the user in a process of its own: ``run-script`` and ``run-tensorpack``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from ziggurat.cli.commands import Command, Verb

__all__ = ["RUN_SCRIPT", "RUN_TENSORPACK", "run_script", "run_tensorpack"]

RUN_SCRIPT: Final = Verb(
    "run-script", "ziggurat.compat.commands:run_script", "Run a program for TensorFlow 1, unchanged.", "Training"
)
RUN_TENSORPACK: Final = Verb(
    "run-tensorpack", "ziggurat.compat.commands:run_tensorpack", "Run a Tensorpack program, unchanged.", "Training"
)

_PASSED_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@click.command(cls=Command, context_settings=_PASSED_ON)
@click.argument("script", metavar="SCRIPT", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def run_script(script: Path, arguments: tuple[str, ...]) -> NoReturn:
    """Run SCRIPT, a program for TensorFlow 1, with today's TensorFlow.

    What was adapted for it is listed on standard error at its end. Its exit code is passed on.
    """
    _become("ziggurat.compat.tf1.run_script", str(script), *arguments)


@click.command(cls=Command, context_settings=_PASSED_ON)
@click.argument("script", metavar="SCRIPT", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("arguments", metavar="[ARGUMENTS]...", nargs=-1, type=click.UNPROCESSED)
def run_tensorpack(script: Path, arguments: tuple[str, ...]) -> NoReturn:
    """Run SCRIPT, a program that was written with Tensorpack 0.8 to 0.11, with Ziggurat's trainers.

    Nothing of Tensorpack is needed. What was adapted and what is different is listed on standard error at its end. Its
    exit code is passed on.
    """
    _become("ziggurat.compat.tensorpack.run_tensorpack", str(script), *arguments)


def _become(module: str, *words: str) -> NoReturn:
    """Let this process execute a module instead: its signals, its input and its exit code are the program's own."""
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: what lies in the current folder is not to be found before what Ziggurat imports.
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *words])
