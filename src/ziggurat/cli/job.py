"""``ziggurat job``: the job operations of the studio's REST API, under the same names, from any machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command, Group
from ziggurat.cli.here_or_studio import evaluate, in_studio, predict, resume, stop, train
from ziggurat.cli.job_comparisons import job_differences, job_retrain
from ziggurat.cli.job_records import job_load, job_samples, job_timeline
from ziggurat.cli.job_requests import (
    JobId,
    act_on_each,
    job_dataset,
    job_infer,
    reaches_studio,
    studio_client,
)
from ziggurat.cli.job_threshold import job_threshold
from ziggurat.cli.output import Output, table
from ziggurat.cli.value_completion import (
    complete_checkpoint,
    complete_condition,
    complete_curve,
    complete_of_jobs,
    complete_sort,
)
from ziggurat.cli.word_completion import complete_among
from ziggurat.entities import JOB_KINDS, JOB_STATES, RUN_KINDS
from ziggurat.entities.arithmetic import NOT_RECORDED
from ziggurat.entities.best_checkpoint import metric_text, metric_title, primary_metric
from ziggurat.entities.jobs import DIVERGED
from ziggurat.errors import (
    UnknownNameError,
    UsageError,
)
from ziggurat.formatting import as_ago, as_duration, as_time
from ziggurat.workspace.job_query import JobQuery

__all__ = ["job"]

_NAME: Final = "learning_rate"
_COMPLETIONS: Final = {
    "kind": complete_among(lambda: JOB_KINDS),
    "state": complete_among(lambda: JOB_STATES),
    **{name: complete_of_jobs(name) for name in ("project", "group", "owner")},
    "tag": complete_of_jobs("tags"),
    "where": complete_condition,
    "sort": complete_sort,
}
_ENDINGS = (".tar", ".tar.gz", ".tar.bz2", ".zip")
_PAGE: Final = 200
_ACTIONS: Final = {
    "pause": "Save jobs and free their devices; `resume` goes on with the same state and data.",
    "retry": "Put jobs that failed back into the queue.",
}


@click.group(cls=Group)
def job() -> None:
    """Create, list, show, stop, resume and delete the jobs of a studio, and predict with their models."""


@click.command("rate", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@click.argument("rate", metavar="[RATE]", type=float, required=False)
@click.option("--schedule", is_flag=True, help="Return to the schedule.")
@click.option("--yes", is_flag=True, help="Confirms a rate of more than ten times the current one.")
@reaches_studio
@click.pass_obj
def job_rate(
    application: Application, job_id: str, rate: float | None, schedule: bool, yes: bool, **studio: Any
) -> None:
    """Set the learning rate of the running training ID to RATE; it holds until `--schedule` gives it back."""
    if schedule == (rate is not None):
        raise UsageError(
            "A rate and `--schedule` exclude each other." if schedule else "The new learning rate is missing.",
            advice="Give a number, such as 0.001, or `--schedule`.",
        )
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(f"{rate} is no learning rate: it must be a number above 0.", advice="Usual are 0.0001 to 0.1.")
    with studio_client(application, studio) as client:
        found = client.unset_hyperparameter(job_id, _NAME) if rate is None else _set(client, job_id, rate, yes)
    does = "follows its schedule again" if rate is None else f"is {rate:g}"
    application.output.document(found, f"The learning rate of {job_id} {does}, within a tenth of an epoch.")


def _set(client: Any, job_id: str, rate: float, force: bool) -> dict[str, Any]:
    return client.set_hyperparameter(job_id, _NAME, rate, force=force)


@click.command("checkpoints", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@reaches_studio
@click.pass_obj
def job_checkpoints(application: Application, job_id: str, **studio: Any) -> None:
    """List the checkpoints of the job ID, the oldest step first."""
    with studio_client(application, studio) as client:
        found = client.checkpoints(job_id)
    rows = [(each["name"], str(each["step"]), f"{each['epoch']:g}", each["reason"]) for each in found]
    application.output.document(found, table(rows, ("checkpoint", "step", "epoch", "reason")))


@click.command("download", cls=Command)
@click.argument("job_id", metavar="JOB", type=JobId())
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--checkpoint",
    metavar="NAME",
    default="",
    shell_complete=complete_checkpoint,
    help="Only this checkpoint, such as best; default: all.",
)
@reaches_studio
@click.pass_obj
def job_download(application: Application, job_id: str, target: Path, checkpoint: str, **studio: Any) -> None:
    """Write the files of the job ID to FILE: an archive .tar, .tar.gz, .tar.bz2 or .zip. Nothing is overwritten."""
    if not target.name.endswith(_ENDINGS):
        raise UsageError(f"`{target.name}` has no ending of an archive.", advice=", ".join(_ENDINGS))
    with studio_client(application, studio) as client:
        client.download(job_id, target, checkpoint=checkpoint)
    content = {"id": job_id, "file": str(target), "size_bytes": target.stat().st_size}
    application.output.document(content, f"{job_id} is in {target}, {content['size_bytes']} bytes.")


for _command in (
    *(job_dataset, job_infer, job_checkpoints, job_download, job_rate),
    *(job_load, job_samples, job_timeline),
    *(job_retrain, job_differences, job_threshold),
    *map(in_studio, (train, resume, stop, evaluate, predict)),
):
    job.add_command(_command)


def _filters(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each field of a job query, but for its page."""
    for name, field in reversed(JobQuery.model_fields.items()):
        if name in ("offset", "limit"):
            continue
        repeats = field.default == []
        text = f"{field.description} Repeatable." if repeats else field.description
        complete = _COMPLETIONS.get(name)
        flags = ("--where", "--filter") if name == "where" else (f"--{name}",)
        command = click.option(*flags, name, multiple=repeats, shell_complete=complete, help=text)(command)
    return command


