"""Verbs of ``ziggurat job`` that create jobs in a studio: ``dataset`` and ``train``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.dataset_create import format_options
from ziggurat.cli.job_reach import JobId, reaches_studio, studio_client
from ziggurat.cli.spec_flags import DatasetFlagsCommand, SpecFlagsCommand, note_former_names
from ziggurat.errors import NetworkCodeError, UsageError
from ziggurat.specs import FileNetwork, Spec, dataset_spec_from_flags, read_content, spec_from_flags

__all__ = ["job_dataset", "job_train"]

_SET = click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Part of a field; repeatable.")


def _says_what_it_is_for(command: Any) -> Any:
    """Give a command the flags that say what people say of a job."""
    for option in (
        click.option("--priority", type=int, help="Higher is sooner; 0 is usual."),
        click.option("--notes", metavar="TEXT", help="Free text."),
        click.option("--tag", "tags", multiple=True, metavar="WORD", help="A word; repeatable."),
        click.option("--project", metavar="NAME", help="Project that it belongs to."),
    ):
        command = option(command)
    return command


@click.command("dataset", cls=DatasetFlagsCommand)
@click.argument("source")
@click.option("--upload", is_flag=True, help="SOURCE is of this machine, and is sent.")
@click.option("--option", "options", metavar="NAME=VALUE", multiple=True, help="Option of the format; repeatable.")
@_SET
@_says_what_it_is_for
@reaches_studio
@click.pass_obj
def job_dataset(
    application: Application,
    source: str,
    upload: bool,
    options: tuple[str, ...],
    assignments: tuple[str, ...],
    **rest: Any,
) -> None:
    """Let the studio make a dataset from SOURCE: a path of the studio's machine, or an address."""
    studio, said, flags = _parted(rest)
    if upload and not Path(source).exists():
        raise UsageError("What is sent is a file or a folder of this machine.", received=source)
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    asked = dataset_spec_from_flags({"source": source, **flags}, assignments=assignments, base=base)
    with studio_client(application, studio) as client:
        place = client.datasets.upload(Path(source).resolve()) if upload else source
        made = client.datasets.create({**_values(asked), "source": place}, **said)
    _show(application, [made])


@click.command("train", cls=SpecFlagsCommand)
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option("--dataset", metavar="ID", type=JobId(), help="Dataset of the studio; the training waits for it.")
@click.option("--model", metavar="ID", type=JobId(), help="Job of the studio whose weights it starts from.")
@click.option("--checkpoint", metavar="NAME", help="Of that job: a name, best or latest.")
@_SET
@_says_what_it_is_for
@reaches_studio
@click.pass_obj
def job_train(
    application: Application,
    spec: Path | None,
    dataset: str | None,
    model: str | None,
    checkpoint: str | None,
    assignments: tuple[str, ...],
    **rest: Any,
) -> None:
    """Let the studio train a network, from a SPEC file, from flags, or from a file that flags change."""
    studio, said, flags = _parted(rest)
    base = None if spec is None else read_content(spec)
    note_former_names(application, base, flags, assignments)
    if dataset is not None:
        flags["data"] = "of the studio"  # which puts its place there
    values = _values(spec_from_flags(flags, assignments=assignments, base=base))
    if dataset is not None:
        values["data"].pop("source", None)
    with studio_client(application, studio) as client:
        jobs = client.train(values, dataset=dataset, model=model, checkpoint=checkpoint, **said)
    _show(application, jobs)


def _parted(rest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the flags that name the studio, those that people say of a job, and those of the spec."""
    studio = {name: rest.pop(name) for name in ("server", "token", "token_file")}
    said = {name: rest.pop(name) for name in ("project", "tags", "notes", "priority")}
    said["tags"] = list(said["tags"])
    return studio, said, {name: text for name, text in rest.items() if text is not None}


def _values(spec: Spec) -> dict[str, Any]:
    """Return what a spec says beyond the defaults; the text of a network file goes with it."""
    values = spec.model_dump(mode="json", exclude_unset=True)
    network = getattr(spec, "network", None)
    if isinstance(network, FileNetwork) and network.text is None:
        values["network"] = {"source": "file", "path": Path(network.path).name, "text": _text(Path(network.path))}
    return values


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError("The network file must be readable Python text.", received=f"{path}: {error}") from None


def _show(application: Application, jobs: Sequence[Mapping[str, Any]]) -> None:
    for each in jobs:
        application.output.line(each, f"{each['id']} {each['name']} is {application.output.word(each['state'])} now.")
