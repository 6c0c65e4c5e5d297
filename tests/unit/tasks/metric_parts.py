"""Helpers for the tests of metrics: one pass, and random parts that are merged in a random order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ziggurat.tasks import Metric


def measured(make: Callable[[], Metric], outputs: Mapping[str, Any], targets: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of one pass in one batch."""
    metric = make()
    metric.update(outputs, targets)
    return metric.compute()


def merged(
    make: Callable[[], Metric], outputs: Mapping[str, Any], targets: Mapping[str, Any], seed: int = 0
) -> dict[str, Any]:
    """Return the values where random parts, of one sample and more, are measured apart and merged in any order."""
    chance = np.random.default_rng(seed)
    count = len(next(iter(targets.values())))
    order = chance.permutation(count)
    cuts = np.sort(chance.choice(np.arange(1, count), min(6, count - 1), replace=False))
    parts = []
    for place, rows in enumerate(np.split(order, cuts)):
        if place % 2:  # some parts hold several batches
            metric = parts[-1]
        else:
            metric = make()
            parts.append(metric)
        metric.update(
            {name: values[rows] for name, values in outputs.items()},
            {name: values[rows] for name, values in targets.items()},
        )
    whole = make()
    for place in chance.permutation(len(parts)):
        whole.merge(parts[place].state())
    whole.merge(make().state())  # a part without samples changes nothing
    return whole.compute()


def assert_close(found: Any, wanted: Any, tolerance: float = 1e-12) -> None:
    """Compare values of a metric: numbers by a relative tolerance, all else exactly."""
    if isinstance(wanted, Mapping):
        assert found.keys() == wanted.keys()
        for name, value in wanted.items():
            assert_close(found[name], value, tolerance)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            assert_close(one, other, tolerance)
    elif isinstance(wanted, float):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        assert found == wanted
