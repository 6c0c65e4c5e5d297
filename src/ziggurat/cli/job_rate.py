"""``ziggurat job rate``: the learning rate of a running training, set by hand or returned to its schedule."""

from __future__ import annotations

import math
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_reach import JobId, reaches_studio, studio_client
from ziggurat.errors import UsageError

__all__ = ["job_rate"]

_NAME: Final = "learning_rate"


@click.command("rate", cls=Command)
@click.argument("job_id", metavar="ID", type=JobId())
@click.argument("rate", metavar="[RATE]", type=float, required=False)
@click.option("--schedule", is_flag=True, help="Let its schedule set the rate again.")
@click.option("--yes", is_flag=True, help="Also set a rate of more than ten times the present one.")
@reaches_studio
@click.pass_obj
def job_rate(
    application: Application, job_id: str, rate: float | None, schedule: bool, yes: bool, **studio: Any
) -> None:
    """Set the learning rate of the running training ID to RATE; it holds until `--schedule` gives it back."""
    if schedule == (rate is not None):
        raise UsageError(
            "The learning rate is set to RATE, or follows its schedule.",
            received="both" if schedule else "neither",
            advice="Give a number, such as 0.001, or `--schedule`.",
        )
    if rate is not None and not 0 < rate < math.inf:
        raise UsageError(
            "A learning rate must be a number above 0.", received=f"{rate}", advice="Usual are 0.0001 to 0.1."
        )
    with studio_client(application, studio) as client:
        found = client.unset_hyperparameter(job_id, _NAME) if rate is None else _set(client, job_id, rate, yes)
    does = "follows its schedule again" if rate is None else f"is {rate:g}"
    application.output.document(found, f"The learning rate of {job_id} {does}, within a tenth of an epoch.")


def _set(client: Any, job_id: str, rate: float, force: bool) -> dict[str, Any]:
    return client.set_hyperparameter(job_id, _NAME, rate, force=force)