@job.command("list")
@_filters
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number.")
@reaches_studio
@click.pass_obj
def job_list(application: Application, limit: int, **chosen: Any) -> None:
    """List jobs, newest first."""
    _check_known("kind of job", chosen["kind"], JOB_KINDS)
    _check_known("state of a job", chosen["state"], JOB_STATES)
    with studio_client(application, chosen) as client:
        found = list(islice(client.jobs(**_given(chosen), limit=min(limit, _PAGE)), limit))
    application.output.document(found, _table(found))


@job.command("queue")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of jobs.")
@reaches_studio
@click.pass_obj
def job_queue(application: Application, limit: int, **studio: Any) -> None:
    """List the waiting jobs, next first, with the reason of each."""
    with studio_client(application, studio) as client:
        found = client.queue(limit)
    application.output.document(found, _queue_table(found))


@job.command("move")
@click.argument("job_id", metavar="JOB", type=JobId())
@click.option("--before", metavar="OTHER", type=JobId(), help="Queued job that comes after it.")
@click.option("--last", is_flag=True, help="To the end of the queue.")
@reaches_studio
@click.pass_obj
def job_move(application: Application, job_id: str, before: str | None, last: bool, **studio: Any) -> None:
    """Place the waiting job ID before another one, or last; without either, first."""
    if last and before:
        raise UsageError("`--before` and `--last` exclude each other.", advice="Leave one of them out.")
    with studio_client(application, studio) as client:
        if not last and before is None:
            # Two, since the first of the queue may be this job itself.
            before = next((each["id"] for each in client.queue(2) if each["id"] != job_id), None)
        found = client.reorder(job_id, before)
    application.output.document(found, _queue_table(found))


@job.command("show")
@click.argument("job_id", metavar="JOB", type=JobId())
@reaches_studio
@click.pass_obj
def job_show(application: Application, job_id: str, **studio: Any) -> None:
    """Show the job ID in detail."""
    with studio_client(application, studio) as client:
        found = client.job(job_id)
        attempts = client.attempts(job_id) if found["kind"] in RUN_KINDS else []
    application.output.document(found, _job_text(found, application.output, attempts))


