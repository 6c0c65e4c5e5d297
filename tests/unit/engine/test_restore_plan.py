"""Plan of a start from a pretrained model of which nothing fits."""

import numpy as np
import pytest

from ziggurat.engine.restore_plan import plan_restore
from ziggurat.errors import CheckpointError

OLD = {f"model/conv{number}/weights": np.zeros((2, 2)) for number in range(5)}


def test_a_checkpoint_of_which_nothing_fits_names_both() -> None:
    with pytest.raises(CheckpointError) as caught:
        plan_restore({"model/layer1/weights": (2, 2), "model/layer1/biases": (2,)}, OLD)
    text = str(caught.value)
    assert "model/conv0/weights, model/conv1/weights, model/conv2/weights and 2 more in the pretrained model" in text
    assert "model/layer1/weights, model/layer1/biases in the network" in text
    assert "release 0.1" in text
    assert caught.value.details["pretrained"] == [*OLD]


def test_one_layer_that_fits_is_enough() -> None:
    plan = plan_restore({"model/conv0/weights": (2, 2), "model/new": (3,)}, OLD)
    assert plan.restored == {"model/conv0/weights": "model/conv0/weights"}
    assert plan.fresh == ["model/new"]


def test_a_checkpoint_without_weights_leaves_all_fresh() -> None:
    plan = plan_restore({"model/new": (3,)}, {"global_step": np.zeros(())})
    assert plan.fresh == ["model/new"]
