"""Advice of a training that ran out of memory: the numbers of this machine, and a batch size to try."""

import pytest

from ziggurat.errors import TrainingError
from ziggurat.specs import TrainSpec, parse_spec
from ziggurat.worker.memory_advice import free_memory_bytes, with_memory_advice


def spec(**fields):
    made = parse_spec({"kind": "train", "version": 1, "network": "mlp", "data": "digits", **fields})
    assert isinstance(made, TrainSpec)
    return made


def out_of_memory(asked):
    return TrainingError("The step must fit.", received="line 3", advice="Less.", details={"asked_bytes": asked})


@pytest.mark.parametrize(
    ("asked", "batch", "devices", "suggested"),
    [
        (17_400_000_000, 64, [], 32),
        (30_000_000_000, 64, [], 16),
        (17_400_000_000, 66, ["cpu:0", "cpu:1"], 32),
        (9_000_000_000, 1, [], 0),
        (10**15, 64, [], 0),
    ],
)
def test_the_advice_has_numbers_and_a_batch_to_try(asked, batch, devices, suggested):
    found = with_memory_advice(
        out_of_memory(asked), spec(batch_size=batch, devices=devices), lambda _gpu: 11_200_000_000
    )

    assert found.details["memory"]["suggested_batch_size"] == suggested
    assert found.details["memory"]["free_bytes"] == 11_200_000_000
    assert found.rule == "The step must fit."
    assert f"Batch {batch} asks for" in found.advice
    assert "11.2 GB are free" in found.advice
    assert (f"`batch_size` {suggested}" in found.advice) == bool(suggested)


def test_other_errors_stay_as_they_are():
    error = TrainingError("Something else.", details={"line": 3})
    assert with_memory_advice(error, spec()) is error


def test_the_free_memory_of_the_machine_is_known():
    assert free_memory_bytes(False) > 1e7
