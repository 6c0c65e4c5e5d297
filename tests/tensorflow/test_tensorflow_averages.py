"""Averaged weights follow their formula step by step, and are what predicts, is evaluated and exported."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tensorflow_jobs import digit_pictures, quick_job, save_pictures
from tensorflow_networks import SMALL, batches

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

from ziggurat.backends.tensorflow.backend import TensorFlowBackend
from ziggurat.backends.tensorflow.info import INFO
from ziggurat.backends.tensorflow.program import TensorFlowProgram
from ziggurat.engine.backend import ProgramRequest, class_arrays
from ziggurat.engine.checkpoints import AVERAGES, CheckpointStore, with_averages
from ziggurat.layout import JobFolder
from ziggurat.specs import parse_spec, save_spec
from ziggurat.testing import BackendConformance
from ziggurat.worker.build import read_pretrained
from ziggurat.worker.commands.evaluation import evaluate
from ziggurat.worker.commands.exporting import export
from ziggurat.worker.commands.prediction import predict
from ziggurat.worker.commands.trained import open_network, open_trained_job

DECAY = 0.4
"""Below (1 + t) / (10 + t) from the sixth step on, so that both parts of the rule are met."""

NORMALISED = SMALL.replace("scope='conv1')", "scope='conv1', normalizer_fn=slim.batch_norm)").replace(
    "net = slim.max_pool2d",
    "net = slim.dropout(net, 0.9, is_training=self.is_training)\n            net = slim.max_pool2d",
)
WEIGHTS = ("conv1/weights", "conv1/biases", "fc1/weights", "fc1/biases")


def built(text: str = SMALL, **options: object) -> TensorFlowProgram:
    request = {
        "network": "network.py",
        "network_text": text,
        **class_arrays((8, 8, 1), 10),
        "batch_size": 32,
        "learning_rate": 0.05,
        "optimizer": "momentum",
        "seed": 5,
        "ema_decay": DECAY,
    }
    return TensorFlowBackend().build(ProgramRequest(**{**request, **options}))  # pyright: ignore[reportArgumentType]


def average(state: dict[str, np.ndarray], name: str) -> np.ndarray:
    return state[f"{AVERAGES}model/{name}"]


class TestAveragedProgram(BackendConformance):
    rows_name = "incorrect_vector"

    def program(self) -> TensorFlowProgram:
        return built()

    def batches(self) -> list[list[np.ndarray]]:
        return batches(4, 32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_accumulation_steps": 2},
        {"devices": ("cpu:0", "cpu:1")},
        {"optimizer": "adamw", "weight_decay": 0.1},
    ],
    ids=["plain", "accumulated", "two towers", "adamw"],
)
def test_an_average_moves_with_every_step_by_the_formula(options: dict) -> None:
    program = built(**options)
    state = program.state()
    expected = {name: state[f"model/{name}"].astype(np.float64) for name in WEIGHTS}
    for name in WEIGHTS:
        np.testing.assert_array_equal(average(state, name), state[f"model/{name}"])
    for count, batch in enumerate(batches(12, 32), start=1):
        program.step(batch, ("cost",))
        if count % 5 == 0:  # what is evaluated in between changes nothing
            program.evaluate(batch, ("cost",))
        state = program.state()
        decay = min(DECAY, (1 + count) / (10 + count))
        for name in WEIGHTS:
            expected[name] = decay * expected[name] + (1 - decay) * state[f"model/{name}"]
            np.testing.assert_allclose(average(state, name), expected[name], rtol=1e-5, atol=1e-7, err_msg=name)
    assert not np.allclose(average(state, "fc1/weights"), state["model/fc1/weights"], atol=1e-5)


def test_the_training_itself_is_that_without_averages() -> None:
    averaged, plain = built(), built(ema_decay=None)
    for number, batch in enumerate(batches(6, 32)):
        left, right = averaged.step(batch, ("cost",)), plain.step(batch, ("cost",))
        assert left["cost"] == right["cost"], number
        averaged.evaluate(batch, ("cost",))
    first, second = averaged.state(), plain.state()
    assert {name for name in first if name not in second} == {f"{AVERAGES}model/{name}" for name in WEIGHTS}
    for name, array in second.items():
        np.testing.assert_array_equal(first[name], array, err_msg=name)
    assert plain.graph.averages is None


def test_frozen_weights_and_moving_statistics_have_no_average() -> None:
    program = built(NORMALISED, freeze=("conv1",))
    for batch in batches(3, 32):
        program.step(batch, ())
    state = program.state()
    assert [name for name in state if name.startswith(AVERAGES)] == [
        f"{AVERAGES}model/fc1/{name}" for name in ("weights", "biases")
    ]
    trained = {name for name in built(NORMALISED).state() if name.startswith(AVERAGES)}
    assert not [name for name in trained if "moving" in name]
    assert f"{AVERAGES}model/conv1/BatchNorm/beta" in trained


def test_a_weight_that_no_gradient_reaches_is_its_own_average() -> None:
    kept = SMALL + "\n    def gradientUpdate(self, grads):\n"
    kept += "        return [(grad, variable) for grad, variable in grads if 'conv1' not in variable.name]\n"
    program = built(kept)
    for batch in batches(12, 32):
        program.step(batch, ())
    state = program.state()
    np.testing.assert_array_equal(average(state, "conv1/weights"), state["model/conv1/weights"])


def test_evaluation_and_prediction_compute_with_the_averages() -> None:
    program, batch = built(), batches(1, 32)[0]
    for each in batches(8, 32):
        program.step(each, ())
    values = program.evaluate(batch, ("output", "cost", "regularization"))
    predicted = program.predict(batch[0])[0]
    state = program.state()
    plain = built(ema_decay=None)
    weights = {name: array for name, array in state.items() if not name.startswith(AVERAGES)}
    plain.load_state(weights)
    raw = plain.evaluate(batch, ("output", "cost", "regularization"))
    plain.load_state({name: with_averages(state)[name] for name in weights})
    expected = plain.evaluate(batch, ("output", "cost", "regularization"))
    np.testing.assert_array_equal(values["output"], expected["output"])
    np.testing.assert_array_equal(predicted, plain.predict(batch[0])[0])
    assert (values["cost"], values["regularization"]) == (expected["cost"], expected["regularization"])
    assert values["cost"] != raw["cost"]
    assert np.abs(raw["output"] - expected["output"]).max() > 0.01


def test_a_resumed_training_is_bit_for_bit_the_uninterrupted() -> None:
    whole, first, second = built(NORMALISED), built(NORMALISED), built(NORMALISED, seed=5)
    made = batches(10, 32)
    for batch in made:
        whole.step(batch, ())
    for batch in made[:5]:
        first.step(batch, ())
    first.evaluate(made[0], ("cost",))
    second.evaluate(made[0], ("cost",))  # takes a state back while the averages are in use
    second.load_state(first.state())
    for program in (first, second):
        for batch in made[5:]:
            program.step(batch, ())
        for name, array in whole.state().items():
            np.testing.assert_array_equal(program.state()[name], array, err_msg=name)


def test_a_pretrained_start_averages_from_the_pretrained_weights() -> None:
    source = built(ema_decay=None)
    for batch in batches(3, 32):
        source.step(batch, ())
    pretrained = source.state()
    state = built(pretrained=pretrained, seed=9).state()
    for name in WEIGHTS:
        np.testing.assert_array_equal(state[f"model/{name}"], pretrained[f"model/{name}"])
        np.testing.assert_array_equal(average(state, name), pretrained[f"model/{name}"])


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A LeNet of eight steps whose averages are far from its weights."""
    folder = tmp_path_factory.mktemp("averaged") / "job"
    return quick_job(folder, "lenet", steps=8, learning_rate=0.02, ema_decay=0.9)


