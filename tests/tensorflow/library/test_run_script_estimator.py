"""``tf.estimator`` of TensorFlow 1 scripts: an estimator of one's own trains, goes on, is evaluated and predicts."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.compat.tf1.names import script_tensorflow
from ziggurat.compat.tf1.report import Report
from ziggurat.errors import UsageError

X = np.random.default_rng(0).normal(size=(96, 3)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int64)


@pytest.fixture
def tf():
    return script_tensorflow(Report("s.py"))


@pytest.fixture
def model_fn(tf):
    def model_fn(features, labels, mode, params):
        logits = tf.layers.dense(features["x"], 2, name="logits")
        classes = tf.argmax(logits, 1)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"class": classes, "score": tf.nn.softmax(logits)})
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        train_op = tf.train.AdamOptimizer(params["rate"]).minimize(loss, global_step=tf.train.get_global_step())
        accuracy = tf.metrics.accuracy(labels, classes)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops={"accuracy": accuracy})

    return model_fn


def test_an_estimator_trains_goes_on_is_evaluated_and_predicts(tf, model_fn, tmp_path):
    config = tf.estimator.RunConfig(tf_random_seed=3, save_checkpoints_steps=20)
    model = tf.estimator.Estimator(model_fn, str(tmp_path), config, params={"rate": 0.1})
    endless = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=16, num_epochs=None, shuffle=True)
    whole = tf.estimator.inputs.numpy_input_fn({"x": X}, Y, batch_size=40, shuffle=False)

    with pytest.raises(ValueError, match="has no checkpoint: call `train` first"):
        model.evaluate(whole)
    assert model.train(endless, steps=30).train(endless, steps=10) is model
    found = model.evaluate(whole)
    assert found["global_step"] == 40
    assert found["accuracy"] > 0.9
    assert model.train(endless, max_steps=40).evaluate(whole, steps=1)["global_step"] == 40
    assert model.get_variable_value("logits/kernel").shape == (3, 2)
    assert list(tmp_path.glob("eval/events*"))

    new = tf.estimator.inputs.numpy_input_fn({"x": X[:50]}, batch_size=40, shuffle=False)
    answers = list(model.predict(new))
    assert len(answers) == 50
    assert answers[0]["score"].shape == (2,)
    assert np.mean([answer["class"] for answer in answers] == Y[:50]) > 0.9
    batches = list(model.predict(new, predict_keys="class", yield_single_examples=False))
    assert [len(batch["class"]) for batch in batches] == [40, 10]


def test_datasets_are_inputs_and_a_training_ends_with_them(tf, model_fn, tmp_path):
    def input_fn(params):
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(params["batch"])

    model = tf.estimator.Estimator(model_fn, model_dir=str(tmp_path), params={"rate": 0.1, "batch": 24})
    model.train(input_fn)
    assert model.evaluate(input_fn)["global_step"] == 4


def test_batches_go_on_over_the_end_of_an_epoch(tf):
    given = tf.estimator.inputs.numpy_input_fn(np.arange(5.0), np.arange(5), batch_size=4, num_epochs=2, shuffle=False)
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = given()
        session.run(tf.tables_initializer())
        found = [session.run(tensors)[1].tolist() for _ in range(3)]
    assert found == [[0, 1, 2, 3], [4, 0, 1, 2], [3, 4]]


def test_what_is_not_there_is_refused_by_name(tf, model_fn):
    with pytest.raises(AttributeError, match=r"`tf.estimator.DNNClassifier` does not exist any more. Ready-made"):
        _ = tf.estimator.DNNClassifier
    with pytest.raises(UsageError, match=r"`tf.estimator.RunConfig` has no `train_distribute` here"):
        tf.estimator.RunConfig(train_distribute=None)
    with pytest.raises(AttributeError, match=r"`tf.estimator.Estimator` has no `export_savedmodel` here"):
        _ = tf.estimator.Estimator(model_fn).export_savedmodel
    with pytest.raises(ValueError, match="`shuffle` is None"):
        tf.estimator.inputs.numpy_input_fn(X)
