"""Counters of a server of models, as Prometheus reads them (text format 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

__all__ = ["Metrics"]

_BOUNDS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_BATCHES: Final = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """What a server counts. One thread uses it."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], int] = {}
        self._times: dict[str, _Histogram] = {}
        self._batches: dict[str, _Histogram] = {}

    def request(self, model: str, route: str, status: int, duration_s: float) -> None:
        """Count an answer."""
        key = (model, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._times.setdefault(model, _Histogram(_BOUNDS_S)).add(duration_s)

    def batch(self, model: str, samples: int) -> None:
        """Count a batch."""
        self._batches.setdefault(model, _Histogram(_BATCHES)).add(samples)

    def text(self, queues: Iterable[tuple[str, int]], versions: Iterable[tuple[str, str]]) -> str:
        """Return everything that was counted.

        Args:
            queues: name of each model, and its samples that wait or are computed.
            versions: name of each model, and the version that answers.
        """
        lines = ["# TYPE ziggurat_requests_total counter"]
        lines += [
            f'ziggurat_requests_total{{model="{_escaped(model)}",route="{route}",status="{status}"}} {count}'
            for (model, route, status), count in sorted(self._requests.items())
        ]
        lines += _lines("ziggurat_request_seconds", self._times)
        lines += _lines("ziggurat_batch_samples", self._batches)
        lines.append("# TYPE ziggurat_queue_samples gauge")
        lines += [f'ziggurat_queue_samples{{model="{_escaped(model)}"}} {count}' for model, count in queues]
        lines.append("# TYPE ziggurat_model_version gauge")
        lines += [
            f'ziggurat_model_version{{model="{_escaped(model)}",version="{_escaped(version)}"}} 1'
            for model, version in versions
        ]
        return "\n".join(lines) + "\n"


class _Histogram:
    """Counts of values by upper bounds, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


def _lines(name: str, histograms: dict[str, _Histogram]) -> list[str]:
    lines = [f"# TYPE {name} histogram"]
    for model, each in sorted(histograms.items()):
        label = f'model="{_escaped(model)}"'
        for bound, count in zip([*each.bounds, "+Inf"], accumulate(each.counts), strict=True):
            lines.append(f'{name}_bucket{{{label},le="{bound}"}} {count}')
        lines += [f"{name}_sum{{{label}}} {each.sum:.9g}", f"{name}_count{{{label}}} {sum(each.counts)}"]
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