@pytest.fixture(scope="module")
def outputs(job: Path) -> dict[str, np.ndarray]:
    """Probabilities of three images by a network without averages that was given one or the other weights."""
    opened = open_trained_job(job)
    raw = next(iter(CheckpointStore(JobFolder(job).checkpoints, writable=False).list())).name
    arrays = CheckpointStore(JobFolder(job).checkpoints, writable=False).load(raw).arrays
    x = opened.images.finish(digit_pictures()[0][:3])
    found = {}
    for word, weights in (
        ("raw", arrays),
        ("averaged", {n: arrays.get(f"{AVERAGES}{n}", a) for n, a in arrays.items()}),
    ):
        program = TensorFlowBackend().build(ProgramRequest(**{**vars(opened.request), "ema_decay": None}))
        program.load_state({name: weights[name] for name in program.state()})
        found[word] = program.evaluate([x, np.zeros(3, np.int64)], ("probabilities",))["probabilities"]
        program.close()
    assert np.abs(found["raw"] - found["averaged"]).max() > 0.01
    return found


def test_a_trained_network_is_opened_with_the_averages(job: Path, outputs: dict[str, np.ndarray]) -> None:
    opened = open_trained_job(job)
    x = opened.images.finish(digit_pictures()[0][:3])
    with open_network(opened) as network:
        np.testing.assert_allclose(network.predict(x)["probabilities"], outputs["averaged"], atol=1e-6)
        evaluated = network.evaluate(x, np.zeros(3, np.int64))
    np.testing.assert_allclose(evaluated["probabilities"], outputs["averaged"], atol=1e-6)


