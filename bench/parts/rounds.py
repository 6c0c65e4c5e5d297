"""Interleaved rounds: each side runs in its own process, and the sides alternate.

A round starts and ends idle: a side that prefetches has full buffers before and after, so that the CPU time of its
process tree in between belongs to the batches of the round.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from bench.parts.report import Options, Report, Row

__all__ = ["Side", "SideProcess", "measure"]


@dataclass(frozen=True)
class Side:
    """One thing to measure.

    Args:
        name: how the report calls it.
        function: "module:function" that returns an endless iterator of batches.
        arguments: keyword arguments of the function, of plain data.
        is_limit: whether it is a limit and no loader.
    """

    name: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict)
    is_limit: bool = False


def measure(report: Report, sides: list[Side], options: Options, *, batches: int, batch_size: int) -> Report:
    """Run the sides in turn and add their rows to the report.

    Args:
        report: what the rows are added to.
        sides: what to measure.
        options: how many rounds.
        batches: batches a side and round.
        batch_size: items in a batch.
    """
    running: list[SideProcess] = []
    try:
        for side in sides:
            process = SideProcess(side)
            reason = process.wait_until_ready()
            if reason:
                report.left_out[side.name] = reason
                process.end()
            else:
                running.append(process)
        for process in running:
            process.round(batches)  # warm-up, dropped
        for number in range(options.rounds):
            turn = number % len(running) if running else 0
            for process in running[turn:] + running[:turn]:
                process.rounds.append(process.round(batches))
    finally:
        for process in running:
            process.end()
    for process in running:
        cpu_us, wall_us = (
            [1e6 * value / (batches * batch_size) for value in column] for column in zip(*process.rounds)
        )
        report.rows.append(Row(process.side.name, cpu_us, wall_us, process.side.is_limit))
    return report


class SideProcess:
    """The process of one side, which works only during its rounds.

    Args:
        side: what it measures.
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self.rounds: list[tuple[float, float]] = []
        command = [sys.executable, "-m", "bench.parts.side", side.function, json.dumps(side.arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait_until_ready(self) -> str:
        """Return why the side cannot be measured, or nothing."""
        return self._answer().get("left_out", "")

    def round(self, batches: int) -> tuple[float, float]:
        """Return seconds of CPU time and of wall time for some batches."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{batches}\n")
        self._process.stdin.flush()
        answer = self._answer()
        return answer["cpu_s"], answer["wall_s"]

    def end(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the side `{self.side.name}` ended with exit code {self._process.wait()}; see above")
        return json.loads(line)
