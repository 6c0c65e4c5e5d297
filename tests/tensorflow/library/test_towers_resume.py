"""A training over two towers that was interrupted goes on with the batches that come next, whatever gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from input_trainings import rows, shuffled_batches, trained

from ziggurat.backends.tensorflow.runtime import tf2
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


@pytest.mark.parametrize("name", SOURCES)
def test_two_towers_go_on_with_the_next_batches(name: str) -> None:
    def run(**options: Any) -> Any:
        return trained(SOURCES[name], lambda: SyncMultiGPUTrainerReplicated(2), processors=2, epochs=2, **options)

    whole, first = run(), run(stop_after=3)
    second = run(state=first.state)
    assert len(whole.costs) == 10
    assert first.costs + second.costs == whole.costs
    assert all(np.array_equal(second.arrays[each], value) for each, value in whole.arrays.items())
