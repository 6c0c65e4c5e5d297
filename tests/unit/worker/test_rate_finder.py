"""Learning-rate finder with the NumPy network: a rate that trains, the largest finite one, and slow steps."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ziggurat.backends.null import NullOptions, NullProgram
from ziggurat.worker.commands.rate_finder import RateFinder


@pytest.fixture
def batches():
    random = np.random.RandomState(0)
    x = random.rand(256, 20).astype(np.float32)
    y = (x[:, 0] * 4).astype(np.int64).clip(0, 3)
    return itertools.cycle([[x[rows], y[rows]] for rows in np.split(random.permutation(256), 8)])


def finder(program, batches, **options):
    first = program.state()
    return RateFinder(program, lambda: next(batches), lambda: first, **{"step_s": 0.001, "budget_s": 60.0, **options})


def steep(scale):
    """Return a network of large inputs, which diverges at usual rates."""
    return NullProgram(20, 4, NullOptions(hidden=0, scale=scale, weight_decay=0.5))


def test_the_suggested_rate_trains(batches):
    program = NullProgram(20, 4, NullOptions())
    first = program.state()

    found = finder(program, batches).find(0.01)

    assert found["own"] == {"rate": 0.01, "finite": True, "step": None}
    assert found["rates"] == sorted(found["rates"])
    assert len(found["rates"]) == len(found["losses"]) == len(found["raw_losses"])
    assert 1e-8 < found["suggested"] < found["largest_finite"]
    program.load_state(first)
    program.set_hyperparameter("learning_rate", found["suggested"])
    losses = [float(program.step(next(batches), ("cost",))["cost"]) for _ in range(80)]
    assert np.mean(losses[-8:]) < np.mean(losses[:8])


def test_a_rate_that_diverges_is_found(batches):
    program = steep(1.0)
    first = program.state()

    found = finder(program, batches).find(1000.0)

    own = found["own"]
    assert not own["finite"]
    assert 1 <= own["step"] <= found["trial_steps"]
    assert found["suggested"] < found["largest_finite"] < 1000
    assert not found["largest_is_bound"]
    program.load_state(first)
    program.set_hyperparameter("learning_rate", found["largest_finite"])
    kept = [float(program.step(next(batches), ("cost",))["cost"]) for _ in range(found["trial_steps"])]
    assert all(math.isfinite(loss) for loss in kept)


def test_slow_steps_are_fewer(batches):
    quick = finder(NullProgram(20, 4), batches).find(0.01)
    slow = finder(NullProgram(20, 4), batches, step_s=2.0, budget_s=10.0).find(0.01)

    assert len(slow["rates"]) < len(quick["rates"])
    assert slow["trial_steps"] < quick["trial_steps"]


def test_no_rate_is_suggested_where_none_trains():
    class Broken(NullProgram):
        def step(self, batch, names):
            super().step(batch, names)
            return {"cost": math.nan}

    batch = [np.ones((4, 20), np.float32), np.zeros(4, np.int64)]
    found = finder(Broken(20, 4), itertools.repeat(batch)).find(0.01)

    assert (found["suggested"], found["largest_finite"], found["rates"]) == (None, None, [])
    assert found["own"]["step"] == 1
