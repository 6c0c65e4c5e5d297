"""Shows in a real browser that each task leads from files to an exported model; see ``task_journeys``.

The build server walks one of the journeys, ``make test-nightly`` five more; ``make test-matrix`` walks all of them.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.task_journeys import CHOSEN, JOURNEYS, NIGHTLY, Walk, write_files
from tests.nightly import some_nightly

EVERY = tuple((name, framework) for framework in ("tensorflow", "torch") for name in JOURNEYS)
WALKED = EVERY if os.environ.get("TESTS_EVERY_TASK") else some_nightly([*CHOSEN, *NIGHTLY], nightly=NIGHTLY)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "framework"), WALKED)
def test_task_from_files_to_an_export(
    name: str, framework: str, page: Page, server: Any, check_page: Any, record_property: Any
) -> None:
    for column, value in (("task", name), ("framework", framework), ("journey", "browser")):
        record_property(column, value)
    journey = JOURNEYS[name]
    source = write_files(journey, server.workspace / "uploads" / f"{name}, {framework}")
    walk = Walk(page, server.address, journey, framework, check_page)
    walk.make_dataset(source)
    walk.train()
    walk.evaluate()
    walk.predict(source)
    walk.export()
