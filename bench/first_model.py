"""Benchmark of the way to a first model: from the start of a studio to a right prediction of a trained LeNet."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from PIL import Image
from sklearn.datasets import load_digits

from bench.parts.report import Options, machine
from bench.parts.studio_processes import serve
from ziggurat.client import Client

__all__ = ["FirstModelReport", "main", "run"]

_SPEC: Final = {
    "kind": "train",
    "version": 1,
    "name": "LeNet",
    "backend": "tensorflow",
    "network": "lenet",
    "data": "digits",
    "epochs": 5,
    "batch_size": 32,
    "learning_rate": 0.01,
}
_WITHIN_S: Final = 300.0
_POLL_S: Final = 0.05
_LIMIT: Final = "import TensorFlow, alone"


@dataclass
class FirstModelReport:
    """Seconds of each part of the way, one a round.

    Args:
        parts: name → seconds in each round, in the order of the way.
        right: how many predictions were right.
    """

    parts: dict[str, list[float]] = field(default_factory=dict)
    right: int = 0

    def text(self) -> str:
        """Return the report for people; its table is Markdown."""
        whole = [
            sum(each) for each in zip(*(times for name, times in self.parts.items() if name != _LIMIT), strict=True)
        ]
        limit = statistics.median(self.parts[_LIMIT])
        lines = [
            "From the start of a studio to a right prediction of LeNet, trained for 5 epochs on 1,797 digits",
            f"- {len(whole)} rounds, each with a new workspace; {self.right} of {len(whole)} predictions were right",
            "- the limit is one import of TensorFlow: the way needs at least one in a new process",
            "",
            "| part | median s | range |",
            "|---|--:|--:|",
        ]
        for name, times in [*self.parts.items(), ("**whole way**", whole)]:
            lines.append(f"| {name} | {statistics.median(times):.2f} | {min(times):.2f} to {max(times):.2f} |")
        return "\n".join([*lines, "", f"The whole way takes {statistics.median(whole) / limit:.1f} times the limit."])

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        return {"parts": self.parts, "right": self.right}


def run(options: Options) -> FirstModelReport:
    """Go the way so many times, and import TensorFlow alone after each."""
    report = FirstModelReport()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(prefix="ziggurat-bench-first-") as place:
            for name, seconds in _one_round(Path(place), report).items():
                report.parts.setdefault(name, []).append(seconds)
    return report


def main(words: Sequence[str] | None = None) -> None:
    """Run this benchmark alone."""
    parser = argparse.ArgumentParser(prog="python -m bench.first_model", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(words)
    print(machine(), flush=True)
    print(f"\n{run(Options(rounds=asked.rounds)).text()}", flush=True)


def _one_round(place: Path, report: FirstModelReport) -> dict[str, float]:
    digits = load_digits()
    image = place / "digit.png"
    # The file of a person: another size than the network's, as a digit of its dataset.
    Image.fromarray((digits.images[0] * 255 / 16).astype("uint8")).resize((28, 28)).save(image)
    times: dict[str, float] = {}
    (place / "workspace").mkdir()
    with serve(place / "workspace", None) as server, Client(server.address) as client:
        times["start of the studio"] = server.start_s
        began = time.perf_counter()
        job = client.train(_SPEC)[0]["id"]
        client.wait(job, timeout_s=_WITHIN_S, every_s=_POLL_S)
        times["training, from request to done"] = time.perf_counter() - began
        began = time.perf_counter()
        answer = client.models.predict(job, [image])
        times["first prediction"] = time.perf_counter() - began
        report.right += answer["predictions"][0]["classes"][0]["class"] == str(digits.target[0])
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import tensorflow"], check=True, stderr=subprocess.DEVNULL)
    times[_LIMIT] = time.perf_counter() - began
    return times


if __name__ == "__main__":
    main()
