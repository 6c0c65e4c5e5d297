"""``ziggurat job threshold``: the operating point of a model, shown, chosen and cleared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.errors import UsageError

__all__ = ["job_threshold"]

_NUMBER = click.FloatRange(0, 1)


@click.command("threshold", cls=Command)
@click.argument("model_id", metavar="JOB", type=JobId())
@click.argument("threshold", metavar="[THRESHOLD]", type=_NUMBER, required=False)
@click.option("--class", "classes", metavar="NAME=X", multiple=True, help="Threshold of one class; repeatable.")
@click.option("--evaluation", metavar="JOB", type=JobId(), help="Validation evaluation to choose on; default: newest.")
@click.option("--clear", is_flag=True, help="Remove the thresholds that were chosen.")
@reaches_studio
@click.pass_obj
def job_threshold(
    application: Application,
    model_id: str,
    threshold: float | None,
    classes: Sequence[str],
    evaluation: str | None,
    clear: bool,
    **studio: Any,
) -> None:
    """Choose the THRESHOLD, from 0 to 1, that predictions and exports of the training ID obey, or show it.

    It is chosen on an evaluation of the validation split, and holds for the checkpoint that was evaluated. Of two
    classes it is for the second one; of several labels or of boxes it is for every class that --class does not name.
    """
    thresholds = dict(_named(each) for each in classes)
    chosen = threshold is not None or bool(thresholds)
    if clear and chosen:
        raise UsageError("Thresholds are chosen or cleared.", received="both", advice="Leave out --clear.")
    if evaluation is not None and not chosen:
        raise UsageError(
            "No threshold is given: an operating point needs one.", advice="Such as 0.7, or --class NAME=0.7."
        )
    with studio_client(application, studio) as client:
        if clear:
            client.models.clear_operating_point(model_id)
            application.output.document(None, f"{model_id} has no operating point any more.")
            return
        if chosen:
            found = client.models.set_operating_point(
                model_id, threshold, thresholds=thresholds or None, evaluation=evaluation or ""
            )
        else:
            found = client.models.operating_point(model_id)
    application.output.document(found, _text(found))


def _named(text: str) -> tuple[str, float]:
    name, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not name or not 0 <= value <= 1:
        raise UsageError(
            f"`{text[:80]}` is no threshold of a class: `--class` is NAME=X, X from 0 to 1.", advice="Such as cat=0.7."
        )
    return name, value


def _text(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "No threshold was chosen: predictions follow the defaults of the task."
    rows = [(name, f"{value:g}") for name, value in found["thresholds"].items()]
    chosen = f"Chosen on {found['checkpoint']} by the evaluation {found['evaluation']}."
    return "\n\n".join([table(rows, ("class", "threshold")), chosen, *filter(None, [found["problem"]])])
