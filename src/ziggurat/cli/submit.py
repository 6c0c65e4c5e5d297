"""Verb ``ziggurat submit``: a program of this machine becomes a job of a studio."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import reaches_studio, studio_client
from ziggurat.cli.value_completion import complete_of_jobs
from ziggurat.errors import UsageError
from ziggurat.workspace.programs import check_program, program_at

__all__ = ["submit"]

_OWN: Final = (
    "--name", "--script", "--gpus", "--nodes", "--memory-gb", "--seed", "--capture", "--project", "--tag", "--notes",
    "--priority", "--wait", "--server", "--token", "--token-file", "--json", "--debug",
)  # fmt: skip


class SubmitCommand(Command):
    """Takes what stands behind ``--`` as the arguments of the program, and nothing else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split the words at ``--``.

        Raises:
            UsageError: where an option of the program stands before it.
        """
        place = args.index("--") if "--" in args else len(args)
        words, behind = args[:place], args[place + 1 :]
        ctx.meta["ziggurat.arguments"] = tuple(behind)
        try:
            return super().parse_args(ctx, words)
        except click.NoSuchOption as error:
            raise UsageError(
                f"`{error.option_name}` is no option of this command; those of the program stand behind `--`.",
                advice=f"Write it as in: {ctx.command_path} train.py -- {error.option_name} …. "
                f"Options of this command: {', '.join(_OWN[:10])}, …",
            ) from None


@click.command("submit", cls=SubmitCommand)
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("rest", nargs=-1, metavar="[-- ARGUMENT...]")
@click.option("--name", metavar="TEXT", default="", help="Name of the job; default: that of the script.")
@click.option("--script", metavar="FILE", default="", help="Script that runs, of a folder or archive with several.")
@click.option("--nodes", type=click.IntRange(1, 64), default=1, help="Ray nodes that it runs on; default 1.")
@click.option(
    "--gpus",
    "--gpus-per-node",
    "gpus",
    type=click.IntRange(0, 64),
    default=0,
    help="Accelerators that it gets on each node; default 0.",
)
@click.option("--memory-gb", type=click.FloatRange(0), default=0.0, help="Memory that it needs; default: unknown.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, help="Of random numbers and data; default 0.")
@click.option("--capture", metavar="NAMES", default="", help="Packages to stand in for if absent: wandb,mlflow.")
@click.option(
    "--project", metavar="NAME", shell_complete=complete_of_jobs("project"), help="Project that it belongs to."
)
@click.option(
    "--tag", "tags", multiple=True, metavar="WORD", shell_complete=complete_of_jobs("tags"), help="Tag; repeatable."
)
@click.option("--notes", metavar="TEXT", help="Free text.")
@click.option("--priority", type=int, help="Higher starts earlier; default 0.")
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit code 0 only where it is done.")
@reaches_studio
@click.pass_context
def submit(
    context: click.Context,
    program: Path,
    rest: tuple[str, ...],
    name: str,
    script: str,
    capture: str,
    wait: bool,
    **options: Any,
) -> None:
    """Run PROGRAM, a Python file, a folder or a zip archive of this machine, as a job of the studio.

    Its files are copied into the folder of the job. What stands behind -- are its arguments. With several --nodes, a
    process runs for each of --gpus-per-node, with the variables of torchrun.
    """
    application: Application = context.obj
    if rest:
        raise UsageError(
            f"`{' '.join(rest)}` stands before `--`; arguments of the program stand behind it.",
            advice=f"Write: ziggurat submit {program} -- {' '.join(rest)}",
        )
    # Before a studio is asked: what is wrong with the program is said also where none is there.
    check_program(program_at(program, script))
    studio = {each: options.pop(each) for each in ("server", "token", "token_file")}
    spec = {each: options.pop(each) for each in ("gpus", "nodes", "memory_gb", "seed")} | (
        {"name": name} if name else {}
    )
    captured = [each.strip() for each in capture.split(",") if each.strip()]
    spec |= {"capture": captured} if captured else {}
    said = {**options, "tags": list(options["tags"])}
    arguments = context.meta["ziggurat.arguments"]
    with studio_client(application, studio) as client:
        job = client.programs.submit(program, arguments, script=script, spec=spec, **said)
        state = application.output.word(job["state"])
        page = client.page_url(job["id"])
        if not wait:
            application.output.document(job, f"{job['id']} {job['name']} is {state} now: {page}")
            return
        note = f"{job['id']} {job['name']} is {state} now: {page}\nCtrl-C stops waiting, not the job."
        application.output.note(note)
        done = client.wait(job["id"])
        application.output.document(done, f"{job['id']} {job['name']} is {application.output.word(done['state'])}.")
