"""``ziggurat dataset``: the group of verbs for datasets."""

from __future__ import annotations

import click

from ziggurat.cli.commands import Group
from ziggurat.cli.dataset_change import append, classes, exclude, merge, move, relabel, split
from ziggurat.cli.dataset_create import create, formats, guess
from ziggurat.cli.dataset_look import check, explore, export, list_, problems, show, versions
from ziggurat.cli.previews import preview

__all__ = ["dataset"]


@click.group(cls=Group)
def dataset() -> None:
    """Make, look at, check, change and export datasets.

    A dataset is a folder that never changes; every change makes a new one.
    """


for _command in (create, guess, preview, formats, list_, show, explore, problems, check, export, versions):
    dataset.add_command(_command)
for _command in (relabel, exclude, move, classes, split, merge, append):
    dataset.add_command(_command)
