"""Shows that a page names the newest notice from before it was made, so that its event stream goes on from there."""

from __future__ import annotations

import re
from typing import Any

import pytest


def _last(visit: Any, path: str = "/about") -> tuple[str, int]:
    found = re.search(r'data-last="([0-9a-f]{16})-(\d+)"', visit.get(path).text)
    assert found is not None
    return found[1], int(found[2])


def test_a_page_is_as_old_as_the_newest_notice_before_it(visit: Any, app: Any, studio: Any) -> None:
    server, number = _last(visit)
    assert (server, number) == (app.state.streams.server, studio.notices.number)
    studio.notices.publish("jobs", "changed", "one")
    assert _last(visit) == (server, number + 1)


@pytest.mark.parametrize("path", ["/", "/datasets/new"])
def test_every_page_names_it(path: str, visit: Any, studio: Any) -> None:
    studio.notices.publish("jobs", "changed", "one")
    assert _last(visit, path)[1] > 0


def test_what_was_told_meanwhile_is_read_by_its_stream(visit: Any, studio: Any) -> None:
    number = _last(visit)[1]
    studio.notices.publish("jobs", "changed", "one")
    subscription = studio.notices.subscribe(["jobs"], since=number)
    assert [(each.kind, each.id) for each in subscription.take()] == [("changed", "one")]
    subscription.close()
