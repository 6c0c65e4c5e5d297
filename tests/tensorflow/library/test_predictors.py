"""Predictors within and after a training, over data flows and from many threads; export."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import SIGNATURE, optimizer, tower, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.dataflow import BatchData, DataFromGenerator, DataFromList
from ziggurat.errors import ConfigurationError, DataError, StateError, TrainingError, UnknownNameError, UsageError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.dataset_predictors import (
    MultiProcessDatasetPredictor,
    MultiThreadAsyncPredictor,
    SimpleDatasetPredictor,
)
from ziggurat.tf.export import ModelExporter
from ziggurat.tf.inputs.base import FeedInput
from ziggurat.tf.inputs.queue import QueueInput
from ziggurat.tf.loading import DictRestore, SaverRestore
from ziggurat.tf.model import ModelDesc
from ziggurat.tf.offline_predictors import (
    DataParallelOfflinePredictor,
    FeedfreePredictor,
    MultiTowerOfflinePredictor,
    OfflinePredictor,
)
from ziggurat.tf.predict_config import PredictConfig
from ziggurat.tf.predictors import PredictorBase
from ziggurat.tf.savers import ModelSaver
from ziggurat.tf.tower import get_current_tower_context

W = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
B = np.array([1.0, 2.0, 3.0], np.float32)
X = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _no_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)


def predicting(x: Any, label: Any) -> Any:
    context = get_current_tower_context()
    assert context is not None
    assert not context.is_training
    return tower(x, label)


def config(**arguments: Any) -> PredictConfig:
    given = {
        "tower_func": predicting,
        "input_signature": SIGNATURE,
        "input_names": ["x"],
        "output_names": ["logits"],
        "session_init": DictRestore({"linear/W": W, "linear/b": B}),
        **arguments,
    }
    return PredictConfig(**given)


def test_tutorial_74_predictor_of_a_training() -> None:
    seen: list[Any] = []

    class Predicts(Callback):
        trainer: Any

        def _setup_graph(self) -> None:
            self.predict = self.trainer.get_predictor(["x"], ["logits", "linear/b"])

        def _trigger_epoch(self) -> None:
            values = variables(self.trainer)
            logits, bias = self.predict(X)
            assert np.allclose(logits, X @ values["linear/W"] + values["linear/b"], atol=1e-6)
            seen.append(bias)

    train([Predicts()], epochs=2)
    assert len(seen) == 2
    assert not np.array_equal(seen[0], seen[1])


def test_tutorial_77_checkpoint_and_metagraph_suffice(tmp_path: Path) -> None:
    values = variables(train([ModelSaver()], folder=tmp_path, epochs=1))
    predict = OfflinePredictor(config(session_init=SaverRestore(tmp_path / "model-8")))

    [logits] = predict(X)
    assert np.allclose(logits, X @ values["linear/W"] + values["linear/b"], atol=1e-6)


class Model(ModelDesc):
    def inputs(self) -> Any:
        return SIGNATURE

    def build_graph(self, *args: Any) -> Any:
        return predicting(*args)

    def optimizer(self) -> Any:
        return optimizer()


def test_offline_predictor_of_a_model_returns_its_input() -> None:
    predict = OfflinePredictor(
        PredictConfig(
            model=Model(), output_names=["logits:0", "cost"], return_input=True, session_init=config().session_init
        )
    )
    labels = np.zeros(7, np.int32)
    inputs, (logits, cost) = predict(X, labels)

    assert inputs[0] is X
    assert np.allclose(logits, X @ W + B, atol=1e-6)
    expected = np.log(np.exp(X @ W + B).sum(1)) - (X @ W + B)[:, 0]
    assert cost == pytest.approx(expected.mean(), rel=1e-5)


def test_predictors_say_what_does_not_fit() -> None:
    with pytest.raises(ConfigurationError, match="output_names=None names no output"):
        config(output_names=None)
    with pytest.raises(ConfigurationError, match="Both a model and a tower"):
        config(model=Model())
    with pytest.raises(ConfigurationError, match="signature"):
        config(input_signature=None)
    with pytest.raises(UnknownNameError, match="logits"):
        OfflinePredictor(config(output_names=["logit"]))
    predict = OfflinePredictor(config())
    with pytest.raises(UsageError, match="this predictor takes 1"):
        predict(X, X)
    with pytest.raises(DataError, match="shape"):
        predict(X[:, :3])


def test_multi_tower_predictors_share_variables() -> None:
    towers = MultiTowerOfflinePredictor(config(), ["/cpu:0", 0])

    for predict in [towers, towers.get_predictor(0), towers.get_predictor(3), *towers.get_predictors()]:
        assert np.allclose(predict(X)[0], X @ W + B, atol=1e-6)
    with pytest.raises(ConfigurationError, match="device"):
        MultiTowerOfflinePredictor(config(), [])


def test_a_predictor_of_a_tower_outlives_what_made_it() -> None:
    predict = MultiTowerOfflinePredictor(config(), ["/cpu:0"]).get_predictors()[0]
    gc.collect()

    assert np.allclose(predict(X)[0], X @ W + B, atol=1e-6)
    session = predict.sess
    del predict
    gc.collect()
    with pytest.raises(RuntimeError, match="closed"):
        session.run([])


def test_data_parallel_predictor_takes_inputs_of_all_towers() -> None:
    predict = DataParallelOfflinePredictor(config(), ["/cpu:0", "/cpu:0"])

    first, second = predict(X[:3], X[3:])
    assert np.allclose(np.concatenate([first, second]), X @ W + B, atol=1e-6)


@pytest.mark.parametrize("source", [FeedInput, QueueInput])
def test_feedfree_predictor_reads_a_source(source: Any) -> None:
    batches = [[X[:3], np.zeros(3, np.int32)], [X[3:], np.zeros(4, np.int32)]]
    predict = FeedfreePredictor(config(), source(batches))

    results = [predict()[0] for _ in range(3)]
    assert np.allclose(np.concatenate(results[:2]), X @ W + B, atol=1e-6)
    assert np.array_equal(results[2], results[0])
    with pytest.raises(UsageError, match="no arguments"):
        predict(X)
    predict.close()


def flow() -> Any:
    return BatchData(DataFromList([[row] for row in X], shuffle=False), 2, remainder=True)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_dataset_predictors_keep_the_order(count: int) -> None:
    predictor = (
        SimpleDatasetPredictor(config(), flow())
        if count == 0
        else MultiProcessDatasetPredictor(config(), flow(), count, use_gpu=False)
    )

    results = predictor.get_all_result()
    assert [len(each[0]) for each in results] == [2, 2, 2, 1]
    assert np.allclose(np.concatenate([each[0] for each in results]), X @ W + B, atol=1e-6)


def test_unordered_dataset_predictor_gives_every_result() -> None:
    results = MultiProcessDatasetPredictor(config(), flow(), 2, ordered=False).get_all_result()

    found = np.concatenate([each[0] for each in results])
    assert np.allclose(np.sort(found, axis=0), np.sort(X @ W + B, axis=0), atol=1e-6)


def test_predictors_at_a_time_share_no_graph() -> None:
    with pytest.raises(ConfigurationError, match="of its own"):
        MultiProcessDatasetPredictor(config(create_graph=False), flow(), 2)
    with pytest.raises(ConfigurationError, match="at least 1"):
        MultiProcessDatasetPredictor(config(), flow(), 0)


def test_dataset_predictors_raise_errors_of_the_data() -> None:
    def broken() -> Any:
        yield [X[:2]]
        yield [X[:2, :1]]

    with pytest.raises(DataError, match="shape"):
        MultiProcessDatasetPredictor(config(), DataFromGenerator(broken), 2).get_all_result()


class Slow(PredictorBase):
    """Doubles its input, and notes the sizes of its batches; it begins when it is let."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.may_begin = threading.Event()

    def _do_call(self, dp: Any) -> Any:
        self.may_begin.wait(10)
        self.sizes.append(len(dp[0]))
        if (dp[0] < 0).any():
            raise ValueError("a negative number")
        return [dp[0] * 2, dp[0].sum(-1)]


