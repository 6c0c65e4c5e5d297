"""Benchmark command: ``python -m bench [names] [--rounds N] [--detail …] [--json FILE]``."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
from pathlib import Path

import bench
from bench.parts.photographs import DETAILS
from bench.parts.report import Options, machine


def benchmarks() -> dict[str, str]:
    """Return the name of each benchmark with the first line of its description."""
    found = {}
    for module in pkgutil.iter_modules(bench.__path__):
        if module.ispkg or module.name.startswith("_"):
            continue
        loaded = importlib.import_module(f"bench.{module.name}")
        if hasattr(loaded, "run"):
            found[module.name] = (loaded.__doc__ or "").splitlines()[0]
    return found


def main() -> None:
    """Run the benchmarks that were named, or all."""
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure speed as ratios.")
    listed = "; ".join(f"{name}: {text}" for name, text in known.items())
    parser.add_argument("names", nargs="*", help=f"which to run; all by default. {listed}")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds a side (default 5)")
    parser.add_argument("--detail", choices=DETAILS, default="usual", help="how much the photographs hold")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join(known)}")
    print(machine(), flush=True)
    options = Options(arguments.rounds, arguments.detail)
    reports = []
    for name in arguments.names or known:
        report = importlib.import_module(f"bench.{name}").run(options)
        print(f"\n{report.text()}", flush=True)
        reports.append({"name": name, **report.as_dict()})
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "benchmarks": reports}, indent=1) + "\n")


if __name__ == "__main__":
    main()
