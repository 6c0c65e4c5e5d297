"""Benchmark of the studio: requests to a server with 10,000 jobs and a million points, while 100 pages listen."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.parts.report import Options, machine
from bench.parts.studio_postgresql import postgresql
from bench.parts.studio_processes import Server, floor, load, serve, workers
from bench.parts.studio_questions import Answers, ask, questions
from bench.parts.studio_report import DatabaseFigures, StudioReport
from bench.parts.studio_workspace import Size, Workspace, fill_store, make_folders
from ziggurat.store import Store

__all__ = ["StudioOptions", "main", "run", "run_studio"]

_PER_SECOND = 10.0
_SETTLE_S = 1.0


@dataclass(frozen=True, kw_only=True)
class StudioOptions:
    """How much is measured.

    Args:
        size: of the workspace.
        rounds: interleaved rounds; each asks every question without and with streams.
        times: how often a round asks each question.
        streams: that are open.
        round_s: how long the CPU time is taken in a round, without and with streams.
        idle_s: how long the CPU time of the idle server is taken.
        databases: of ``SQLite`` and ``PostgreSQL``.
    """

    size: Size = field(default_factory=Size)
    rounds: int = 3
    times: int = 40
    streams: int = 100
    round_s: float = 10.0
    idle_s: float = 60.0
    databases: Sequence[str] = ("SQLite", "PostgreSQL")


def run(options: Options) -> StudioReport:
    """Measure at full size."""
    return run_studio(StudioOptions(rounds=options.rounds))


def run_studio(options: StudioOptions) -> StudioReport:
    """Make a workspace, and measure a server on each database."""
    size = options.size
    report = StudioReport(
        f"Studio with {size.jobs:,} jobs and {size.points:,} points, {size.queued} jobs in the queue",
        [
            f"{options.rounds} interleaved rounds of {options.times} answers a question, one client",
            f"{options.streams} streams, {_PER_SECOND:.0f} changes a second, each one notice for every stream",
            "the floor returns the same bytes by a bare route of FastAPI in a process of its own",
        ],
    )
    with tempfile.TemporaryDirectory(prefix="ziggurat-bench-studio-") as place:
        workspace = make_folders(Path(place, "workspace"), size)
        if "SQLite" in options.databases:
            report.databases.append(_measured("SQLite", workspace, None, options))
        if "PostgreSQL" in options.databases:
            with postgresql() as url:
                if url is None:
                    report.left_out["PostgreSQL"] = "no server can be started"
                else:
                    report.databases.append(_measured("PostgreSQL", workspace, url, options))
    return report


def main(words: Sequence[str] | None = None) -> None:
    """Run this benchmark alone, at another size."""
    parser = argparse.ArgumentParser(prog="python -m bench.studio", description="Measure the studio.")
    parser.add_argument("--jobs", type=int, default=Size.jobs)
    parser.add_argument("--points", type=int, default=Size.points)
    parser.add_argument("--long-points", type=int, default=Size.long_points, help="of each of the four long curves")
    parser.add_argument("--queued", type=int, default=Size.queued)
    parser.add_argument("--rounds", type=int, default=StudioOptions.rounds)
    parser.add_argument("--streams", type=int, default=StudioOptions.streams)
    parser.add_argument("--idle-s", type=float, default=StudioOptions.idle_s)
    parser.add_argument("--database", action="append", choices=StudioOptions.databases, help="both by default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    asked = parser.parse_args(words)
    size = Size(jobs=asked.jobs, points=asked.points, long_points=asked.long_points, queued=asked.queued)
    options = StudioOptions(
        size=size,
        rounds=asked.rounds,
        streams=asked.streams,
        idle_s=asked.idle_s,
        databases=asked.database or StudioOptions.databases,
    )
    print(machine(), flush=True)
    report = run_studio(options)
    print(f"\n{report.text()}", flush=True)
    if asked.json:
        content = {"machine": machine(), "benchmarks": [{"name": "studio", **report.as_dict()}]}
        asked.json.write_text(json.dumps(content, indent=1) + "\n")


def _measured(database: str, workspace: Workspace, url: str | None, options: StudioOptions) -> DatabaseFigures:
    began = time.perf_counter()
    fill_store(workspace, url or str(workspace.folder / "studio.db"))
    figures = DatabaseFigures(database=database, filled_s=time.perf_counter() - began, streams=options.streams)
    folders = [Path(workspace.jobs[job_id].job.folder) for job_id in workspace.active]
    with workers(folders), serve(workspace.folder, url) as server, floor() as bare:
        figures.start_s, figures.resident_bytes = server.start_s, server.resident_bytes()
        figures.idle_share = _share(server, options.idle_s)
        with Store.open(url or workspace.folder / "studio.db", workspace=workspace.folder) as store:
            _ask_all(figures, server, bare, workspace, options, store)
        _measure_streams(figures, server, workspace, options)
        figures.asked_bytes = server.resident_bytes()
    return figures


def _share(server: Server, seconds: float) -> float:
    """Return the CPU time of the server in the next seconds, as a share of one core."""
    time.sleep(_SETTLE_S)
    before, began = server.cpu_s(), time.perf_counter()
    time.sleep(seconds)
    return (server.cpu_s() - before) / (time.perf_counter() - began)


def _ask_all(
    figures: DatabaseFigures, server: Server, bare: str, workspace: Workspace, options: StudioOptions, store: Store
) -> None:
    asked = questions(options.size.jobs, workspace.long[0], options.size.long_points, workspace.ended)
    found = {each.name: Answers(each.name, 0) for each in asked}
    with httpx.Client(timeout=60) as client:
        for _ in range(options.rounds):
            for each in asked:
                answers, url = found[each.name], each.url(server.address)
                before = server.cpu_s()
                change = _changed_epoch(store, workspace.active) if each.after_change else None
                taken, content = ask(client, url, options.times, change)
                answers.cpu_ms.append(1000 * (server.cpu_s() - before) / (options.times + 1))
                answers.quiet_ms += taken
                answers.answer_bytes = len(content)
                client.put(f"{bare}/bytes", content=content).raise_for_status()
                answers.floor_ms += ask(client, f"{bare}/bytes", options.times)[0]
            with load(server.address, workspace.ended[:200], streams=options.streams, per_second=_PER_SECOND):
                for each in asked:
                    taken, _ = ask(client, each.url(server.address), options.times)
                    found[each.name].loaded_ms += taken
    figures.answers = list(found.values())


def _changed_epoch(store: Store, active: Sequence[str]) -> Callable[[int], None]:
    """Return what changes a running job, as the worker's news would; the CPU time of it is this process's own."""
    return lambda number: store.jobs.note(active[number % len(active)], epoch=number)


def _measure_streams(figures: DatabaseFigures, server: Server, workspace: Workspace, options: StudioOptions) -> None:
    """Take the CPU time with changes alone and with open streams in turn, so that drift meets both."""
    jobs = workspace.ended[:200]
    grown: list[float] = []
    for _ in range(options.rounds):
        with load(server.address, jobs, streams=0, per_second=_PER_SECOND):
            figures.notices_shares.append(_share(server, options.round_s))
        before = server.resident_bytes()
        with load(server.address, jobs, streams=options.streams, per_second=_PER_SECOND) as came:
            figures.streams_shares.append(_share(server, options.round_s))
            grown.append(max(0, server.resident_bytes() - before) / max(1, options.streams))
        figures.notices += came.notices
        figures.changes += came.changes
    figures.stream_bytes = max(grown)


if __name__ == "__main__":
    main()
