"""How long each test took: one line of JSON a test, in a file that the session's report reads."""

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

VARIABLE = "TESTS_DURATIONS"
"""Environment variable that names the file; `build/test-durations/last.jsonl` without it."""

DEFAULT = Path(__file__).parents[1] / "build" / "test-durations" / "last.jsonl"


class DurationFile:
    """Collects the parts of each test (setup, call, teardown) and appends the test once its last part is reported."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")
        self._parts: dict[str, dict[str, float]] = defaultdict(dict)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._parts[report.nodeid][report.when or ""] = report.duration
        if report.failed:
            self._failed.add(report.nodeid)
        if report.when == "teardown":
            parts = self._parts.pop(report.nodeid)
            row = {
                "test": report.nodeid,
                "duration_s": round(sum(parts.values()), 4),
                "setup_s": round(parts.get("setup", 0.0), 4),
                "failed": report.nodeid in self._failed,
            }
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()

    def pytest_unconfigure(self) -> None:
        self._file.close()


def register(config: pytest.Config) -> None:
    """Record the durations of this session, but not twice: reports of the processes of xdist reach the first one.

    A test that starts a session of its own, as those of these tools do, leaves no record.
    """
    path = os.environ.get(VARIABLE, str(DEFAULT))
    os.environ[VARIABLE] = ""
    if path and not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(DurationFile(Path(path)), "durations")


def by_file(paths: Iterable[Path]) -> dict[str, tuple[float, int]]:
    """Return the seconds and the number of tests of each test file, most expensive first."""
    sums: dict[str, tuple[float, int]] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            name = row["test"].partition("::")[0]
            seconds, count = sums.get(name, (0.0, 0))
            sums[name] = (seconds + row["duration_s"], count + 1)
    return dict(sorted(sums.items(), key=lambda item: -item[1][0]))
