"""Costs of the tests: everything outside the quick folders is marked ``slow``, and ``make test`` leaves it out.

A ``nightly`` test is left to ``make test-all``, and is slow wherever it stands.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests import durations
from tests.reruns import pytest_itemcollected, pytest_runtest_protocol, pytest_terminal_summary
from tests.warm.session import WarmStarts, cold_starts

__all__ = ["cold_starts", "pytest_itemcollected", "pytest_runtest_protocol", "pytest_terminal_summary"]

settings.register_profile("ziggurat", deadline=None)  # a loaded machine is no failure
settings.load_profile("ziggurat")

os.environ.setdefault("ZIGGURAT_DISK_RESERVE_MIB", "0")  # nor is a disk that is nearly full: jobs of tests are small

pytest.register_assert_rewrite("tests.nine_contracts")

TESTS = Path(__file__).parent
QUICK = {"arch", "backend", "unit"}
"""Folders whose tests start no studio, no demo and no browser; each of them takes less than two seconds."""


def pytest_configure(config: pytest.Config) -> None:
    durations.register(config)
    framework = os.environ.get("TESTS_WARM")
    if framework and not config.option.collectonly:
        warm = WarmStarts(framework)
        config.add_cleanup(warm.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        slow = folder not in QUICK and item.get_closest_marker("smoke") is None
        if slow or item.get_closest_marker("nightly") is not None:
            item.add_marker(pytest.mark.slow)