def _add_action(name: str, text: str) -> None:
    @job.command(name, help=f"{text}\n\nExit code 10 where that was not possible for one of them.")
    @click.argument("job_ids", nargs=-1, required=True, metavar="JOB...", type=JobId())
    @reaches_studio
    @click.pass_obj
    def act(application: Application, job_ids: tuple[str, ...], **studio: Any) -> int:
        with studio_client(application, studio) as client:
            return act_on_each(application, client, job_ids, lambda job_id: getattr(client, name)(job_id))


for _action, _help in _ACTIONS.items():
    _add_action(_action, _help)


@job.command("delete")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...", type=JobId())
@click.option("--force", is_flag=True, help="Kills running jobs first.")
@click.option("--forever", is_flag=True, help="Removes their folders at once, also of deleted jobs.")
@reaches_studio
@click.pass_obj
def job_delete(application: Application, job_ids: tuple[str, ...], force: bool, forever: bool, **studio: Any) -> int:
    """Delete jobs; `job restore` brings them back. Exit code 10 if that was not possible for one of them."""

    def delete(job_id: str) -> dict[str, Any]:
        client.delete(job_id, force=force, forever=forever)
        return {"id": job_id, "state": "removed" if forever else "deleted"}

    with studio_client(application, studio) as client:
        return act_on_each(application, client, job_ids, delete)


@job.command("restore")
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB...", type=JobId())
@reaches_studio
@click.pass_obj
def job_restore(application: Application, job_ids: tuple[str, ...], **studio: Any) -> int:
    """Put deleted jobs back as they were. Exit code 10 if that was not possible for one of them."""
    with studio_client(application, studio) as client:
        return act_on_each(application, client, job_ids, lambda job_id: client.restore(job_id))


@job.command("trash", hidden=True)
@reaches_studio
@click.pass_obj
def job_trash(application: Application, **studio: Any) -> None:
    """List the deleted jobs that can be restored, newest first; `ziggurat trash list` has everything."""
    with studio_client(application, studio) as client:
        found = [each for each in client.trash() if each["kind"] in JOB_KINDS]
    rows = [(each["id"], each["kind"], each["name"], as_ago(each["deleted"])) for each in found]
    application.output.document(found, table(rows, ("id", "kind", "name", "deleted")))


@job.command("wait")
@click.argument("job_id", metavar="JOB", type=JobId())
@click.option("--time-limit", metavar="S", type=click.FloatRange(min=0), help="Timeout in seconds.")
@reaches_studio
@click.pass_obj
def job_wait(application: Application, job_id: str, time_limit: float | None, **studio: Any) -> None:
    """Wait until the job ID is done; exit code 10 if it fails, is stopped, or is not done in time."""
    with studio_client(application, studio) as client:
        found = client.wait(job_id, timeout_s=time_limit)
    application.output.document(found, f"{job_id} is {_state(found)}.")


@job.command("log")
@click.argument("job_id", metavar="JOB", type=JobId())
@click.option("--whole", is_flag=True, help="The whole log instead of its end.")
@reaches_studio
@click.pass_obj
def job_log(application: Application, job_id: str, whole: bool, **studio: Any) -> None:
    """Show the end of the worker's log of the job ID."""
    with studio_client(application, studio) as client:
        text = client.log(job_id, whole=whole)
    application.output.document({"text": text}, text)


@job.command("curve")
@click.argument("job_id", metavar="JOB", type=JobId())
@click.argument("tags", nargs=-1, metavar="[TAG]...", shell_complete=complete_curve)
@click.option("--since-step", type=int, default=-1, help="Only points after this step.")
@click.option("--max-points", type=click.IntRange(min=2), default=2000, show_default=True, help="Of each curve.")
@reaches_studio
@click.pass_obj
def job_curve(
    application: Application, job_id: str, tags: tuple[str, ...], since_step: int, max_points: int, **studio: Any
) -> None:
    """Show the points of metrics of the job ID; of all of them if no TAG is given."""
    with studio_client(application, studio) as client:
        found = client.curves(job_id, tags, since_step=since_step, max_points=max_points)
    rows = [
        (tag, f"{step:.0f}", f"{value:.6g}")
        for tag, curve in found.items()
        for step, value in zip(curve["steps"], curve["values"], strict=True)
    ]
    application.output.document(found, table(rows, ("curve", "step", "value")))


