"""Commands that work on this machine, or by a studio: ``train``, ``resume``, ``stop``, ``evaluate``, ``predict``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_folders import execute, open_workspace, train_here
from ziggurat.cli.job_places import JOB
from ziggurat.cli.job_requests import (
    SET,
    WAIT,
    JobId,
    act_on_each,
    evaluate_there,
    predict_there,
    reaches_studio,
    says_what_it_is_for,
    studio_client,
    train_there,
)
from ziggurat.cli.models import CHECKPOINT, evaluate_here, predict_here, time_limit_option
from ziggurat.cli.spec import SpecFlagsCommand
from ziggurat.cli.value_completion import complete_checkpoint, complete_folder, complete_job
from ziggurat.cli.word_completion import complete_among
from ziggurat.errors import UsageError
from ziggurat.layout import JobFolder

__all__ = ["AnyJob", "evaluate", "in_studio", "predict", "resume", "stop", "train"]

_SERVER: Final = ("server", "token", "token_file")
_LABELS: Final = ("project", "tags", "notes", "priority")
_DETACH = click.option(
    "--detach", is_flag=True, help="Run it in the background; `status` and `events` show its progress."
)


class AnyJob(click.ParamType):
    """The folder of a job, or the id or name of a job of the workspace or of a studio."""

    name = "job"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the jobs of the studio that begin with a text, else those of the workspace, else paths."""
        return complete_job(ctx, incomplete) or complete_folder(ctx, incomplete)


def _by_studio(command: Callable[..., Any]) -> Callable[..., Any]:
    option = click.option("--studio", is_flag=True, help="Let the studio do it that serves the workspace, or --server.")
    return option(reaches_studio(command))


def in_studio(command: click.Command) -> click.Command:
    """Return the same command for the group ``job``, which is not listed: there the studio does it by default."""
    found = copy.copy(command)
    found.hidden = True
    found.params = [copy.copy(param) for param in command.params]
    for param in found.params:
        if param.name == "studio":
            param.default = True
    return found


def _asks_studio(context: click.Context, here: Collection[str], there: Collection[str]) -> bool:
    """Return whether a studio does what is asked: it is asked for, or an option is given that only a studio has.

    Args:
        context: of the command; the option ``studio`` is taken out of its parameters.
        here: parameters that only this machine has.
        there: parameters that only a studio has.

    Raises:
        UsageError: if options of both are given.
    """
    sources = {name: context.get_parameter_source(name) for name in context.params}
    typed = [name for name, source in sources.items() if source is ParameterSource.COMMANDLINE]
    asked = [name for name in typed if name in (*there, *_SERVER)]
    wrong = [name for name in typed if name in here]
    named = context.obj.settings.origins.get("server") == "--server"  # before the command
    is_asked = bool(context.params["studio"]) or named
    if wrong and (asked or is_asked):
        flags = {param.name: param.opts[0] for param in context.command.params}
        other = flags[asked[0]] if asked else "--server" if named else "--studio"
        raise UsageError(
            f"`{flags[wrong[0]]}` is for this machine, and `{other}` asks a studio.", advice="Leave one of them out."
        )
    return is_asked or bool(asked)


