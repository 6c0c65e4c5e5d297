"""Benchmark of web pages: time until a page is usable, in a real browser, for a studio with 10,000 jobs."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.parts.chromium import chromium, why_no_chromium
from bench.parts.million import class_tree, created
from bench.parts.pages_floor import floor
from bench.parts.pages_report import PagesReport
from bench.parts.pages_scenes import Figures, measure, scenes
from bench.parts.report import Options, machine
from bench.parts.studio_processes import Server, serve, workers
from bench.parts.studio_workspace import Size, Workspace, fill_store, make_folders

__all__ = ["PagesOptions", "main", "run", "run_pages"]

_CLASSES = 100
_REQUESTS = 200
"""So many for the CPU time of one: it is counted in steps of 10 ms."""
_WITHIN_S = 60


@dataclass(frozen=True, kw_only=True)
class PagesOptions:
    """How much is measured.

    Args:
        size: of the workspace.
        samples: of the dataset that is explored; a multiple of 100.
        rounds: interleaved rounds, each with an empty cache and then with a full one.
        warm: visits with a full cache in each round.
        rehearsed: whether every scene is looked at once for nothing, so that all templates are known.
    """

    size: Size = field(default_factory=Size)
    samples: int = 100_000
    rounds: int = 5
    warm: int = 4
    rehearsed: bool = True


def run(options: Options) -> PagesReport:
    """Measure at full size."""
    return run_pages(PagesOptions(rounds=options.rounds))


def run_pages(options: PagesOptions) -> PagesReport:
    """Make a workspace, and look at the pages of a studio on it."""
    size = options.size
    report = PagesReport(
        f"Pages of a studio with {size.jobs:,} jobs, {size.points:,} points, a dataset of {options.samples:,}",
        [
            f"{options.rounds} interleaved rounds: one visit with an empty cache, {options.warm} with a full one:"
            " from a bookmark, which starts a process of the browser, and by a link on another page",
            "the browser is at rest before each visit: a new window makes parts of its own",
            "usable: from the start of the navigation until htmx and all islands are at work: a mark of the page;"
            " for an act, from the key until the answer stands on the page; painted: the first of its contents",
            "the floor is a bare file of the same size in the same browser: no scripts, no style sheets, no images",
        ],
    )
    report.left_out = why_no_chromium()
    if report.left_out:
        return report
    with (
        tempfile.TemporaryDirectory(prefix="ziggurat-bench-pages-") as place,
        _studio(Path(place, "workspace"), options) as (server, workspace, explored),
    ):
        report.pages = _looked_at(server, workspace, explored, options)
        pages = [scene for scene in scenes(workspace, explored, options.samples) if not scene.act]
        report.cpu_ms = {page.name: _cpu_ms(server, page.path) for page in pages}
    return report


def main(words: Sequence[str] | None = None) -> None:
    """Run this benchmark alone, at another size."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description="Measure the pages of the studio.")
    parser.add_argument("--jobs", type=int, default=Size.jobs)
    parser.add_argument("--points", type=int, default=Size.points)
    parser.add_argument("--long-points", type=int, default=Size.long_points, help="of each of the four long curves")
    parser.add_argument("--queued", type=int, default=Size.queued)
    parser.add_argument("--samples", type=int, default=PagesOptions.samples)
    parser.add_argument("--rounds", type=int, default=PagesOptions.rounds)
    parser.add_argument("--warm", type=int, default=PagesOptions.warm, help="visits with a full cache in a round")
    parser.add_argument("--unrehearsed", action="store_true", help="measure the first look at each page as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    asked = parser.parse_args(words)
    size = Size(jobs=asked.jobs, points=asked.points, long_points=asked.long_points, queued=asked.queued)
    print(machine(), flush=True)
    measured = PagesOptions(
        size=size, samples=asked.samples, rounds=asked.rounds, warm=asked.warm, rehearsed=not asked.unrehearsed
    )
    report = run_pages(measured)
    print(f"\n{report.text()}\n\nafterwards: {machine()}", flush=True)
    if asked.json:
        content = {"machine": machine(), "benchmarks": [{"name": "pages", **report.as_dict()}]}
        asked.json.write_text(json.dumps(content, indent=1) + "\n")


@contextmanager
def _studio(folder: Path, options: PagesOptions) -> Iterator[tuple[Server, Workspace, str]]:
    """Give a server on a workspace, and the id of the dataset that is explored."""
    workspace = make_folders(folder, options.size)
    found = [job for job in workspace.jobs.values() if job.job.kind == "dataset" and job.state == "done"]
    explored = found[-1].job.id
    created(class_tree(options.samples, _CLASSES), Path(found[-1].job.folder), "none")
    fill_store(workspace, str(folder / "studio.db"))
    with (
        workers([Path(workspace.jobs[job_id].job.folder) for job_id in workspace.active]),
        serve(folder, None) as server,
    ):
        yield server, workspace, explored


def _looked_at(server: Server, workspace: Workspace, explored: str, options: PagesOptions) -> list[Figures]:
    """Look at every scene in rounds; the first is for nothing, where it is a rehearsal."""
    looked = scenes(workspace, explored, options.samples)
    figures = {scene.name: Figures(name=scene.name) for scene in looked}
    with floor() as beside, chromium() as opened:
        for number in range(0 if options.rehearsed else 1, options.rounds + 1):
            for scene in looked:
                kept = figures[scene.name] if number else Figures(name=scene.name)
                measure(opened, server.address, beside, scene, kept, options.warm if number else 1)
    return list(figures.values())


def _cpu_ms(server: Server, path: str) -> float:
    """Return the CPU time of the server for one request of a page, for what has not changed since the last."""
    with httpx.Client(base_url=server.address, timeout=_WITHIN_S) as client:
        client.get(path).raise_for_status()
        before_s = server.cpu_s()
        for _ in range(_REQUESTS):
            client.get(path).raise_for_status()
    return (server.cpu_s() - before_s) / _REQUESTS * 1000


if __name__ == "__main__":
    main()
