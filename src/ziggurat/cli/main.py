"""Entry point of ``ziggurat``: command table, global flags, and error output."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ziggurat import __version__
from ziggurat.cli.application import Application
from ziggurat.cli.commands import LazyGroup, Verb
from ziggurat.errors import UsageError, ZigguratError, memory_error, nearest_names
from ziggurat.logs import set_up_logging
from ziggurat.plugins import PluginCatalogue
from ziggurat.settings import Secret, describe_settings

__all__ = ["VERBS", "main", "root"]

EXIT_INTERRUPTED: Final = 130

_TRAIN, _LOOK, _MODEL, _HERE = "Training", "Looking at jobs", "Networks and models", "This installation"
_DATA, _STUDIO = "Datasets", "The studio"

VERBS: Final = (
    Verb("train", "ziggurat.cli.here_or_studio:train", "Train a network from a spec file or from flags.", _TRAIN),
    Verb("resume", "ziggurat.cli.here_or_studio:resume", "Resume a job that was stopped, failed or lost.", _TRAIN),
    Verb("stop", "ziggurat.cli.here_or_studio:stop", "Ask a job to save and end.", _TRAIN),
    Verb("submit", "ziggurat.cli.submit:submit", "Run a program of your own as a job of the studio.", _TRAIN),
    Verb("demo", "ziggurat.cli.server:demo", "Start a studio and train LeNet on handwritten digits in it.", _TRAIN),
    Verb("dataset", "ziggurat.cli.dataset:dataset", "Create, explore, check, change and export datasets.", _DATA),
    Verb("uploads", "ziggurat.cli.uploads:uploads", "List and delete files that wait to become datasets.", _DATA),
    Verb("up", "ziggurat.cli.server:up", "Serve the studio of the workspace.", _STUDIO),
    Verb("down", "ziggurat.cli.server:down", "End the studio; jobs go on.", _STUDIO),
    Verb("job", "ziggurat.cli.job:job", "Make, list, show, stop jobs of the studio, ask models.", _STUDIO),
    Verb("call", "ziggurat.cli.operations:call", "Do any operation of the studio by its name.", _STUDIO),
    Verb("trash", "ziggurat.cli.trash:trash", "List what was deleted, or remove it for good.", _STUDIO),
    Verb("restore", "ziggurat.cli.trash:restore", "Put back what was deleted.", _STUDIO),
    Verb("user", "ziggurat.cli.people:user", "Create, list and change the users of the studio.", _STUDIO),
    Verb("token", "ziggurat.cli.people:token", "Create, list and revoke tokens for programs.", _STUDIO),
    Verb("reindex", "ziggurat.cli.people:reindex", "Rebuild the studio's list of jobs from their folders.", _STUDIO),
    Verb("status", "ziggurat.cli.server:status", "Show how the studio is, or how jobs are.", _LOOK),
    Verb("events", "ziggurat.cli.job_folders:events", "Show what happened in a job, also while it happens.", _LOOK),
    Verb("checkpoint", "ziggurat.cli.job_folders:checkpoint", "List, show, compare, average checkpoints.", _LOOK),
    Verb("spec", "ziggurat.cli.spec:spec", "Show, check and upgrade specs, and list their fields.", _LOOK),
    Verb("evaluate", "ziggurat.cli.here_or_studio:evaluate", "Test a network on every sample of a split.", _MODEL),
    Verb("predict", "ziggurat.cli.here_or_studio:predict", "Predict for images with a trained network.", _MODEL),
    Verb("export", "ziggurat.cli.models:export", "Write a trained network for other programs, with proof.", _MODEL),
    Verb("serve", "ziggurat.cli.serve:serve", "Serve exported models over HTTP.", _MODEL),
    Verb("verify", "ziggurat.cli.verify:verify", "Check the files of an export, and who signed it.", _MODEL),
    Verb("model", "ziggurat.cli.models:model", "Look into models of others, and predict with them.", _MODEL),
    Verb("weights", "ziggurat.cli.pretrained_weights:weights", "List, add, download pretrained weights.", _MODEL),
    Verb("dump-model-params", "ziggurat.cli.weights:dump_model_params", "Write what prediction needs to npz.", _MODEL),
    Verb("debug", "ziggurat.cli.networks:debug", "Run a network eagerly on one real batch.", _MODEL),
    Verb("graph", "ziggurat.cli.networks:graph", "Describe a network: layers, shapes, variables, cost.", _MODEL),
    Verb("network", "ziggurat.cli.networks:network", "Check the code of a network without running it.", _MODEL),
    Verb("settings", "ziggurat.cli.settings:settings", "Show settings; change the allowed folders.", _HERE),
    Verb("plugins", "ziggurat.cli.installation:plugins", "List backends, callbacks, monitors and more.", _HERE),
    Verb("doctor", "ziggurat.cli.doctor:doctor", "Find out what does not work here, and how to mend it.", _HERE),
    Verb("completion", "ziggurat.cli.installation:completion", "Print the set-up of a shell's completion.", _HERE),
    Verb("version", "ziggurat.cli.installation:version", "Print the version.", _HERE),
)


def main(arguments: Sequence[str] | None = None, application: Application | None = None) -> int:
    """Execute one command; return the exit code.

    Args:
        arguments: the words after ``ziggurat``; those of the process where they are not given.
        application: what the commands share, for tests.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    flags = words[: words.index("--")] if "--" in words else words
    shared = application or Application()
    shared.as_json, shared.wants_traceback = "--json" in flags, "--debug" in flags
    try:
        code = root.main(words, prog_name="ziggurat", standalone_mode=False, obj=shared)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ZigguratError as error:
        return _show(error, error, shared)
    except click.ClickException as error:
        return _show(_usage_error(error), error, shared)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the output is gone. What is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _show(_unexpected(error), error, shared)


