"""Report of the matrix: a line for each combination, with its outcome and seconds."""

from __future__ import annotations

from typing import Any

import pytest

COLUMNS = ("task", "framework", "data", "journey", "kill")


@pytest.fixture(autouse=True)
def combination(request: pytest.FixtureRequest, record_property: Any) -> None:
    """Send what is combined along with the outcome, also from another process."""
    given = request.node.callspec.params
    for column in COLUMNS:
        record_property(column, given[column])


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, and how many combinations hold."""
    reports = [
        (outcome, report)
        for outcome in ("passed", "failed", "error", "skipped")
        for report in terminalreporter.stats.get(outcome, [])
        if report.when == "call" or outcome != "passed"
    ]
    rows = sorted(
        (*(str(dict(report.user_properties).get(column, "")) for column in COLUMNS), outcome, f"{report.duration:.0f}")
        for outcome, report in reports
    )
    terminalreporter.write_line("")
    for row in ((*COLUMNS, "outcome", "s"), *rows):
        terminalreporter.write_line("  ".join(f"{value:14}" for value in row).rstrip())
    held = sum(outcome == "passed" for outcome, _ in reports)
    terminalreporter.write_line(f"{held} of {len(reports)} combinations hold.")
