"""Endless checkpoint writer: saves, replaces, names and removes until it is killed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.engine.run_state import RunState

REPORT = "reported"
"""File beside the checkpoints: eight bytes for each step whose save has returned."""


def save_for_ever(folder: Path, seed: int) -> None:
    """Save states of random sizes, on from the newest checkpoint; report each step once its save has returned."""
    random = np.random.default_rng(seed)
    store = CheckpointStore(folder)
    newest = store.latest()
    step = newest[0].step if newest is not None else 0
    report = os.open(folder.parent / REPORT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        step += int(random.integers(0, 2))  # the same step again, now and then: it is replaced
        meta = {"global_step": step, "filler": "x" * int(random.integers(1, 50_000))}
        store.save(RunState(meta, _arrays(random, step)))
        os.write(report, step.to_bytes(8))
        if random.random() < 0.5:
            store.give_name("best", store.list()[-1].name)
        for info in store.list()[:-3]:
            if info.name not in store.names().values():
                store.remove(info.name)


def _arrays(random: np.random.Generator, step: int) -> dict[str, np.ndarray]:
    sizes = random.integers(0, 60_000, int(random.integers(1, 6)))
    return {f"layer{number}/W": np.full(size, step, np.float32) for number, size in enumerate(sizes)}
