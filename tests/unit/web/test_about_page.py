"""The pages about this installation: machine, frameworks, disk use, what does not work, and licenses."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.unit.web.html_page import html_of
from tests.waiting import wait_until
from ziggurat import __version__
from ziggurat.records.feature_store import FeatureKey, FeatureStore
from ziggurat.web.pages.about.licences import licence_text, own_licence, python_licences
from ziggurat.web.pages.about.routes import DoctorLook, disk_use
from ziggurat.workspace.doctor import Finding


def _text(answer: Any) -> str:
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def test_the_page_waits_for_nothing_that_takes_seconds(visit, studio):
    page = visit.get("/about")

    assert page.status_code == 200
    text = _text(page)
    assert f"Ziggurat {__version__}" in text
    assert str(studio.root) in text
    assert studio.machine.frameworks.known is None
    assert 'hx-get="/about/frameworks" hx-trigger="load"' in page.text
    assert html_of(page).one("#about-doctor button")["id"] == "doctor-go"


def test_disk_use_is_counted_and_stops_in_time(visit, studio):
    folder = studio.root / "uploads" / "one"
    folder.mkdir(parents=True)
    (folder / "a.bin").write_bytes(bytes(1500))

    found = visit.part("/about/disk")
    ticks = iter((0.0, 0.0, 99.0, 99.0, 99.0, 99.0, 99.0, 99.0, 99.0))

    (row,) = [each.text for each in html_of(found).all("#about-disk tr") if "uploads/" in each.text]
    assert row.endswith("uploads/ 1.5 kB 1")
    uploads = next(each for each in disk_use(studio.root) if each.folder == "uploads")
    assert (uploads.size_bytes, uploads.files, uploads.is_whole) == (1500, 1, True)
    assert not all(each.is_whole for each in disk_use(studio.root, monotonic=lambda: next(ticks)))


def test_stored_features_can_be_deleted(visit, studio):
    assert not html_of(visit.part("/about/disk")).has("#about-disk button")
    store = FeatureStore(studio.root / "features")
    store.write(FeatureKey(samples="s", weights="w", network="n"), [np.zeros((2, 3), np.float32)], 2)
    assert html_of(visit.part("/about/disk")).one("#about-disk button").text == "Delete"
    assert visit.post("/about/disk/features/delete").status_code == 303
    assert not [*(studio.root / "features").iterdir()]


def test_a_look_tells_what_it_found_and_is_not_begun_twice():
    go_on = threading.Event()
    begun: list[int] = []

    def examine() -> Iterator[Finding]:
        begun.append(1)
        yield Finding("machine", "memory", "problem", "little", "Buy some.")
        assert go_on.wait(30)
        yield Finding("machine", "disk", "ok", "much")
        raise RuntimeError("no more")

    look = DoctorLook(examine)
    assert look.findings is None
    look.start()
    wait_until(lambda: len(look.findings or []) == 1)
    look.start()
    assert look.is_looking
    go_on.set()
    wait_until(lambda: not look.is_looking)

    assert begun == [1]
    assert [(each.name, each.level) for each in look.findings or []] == [
        ("memory", "problem"),
        ("disk", "ok"),
        ("doctor", "problem"),
    ]


def test_findings_are_shown_with_how_to_mend_them(app, visit):
    app.state.doctor_look = DoctorLook(lambda: [Finding("machine", "<memory>", "problem", "little", "Buy some.")])

    answer = visit.post("/about/doctor")
    wait_until(lambda: not app.state.doctor_look.is_looking)
    page = visit.get("/about/doctor")

    assert (answer.status_code, answer.headers["location"]) == (303, "/about/doctor")
    assert html_of(page).has('#about-doctor .note.error[role="status"]')
    assert "&lt;memory&gt;" in page.text
    assert [each.text for each in html_of(page).one("#doctor-bad tbody tr").all("td")][::2] == ["machine", "little"]
    assert html_of(page).one("#doctor-bad tbody th").text == "<memory>"
    assert html_of(page).has("#doctor-bad .mark-error")


def test_only_an_admin_looks_for_problems(visit_as):
    viewer = visit_as("viewer")

    assert viewer.get("/about").status_code == 200
    assert viewer.get("/about/doctor").status_code == 403
    assert not html_of(viewer.get("/about")).has("#doctor-go")


def test_licences_of_everything_are_listed_with_their_texts(visit):
    names = {each.name.lower(): each for each in python_licences()}
    assert {"numpy", "pydantic", "fastapi", "starlette", "sqlalchemy"} <= set(names)
    assert "pytest" not in names
    assert "Apache License" in licence_text(own_licence())

    page, text = visit.get("/about/licences"), visit.get("/about/licences/python/pydantic")

    assert "pydantic" in page.text
    assert 'href="/about/licences/python/ziggurat"' in page.text
    assert text.headers["content-type"].startswith("text/plain")
    assert "Permission is hereby granted" in text.text
    assert visit.get("/about/licences/python/no-such-package").status_code == 404
