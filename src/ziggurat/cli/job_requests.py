"""Verbs of ``ziggurat job`` that ask a studio for work: a dataset, a training, an evaluation, predictions."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from ziggurat.cli.application import Application, studio_module
from ziggurat.cli.commands import Command
from ziggurat.cli.dataset_sources import format_options
from ziggurat.cli.models import prediction_text
from ziggurat.cli.output import table
from ziggurat.cli.spec import DatasetFlagsCommand, SpecFlagsCommand, note_former_names
from ziggurat.cli.training import lacks_network, studio_recipe, test_batch_text, with_fine_tuning, with_recipe
from ziggurat.cli.value_completion import complete_checkpoint, complete_job, complete_of_jobs
from ziggurat.errors import (
    DataError,
    JobError,
    MissingJobError,
    NetworkCodeError,
    StorageError,
    UsageError,
    ZigguratError,
)
from ziggurat.specs import FileNetwork, Spec, dataset_spec_from_flags, read_content, spec_from_flags
from ziggurat.workspace.server_process import running_server
from ziggurat.workspace.training_checks import DIGITS

__all__ = [
    "JobId",
    "job_dataset",
    "job_evaluate",
    "job_infer",
    "job_predict",
    "job_train",
    "reaches_studio",
    "studio_client",
]

_SHOWN_NOTES: Final = 20
_ID: Final = re.compile(r"[^/\x00-\x1f]*[^/.\x00-\x1f][^/\x00-\x1f]*")
"""An id or a name; with a slash, or of dots alone, it would be another place in the REST API."""


class JobId(click.ParamType):
    """An id or the name of a job.

    Args:
        kind: of the jobs that a shell completes; empty for all.
    """

    name = "id"

    def __init__(self, kind: str = "") -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text.

        Raises:
            JobError: if it cannot be one.
        """
        if value and not _ID.fullmatch(value):
            hint = "If its name has a slash, give its id. " if "/" in value else ""
            advice = f"{hint}List them with: ziggurat job list"
            raise MissingJobError(f"{value!r} is not the id or name of a job.", advice=advice)
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the newest jobs that begin with a text."""
        return complete_job(ctx, incomplete, self._kind)


def reaches_studio(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say which studio it asks; ``studio_client`` takes them."""
    # The one that is applied last is listed first in the help.
    for option in (
        click.option(
            "--token-file", type=click.Path(path_type=Path), help="File with an API token, readable only by you."
        ),
        click.option("--token", metavar="SECRET", help="API token; visible to other users on the command line."),
        click.option("--server", metavar="URL", help="URL of the studio; default: the one that serves the workspace."),
    ):
        command = option(command)
    return command


@contextmanager
def studio_client(application: Application, studio: dict[str, Any]) -> Iterator[Any]:
    """Give a client for the studio that flags and settings name.

    Args:
        application: of this call.
        studio: values of the flags of ``reaches_studio``, which are taken out; further values stay.
    """
    server, token, file = studio.pop("server"), studio.pop("token"), studio.pop("token_file")
    if token and file:
        raise UsageError("`--token` and `--token-file` exclude each other.", advice="Leave one of them out.")
    address = server or _address(application)
    secret = _secret(file) if file else token or application.settings.token_for(address)
    with studio_module("ziggurat.client").Client(address, secret) as client:
        yield client


def _address(application: Application) -> str:
    """Return the address of the studio that the settings name, or of the one that serves the workspace."""
    settings = application.settings
    asked_here = settings.origins.get("workspace") == "--workspace" and settings.origins.get("server") != "--server"
    if settings.server and not asked_here:
        return settings.server
    state = running_server(settings.workspace)
    if state is None or not state.is_here:
        where = f" here, not on {state.host}" if state is not None else ""
        raise JobError(
            f"No studio serves {settings.workspace}{where}.",
            advice="Start one with `ziggurat up`, or name another one by --server URL.",
        )
    return state.address