def test_async_predictor_batches_what_waits() -> None:
    slow = Slow()
    seen: list[Future[Any]] = []
    with MultiThreadAsyncPredictor([slow], batch_size=4) as predictor:
        futures = [predictor.put_task([np.full(2, number)], seen.append) for number in range(9)]
        slow.may_begin.set()
        results = [future.result(10) for future in futures]

    assert [result[0].tolist() for result in results] == [[2 * number] * 2 for number in range(9)]
    assert [result[1] for result in results] == [2 * number for number in range(9)]
    assert len(seen) == 9
    assert max(slow.sizes) == 4
    assert sum(slow.sizes) == 9


def test_async_predictor_hands_errors_to_futures() -> None:
    slow = Slow()
    slow.may_begin.set()
    with MultiThreadAsyncPredictor([slow], batch_size=1) as predictor:
        bad, good = predictor.put_task([np.full(2, -1)]), predictor.put_task([np.full(2, 3)])
        with pytest.raises(ValueError, match="a negative number"):
            bad.result(10)
        assert good.result(10)[1] == 6
        assert predictor(np.full(2, 4))[1] == 8
        uneven = MultiThreadAsyncPredictor([slow], batch_size=2, wait_s=5.0)
        uneven.start()
        pair = [uneven.put_task([np.zeros(2)]), uneven.put_task([np.zeros(3)])]
        for future in pair:
            with pytest.raises(ValueError, match="shape"):
                future.result(10)
        uneven.close()
    with pytest.raises(StateError, match="closed"):
        predictor.put_task([np.zeros(2)])


