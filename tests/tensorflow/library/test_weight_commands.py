"""Commands on weights in files, each in a process of its own as a person calls them; npz files without TensorFlow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from callback_trainings import train, variables

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.callbacks import CheckpointStore, RunState
from ziggurat.engine.stored_weights import is_training_name
from ziggurat.tf import logger
from ziggurat.tf.loading import SmartInit
from ziggurat.tf.savers import ModelSaver
from ziggurat.tf.varmanip import load_checkpoint_vars, save_checkpoint_vars
from ziggurat.worker.commands.weights import weights

W = np.arange(12, dtype=np.float32).reshape(4, 3)


def ziggurat(*words: Any) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "ziggurat", *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, dict[str, np.ndarray]]:
    """The folder of a training with a moving statistic, and its variables."""
    monkeypatch.setattr(logger, "_folder", None)

    def tower(x: Any, label: Any) -> Any:
        weights = tf.get_variable("fc/W", [4, 1], initializer=tf.ones_initializer())
        mean = tf.get_variable("bn/mean/EMA", [4], trainable=False, initializer=tf.ones_initializer())
        tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, mean)
        return tf.reduce_mean(tf.square(x @ weights - mean[0]), name="cost")

    return tmp_path, variables(train([ModelSaver()], folder=tmp_path, epochs=1, get_cost=tower))


def test_tutorial_63_ls_prints_variables_and_shapes(trained: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, values = trained
    found = weights({"action": "list", "paths": [str(folder / "model-8")]})

    assert {each["name"]: each["shape"] for each in found["arrays"]} == {
        name: list(array.shape) for name, array in values.items()
    }


def test_tutorial_64_dump_model_params_for_prediction(trained: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, values = trained
    [meta] = folder.glob("graph-*.meta")
    found = ziggurat("dump-model-params", "--meta", meta, folder / "model-8", folder / "out.npz")

    assert found["kept"] == ["bn/mean/EMA", "fc/W"]
    assert "fc/W/Adam" in found["left_out"]
    with np.load(folder / "out.npz") as content:
        assert sorted(content.files) == ["bn/mean/EMA", "fc/W"]
        assert np.array_equal(content["fc/W"], values["fc/W"])
    # A metagraph needs no operation to be known, and the newest one beside the checkpoint is found.
    ours = weights(
        {"action": "strip", "paths": [str(folder / "model-8")], "out": str(folder / "b.npz"), "meta": "nearest"}
    )
    assert ours["kept"] == found["kept"]


def test_stripped_weights_load_again(trained: tuple[Path, dict[str, np.ndarray]]) -> None:
    folder, values = trained
    for path in (folder / "model-8", folder / "checkpoints"):
        out = folder / f"stripped-{path.name}"
        found = weights({"action": "strip", "paths": [str(path)], "out": str(out)})
        assert found["kept"] == ["bn/mean/EMA", "fc/W"] or sorted(found["kept"]) == ["bn/mean/EMA", "fc/W"]
        assert np.array_equal(tf.train.NewCheckpointReader(str(out)).get_tensor("fc/W"), values["fc/W"])
    kept = weights(
        {"action": "strip", "paths": [str(folder / "model-8")], "out": str(folder / "k.npz"), "keep": "fc/.*"}
    )
    assert kept["kept"] == ["fc/W"]
    assert SmartInit(str(folder / "k.npz"))


def test_differences_of_files_of_any_kind(tmp_path: Path) -> None:
    save_checkpoint_vars({"a": W, "b": W, "c": W[0], "n": np.int64(1)}, str(tmp_path / "model"))
    np.savez(tmp_path / "other.npz", a=W, b=W + 0.5, c=W, d=W)

    found = weights({"action": "diff", "paths": [str(tmp_path / "model"), str(tmp_path / "other.npz")]})["differences"]
    by_name = {each["name"]: each for each in found}
    assert [by_name[name]["kind"] for name in "abcnd"] == [
        "equal",
        "values",
        "shape",
        "only in the first",
        "only in the second",
    ]
    assert by_name["b"]["largest"] == pytest.approx(0.5)
    assert by_name["b"]["mean"] == pytest.approx(0.5)


def test_npz_files_need_no_tensorflow(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", **{"fc/W": W, "global_step": np.int64(1)})
    np.savez(tmp_path / "two.npz", **{"fc/W": W + 2, "global_step": np.int64(9)})
    store = CheckpointStore(tmp_path / "checkpoints")
    store.save(RunState({"global_step": 3}, {"fc/W": W + 4, "global_step": np.array(3)}))
    given = [tmp_path / "one.npz", tmp_path / "two.npz", tmp_path / "checkpoints" / "step-00000003"]
    request = {"action": "average", "paths": [str(each) for each in given], "out": str(tmp_path / "mean.npz")}
    program = (
        "import sys; sys.modules['tensorflow'] = None\n"
        "from ziggurat.worker.commands.weights import weights\n"
        f"weights({request!r})"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)

    with np.load(tmp_path / "mean.npz") as content:
        assert np.array_equal(content["fc/W"], W + 2)
        assert content["global_step"] == 3


def test_averages_need_the_same_names_and_shapes(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", a=W)
    np.savez(tmp_path / "two.npz", a=W[0])
    np.savez(tmp_path / "half.npz", a=W.astype(np.float16))
    request = {"action": "average", "out": str(tmp_path / "out")}
    with pytest.raises(Exception, match="same names and shapes"):
        weights({**request, "paths": [str(tmp_path / "one.npz"), str(tmp_path / "two.npz")]})
    weights({**request, "paths": [str(tmp_path / "half.npz")] * 3})
    assert load_checkpoint_vars(str(tmp_path / "out"))["a"].dtype == np.float16


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("conv0/W", False),
        ("bn/mean/EMA", False),
        ("bn/variance/EMA", False),
        ("Momentum_net/W", False),
        ("conv0/W/Momentum", True),
        ("conv0/W/Adam_1", True),
        ("beta1_power", True),
        ("learning_rate:0", True),
        ("global_step", True),
        ("EMA/cost/biased", True),
        ("ziggurat/averages/conv0/W", True),
        ("conv0/W/AccumGrad", True),
        ("AccumGrad/counter", True),
    ],
)
def test_names_of_a_training_are_told_from_weights(name: str, expected: bool) -> None:
    assert is_training_name(name) is expected
