"""``ziggurat job retrain`` and ``differences``: a training on another version, and what two evaluations differ in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.formatting import as_number, as_percent, plural

__all__ = ["job_differences", "job_retrain"]

_LISTS: Final = {
    "fixed": "Fixed",
    "broken": "Broken",
    "still_wrong": "Still wrong",
    "better": "Better",
    "worse": "Worse",
    "equal": "Equal",
    "label_changed": "Label changed",
    "only_first": "Only in the first",
    "only_second": "Only in the second",
}


@click.command("retrain", cls=Command)
@click.argument("model_id", metavar="JOB", type=JobId())
@click.option("--dataset", metavar="JOB", type=JobId(), required=True, help="Version of the dataset to train on.")
@click.option(
    "--split", type=click.Choice(["train", "val", "test"]), help="Split that is compared; default: as before."
)
@click.option("--evaluation", metavar="JOB", type=JobId(), help="Evaluation to compare with; default: the newest.")
@click.option("--wait", is_flag=True, help="Wait until both evaluations are done, and show what changed.")
@reaches_studio
@click.pass_obj
def job_retrain(
    application: Application,
    model_id: str,
    dataset: str,
    split: str | None,
    evaluation: str | None,
    wait: bool,
    **studio: Any,
) -> None:
    """Repeat the training ID on another version of its dataset, evaluate it, and compare the two.

    The same training on the same version is made once: asked again, the one that is there is shown.
    """
    with studio_client(application, studio) as client:
        found = client.evaluations.retrain(model_id, dataset, split=split, evaluation=evaluation)
        first, second = found["former_evaluation"]["id"], found["evaluation"]["id"]
        if wait:
            for job_id in (found["model"]["id"], first, second):
                client.wait(job_id)
            found["differences"] = client.evaluations.differences(first, second)
    model = found["model"]
    lines = [
        f"{model['id']} {model['name']} is {'made' if found['is_new'] else 'there already, ' + model['state']}.",
        f"Its evaluation is {second}, compared with {first}.",
    ]
    if wait:
        lines.append(_text(found["differences"], samples=False))
    else:
        lines.append(f"When they are done: ziggurat job differences {first} {second}")
    application.output.document(found, "\n".join(lines))


@click.command("differences", cls=Command)
@click.argument("first_id", metavar="FIRST", type=JobId())
@click.argument("second_id", metavar="SECOND", type=JobId())
@click.option("--which", type=click.Choice([*_LISTS]), help="Samples that are listed; default: fixed, or better.")
@click.option("--limit", type=click.IntRange(0, 1000), default=20, show_default=True, help="Samples listed.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Samples left out first.")
@click.option("--margin", type=click.FloatRange(min=0), help="Score difference that counts as equal.")
@reaches_studio
@click.pass_obj
def job_differences(application: Application, first_id: str, second_id: str, **chosen: Any) -> None:
    """Show how the evaluation SECOND differs from the evaluation FIRST.

    They are of the same split, also of two versions of a dataset: samples are then joined by their content.
    """
    asked = {name: chosen.pop(name) for name in ("which", "limit", "offset", "margin")}
    with studio_client(application, chosen) as client:
        found = client.evaluations.differences(first_id, second_id, **asked)
    application.output.document(found, _text(found, samples=True))


def _text(found: Mapping[str, Any], *, samples: bool) -> str:
    lines = [_accuracy(found["accuracy"])] if found.get("accuracy") else []
    if found.get("mean") is not None:
        lines.append(f"Mean difference of the scores: {as_number(found['mean'])}{_interval(found['interval'], 1)}")
    versions = found["versions"]
    if versions is not None:
        lines.append(f"Two datasets with {plural(versions['common'], 'common sample')}, joined by content.")
        if versions["label_changed"] is None:
            lines.append("Masks and target images are not compared.")
        if versions["unmatched"]:
            lines.append(f"{plural(versions['unmatched'], 'duplicate')} could not be matched.")
    rows = [(_LISTS[name], str(count)) for name, count in found["counts"].items()]
    lines.append(table(rows, ("samples", "count")))
    if samples and found["samples"]:
        lines.append(table([_sample(each) for each in found["samples"]], ("row", "sample", "before", "after")))
    return "\n".join(lines)


def _accuracy(accuracy: Mapping[str, Any]) -> str:
    text = f"Accuracy {as_percent(accuracy['first'], 2)} to {as_percent(accuracy['second'], 2)}, difference "
    text += f"{100 * accuracy['difference']:+.2f} points{_interval(accuracy['interval'], 100)}"
    relabeled = accuracy["first_by_second_labels"]
    return text if relabeled is None else f"{text}; the first by the labels of the second: {as_percent(relabeled, 2)}"


def _interval(ends: Sequence[float] | None, factor: int) -> str:
    return "" if ends is None else f" (95 % interval {' to '.join(f'{factor * end:.3g}' for end in ends)})"


def _sample(each: Mapping[str, Any]) -> tuple[str, str, str, str]:
    if "label_before" in each:
        before, after = each["label_before"], each["label_after"]
        if "second" in each and "predicted_name" in each["second"]:
            return _row(
                each, f"{before}, predicted {_top(each)}", f"{after}, predicted {each['second']['predicted_name']}"
            )
        return _row(each, str(before), str(after))
    if "second" not in each:
        return _row(each, _said(each), "")
    return _row(each, _said(each), _said(each["second"]))


def _row(each: Mapping[str, Any], before: str, after: str) -> tuple[str, str, str, str]:
    return f"{each['split']}/{each['row']}", str(each["key"]), before, after


def _top(each: Mapping[str, Any]) -> str:
    return next((str(one["name"]) for one in each["top"] if one["class"] == each["predicted"]), str(each["predicted"]))


def _said(each: Mapping[str, Any]) -> str:
    if "top" in each:
        return f"predicted {_top(each)} {as_percent(each['score'], 0)}"
    return "–" if each["score"] is None else as_number(each["score"])
