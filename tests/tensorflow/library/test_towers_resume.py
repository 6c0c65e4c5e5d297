"""A training over two towers that was interrupted goes on with the batches that come next, whatever gives them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from input_trainings import rows, shuffled_batches, trained

from ziggurat.backends.tensorflow.runtime import tf2
from ziggurat.engine.callbacks.saving import ModelSaver
from ziggurat.engine.checkpoints import CheckpointStore
from ziggurat.tf.data_parallel import SyncMultiGPUTrainerReplicated
from ziggurat.tf.inputs.dataset import TFDatasetInput
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.inputs.staging import StagingInput


def _dataset() -> Any:
    x, y = (np.stack(column) for column in zip(*rows(), strict=True))
    return TFDatasetInput(tf2.data.Dataset.from_tensor_slices((x, y)).shuffle(40, seed=5).repeat().batch(4))


SOURCES: dict[str, Callable[[], Any]] = {
    "dataset": _dataset,
    "staged dataset": lambda: StagingInput(_dataset()),
    "queue": lambda: QueueInput(shuffled_batches()),
    "staged queue": lambda: StagingInput(QueueInput(shuffled_batches())),
}


def two_towers(source: str, **options: Any) -> Any:
    return trained(SOURCES[source], lambda: SyncMultiGPUTrainerReplicated(2), processors=2, epochs=2, **options)


@pytest.mark.parametrize("name", SOURCES)
def test_two_towers_go_on_with_the_next_batches(name: str) -> None:
    whole, first = two_towers(name), two_towers(name, stop_after=3)
    second = two_towers(name, state=first.state)
    assert len(whole.costs) == 10
    assert first.costs + second.costs == whole.costs
    assert all(np.array_equal(second.arrays[each], value) for each, value in whole.arrays.items())


def test_two_towers_go_on_from_a_save_by_time(tmp_path: Path) -> None:
    def run(folder: str, **options: Any) -> Any:
        at_every_step = ModelSaver(tmp_path / folder, max_to_keep=0, every_k_epochs=None, every_minutes=1e-9)
        return two_towers("queue", callbacks=[at_every_step], **options)

    whole = run("whole")
    store = CheckpointStore(tmp_path / "whole", writable=False)
    saved = [store.load(info.name) for info in store.list()]
    assert [state.meta["global_step"] for state in saved] == list(range(1, 11))
    second = run("second", state=saved[2])
    assert second.costs == whole.costs[3:]
    assert all(np.array_equal(second.arrays[each], value) for each, value in whole.arrays.items())
