"""Some kills at random moments on a real Ray cluster; ``ray_kills.py --kills 20`` does as many as one likes."""

from __future__ import annotations

import random

import pytest
from ray_kills import run
from ray_machines import ON_RAY

pytestmark = [*ON_RAY, pytest.mark.timeout(900)]


def test_curves_survive_random_kills(tmp_path):
    run(seed=random.randrange(1 << 32), kills=5, folder=tmp_path)