def test_async_predictor_that_never_started_cancels() -> None:
    predictor = MultiThreadAsyncPredictor([Slow()])
    future = predictor.put_task([np.zeros(2)])
    predictor.close()
    assert future.cancelled()


def test_async_prediction_with_a_graph() -> None:
    towers = MultiTowerOfflinePredictor(config(), ["/cpu:0", "/cpu:0"])
    with MultiThreadAsyncPredictor(towers.get_predictors(), batch_size=3) as predictor:
        futures = [predictor.put_task([row]) for row in X]
        found = np.stack([future.result(10)[0] for future in futures])
    assert np.allclose(found, X @ W + B, atol=1e-6)


@pytest.mark.parametrize("optimize", [True, False])
def test_compact_export_runs_in_plain_tensorflow(tmp_path: Path, optimize: bool) -> None:
    path = tmp_path / "a" / "model.pb"
    ModelExporter(config(), check_inputs=[X]).export_compact(str(path), optimize=optimize)

    with tf.Graph().as_default(), tf.Session() as session:
        [logits] = tf.import_graph_def(tf.GraphDef.FromString(path.read_bytes()), return_elements=["logits:0"], name="")
        found = session.run(logits, {"x:0": X})
    assert np.allclose(found, X @ W + B, atol=1e-6)


def test_serving_export_runs_in_plain_tensorflow(tmp_path: Path) -> None:
    ModelExporter(config(), check_inputs=[X]).export_serving(str(tmp_path / "1"))

    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.load(session, ["serve"], str(tmp_path / "1"))
        signature = loaded.signature_def["prediction_pipeline"]
        found = session.run(signature.outputs["logits:0"].name, {signature.inputs["x:0"].name: X})
    assert np.allclose(found, X @ W + B, atol=1e-6)
    with pytest.raises(ConfigurationError, match="not there yet"):
        ModelExporter(config()).export_serving(str(tmp_path / "1"))


def test_export_that_predicts_otherwise_is_an_error(tmp_path: Path) -> None:
    def random(x: Any, label: Any) -> Any:
        return tf.identity(tower(x, label) + tf.random_normal([]), name="noisy")

    with pytest.raises(TrainingError, match="noisy"):
        ModelExporter(
            config(tower_func=random, input_names=["x", "label"], output_names=["noisy"]), [X, np.zeros(7)]
        ).export_compact(str(tmp_path / "x.pb"))
