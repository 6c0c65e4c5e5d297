"""The NumPy backend holds the contract of backends, and learns scikit-learn's digits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from ziggurat.backends.null import NullBackend, NullOptions, NullProgram
from ziggurat.engine.backend import ArraySpec, Backend, ProgramRequest, class_arrays
from ziggurat.engine.trainer import Trainer
from ziggurat.errors import CheckpointError, ConfigurationError, UnknownNameError
from ziggurat.testing import BackendConformance


def digits() -> tuple[np.ndarray, np.ndarray]:
    x, y = load_digits(return_X_y=True)
    return (x * 15).astype(np.uint8), y


def batches_of(x: np.ndarray, y: np.ndarray, size: int) -> list[list[np.ndarray]]:
    return [[x[start : start + size], y[start : start + size]] for start in range(0, len(x), size)]


class TestNullProgram(BackendConformance):
    rows_name = "incorrect_vector"

    def program(self) -> NullProgram:
        return NullProgram(64, 10, NullOptions(hidden=16, dropout=0.3, weight_decay=1e-4, seed=3))

    def batches(self) -> list[list[np.ndarray]]:
        x, y = digits()
        return batches_of(x[:256], y[:256], 64)


class TestLinearNullProgram(TestNullProgram):
    def program(self) -> NullProgram:
        return NullProgram(64, 10, NullOptions(hidden=0))


def test_it_learns_the_digits() -> None:
    x, y = digits()
    program = NullProgram(64, 10, NullOptions(hidden=64, learning_rate=0.2))
    Trainer(program, batches_of(x[:1400], y[:1400], 50)).train(30)
    assert program.evaluate([x[1400:], y[1400:]], ["accuracy"])["accuracy"] > 0.9


def test_values_are_those_of_the_formulas() -> None:
    program = NullProgram(2, 2, NullOptions(hidden=0, weight_decay=0.5))
    state = program.state()
    state["layer1/W"] = np.array([[1, 0], [0, 1]], np.float32)
    program.load_state(state)
    batch = [np.array([[1.0, 0.0], [0.0, 2.0]], np.float32), np.array([0, 0])]
    values = program.evaluate(batch, ["cost", "accuracy", "error", "incorrect_vector", "logits", "labels"])
    cross_entropy = np.mean([np.log1p(np.exp(-1)), np.log1p(np.exp(2))])
    assert values["cost"] == pytest.approx(cross_entropy + 0.5 * 0.5 * 2, rel=1e-6)
    assert values["accuracy"] == 0.5
    assert values["error"] == 0.5
    assert values["incorrect_vector"].tolist() == [0, 1]
    assert values["logits"].tolist() == [[1, 0], [0, 2]]
    assert values["labels"].tolist() == [0, 0]


def test_gradients_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    batch = [rng.normal(size=(5, 3)).astype(np.float32), rng.integers(0, 4, 5)]
    program = NullProgram(3, 4, NullOptions(hidden=6, learning_rate=1.0, momentum=0.0, weight_decay=0.1))
    before = program.state()
    program.step(batch, ())
    after = program.state()
    for name in ("layer1/W", "layer1/b", "layer2/W", "layer2/b"):
        descent = before[name] - after[name]
        for index in np.ndindex(descent.shape):
            costs = []
            for shift in (1e-3, -1e-3):
                moved = {key: array.copy() for key, array in before.items()}
                moved[name][index] += np.float32(shift)
                program.load_state(moved)
                costs.append(program.evaluate(batch, ["cost"])["cost"])
            assert descent[index] == pytest.approx((costs[0] - costs[1]) / 2e-3, abs=5e-3)


def test_a_sample_of_another_size_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"A sample of this network has 64 numbers \(received: 3 "):
        NullProgram(64, 10).step([np.zeros((2, 3)), np.zeros(2, int)], ())


@pytest.mark.parametrize(
    ("option", "value", "rule"),
    [
        ("hidden", -1, "`hidden` must be at least 0 (received: -1)."),
        ("dropout", 1.0, "`dropout` must be in [0, 1) (received: 1.0)."),
        ("learning_rate", -0.1, "`learning_rate` must be at least 0 (received: -0.1)."),
        ("momentum", 1.0, "`momentum` must be in [0, 1) (received: 1.0)."),
        ("weight_decay", -1.0, "`weight_decay` must be at least 0 (received: -1.0)."),
    ],
)
def test_options_are_checked(option: str, value: float, rule: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NullOptions(**{option: value})  # pyright: ignore[reportArgumentType]
    assert str(caught.value).startswith(rule)


def test_another_networks_state_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"layer1/W has shape \(64, 16\) instead of \(64, 8\)"):
        NullProgram(64, 10, NullOptions(hidden=8)).load_state(NullProgram(64, 10, NullOptions(hidden=16)).state())


TARGET_RULE = "With the null backend, `targets` must be class numbers of known classes, or a row of numbers"


class TestNullRegression(BackendConformance):
    def program(self) -> NullProgram:
        return NullProgram(64, 2, NullOptions(hidden=8, dropout=0.3, learning_rate=0.01), learns_numbers=True)

    def batches(self) -> list[list[np.ndarray]]:
        x, y = digits()
        return batches_of(x[:256], np.stack([y[:256] / 10, y[:256] % 2], axis=1).astype(np.float32), 64)


def rows(**changes: object) -> ProgramRequest:
    arrays = {"inputs": {"x": ArraySpec((3,))}, "targets": {"y": ArraySpec((2,))}}
    return ProgramRequest(**{**arrays, "network": "table_linear", **changes})  # pyright: ignore[reportArgumentType]


def test_rows_of_a_table_are_taken_as_they_are() -> None:
    x = np.array([[1, 0, 200], [0, -3, 0]], np.float32)
    program = NullBackend().build(rows(learning_rate=0.0))
    weights = program.state()["layer1/W"]
    found = program.evaluate([x, np.zeros((2, 2), np.float32)], ["output", "cost"])
    np.testing.assert_allclose(found["output"], x @ weights, rtol=1e-6)
    assert found["cost"] == pytest.approx(np.mean((x @ weights) ** 2))


def test_a_linear_regression_finds_the_least_squares() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 3)).astype(np.float32)
    y = (x @ rng.normal(size=(3, 2)) + rng.normal(size=(200, 2))).astype(np.float32)
    program = NullBackend().build(rows(learning_rate=0.3))
    for _ in range(300):
        program.step([x, y], ())
    best, *_ = np.linalg.lstsq(np.column_stack([x, np.ones(200)]), y, rcond=None)
    state = program.state()
    np.testing.assert_allclose(np.vstack([state["layer1/W"], state["layer1/b"]]), best, atol=1e-4)


def test_gradients_of_a_regression_are_finite_differences() -> None:
    rng = np.random.default_rng(0)
    batch = [rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(5, 2)).astype(np.float32)]
    options = {"hidden": 4, "weight_decay": 0.1}
    program = NullBackend().build(rows(network="table_mlp", learning_rate=1.0, options=options))
    before = program.state()
    program.step(batch, ())
    after = program.state()
    for name in ("layer1/W", "layer1/b", "layer2/W", "layer2/b"):
        for index in np.ndindex(before[name].shape):
            costs = []
            for shift in (1e-2, -1e-2):
                moved = {key: array.copy() for key, array in before.items()}
                moved[name][index] += np.float32(shift)
                program.load_state(moved)
                costs.append(program.evaluate(batch, ["cost"])["cost"])
            assert (before[name] - after[name])[index] == pytest.approx((costs[0] - costs[1]) / 2e-2, abs=5e-3)


def test_labels_of_another_length_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"A label of this network has 2 numbers \(received: 4 samples"):
        NullBackend().build(rows()).step([np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32)], ())


def test_a_number_is_learned_as_a_row_of_one() -> None:
    program = NullBackend().build(rows(targets={"y": ArraySpec()}))
    found = program.evaluate([np.zeros((4, 3), np.float32), np.ones(4)], ["output", "cost", "labels"])
    assert (found["output"].shape, found["labels"].shape, found["cost"]) == ((4, 1), (4, 1), 1.0)


def request(**changes: object) -> ProgramRequest:
    return ProgramRequest(**{**class_arrays((8, 8, 1), 10), **changes})  # pyright: ignore[reportArgumentType]


def test_the_backend_builds_what_is_asked_for() -> None:
    backend = NullBackend()
    assert isinstance(backend, Backend)
    assert backend.why_not() == ""
    program = backend.build(request(learning_rate=0.5, options={"hidden": 7}))
    assert program.state()["layer1/W"].shape == (64, 7)
    assert program.hyperparameters() == {"learning_rate": 0.5, "momentum": 0.0}
    assert "layer2/W" not in backend.build(request(network="linear")).state()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"network": "lenet"},
            "With the null backend, `network` must be one of mlp, table_mlp, linear, table_linear (received: lenet).",
        ),
        ({"optimizer": "adam"}, "With the null backend, `optimizer` must be `sgd` or `momentum` (received: adam)."),
        ({"precision": "bf16"}, "With the null backend, `precision` must be `float32` (received: bf16)."),
        ({"targets": {}}, f"{TARGET_RULE} (received: none)."),
        ({"targets": {"y": ArraySpec((), "int64")}}, f"{TARGET_RULE} (received: int64 of shape ())."),
        ({"targets": {"y": ArraySpec((3,), classes=3)}}, f"{TARGET_RULE} (received: float32 of shape (3,))."),
        ({"targets": {"y": ArraySpec((4, 4, 1), "int64", 3)}}, f"{TARGET_RULE} (received: int64 of shape (4, 4, 1))."),
        (
            {"inputs": {"left": ArraySpec((8, 8, 1)), "right": ArraySpec((8, 8, 1))}},
            "This backend trains with one input and at most one target (received: inputs left, right; targets y).",
        ),
        ({"gradient_clip": 1.0}, "With the null backend, `gradient_clip` must be left out (received: 1.0)."),
        (
            {"gradient_accumulation_steps": 2},
            "With the null backend, `gradient_accumulation_steps` must be 1 (received: 2).",
        ),
        ({"ema_decay": 0.9}, "With the null backend, `ema_decay` must be left out (received: 0.9)."),
        ({"devices": ("a", "b")}, "With the null backend, `devices` must be at most one (received: a, b)."),
    ],
)
def test_the_backend_refuses_what_it_does_not_do(changes: dict[str, object], text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        NullBackend().build(request(**changes))
    assert str(caught.value).startswith(text)


def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean `hidden`"):
        NullBackend().build(request(options={"hiden": 3}))
