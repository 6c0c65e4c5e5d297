"""Loading of weights by name, with a report, from every kind of file; files that plain TensorFlow reads and writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import optimizer, tower, train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import CheckpointStore, ModelSaver, RunState
from ziggurat.errors import CheckpointError, ConfigurationError, MissingCheckpointError
from ziggurat.tf.callback import Callback
from ziggurat.tf.loading import (
    ChainInit,
    DictRestore,
    JustCurrentSession,
    SaverRestore,
    SaverRestoreRelaxed,
    SmartInit,
    get_model_loader,
)
from ziggurat.tf.varmanip import (
    SessionUpdate,
    dump_session_params,
    get_all_checkpoints,
    get_checkpoint_path,
    load_checkpoint_vars,
    open_weights,
    params_of_metagraph,
    save_checkpoint_vars,
)

W = np.arange(12, dtype=np.float32).reshape(4, 3)
B = np.array([1.0, 2.0, 3.0], np.float32)


def loaded(init: Any, **arguments: Any) -> dict[str, np.ndarray]:
    """Return the variables of a training that has loaded weights and takes one step with a rate of zero."""
    rate = lambda: tf.train.GradientDescentOptimizer(0.0)  # noqa: E731
    trainer = train([], epochs=1, steps=1, session_init=init, **{"get_optimizer": rate, **arguments})
    return variables(trainer)


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """A checkpoint that plain TensorFlow has written, with its `checkpoint` file and metagraph."""
    with tf.Graph().as_default(), tf.Session() as session:
        weights = tf.get_variable("linear/W", initializer=W)
        bias = tf.get_variable("linear/b", initializer=B)
        tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(weights) + tf.reduce_sum(bias))
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(tmp_path / "model"), global_step=7)


@pytest.mark.parametrize("name", ["model-7", "model-7.index", "model-7.meta", "checkpoint", ""])
def test_tutorial_65_saver_restore_by_any_of_its_files(plain: str, name: str) -> None:
    init = SaverRestore(str(Path(plain).parent / name))
    values = loaded(init)

    assert np.array_equal(values["linear/W"], W)
    assert np.array_equal(values["linear/b"], B)
    assert init.report.restored == ("linear/W", "linear/b")
    assert set(init.report.of_training) == {"global_step", "linear/W/Momentum", "linear/b/Momentum"}
    assert init.report.is_complete


def test_tutorial_65_dict_restore_and_model_loader(tmp_path: Path, plain: str) -> None:
    np.savez(tmp_path / "weights.npz", **{"linear/W:0": W, "linear/b": B})
    content: Any = {"linear/W": W, "linear/b": B}
    np.save(tmp_path / "weights.npy", content)

    kinds = [tmp_path / "weights.npz", str(tmp_path / "weights.npy"), plain, content]
    for given in kinds:
        values = loaded(get_model_loader(given))
        assert np.array_equal(values["linear/W"], W), given
    assert isinstance(SmartInit(None), JustCurrentSession)
    assert isinstance(SmartInit(str(tmp_path / "weights.npz")), DictRestore)
    assert isinstance(SmartInit(plain), SaverRestore)
    with pytest.raises(ConfigurationError, match="float"):
        SmartInit(1.5)


def test_tutorial_65_chain_init_loads_one_after_another() -> None:
    init = ChainInit([DictRestore({"linear/W": W, "linear/b": B}), DictRestore({"linear/b": B + 1, "other": B})])
    values = loaded(init)

    assert np.array_equal(values["linear/W"], W)
    assert np.array_equal(values["linear/b"], B + 1)
    assert init.report.missing == ()
    assert init.report.unexpected == ("other",)
    assert [len(each.restored) for each in init.reports] == [2, 1]


def test_tutorial_66_one_sided_names_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    init = DictRestore({"linear/W": W, "conv/W": W, "conv/W/Adam": W, "global_step": np.int64(3)})
    with caplog.at_level("WARNING"):
        values = loaded(init, get_optimizer=optimizer)

    report = init.report
    assert report.restored == ("linear/W", "global_step")
    assert report.missing == ("linear/b",)
    assert report.unexpected == ("conv/W",)
    assert "conv/W/Adam" in report.of_training
    assert "linear/W/Adam" in report.of_training
    assert "linear/b" in caplog.text
    assert values["global_step"] == 4


def test_tutorial_67_other_names_are_trained_anew(plain: str) -> None:
    def renamed(x: Any, label: Any) -> Any:
        with tf.variable_scope("new"):
            return tower(x, label)

    untouched = loaded(SaverRestore(plain), get_cost=renamed)
    assert not untouched["new/linear/W"].any()

    by_prefix = SaverRestore(plain, prefix="new", ignore=["new/linear/b:0"])
    values = loaded(by_prefix, get_cost=renamed)
    assert np.array_equal(values["new/linear/W"], W)
    assert not values["new/linear/b"].any()
    assert by_prefix.report.ignored == ("new/linear/b",)

    by_rule = loaded(SaverRestore(plain, rename=[("^linear/", "new/linear/")]), get_cost=renamed)
    assert np.array_equal(by_rule["new/linear/b"], B)
    by_name = loaded(SaverRestore(plain, rename={"linear/b": "new/linear/b"}), get_cost=renamed)
    assert np.array_equal(by_name["new/linear/b"], B)
    with pytest.raises(ConfigurationError, match="get the same name"):
        loaded(SaverRestore(plain, rename=[("/[Wb]$", "/x")]))


def test_shapes_and_types_that_do_not_fit(tmp_path: Path) -> None:
    flat = {"linear/W": W.reshape(-1).astype(np.float64), "linear/b": np.ones(5, np.float32)}
    save_checkpoint_vars(flat, str(tmp_path / "flat"))

    with pytest.raises(CheckpointError, match="linear/W"):
        loaded(SaverRestore(str(tmp_path / "flat")))
    with pytest.raises(CheckpointError, match="linear/b"):
        loaded(DictRestore(flat))
    for init in (SaverRestoreRelaxed(str(tmp_path / "flat")), DictRestore(flat, ignore_mismatch=True)):
        values = loaded(init)
        assert np.array_equal(values["linear/W"], W)
        assert not values["linear/b"].any()
        assert init.report.reshaped == ("linear/W",)
        assert init.report.mismatched == ("linear/b",)


def test_strict_loading_needs_the_same_weights() -> None:
    whole = {"linear/W": W, "linear/b": B}
    assert np.array_equal(loaded(DictRestore(whole, strict=True))["linear/b"], B)
    with pytest.raises(CheckpointError, match="linear/b") as raised:
        loaded(DictRestore({"linear/W": W}, strict=True))
    assert raised.value.details["missing"] == ("linear/b",)


def test_frozen_weights_are_in_the_report() -> None:
    def frozen(x: Any, label: Any) -> Any:
        tf.get_variable("first/W", [2], initializer=tf.zeros_initializer(), trainable=False)
        return tower(x, label)

    init = DictRestore({"first/W": np.ones(2), "linear/W": W, "linear/b": B})
    assert loaded(init, get_cost=frozen)["first/W"].tolist() == [1.0, 1.0]
    assert init.report.frozen == ("first/W",)


def test_checkpoints_of_ziggurat_load_with_their_averages(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "checkpoints")
    arrays = {"linear/W": W, "linear/b": B, "ziggurat/averages/linear/b": B + 1, "global_step": np.int64(5)}
    store.save(RunState({"global_step": 5}, arrays))
    store.give_name("best", "step-00000005")

    for place in (
        tmp_path,
        tmp_path / "checkpoints",
        tmp_path / "checkpoints/step-00000005",
        tmp_path / "checkpoints/best",
    ):
        values = loaded(SaverRestore(place))
        assert np.array_equal(values["linear/W"], W)
        assert np.array_equal(values["linear/b"], B + 1)


def test_run_states_of_a_training_load_into_another(tmp_path: Path) -> None:
    first = variables(train([ModelSaver(tmp_path)], epochs=1))

    assert np.array_equal(loaded(SmartInit(str(tmp_path)))["linear/W"], first["linear/W"])


def test_saved_variables_are_read_by_plain_tensorflow(tmp_path: Path) -> None:
    arrays = {"a/b:0": W, "n": np.int64(3), "flag": np.array([True, False])}
    save_checkpoint_vars(arrays, str(tmp_path / "out" / "vars"))
    save_checkpoint_vars(arrays, str(tmp_path / "vars.npz"))

    reader = tf.train.NewCheckpointReader(str(tmp_path / "out" / "vars"))
    assert reader.get_variable_to_shape_map() == {"a/b": [4, 3], "n": [], "flag": [2]}
    assert np.array_equal(reader.get_tensor("a/b"), W)
    with tf.Graph().as_default(), tf.Session() as session:
        again = tf.get_variable("a/b", [4, 3])
        tf.train.Saver([again]).restore(session, str(tmp_path / "out" / "vars"))
        assert np.array_equal(session.run(again), W)
    with np.load(tmp_path / "vars.npz") as content:
        assert sorted(content.files) == ["a/b", "flag", "n"]
    assert np.array_equal(load_checkpoint_vars(str(tmp_path / "out" / "vars"))["flag"], [True, False])


def test_paths_of_checkpoints(plain: str, tmp_path: Path) -> None:
    for step in (100, 20):
        save_checkpoint_vars({"x": W}, str(tmp_path / f"model-{step}"))

    names = [Path(each).name for each in get_all_checkpoints(str(tmp_path))]
    assert names == ["model-7", "model-20", "model-100"]
    assert get_all_checkpoints(str(tmp_path), "other") == []
    assert get_checkpoint_path(f"{plain}.data-00000-of-00001") == plain
    with pytest.raises(MissingCheckpointError, match="model-20"):
        get_checkpoint_path(str(tmp_path / "model-21"))
    with pytest.raises(MissingCheckpointError):
        open_weights(tmp_path / "none.npz")
    (tmp_path / "checkpoint").unlink()
    with pytest.raises(MissingCheckpointError, match="model-100"):
        open_weights(tmp_path)


def test_damaged_files_are_named(tmp_path: Path, plain: str) -> None:
    (tmp_path / "bad.npz").write_bytes(b"no zip")
    with pytest.raises(CheckpointError, match="by name"):
        open_weights(tmp_path / "bad.npz")
    Path(f"{plain}.index").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="whole"):
        open_weights(plain)


def test_pickles_with_code_are_refused(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (print, ("code ran",))

    content: Any = {"a": Evil()}
    np.save(tmp_path / "evil.npy", content)
    with pytest.raises(Exception, match=r"could run code"):
        open_weights(tmp_path / "evil.npy")


def test_metagraph_names_what_prediction_needs(plain: str) -> None:
    assert params_of_metagraph(f"{plain}.meta") == ["linear/W", "linear/b"]
    with pytest.raises(CheckpointError, match="is no metagraph"):
        params_of_metagraph(f"{plain}.index")


def test_session_update_and_dump_of_parameters(tmp_path: Path) -> None:
    class Dumping(Callback):
        def _before_train(self) -> None:
            SessionUpdate(self.trainer.sess, tf.global_variables()).update({"linear/b:0": B, "none": W})
            dump_session_params(str(tmp_path / "params"))
            with pytest.raises(CheckpointError, match="linear/b"):
                SessionUpdate(self.trainer.sess, tf.global_variables()).update({"linear/b": W})

    train([Dumping()], epochs=1, steps=1)

    with np.load(tmp_path / "params.npz") as content:
        assert sorted(content.files) == ["linear/W", "linear/b"]
        assert np.array_equal(content["linear/b"], B)