def _secret(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The file of a token, {file}, cannot be read: {str(error).rstrip('.')}.") from None


_SET = click.option("--set", "assignments", metavar="PATH=VALUE", multiple=True, help="Part of a field; repeatable.")
_CHECKPOINT = click.option(
    "--checkpoint",
    metavar="NAME",
    default="",
    shell_complete=complete_checkpoint,
    help="Checkpoint, such as best or latest; default: the best, else the latest.",
)
_WAIT = click.option("--wait", is_flag=True, help="Wait until it is done, and show the result.")


def _says_what_it_is_for(command: Any) -> Any:
    """Give a command the flags that say what people say of a job."""
    for option in (
        click.option("--priority", type=int, help="Higher starts earlier; default 0."),
        click.option("--notes", metavar="TEXT", help="Free text."),
        click.option(
            "--tag",
            "tags",
            multiple=True,
            metavar="WORD",
            shell_complete=complete_of_jobs("tags"),
            help="Tag; repeatable.",
        ),
        click.option(
            "--project",
            metavar="NAME",
            shell_complete=complete_of_jobs("project"),
            help="Project that it belongs to.",
        ),
    ):
        command = option(command)
    return command


@click.command("dataset", cls=DatasetFlagsCommand)
@click.argument("source")
@click.option("--upload", is_flag=True, help="Upload SOURCE from this machine.")
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
    """Create a dataset in the studio from SOURCE: a path on the studio's machine, or a URL."""
    studio, said, flags = _parted(rest)
    if upload and not Path(source).exists():
        raise UsageError(f"`{source}` does not exist on this machine, so it cannot be sent.")
    base = {"kind": "dataset", "version": 1, "options": format_options(options)}
    asked = dataset_spec_from_flags({"source": source, **flags}, assignments=assignments, base=base)
    with studio_client(application, studio) as client:
        place = client.datasets.upload(Path(source).resolve()) if upload else source
        made = client.datasets.create({**_values(asked), "source": place}, **said)
    _show_jobs(application, [made])


@click.command("train", cls=SpecFlagsCommand)
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option("--dataset", metavar="JOB", type=JobId("dataset"), help="Dataset of the studio; the job waits for it.")
@click.option("--model", metavar="JOB", type=JobId("train"), help="Job of the studio for the initial weights.")
@click.option(
    "--checkpoint", metavar="NAME", shell_complete=complete_checkpoint, help="Of that job: a name, best or latest."
)
@click.option("--recipe", is_flag=True, help="Use the recommended recipe of the dataset in all that is not given.")
@click.option("--fine-tune", is_flag=True, help="Use the preset for pretrained models in all that is not given.")
@click.option("--test-batch", is_flag=True, help="Measure time, memory and learning rates in some steps, and exit.")
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
    """Train a network in the studio, from a SPEC file, from flags, or from a file with flags on top."""
    recipe, fine_tune, test_batch = (rest.pop(name) for name in ("recipe", "fine_tune", "test_batch"))
    studio, said, flags = _parted(rest)
    base = None if spec is None else read_content(spec)
    note_former_names(application, base, flags, assignments)
    if fine_tune:
        base = with_fine_tuning(application, base, flags, assignments)
    if dataset is None and _is_name(flags.get("data", "")):
        dataset = flags["data"]
    if dataset is not None:
        flags["data"] = "of the studio"  # which puts its place there
    is_asked, recipe = recipe, recipe or (spec is None and lacks_network(flags, assignments))

    def content() -> dict[str, Any]:
        values = _values(spec_from_flags(flags, assignments=assignments, base=base))
        if dataset is not None:
            values["data"].pop("source", None)
        return values

    given = {"dataset": dataset, "model": model, "checkpoint": checkpoint}
    values = {} if recipe else content()
    with studio_client(application, studio) as client:
        if recipe:
            base = with_recipe(application, base, flags, assignments, studio_recipe(client, dataset), is_asked=is_asked)
            values = content()
        if test_batch:
            _try_batch(application, client, values, given)
            return
        jobs = client.train(values, **given, **said)
    _show_jobs(application, jobs)


def _is_name(source: str) -> bool:
    """Return whether the source of a training is a dataset of the studio, whose machine knows no relative path."""
    return source != DIGITS and _ID.fullmatch(source) is not None


def _try_batch(application: Application, client: Any, values: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Show the measurements of a test batch in the studio; Ctrl-C cancels it there as well."""
    ticket = secrets.token_urlsafe(16)
    try:
        found = client.previews.test_batch(values, ticket=ticket, **given)
    except KeyboardInterrupt:
        with suppress(ZigguratError):
            client.previews.cancel_test_batch(ticket)
        raise
    application.output.document(found, test_batch_text(found))


@click.command("evaluate", cls=Command)
@click.argument("model_id", metavar="MODEL", type=JobId("train"))
@click.option(
    "--split", type=click.Choice(["train", "val", "test"]), default="val", show_default=True, help="Of its data."
)
@_CHECKPOINT
@_WAIT
@reaches_studio
@click.pass_obj
def job_evaluate(
    application: Application, model_id: str, split: str, checkpoint: str, wait: bool, **studio: Any
) -> None:
    """Queue an evaluation of the job MODEL on a split."""
    with studio_client(application, studio) as client:
        made = client.evaluations.create(model_id, split=split, checkpoint=checkpoint)
        _show(application, client, made, wait=wait)


@click.command("infer", cls=Command)
@click.argument("model_id", metavar="MODEL", type=JobId("train"))
@click.argument("source")
@click.option("--image-folder", metavar="FOLDER", default="", help="Base folder of relative paths in a list.")
@click.option("--top", type=click.IntRange(1, 5), default=5, show_default=True, help="Classes kept of each image.")
@click.option("--limit", type=click.IntRange(min=0), default=0, help="Maximum number of images; 0 for all.")
@_CHECKPOINT
@_WAIT
@reaches_studio
@click.pass_obj
def job_infer(
    application: Application, model_id: str, source: str, image_folder: str, wait: bool, **chosen: Any
) -> None:
    """Predict all images of SOURCE with the model MODEL, as a job.

    SOURCE is a folder of the studio's machine, or a text file there: in each line a path and, where it is known, the
    label, a class number or a name. `ziggurat job predict` sends single images of this machine.
    """
    asked = {name: chosen.pop(name) for name in ("top", "limit", "checkpoint")}
    # Where the studio is asked by its address, a relative path is not known there, and it says so.
    here = chosen.get("server") is None
    places = [
        os.path.abspath(each) if each and here and Path(each).exists() else each for each in (source, image_folder)
    ]
    with studio_client(application, chosen) as client:
        made = client.evaluations.create_many(model_id, places[0], image_folder=places[1], **asked)
        _show(application, client, made, wait=wait)


@click.command("predict", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@click.argument("images", nargs=-1, metavar="[IMAGE]...", type=click.Path(path_type=Path))
@click.option("--url", metavar="ADDRESS", default="", help="URL of an image that the studio fetches.")
@click.option("--row", "rows", metavar="JSON", multiple=True, help="Row of a table, column → value; repeatable.")
@click.option("--text", "texts", metavar="TEXT", multiple=True, help="Text, for a model for texts; repeatable.")
@click.option("--top", type=click.IntRange(min=1), default=5, show_default=True, help="Classes shown.")
@click.option(
    "--checkpoint",
    metavar="NAME",
    default="",
    shell_complete=complete_checkpoint,
    help="Checkpoint, such as best or latest; default: the best, else the latest.",
)
@click.option(
    "--grad-cam",
    "target",
    metavar="FILE.png",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File for the Grad-CAM image of a single image.",
)
@click.option("--grad-cam-class", metavar="CLASS", default="", help="Class number or name; default: the most likely.")
@click.option(
    "--grad-cam-layer", metavar="LAYER", default="", help="Layer with feature maps; default: the last convolution."
)
@reaches_studio
@click.pass_obj
def job_predict(
    application: Application, job_id: str, images: tuple[Path, ...], url: str, target: Path | None, **options: Any
) -> int:
    """Predict IMAGEs of this machine with the model of the job ID; exit code 4 if one is unreadable.

    A model for tables takes `--row '{"size": 70, "district": "north"}'`, one for texts `--text "Win a prize"`.
    """
    asked = {name: options.pop(name) for name in ("top", "checkpoint", "grad_cam_class", "grad_cam_layer")}
    rows, texts = [_row(each) for each in options.pop("rows")], list(options.pop("texts"))
    if rows or texts:
        layered = target or asked["grad_cam_class"] or asked["grad_cam_layer"]
        if images or url or layered or (rows and texts):
            raise UsageError(
                "Several kinds of input are given together: predict for images, for rows or for texts, and "
                "use Grad-CAM with images alone.",
                advice="Give images, `--row` or `--text`, only one of them.",
            )
        inputs = {"rows": rows, "texts": texts, "top": asked["top"], "checkpoint": asked["checkpoint"]}
    else:
        _check(images, url, target, asked)
        inputs = {"files": images, "url": url, **asked, "grad_cam": None if target is None else True}
    with studio_client(application, options) as client:
        found = client.models.predict(job_id, **inputs)
    lines = [prediction_text(each) for each in found["predictions"]]
    lines += [f"Not read: {each['message']}" for each in found["failures"]]
    if problem := found.get("operating_point", {}).get("problem"):
        lines.append(problem)
    if target is not None and found.get("grad_cam") is not None:
        lines.append(_save(found["grad_cam"], target))
    application.output.document(found, "\n".join(lines))
    return DataError.exit_code if found["failures"] else 0


def _row(text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise UsageError(
            f"`{text[:200]}` is not a JSON object of column → value, which `--row` takes.",
            advice="""Write it as in: --row '{"size": 70, "district": "north"}'.""",
        )
    return row


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
        path = Path(network.path)
        values["network"] = {"source": "file", "path": path.name, "text": _network_text(path)}
    return values


def _network_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkCodeError(
            f"The network file {path} cannot be read as Python text: {str(error).rstrip('.')}."
        ) from None


def _show_jobs(application: Application, jobs: Sequence[Mapping[str, Any]]) -> None:
    for each in jobs:
        application.output.line(each, f"{each['id']} {each['name']} is {application.output.word(each['state'])} now.")


def _show(application: Application, client: Any, made: Mapping[str, Any], *, wait: bool) -> None:
    """Show the job, or its results."""
    if not wait:
        application.output.document(made, f"{made['id']} {made['name']} is {made['state']}.")
        return
    client.wait(made["id"])
    found = client.evaluations.summary(made["id"])
    application.output.document({**found, "id": made["id"]}, _text(made["id"], found))


def _text(job_id: str, found: Mapping[str, Any]) -> str:
    lines = [f"{job_id}: {found['count']} samples by {found['checkpoint']}"]
    if found["skipped"]:
        lines.append(f"{found['skipped']} could not be read.")
    for each in found.get("notes", ())[:_SHOWN_NOTES]:
        lines.append(f"{each['key']}: {each['reason']}")
    if found.get("noted", 0) > _SHOWN_NOTES:
        lines.append(f"… and {found['noted'] - _SHOWN_NOTES} more with such a note.")
    if found["openings"] is not None:
        lines.append(f"The test split was measured on {found['openings']} times.")
    for word in ("accuracy", "top5"):
        if found[word] is not None:
            lines.append(f"{word} {found[word]:.2%}")
    numbers = {**found["scalars"], **(found.get("metrics") or {})}
    lines += [
        f"{name} {value:.5g}"
        for name, value in numbers.items()
        if isinstance(value, int | float) and (name != "accuracy" or found["accuracy"] is None)
    ]
    rows = [
        (each["name"], *(_share(each[name]) for name in ("precision", "recall", "f1")), str(each["support"]))
        for each in found["per_class"]
    ]
    return "\n".join([*lines, *([table(rows, ("class", "precision", "recall", "f1", "samples"))] if rows else [])])


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.2%}"


def _check(images: Sequence[Path], url: str, target: Path | None, asked: Mapping[str, Any]) -> None:
    """Refuse what cannot be asked."""
    if not images and not url:
        raise UsageError("No image is named.", advice="Name IMAGE, or give its address by --url.")
    missing = next((image for image in images if not image.is_file()), None)
    if missing is not None:
        raise UsageError(f"`{missing}` is not a file of this machine.")
    if target is None and (asked["grad_cam_class"] or asked["grad_cam_layer"]):
        raise UsageError(
            "A class or layer of Grad-CAM is given, and no file to write to.", advice="Add `--grad-cam FILE.png`."
        )


def _save(heat: Mapping[str, Any], target: Path) -> str:
    """Write the image with its heat; return what is said of it."""
    try:
        target.write_bytes(base64.b64decode(heat["png"]))
    except OSError as error:
        raise StorageError(f"The image of Grad-CAM cannot be written: {str(error).rstrip('.')}.") from error
    found = f"{target}: where it looked for {heat['class']}, at the layer {heat['layer']}"
    return found if heat["largest"] else f"{found}; nothing speaks for this class there"
