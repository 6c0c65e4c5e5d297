"""Solvers of Caffe as fields of a training: the rate at every step is Caffe's."""

import math

import pytest

from tests.caffe_files import LENET_SOLVER
from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.solver import read_solver
from ziggurat.specs.train import TrainSpec

BASE = "base_lr: 0.1 max_iter: 1000 test_interval: 100 "


def spec(fields):
    return TrainSpec.model_validate({"network": "lenet", "data": "digits", **fields})


def test_the_solver_of_lenet_becomes_a_training():
    solver = read_solver(LENET_SOLVER)
    made = spec(solver.fields)
    assert (made.learning_rate, made.epochs, made.steps_per_epoch) == (0.01, 20, 500)
    assert made.optimizer.model_dump() == {"name": "momentum", "momentum": 0.9, "nesterov": False}
    assert made.schedule.policy == "inv"
    assert (made.schedule.gamma, made.schedule.power) == (0.01, 0.75)
    assert (solver.weight_decay, solver.scales_rates) == (0.0005, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('type: "SGD"', {"name": "sgd"}),
        ('type: "Nesterov" momentum: 0.95', {"name": "momentum", "momentum": 0.95, "nesterov": True}),
        ("solver_type: ADAGRAD delta: 1e-6", {"name": "adagrad", "initial_accumulator": 0.0}),
        ('type: "RMSProp" rms_decay: 0.98', {"name": "rmsprop", "decay": 0.98, "epsilon": 1e-8}),
        ('type: "AdaDelta" momentum: 0.95 delta: 1e-6', {"name": "adadelta", "rho": 0.95, "epsilon": 1e-6}),
        ('type: "Adam" momentum: 0.9', {"name": "adam", "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8}),
    ],
)
def test_every_type_has_its_optimizer(text, expected):
    solver = read_solver(BASE + text)
    assert solver.fields["optimizer"] == expected
    spec(solver.fields)
    assert solver.scales_rates == (expected["name"] in ("sgd", "momentum"))


def rate(schedule, progress):
    """Return the factor of a schedule by the formulas that its spec documents; progress in %."""
    policy, gamma = schedule["policy"], schedule.get("gamma", 0)
    return {
        "fixed": lambda: 1.0,
        "step": lambda: gamma ** math.floor(progress / schedule["step_percent"] + 1e-9),
        "multistep": lambda: gamma ** sum(progress >= point for point in schedule["at_percent"]),
        "exp": lambda: gamma**progress,
        "inv": lambda: (1 + gamma * progress) ** -schedule["power"],
        "poly": lambda: (1 - progress / 100) ** schedule["power"],
        "sigmoid": lambda: 1 / (1 + math.exp(gamma * (progress - schedule["step_percent"]))),
    }[policy]()


@pytest.mark.parametrize(
    ("text", "caffe"),
    [
        ('lr_policy: "fixed"', lambda step: 1),
        ('lr_policy: "step" gamma: 0.5 stepsize: 250', lambda step: 0.5 ** (step // 250)),
        (
            'lr_policy: "multistep" gamma: 0.1 stepvalue: 300 stepvalue: 800',
            lambda step: 0.1 ** ((step >= 300) + (step >= 800)),
        ),
        ('lr_policy: "exp" gamma: 0.999', lambda step: 0.999**step),
        ('lr_policy: "inv" gamma: 0.01 power: 0.5', lambda step: (1 + 0.01 * step) ** -0.5),
        ('lr_policy: "poly" power: 2', lambda step: (1 - step / 1000) ** 2),
        ('lr_policy: "sigmoid" gamma: -0.01 stepsize: 500', lambda step: 1 / (1 + math.exp(0.01 * (step - 500)))),
        ('lr_policy: "step" gamma: 0.1 stepsize: 5000', lambda step: 1),
    ],
)
def test_every_policy_gives_the_rate_of_caffe(text, caffe):
    fields = read_solver(BASE + text).fields
    spec(fields)
    for step in (0, 1, 249, 250, 299, 300, 501, 800, 999):
        assert rate(fields["schedule"], step / 10) == pytest.approx(caffe(step)), step


def test_parts_of_a_batch_clip_and_seed_are_kept():
    fields = read_solver(BASE + "iter_size: 4 clip_gradients: 35 random_seed: 7").fields
    assert (fields["gradient_accumulation_steps"], fields["gradient_clip"], fields["seed"]) == (4, 35.0, 7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base_lr: 0.1", "a `max_iter` above 0"),
        (BASE + 'lr_policy: "cyclic"', "Line 1: `lr_policy` is 'cyclic', not `fixed` or"),
        (BASE + 'lr_policy: "step" gamma: 0.1', "a `stepsize`"),
        (BASE + 'regularization_type: "L1" weight_decay: 1', "of the type `L2`"),
        (BASE + 'type: "LBFGS"', "`type` is 'LBFGS', not `SGD` or"),
        (BASE + "rate: 1", "`rate` is not a field of the solver"),
        (BASE + "momentum: 1.5", "from 0 to below 1"),
    ],
)
def test_what_a_training_does_not_know_is_an_error(text, words):
    with pytest.raises(CaffeError) as caught:
        read_solver(text)
    assert words in str(caught.value)
