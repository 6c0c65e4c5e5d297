"""``ziggurat dataset map`` and ``similar``: maps of datasets of a studio, and the samples that are alike."""

from __future__ import annotations

from typing import Any

import click

from ziggurat.cli.application import Application
from ziggurat.cli.commands import Command
from ziggurat.cli.job_requests import JobId, reaches_studio, studio_client
from ziggurat.cli.output import table
from ziggurat.cli.value_completion import complete_checkpoint

__all__ = ["map_", "similar"]


@click.command("map", cls=Command)
@click.argument("dataset", metavar="DATASET", type=JobId("dataset"))
@click.option(
    "--features",
    type=click.Choice(["backbone", "model", "own"]),
    help="Of a backbone, a trained model, or the samples themselves; default: what fits the dataset.",
)
@click.option("--model", default="", metavar="JOB", type=JobId("train"), help="Training whose features are used.")
@click.option(
    "--checkpoint",
    default="",
    metavar="NAME",
    shell_complete=complete_checkpoint,
    help="Of the model; default: the best, else the latest.",
)
@click.option("--tsne/--no-tsne", default=True, show_default=True, help="Place the samples by t-SNE as well.")
@click.option("--perplexity", type=float, default=30.0, show_default=True, help="Neighbors that t-SNE keeps.")
@click.option("--folds", type=click.IntRange(0, 20), default=5, show_default=True, help="For label errors; 0 for none.")
@click.option("--limit", type=click.IntRange(min=0), default=50_000, show_default=True, help="Samples; 0 for all.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every random choice.")
@reaches_studio
@click.pass_obj
def map_(application: Application, dataset: str, features: str | None, **given: Any) -> None:
    """Queue a map of DATASET (id, or name) of the studio: features of its samples, and where they place them."""
    names = ("model", "checkpoint", "tsne", "perplexity", "folds", "limit", "seed")
    asked = {name: given.pop(name) for name in names}
    with studio_client(application, given) as client:
        job = client.datasets.create_map(dataset, features=features, **asked)
        application.output.document(job, f"{job['id']}: {job['name']}, {job['state']}")


@click.command(cls=Command)
@click.argument("dataset", metavar="DATASET", type=JobId("dataset"))
@click.argument("sample")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Number to show.")
@click.option(
    "--map",
    "map_id",
    default="",
    metavar="JOB",
    type=JobId("embed"),
    help="Map whose features are used; default: the newest.",
)
@reaches_studio
@click.pass_obj
def similar(application: Application, dataset: str, sample: str, limit: int, map_id: str, **studio: Any) -> None:
    """Show the samples of DATASET (id, or name) of the studio that are most similar to SAMPLE (SPLIT/ROW or key)."""
    with studio_client(application, studio) as client:
        found = client.datasets.similar(dataset, sample, limit=limit, map_id=map_id)
    rows = [
        (f"{each['similarity']:.3f}", f"{each['split']}/{each['row']}", each["label"] or "", each["key"])
        for each in found["samples"]
    ]
    text = table(rows, ("cosine", "sample", "label", "key"))
    application.output.document(found, f"Similar to {found['sample']}, by {found['features']}\n{text}")