def _parted(given: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Take values out, and return them."""
    return {name: given.pop(name) for name in names if name in given}


def _folder(context: click.Context, text: str) -> Path:
    return JOB.convert(text, None, context)


def _job(text: str) -> str:
    """Return what a studio is asked for: an id or a name; a folder of a job stands for its id."""
    path = Path(text)
    return path.name if JobFolder(path).spec.is_file() else JobId().convert(text, None, None)


@click.command(cls=SpecFlagsCommand)
@click.argument("spec", required=False, type=click.Path(path_type=Path))
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), help="Job folder; default: a new one.")
@SET
@click.option("--recipe", is_flag=True, help="Use the recommended recipe for the data in all that is not given.")
@click.option("--fine-tune", is_flag=True, help="Use the preset for pretrained models in all that is not given.")
@click.option("--test-batch", is_flag=True, help="Measure time, memory and learning rates in some steps, and exit.")
@click.option("--dry-run", is_flag=True, help="Print the spec and exit.")
@_DETACH
@click.option("--dataset", metavar="JOB", type=JobId("dataset"), help="Dataset of the studio; the job waits for it.")
@click.option("--model", metavar="JOB", type=JobId("train"), help="Job of the studio for the initial weights.")
@click.option(
    "--checkpoint", metavar="NAME", shell_complete=complete_checkpoint, help="Of that job: a name, best or latest."
)
@says_what_it_is_for
@_by_studio
@click.pass_context
def train(context: click.Context, spec: Path | None, **given: Any) -> int | None:
    """Train a network from a SPEC file, from flags, or from a file with flags on top.

    Flags are the fields of the spec; parts of a field are set by --set, as in --set schedule.gamma=0.5.
    `ziggurat spec schema` tells all of them. Without --network, the recommended recipe for the data
    chooses what is not given. --data also takes the name of a dataset of the workspace.

    It trains here, or is a job of the studio with --studio, and with --dataset and other options that only a studio
    has.
    """
    here, there = ("out", "detach", "dry_run"), ("dataset", "model", "checkpoint")
    if _asks_studio(context, here, (*there, *_LABELS)):
        _parted(given, (*here, "studio"))
        return train_there(context.obj, spec, **given)
    _parted(given, (*there, *_LABELS, *_SERVER, "studio"))
    return train_here(context.obj, spec, **given)


@click.command(cls=Command)
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...", type=AnyJob())
@_DETACH
@_by_studio
@click.pass_context
def resume(context: click.Context, job_ids: tuple[str, ...], detach: bool, **studio: Any) -> int:
    """Resume JOBs from their newest checkpoints: here, one after the other, or in the queue of the studio.

    JOB is a folder, or the id or name of a job. Exit code 10 if that was not possible for one of them.
    """
    application: Application = context.obj
    if _asks_studio(context, ("detach",), ()):
        _parted(studio, ("studio",))
        with studio_client(application, studio) as client:
            return act_on_each(application, client, job_ids, lambda job_id: client.resume(_job(job_id)))
    folders = [_folder(context, each) for each in job_ids]
    return max(execute(application, each, detach=detach) for each in folders)


@click.command(cls=Command)
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...", type=AnyJob())
@click.option("--reason", default="asked to stop by `ziggurat stop`", help="Reason, one sentence; not for a studio.")
@click.option("--now", is_flag=True, help="Kill their workers; anything after the last checkpoint is lost.")
@_by_studio
@click.pass_context
def stop(context: click.Context, job_ids: tuple[str, ...], reason: str, now: bool, **studio: Any) -> int:
    """Stop JOBs after saving a checkpoint; they can be resumed. With --studio, also jobs that wait in its queue.

    JOB is a folder, or the id or name of a job. A studio ends by force a worker that does not end; without one, call it
    again with --now. Exit code 10 if that was not possible for one of them.
    """
    application: Application = context.obj
    if _asks_studio(context, ("reason",), ()):
        _parted(studio, ("studio",))
        with studio_client(application, studio) as client:
            return act_on_each(application, client, job_ids, lambda job_id: client.stop(_job(job_id), now=now))
    for folder in [_folder(context, each) for each in job_ids]:
        status = open_workspace(application).jobs.stop(str(folder), reason, now=now)
        text = f"asked to save and end. If it does not end: ziggurat stop {folder} --now"
        application.output.line(status.as_dict(), f"{folder}: {'ended by force.' if now else text}")
    return 0


@click.command(cls=Command)
@click.argument("job_id", metavar="JOB", type=AnyJob())
@click.option(
    "--split",
    default="val",
    show_default=True,
    shell_complete=complete_among(lambda: ("train", "val", "test")),
    help="val, test or train.",
)
@CHECKPOINT
@time_limit_option(None)
@WAIT
@_by_studio
@click.pass_context
def evaluate(
    context: click.Context, job_id: str, split: str, checkpoint: str | None, time_limit: float | None, **given: Any
) -> None:
    """Test the network of JOB on every sample of a split: here, or as a job of the studio.

    JOB is a folder, or the id or name of a job.
    """
    if _asks_studio(context, ("time_limit",), ("wait",)):
        _parted(given, ("studio",))
        evaluate_there(context.obj, _job(job_id), split, checkpoint or "", **given)
    else:
        evaluate_here(context.obj, _folder(context, job_id), split, checkpoint, time_limit)


@click.command(cls=Command)
@click.argument("job_id", metavar="JOB", type=AnyJob())
@click.argument("images", nargs=-1, metavar="[FILE]...", type=click.Path())
@click.option("--top", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="Classes shown.")
@click.option("--count", metavar="N", type=click.IntRange(min=1), help="Predictions of a network that takes no FILEs.")
@click.option(
    "--seed", metavar="N", type=click.IntRange(min=0), help="Seed of the noise that a network is given.  [default: own]"
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME=NUMBERS",
    multiple=True,
    help="Numbers of an input that a network takes beside FILEs, such as noise=0.5,-1,2; can be repeated.",
)
@click.option(
    "--pictures",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="New folder for predictions that are images, as PNG files.",
)
@CHECKPOINT
@time_limit_option(None)
@click.option("--url", metavar="ADDRESS", default="", help="URL of an image that the studio fetches.")
@click.option("--row", "rows", metavar="JSON", multiple=True, help="Row of a table, column → value; repeatable.")
@click.option("--text", "texts", metavar="TEXT", multiple=True, help="Text, for a model for texts; repeatable.")
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
@_by_studio
@click.pass_context
def predict(context: click.Context, job_id: str, images: tuple[str, ...], **given: Any) -> int:
    """Predict for FILEs with the model of JOB: here, or by the studio.

    JOB is a folder, or the id or name of a job. FILEs are images, or short videos, of which up to 100 frames are taken;
    of a model for tables CSV or JSON files, each row of which is predicted for; of a model for texts files with a text
    in each line. A file that cannot be read is named, the others are predicted all the same, and the exit code is 4. A
    model that generates takes --count and no FILE.

    The studio predicts with --studio, and with --url, --row '{"size": 70, "district": "north"}', --text "Win a prize"
    and --grad-cam. It takes images of this machine as FILEs.
    """
    here = ("count", "seed", "inputs", "pictures", "time_limit")
    there = ("url", "rows", "texts", "target", "grad_cam_class", "grad_cam_layer")
    is_there = _asks_studio(context, here, there)
    _parted(given, ("studio",))
    if is_there:
        _parted(given, here)
        given["checkpoint"] = given["checkpoint"] or ""
        return predict_there(context.obj, _job(job_id), tuple(map(Path, images)), **given)
    _parted(given, (*there, *_SERVER))
    return predict_here(context.obj, _folder(context, job_id), images, **given)
