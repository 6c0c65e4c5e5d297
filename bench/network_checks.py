"""Benchmark of the instant checks of a network's code, which run while a user types."""

from __future__ import annotations

import ast
import time

from bench.parts.report import Options, Report, Row
from ziggurat.workspace.network_checks import check_network
from ziggurat.zoo import network_path

__all__ = ["run"]

_CHECKS = 20
_FILES = ("lenet", "googlenet", "mobilenet_v2")
_PARSER = "Python's parser alone (GoogLeNet)"


def run(options: Options) -> Report:
    """Measure."""
    report = Report(
        "Instant checks of network files; the aim is 300,000 µs at most",
        "check",
        _PARSER,
        [f"{options.rounds} rounds of {_CHECKS} checks a file", "one mistake in each file, in its first layer"],
    )
    texts = {name: network_path(name, "tensorflow").read_text("utf-8").replace("slim.", "slm.", 1) for name in _FILES}
    rows = {name: Row(f"{name}, {text.count(chr(10))} lines", [], []) for name, text in texts.items()}
    rows[_PARSER] = Row(_PARSER, [], [], is_limit=True)
    for _ in range(options.rounds):
        for name, row in rows.items():
            wall, cpu = time.perf_counter(), time.process_time()
            for _ in range(_CHECKS):
                if name in texts:
                    check_network(texts[name])
                else:
                    ast.parse(texts["googlenet"])
            row.cpu_us.append((time.process_time() - cpu) / _CHECKS * 1e6)
            row.wall_us.append((time.perf_counter() - wall) / _CHECKS * 1e6)
    report.rows = list(rows.values())
    return report
