"""Layers, predictors and exporters that are used wrongly: the error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_models import own_graph

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, UsageError
from ziggurat.tf.export import ModelExporter
from ziggurat.tf.models import Conv2D, Deconv2D, FullyConnected
from ziggurat.tf.predict_config import PredictConfig
from ziggurat.tf.summary import add_param_summary
from ziggurat.tf.tower import TowerContext


def _input(*sizes: int, dtype: Any = tf.float32) -> Any:
    return tf.placeholder(dtype, [None, *sizes])


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: Conv2D("a", _input(8, 8), 3, 3), "takes images, of 4 axes"),
        (lambda: Conv2D("a", _input(8, 8, 3, dtype=tf.uint8), 3, 3), "tf.cast"),
        (lambda: Deconv2D("a", _input(8, 8, 3, dtype=tf.int32), 3, 3), "tf.cast"),
        (lambda: FullyConnected("a", _input(8, dtype=tf.uint8), 3), "tf.cast"),
        (lambda: FullyConnected("a", _input(8), 3, activation="relu"), "Use `tf.nn.relu`"),
        (lambda: add_param_summary(".*/W", ["rms"]), "histogram"),  # type: ignore[arg-type]
    ],
)
def test_layers_say_what_to_write(call: Callable[[], Any], advice: str) -> None:
    with own_graph(), TowerContext("", is_training=True), pytest.raises(ConfigurationError, match=advice):
        call()


def _config(**names: Any) -> PredictConfig:
    signature = [tf.TensorSpec((None, 3), tf.float32, "x")]
    return PredictConfig(
        tower_func=lambda x: tf.identity(x * 2, name="twice"),
        input_signature=signature,
        **{"output_names": ["twice"], **names},
    )


@pytest.mark.parametrize("names", [{"output_names": "twice"}, {"input_names": "x"}])
def test_a_text_is_no_list_of_names(names: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="Write `\\['"):
        _config(**names)


def test_an_export_checks_its_inputs_before_it_writes(tmp_path: Path) -> None:
    exporter = ModelExporter(_config(), check_inputs=[])
    with pytest.raises(UsageError, match="this predictor takes 1"):
        exporter.export_compact(str(tmp_path / "graph.pb"))
    with pytest.raises(UsageError, match="this predictor takes 1"):
        exporter.export_serving(str(tmp_path / "served"))
    assert not list(tmp_path.iterdir())
