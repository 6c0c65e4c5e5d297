"""Report of the studio benchmark: one table of response times per database, and notes about the server."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from bench.parts.studio_questions import Answers

__all__ = ["DatabaseFigures", "StudioReport"]


@dataclass(kw_only=True)
class DatabaseFigures:
    """The figures of a server on one database.

    Args:
        database: ``SQLite`` or ``PostgreSQL``.
        filled_s: how long the store took to read the folders.
        start_s: from the start of the server to its first answer.
        resident_bytes: memory of the server after its start.
        asked_bytes: the same after all questions.
        idle_share: CPU time of the server while nobody asks, as a share of one core.
        answers: of each question.
        notices_shares: CPU time of the server in each round with changes and no stream, as a share of one core.
        streams_shares: the same with all streams open.
        streams: that were open.
        stream_bytes: memory of the server for each open stream.
        notices: that all streams got in the rounds.
        changes: that were made in the rounds with streams.
    """

    database: str
    filled_s: float
    start_s: float = 0.0
    resident_bytes: int = 0
    asked_bytes: int = 0
    idle_share: float = 0.0
    answers: list[Answers] = field(default_factory=list)
    notices_shares: list[float] = field(default_factory=list)
    streams_shares: list[float] = field(default_factory=list)
    streams: int = 0
    stream_bytes: float = 0.0
    notices: int = 0
    changes: int = 0

    @property
    def stream_share(self) -> float:
        """What the open streams cost the server, as a share of one core: the median difference of the rounds."""
        differences = sorted(
            with_streams - without for with_streams, without in zip(self.streams_shares, self.notices_shares)
        )
        return differences[len(differences) // 2] if differences else 0.0

    def text(self) -> str:
        """Return the figures for people; the table is Markdown."""
        lines = [
            f"{self.database}",
            f"- filled in {self.filled_s:.0f} s; the server's first answer after {self.start_s:.1f} s",
            f"- memory {self.resident_bytes / 1e6:.0f} MB after the start, {self.asked_bytes / 1e6:.0f} MB at the end",
            f"- idle: {100 * self.idle_share:.1f} % of a core",
            f"- {self.streams} streams: {100 * self.stream_share:.1f} % of a core; with changes and no stream"
            f" {_shares(self.notices_shares)}, with streams {_shares(self.streams_shares)};"
            f" {self.stream_bytes / 1e3:.0f} kB a stream; {self.notices} notices of {self.changes} changes",
            "",
            "| answer | kB | median ms | p95 | max | with streams, median | p95 | CPU ms | floor ms | times floor |",
            "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        ]
        return "\n".join(lines + [_line(each.as_dict()) for each in self.answers])

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {
            **asdict(self),
            "stream_share": self.stream_share,
            "answers": [each.as_dict() for each in self.answers],
        }


@dataclass
class StudioReport:
    """The whole benchmark.

    Args:
        title: what was measured.
        notes: what one must know to judge.
        databases: the figures of each.
        left_out: database → why it was not measured.
    """

    title: str
    notes: list[str] = field(default_factory=list)
    databases: list[DatabaseFigures] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the report for people."""
        lines = [self.title, *(f"- {note}" for note in self.notes)]
        lines += [f"\n{each.text()}" for each in self.databases]
        return "\n".join(lines + [f"Left out: {name} ({reason})" for name, reason in self.left_out.items()])

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {
            "title": self.title,
            "notes": self.notes,
            "databases": [each.as_dict() for each in self.databases],
            "left_out": self.left_out,
        }


def _shares(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares) + " %"


def _line(answer: dict[str, Any]) -> str:
    quiet, loaded, floor = answer["quiet_ms"], answer["loaded_ms"], answer["floor_ms"]
    figures = (quiet["median"], quiet["p95"], quiet["max"], loaded["median"], loaded["p95"], answer["cpu_ms"])
    shown = " | ".join(f"{figure:.1f}" for figure in (*figures, floor["median"], answer["times_the_floor"]))
    return f"| {answer['question']} | {answer['answer_bytes'] / 1e3:.1f} | {shown} |"