def _check_known(what: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(what, name, known)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given; an empty text is: it asks for jobs without a project."""
    given = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return {name: value for name, value in given.items() if value not in (None, [])}


def _queue_table(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [(each["id"], each["name"], each["reason"]) for each in found]
    return table(rows, ("id", "name", "waits because"))


def _table(found: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        (each["id"], each["name"], each["kind"], _state(each), _progress(each), _result(each), each["reason"])
        for each in found
    ]
    return table(rows, ("id", "name", "kind", "state", "progress", "result", "reason"))


def _result(found: Mapping[str, Any]) -> str:
    """Return the best value of the metric that a training is judged by; empty without one."""
    scalars = found.get("scalars", {})
    metric = primary_metric(scalars)
    if metric is None:
        return ""
    tag, mode = metric
    return f"{metric_title(tag)} {metric_text(tag, scalars[tag]['minimum' if mode == 'min' else 'maximum'])}"


def _state(found: Mapping[str, Any]) -> str:
    """Return the state of a job, and that it diverged; a server of an earlier release does not say that."""
    return found["state"] + (f", {DIVERGED}" if found.get("outcome") == DIVERGED else "")


def _progress(found: Mapping[str, Any]) -> str:
    total = f" of {found['total_steps']}" if found["total_steps"] else ""
    return f"step {found['global_step']}{total}"


def _job_text(found: Mapping[str, Any], output: Output, attempts: Sequence[Mapping[str, Any]] = ()) -> str:
    rows = [
        ("job", f"{found['id']} {found['name']}"),
        ("state", output.word(found["state"]) + (f": {found['reason']}" if found["reason"] else "")),
        ("outcome", "" if found.get("outcome") == found["state"] else found.get("outcome", "")),
        ("diverged", found["divergence"]["text"].removeprefix("Diverged: ") if found["divergence"] else ""),
        ("progress", _progress(found)),
        ("arithmetic", _arithmetic(attempts)),
        ("node", nodes_text(found)),
        ("time left", "" if found["remaining_s"] is None else as_duration(found["remaining_s"])),
        ("made", as_time(found["created"])),
        ("owner", found["owner"]),
        ("project", found["project"]),
        ("tags", ", ".join(found["tags"])),
        ("program" if found["kind"] == "program" else "network", found["network"]),
        ("folder", found["folder"]),
        ("scalars", ", ".join(f"{tag} {_last(curve):.5g}" for tag, curve in found["scalars"].items())),
        ("notes", found["notes"]),
        ("next", _next(found.get("next_step"))),
    ]
    return "\n".join(f"{title:<11}{text}" for title, text in rows if text)


def nodes_text(found: Mapping[str, Any]) -> str:
    """Return the nodes of a job; empty if it is on the studio's own machine, or the studio is of an earlier release."""
    shares, worker = found.get("placement") or [], found.get("worker") or {}
    if len(shares) < 2 and worker.get("executor", "local") == "local":
        return ""
    return "; ".join(
        f"{share['node']}: GPU {', '.join(map(str, share['devices']))}" if share["devices"] else share["node"]
        for share in shares
    )


def _next(step: Mapping[str, Any] | None) -> str:
    """Return what to do after a result, in one line; empty if nothing is to be said."""
    return "" if step is None else " ".join(filter(None, (step["text"], step["reason"], f"{step['title']}.")))


def _arithmetic(attempts: Sequence[Mapping[str, Any]]) -> str:
    """Return how the newest attempt compares with its checkpoint; empty for the first one."""
    if len(attempts) < 2:
        return ""
    recorded = attempts[-1].get("arithmetic")
    return str(recorded["text"]) if recorded else f"{NOT_RECORDED}."


def _last(curve: Mapping[str, Any]) -> float:
    return math.nan if curve["last"] is None else float(curve["last"])
