"""Savers: run states and TensorFlow's checkpoints, the best by a scalar, and what a kill may leave."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import flow, optimizer, tower, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import CheckpointStore, ClassificationError, PeriodicTrigger
from ziggurat.errors import ConfigurationError, StorageError, UsageError
from ziggurat.tf import logger
from ziggurat.tf.callback import Callback
from ziggurat.tf.config import newest_run_state
from ziggurat.tf.inference import InferenceRunner
from ziggurat.tf.savers import MaxSaver, MinSaver, ModelSaver


@pytest.fixture(autouse=True)
def _no_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "_folder", None)


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


class Puts(Callback):
    """Puts given values, one an epoch."""

    def __init__(self, *values: float) -> None:
        self._values = values

    def _trigger_epoch(self) -> None:
        self.trainer.monitors.put_scalar("score", self._values[self.epoch_num - 1])


def test_tutorial_49_model_saver_saves_every_epoch(tmp_path: Path) -> None:
    trainer = train([ModelSaver()], folder=tmp_path, epochs=3)

    assert names(tmp_path, "model-*.index") == ["model-16.index", "model-24.index", "model-8.index"]
    assert names(tmp_path / "checkpoints", "step-*") == ["step-00000016", "step-00000024"]
    assert len(names(tmp_path, "graph-*.meta")) == 1
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-24")
    values = variables(trainer)
    state = CheckpointStore(tmp_path / "checkpoints").load("step-00000024")
    assert np.array_equal(state.arrays["linear/W"], values["linear/W"])


def test_tutorial_61_files_are_tensorflows(tmp_path: Path) -> None:
    values = variables(train([ModelSaver()], folder=tmp_path, epochs=1))

    assert names(tmp_path, "model-8.*") == ["model-8.data-00000-of-00001", "model-8.index"]
    meta = next(tmp_path.glob("graph-*.meta"))
    with tf.Graph().as_default(), tf.Session() as session:  # nothing of ours: the graph comes from its file
        saver = tf.train.import_meta_graph(str(meta))
        saver.restore(session, str(tmp_path / "model-8"))
        restored = session.run("linear/W/Read/ReadVariableOp:0")
        logits = session.run("logits:0", {"x:0": np.ones((2, 4), np.float32)})
    assert np.array_equal(restored, values["linear/W"])
    assert np.allclose(logits, np.ones((2, 4)) @ values["linear/W"] + values["linear/b"])


def test_tutorial_62_checkpoint_reader_parses_them(tmp_path: Path) -> None:
    values = variables(train([ModelSaver()], folder=tmp_path, epochs=1))

    reader = tf.train.NewCheckpointReader(str(tmp_path / "model-8"))
    shapes = reader.get_variable_to_shape_map()
    assert shapes["linear/W"] == [4, 3]
    assert {"linear/b", "learning_rate", "global_step", "linear/W/Adam"} <= set(shapes)
    assert int(reader.get_tensor("global_step")) == 8
    for name in shapes:
        assert np.array_equal(reader.get_tensor(name), values[name]), name


def test_model_saver_keeps_by_tensorflows_rules(tmp_path: Path) -> None:
    train([ModelSaver(max_to_keep=2, keep_checkpoint_every_n_hours=None)], folder=tmp_path, epochs=4)

    assert names(tmp_path, "model-*.index") == ["model-24.index", "model-32.index"]
    state: Any = tf.train.get_checkpoint_state(str(tmp_path))
    assert [Path(path).name for path in state.all_model_checkpoint_paths] == ["model-24", "model-32"]


def test_checkpoint_folder_and_collections_of_choice(tmp_path: Path) -> None:
    saver = ModelSaver(checkpoint_dir=tmp_path / "a" / "b", var_collections="trainable_variables")
    train([PeriodicTrigger(saver, every_k_epochs=2)], folder=tmp_path / "log", epochs=2)

    reader = tf.train.NewCheckpointReader(str(tmp_path / "a" / "b" / "model-16"))
    assert sorted(reader.get_variable_to_shape_map()) == ["linear/W", "linear/b"]
    assert names(tmp_path / "log" / "checkpoints", "step-*") == ["step-00000016"]
    assert names(tmp_path / "a" / "b", "model-*.index") == ["model-16.index"]
    with pytest.raises(ConfigurationError, match="no_such"):
        train([ModelSaver(var_collections=["no_such"])], folder=tmp_path / "log")


def test_model_saver_without_folder() -> None:
    with pytest.raises(UsageError, match="folder"):
        train([ModelSaver()])


def test_model_saver_with_a_folder_of_its_own(tmp_path: Path) -> None:
    train([ModelSaver(checkpoint_dir=tmp_path)], epochs=1)

    assert names(tmp_path, "model-*.index") == ["model-8.index"]
    assert names(tmp_path / "checkpoints", "step-*") == ["step-00000008"]


@pytest.mark.parametrize("order", ["as the tutorial prints it", "behind"])
def test_tutorial_50_min_saver_keeps_the_best(tmp_path: Path, order: str) -> None:
    callbacks: list[Any] = [ModelSaver(), MinSaver("score"), Puts(3.0, 1.0, 2.0)]
    trainer = train(callbacks if order != "behind" else callbacks[::-1], folder=tmp_path, epochs=3)

    best = tf.train.NewCheckpointReader(str(tmp_path / "min-score"))
    assert int(best.get_tensor("global_step")) == 16
    second = tf.train.NewCheckpointReader(str(tmp_path / "model-16"))
    assert np.array_equal(best.get_tensor("linear/W"), second.get_tensor("linear/W"))
    assert not np.array_equal(best.get_tensor("linear/W"), variables(trainer)["linear/W"])
    assert CheckpointStore(tmp_path / "checkpoints").load("min-score").meta["global_step"] == 16
    assert names(tmp_path, ".tmp-*") == []


def test_tutorial_50_min_saver_before_its_runner(tmp_path: Path) -> None:
    runner = InferenceRunner(flow(21, 8, seed=9, shuffle=False), ClassificationError("wrong-top1", "val-error-top1"))
    trainer = train([ModelSaver(), MinSaver("val-error-top1"), runner], folder=tmp_path, epochs=4)

    history = trainer.monitors.get_history("val-error-top1")
    best = min(history, key=lambda point: point[1])[0]  # the first of equal ones
    reader = tf.train.NewCheckpointReader(str(tmp_path / "min-val-error-top1"))
    assert int(reader.get_tensor("global_step")) == best


def test_max_saver_and_other_names(tmp_path: Path) -> None:
    savers = [
        MaxSaver("score"),
        MinSaver("score", reverse=True, filename="top"),
        MaxSaver("score", checkpoint_dir=tmp_path / "other"),
    ]
    train([*savers, ModelSaver(), Puts(1.0, 3.0, 2.0)], folder=tmp_path / "log", epochs=3)

    for path in ("log/max-score", "log/top", "other/max-score"):
        assert int(tf.train.NewCheckpointReader(str(tmp_path / path)).get_tensor("global_step")) == 16


def test_min_saver_needs_no_model_saver(tmp_path: Path) -> None:
    train([MinSaver("score"), Puts(2.0, 1.0, 3.0)], folder=tmp_path, epochs=3)

    reader = tf.train.NewCheckpointReader(str(tmp_path / "min-score"))
    assert int(reader.get_tensor("global_step")) == 16
    assert reader.get_variable_to_shape_map()["linear/W/Adam"] == [4, 3]


def test_best_value_survives_a_resume(tmp_path: Path) -> None:
    values = (3.0, 1.0, 2.0, 1.5)
    train([ModelSaver(), MinSaver("score"), Puts(*values)], folder=tmp_path, epochs=2)
    state = newest_run_state(tmp_path)
    trainer = train([ModelSaver(), MinSaver("score"), Puts(*values)], folder=tmp_path, epochs=4, state=state)

    assert trainer.global_step == 32
    assert int(tf.train.NewCheckpointReader(str(tmp_path / "min-score")).get_tensor("global_step")) == 16


def test_resume_equals_an_uninterrupted_training(tmp_path: Path) -> None:
    whole = variables(train([ModelSaver()], folder=tmp_path / "whole", epochs=4))
    train([ModelSaver()], folder=tmp_path / "parts", epochs=2)
    state = newest_run_state(tmp_path / "parts")
    parts = variables(train([ModelSaver()], folder=tmp_path / "parts", epochs=4, state=state))

    assert {name: array.tobytes() for name, array in whole.items()} == {
        name: array.tobytes() for name, array in parts.items()
    }


def test_resume_keeps_on_removing_old_checkpoints(tmp_path: Path) -> None:
    train([ModelSaver(max_to_keep=2)], folder=tmp_path, epochs=2)
    train([ModelSaver(max_to_keep=2)], folder=tmp_path, epochs=4, state=newest_run_state(tmp_path))

    assert names(tmp_path, "model-*.index") == ["model-24.index", "model-32.index"]


def test_kill_between_run_state_and_files_loses_nothing(tmp_path: Path) -> None:
    callbacks = lambda: [ModelSaver(), MinSaver("score"), Puts(3.0, 1.0, 2.0)]  # noqa: E731
    train(callbacks(), folder=tmp_path, epochs=2)
    whole = {path.name: path.read_bytes() for path in tmp_path.glob("m*-*.data-*")}
    # As if the process had been killed behind the run state of step 16: the files are those of before.
    for path in [*tmp_path.glob("model-16.*"), *tmp_path.glob("min-score.*")]:
        path.unlink()
    for kind in ("index", "data-00000-of-00001"):
        shutil.copyfile(tmp_path / f"model-8.{kind}", tmp_path / f"min-score.{kind}")
    train(callbacks(), folder=tmp_path, epochs=3, state=newest_run_state(tmp_path))

    for name in ("model-16", "min-score"):
        assert int(tf.train.NewCheckpointReader(str(tmp_path / name)).get_tensor("global_step")) == 16
    assert (tmp_path / "model-16.data-00000-of-00001").read_bytes() == whole["model-16.data-00000-of-00001"]


def test_full_disks_end_the_training_with_that_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        train([ModelSaver(checkpoint_dir=tmp_path / "file")], folder=tmp_path / "log")


def test_savers_of_a_model_with_moving_statistics(tmp_path: Path) -> None:
    def with_state(x: Any, label: Any) -> Any:
        cost = tower(x, label)
        mean = tf.get_variable("mean/EMA", [4], trainable=False, initializer=tf.zeros_initializer())
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, mean.assign(tf.reduce_mean(x, 0)))
        return cost

    values = variables(train([ModelSaver()], folder=tmp_path, epochs=1, get_cost=with_state, get_optimizer=optimizer))
    assert np.array_equal(
        tf.train.NewCheckpointReader(str(tmp_path / "model-8")).get_tensor("mean/EMA"), values["mean/EMA"]
    )