_METAVARS: Final = {Path: "FOLDER", Secret: "SECRET", str: "URL", bool: ""}


def _setting_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command one flag for each setting that is not the matter of one verb alone."""
    for setting in reversed([each for each in describe_settings() if each.flag.startswith("--")]):
        metavar = f"[{'|'.join(setting.choices)}]" if setting.choices else _METAVARS[setting.kind]
        if setting.kind is bool:
            name = setting.flag.removeprefix("--")
            flag = click.option(f"--{name}/--no-{name}", setting.name, default=None, help=setting.help)
        else:
            flag = click.option(setting.flag, setting.name, metavar=metavar, help=setting.help)
        command = flag(command)
    return command


@click.group(cls=LazyGroup, verbs=VERBS, catalog=PluginCatalogue())
@click.option("--settings", "settings_file", metavar="FILE", type=click.Path(path_type=Path), help="Settings file.")
@_setting_flags
@click.option("--json", is_flag=True, expose_value=False, help="Show JSON on standard output.")
@click.version_option(__version__, prog_name="ziggurat", message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context, settings_file: Path | None, **flags: Any) -> None:
    """Train deep networks on your own machines.

    `ziggurat VERB --help` tells more of a verb; every verb takes --json.
    JOB and DATASET are folders, or ids or names of what the workspace or the studio has.
    One word stands for another where a group has only that: ls is list, info and inspect are show, rm and remove are
    delete, validate is check, new and add are create.
    """
    settings = context.obj.load_settings(settings_file, flags)
    context.with_resource(set_up_logging(settings.log_level, color=settings.use_color(sys.stderr)))


def _show(error: ZigguratError, cause: BaseException, application: Application) -> int:
    if application.debug:
        traceback.print_exception(cause)
    if application.as_json:
        sys.stdout.write(json.dumps(error.as_dict(), ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"Error: {error}\n")
    return error.exit_code


def _unexpected(error: Exception) -> ZigguratError:
    return memory_error(error) or ZigguratError(
        "Ziggurat itself must not fail like this.",
        received=f"{type(error).__name__}: {error}",
        advice="Call it as `ziggurat --debug …` for the traceback, and report it.",
    )


def _usage_error(error: click.ClickException) -> UsageError:
    """Return click's error in the words of this project."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "ziggurat"
    if isinstance(error, click.NoSuchOption):
        known = [word for option in context.command.get_params(context) for word in option.opts] if context else []
        nearest = " or ".join(f"`{name}`" for name in nearest_names(error.option_name, known))
        advice = f"Did you mean {nearest}?" if nearest else f"See: {path} --help"
        return UsageError(f"`{error.option_name}` is not an option of `{path}`.", advice=advice)
    return UsageError(error.format_message().rstrip(".") + ".", advice=f"See: {path} --help")
