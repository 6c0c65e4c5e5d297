"""Requests of the studio benchmark and their response times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

__all__ = ["Answers", "Question", "ask", "questions"]


@dataclass(frozen=True)
class Question:
    """One request.

    Args:
        name: how the report calls it.
        path: with its query; ``{number}`` in it is another number each time.
        after_change: whether the epoch of a job on it is changed by another process before each request.
    """

    name: str
    path: str
    after_change: bool = False

    def url(self, address: str) -> str:
        """Return what is asked for: a page where the path begins with a slash, else a route of the API."""
        return f"{address}{self.path}" if self.path.startswith("/") else f"{address}/api/v1/{self.path}"


@dataclass
class Answers:
    """How long the answers to one question took.

    Args:
        question: its name.
        answer_bytes: size of an answer.
        quiet_ms: of each, while nobody else asked.
        loaded_ms: of each, while streams were open and notices were made.
        floor_ms: of each, where the floor returned the same bytes.
        cpu_ms: CPU time of the server an answer, one figure for each quiet round.
    """

    question: str
    answer_bytes: int
    quiet_ms: list[float] = field(default_factory=list)
    loaded_ms: list[float] = field(default_factory=list)
    floor_ms: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values: median, 95th percentile and maximum of each list."""
        lists = {name: getattr(self, name) for name in ("quiet_ms", "loaded_ms", "floor_ms")}
        return {
            "question": self.question,
            "answer_bytes": self.answer_bytes,
            **{name: summary(values) for name, values in lists.items()},
            "cpu_ms": statistics.median(self.cpu_ms),
            "times_the_floor": statistics.median(self.quiet_ms) / statistics.median(self.floor_ms),
        }


def summary(values: Sequence[float]) -> dict[str, float]:
    """Return median, 95th percentile and maximum."""
    ordered = sorted(values)
    return {
        "median": statistics.median(ordered),
        "p95": ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))],
        "max": ordered[-1],
    }


def questions(jobs: int, long: str, long_points: int, ended: Sequence[str]) -> list[Question]:
    """Return what is asked.

    Args:
        jobs: that there are.
        long: id of a job with a long curve.
        long_points: that it has, one every ten steps.
        ended: ids of trainings that are done, five or more.
    """
    five = "&".join(f"job={each}" for each in ended[:5])
    return [
        Question("jobs, the newest 50", "jobs"),
        Question("jobs, 100 of older ones", f"jobs?limit=100&offset={jobs // 2}"),
        Question("jobs with a word", "jobs?text=flowers"),
        Question("jobs that failed", "jobs?state=failed"),
        Question("jobs, learning_rate>0.01", "jobs?where=learning_rate%3E0.01"),
        Question("jobs by a curve, 100", "jobs?sort=-validation/accuracy&limit=100"),
        Question("jobs by a field of the spec, 100", "jobs?sort=learning_rate&limit=100"),
        Question("counts of states", "counts"),
        Question("queue of all that wait", "queue"),
        Question("one job", f"jobs/{ended[0]}"),
        Question("names of its curves", f"jobs/{ended[0]}/tags"),
        Question("its curves, all five", f"jobs/{ended[0]}/curves"),
        Question(f"curve of {long_points:,} points, thinned", f"jobs/{long}/curves?tag=train/loss"),
        Question("the half of it", f"jobs/{long}/curves?tag=train/loss&since_step={5 * long_points}"),
        Question("its newest 100 points", f"jobs/{long}/curves?tag=train/loss&since_step={10 * long_points - 1000}"),
        Question("comparison of five jobs", f"compare?{five}"),
        Question("page of runs", "/"),
        Question("page of runs after a change", "/", after_change=True),
    ]


def ask(
    client: httpx.Client, url: str, times: int, change: Callable[[int], None] | None = None
) -> tuple[list[float], bytes]:
    """Ask the same so many times after one that is dropped; return milliseconds of each, and an answer.

    Args:
        client: that asks.
        url: of the question.
        times: how often.
        change: called with a number before each request; its time does not count.

    Raises:
        httpx.HTTPStatusError: where the answer is an error.
    """
    content = client.get(url).raise_for_status().content
    taken = []
    for number in range(times):
        if change is not None:
            change(number)
        began = time.perf_counter()
        client.get(url.replace("{number}", str(number))).raise_for_status()
        taken.append(1000 * (time.perf_counter() - began))
    return taken, content