def test_an_export_holds_the_averages(job: Path, outputs: dict[str, np.ndarray], tmp_path: Path) -> None:
    files = save_pictures(tmp_path, digit_pictures()[0][:3])
    found = export({"folder": str(job), "format": "savedmodel", "out": str(tmp_path / "out")})
    assert found["parity"]["holds"]
    predictions = predict({"folder": str(job), "images": files, "top": 10})["predictions"]
    for row, each in enumerate(predictions):
        for chosen in each["classes"]:
            assert chosen["probability"] == pytest.approx(outputs["averaged"][row, chosen["number"]], abs=1e-5)
    assert "| averaged weights | decay 0.9 |" in (tmp_path / "out" / "MODEL_CARD.md").read_text()


def test_a_new_training_begins_from_the_averages(job: Path) -> None:
    arrays = CheckpointStore(JobFolder(job).checkpoints, writable=False).latest()
    assert arrays is not None
    weights = read_pretrained(job, TensorFlowBackend(), INFO)
    name = "model/conv1/weights"
    np.testing.assert_array_equal(weights[name], arrays[1].arrays[f"{AVERAGES}{name}"])
    assert not np.array_equal(weights[name], arrays[1].arrays[name])


@pytest.mark.nightly
def test_a_worker_validates_with_what_is_evaluated_later(tmp_path: Path) -> None:
    content = {"kind": "train", "version": 1, "data": "digits", "backend": "tensorflow", "network": "lenet"}
    content |= {"epochs": 1, "batch_size": 32, "learning_rate": 0.01, "ema_decay": 0.99, "monitors": ["events"]}
    save_spec(parse_spec(content, source="a test"), JobFolder(tmp_path).spec)
    command = [sys.executable, "-m", "ziggurat.worker", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    newest = CheckpointStore(JobFolder(tmp_path).checkpoints, writable=False).latest()
    assert newest is not None
    logged = {tag: point[1] for tag, point in newest[1].meta["latest"].items()}
    figures = evaluate({"folder": str(tmp_path)})
    assert figures["scalars"]["cost"] == pytest.approx(logged["validation_cost"], rel=1e-5)
    assert figures["accuracy"] == pytest.approx(1 - logged["validation_error"], rel=1e-6)
