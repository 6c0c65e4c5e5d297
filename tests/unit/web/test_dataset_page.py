"""Shows that the pages of a dataset tell what it is, how it goes while it is made, and what changes a version."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.studio_samples import add_arrays
from tests.unit.web.html_page import html_of
from tests.waiting import wait_until
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.errors import DataError
from ziggurat.specs import DatasetSpec, save_spec
from ziggurat.web.caches import BackgroundResults
from ziggurat.web.pages.dataset.filters import filter_of
from ziggurat.web.pages.dataset.view import dataset_charts, next_name
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio

DEADLINE_S = 60.0


def settled(visit: Any, path: str, waiting: str) -> str:
    """Return a page once what it finds out in the background is there, and no element fits ``waiting`` any more."""

    def settled_text() -> str:
        answer = visit.get(path)
        assert answer.status_code == 200, answer.text
        return "" if html_of(answer).has(waiting) else answer.text

    return wait_until(settled_text, DEADLINE_S, what=f"{path} without {waiting}")


def taken_in(studio: Studio, source: Path, name: str, **options: Any) -> str:
    """Make a dataset of a source, and return the id of its job."""
    folder = studio.root / "datasets" / f"20260101-000000-{sum(name.encode()):04x}"
    spec = DatasetSpec(source=str(source), name=name)
    rule = SplitRule(val_share=0.25)
    create_dataset(CreationRequest(source=str(source), name=name, rule=rule, workers=0, **options), folder)
    save_spec(spec, folder / "spec.json")
    content = spec.model_dump(mode="json")
    new = NewJob(id=folder.name, kind="dataset", name=name, folder=str(folder), spec=content, created=1.0)
    return studio.datasets.take_in(new, {}).id


@pytest.fixture
def messy(studio: Studio, tmp_path: Path) -> str:
    """Return a dataset with damaged files and an image that is there three times."""
    root = tmp_path / "messy"
    noise = np.random.default_rng(0)
    for number in range(16):
        file = root / ("cat", "dog")[number % 2] / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(cv2.imencode(".png", noise.integers(0, 255, (24, 24, 3), np.uint8))[1].tobytes())
    for number in range(2):
        (root / "cat" / f"copy{number}.png").write_bytes((root / "cat" / "00.png").read_bytes())
    (root / "dog" / "broken <b>.png").write_bytes(b"no image")
    return taken_in(studio, root, "messy")


# ---- overview


def test_the_overview_tells_what_it_is(visit: Any, pets: str) -> None:
    html = settled(visit, f"/datasets/{pets}", '#dataset-charts [role="status"]')
    assert ">pets</h1>" in html
    facts = [each.text for each in html_of(html).all("dd")]
    assert {"Image classification", "30 × 20 px", "Class folders"} <= set(facts)
    names = [each.text for each in html_of(html).all("dt")]
    assert {"Training", "Validation"} <= set(names)
    assert not {"train", "val", "Kind"} & set(names), "one word on all pages, and nothing twice"
    page = html_of(html)
    assert page.one(f'[aria-labelledby="splits-title"] a[href="/datasets/{pets}/explore?split=train"]').text == "8"
    rows = [row.text for row in page.all("#class-bars tbody tr")]
    assert rows == ["cat 4 1 5", "dog 4 1 5"]
    assert page.has(f'#class-bars a[href="/datasets/{pets}/explore?class_name=cat"]')
    assert page.one("#dataset-train")["href"] == f"/models/new?dataset={pets}"
    assert page.one("#dataset-clone")["href"] == f"/datasets/new?clone={pets}"
    assert page.one("#dataset-counts").text.startswith("10 images, 2 classes")


def test_the_overview_shows_samples_of_each_class(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}"))

    tiles = page.all("#dataset-samples .shown-tiles a")
    assert len(tiles) == 10
    assert {each.text for each in tiles[:2]} == {"cat", "dog"}, "classes take turns"
    assert all(each["href"].startswith(f"/datasets/{pets}/samples/") for each in tiles)
    assert len({each["href"] for each in page.all("#dataset-samples image")}) == 1, "all tiles are one image"
    by_class = html_of(visit.part(page.one("#samples-by-class")["hx-get"], "dataset-samples"))
    assert [each.text for each in by_class.all(".shown-tiles a")] == ["cat"] * 5 + ["dog"] * 5
    assert page.one("#samples-shuffle")["href"] == f"/datasets/{pets}?draw=1#dataset-samples"


def test_overview_and_checks_tell_the_same(visit: Any, messy: str) -> None:
    checks = html_of(settled(visit, f"/datasets/{messy}/check", "#dataset-findings progress"))
    severe = [each for each in checks.all(".finding") if each.one(".chip").text.strip() != "Note"]
    page = html_of(settled(visit, f"/datasets/{messy}", "#health-waiting"))

    items = page.all("#dataset-health li[data-level]")
    told_at_creation = [each for each in items if each["id"].startswith("health-told")]
    shown = [each for each in items if each["data-level"] != "unknown" and each not in told_at_creation]
    assert len(shown) == len(severe) > 0
    assert page.one(f'nav[aria-label="Dataset"] a[href="/datasets/{messy}/check"] .count').text == str(len(severe))
    assert all(each.all(".health-acts a") for each in items), "each has a button"
    assert page.one("#health-notes a")["href"] == f"/datasets/{messy}/check"
    part = visit.part(f"/datasets/{messy}/health", "dataset-health").text
    assert 'id="dataset-health"' in part


def test_charts_come_as_a_part_and_are_bars_without_scripts(visit: Any, pets: str) -> None:
    settled(visit, f"/datasets/{pets}", '#dataset-charts [role="status"]')
    part = visit.part(f"/datasets/{pets}/charts", "dataset-charts").text
    assert part.lstrip().startswith('<div id="dataset-charts"')
    assert '<svg class="bars"' in part
    assert "&#34;kind&#34;:&#34;bar&#34;" in part
    assert visit.get(f"/datasets/{pets}/charts").headers["location"] == f"/datasets/{pets}"


def test_an_id_of_another_kind_leads_to_its_own_page(visit: Any, train: Any) -> None:
    job = train()
    assert visit.get(f"/datasets/{job.id}").headers["location"] == f"/jobs/{job.id}"
    assert visit.get("/datasets/20200101-000000-0000").status_code == 404


def test_a_data_set_that_waits_says_what_was_asked(visit: Any, studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    spec = {"name": "waiting", "source": str(tmp_path / "files"), "format": "class_folders"}
    job = studio.datasets.create(JobRequest(spec=spec))
    html = visit.get(f"/datasets/{job.id}").text
    assert "queued" in html
    assert "<dt>Format</dt><dd>class_folders</dd>" in html
    assert f'hx-get="/datasets/{job.id}" hx-trigger="notice-job from:body throttle:1s"' in html
    assert visit.part(f"/datasets/{job.id}", "dataset-making").text.lstrip().startswith('<div id="dataset-making"')
    for place in ("explore", "check", "problems", "versions", "export"):
        assert visit.get(f"/datasets/{job.id}/{place}").headers["location"] == f"/datasets/{job.id}"


def test_the_page_reloads_when_the_data_set_is_there_or_gone(visit: Any, pets: str) -> None:
    answer = visit.part(f"/datasets/{pets}", "dataset-making")
    assert (answer.status_code, answer.headers["HX-Refresh"]) == (204, "true")
    gone = visit.part("/datasets/20200101-000000-0000", "dataset-making")
    assert html_of(gone).has('#dataset-making [role="alert"]')


def test_it_is_deleted_only_when_nothing_uses_it(visit: Any, studio: Studio, pets: str, train: Any) -> None:
    job = train(spec={"network": "linear"}, dataset=pets)
    assert pets in job.depends_on
    html = visit.get(f"/datasets/{pets}/delete").text
    assert html_of(html).has("#dataset-needed")
    assert 'id="delete-now"' not in html
    assert visit.post(f"/datasets/{pets}/delete").status_code == 409
    studio.jobs.delete(job.id)
    deleted = visit.post(f"/datasets/{pets}/delete").headers["location"]
    assert deleted.startswith("/datasets?said=")
    assert html_of(visit.get(deleted)).one("#home-said").text.startswith("pets was deleted.")
    assert visit.get(f"/datasets/{pets}").status_code == 404


def test_pictures_are_kept_by_the_browser(visit: Any, pets: str) -> None:
    answer = visit.get(f"/datasets/{pets}/pictures/val/1?max_side_px=16")
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    picture = cv2.imdecode(np.frombuffer(answer.content, np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    assert picture.shape[:2] == (11, 16)
    assert visit.get(f"/datasets/{pets}/pictures/val/1?part=1").status_code == 404
    assert visit.get(f"/datasets/{pets}/pictures/val/99").status_code == 422
    assert visit.get(f"/datasets/{pets}/mean.png").headers["content-type"] == "image/png"


# ---- explorer


def test_the_explorer_filters_and_pages(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?split=train&class_name=dog&limit=2"))
    assert page.one("#found-title").text == "4 of 10 samples"
    assert len(page.all('#tiles input[name="samples"]')) == 2
    assert page.one("#page-after")["href"].endswith("/explore?split=train&class_name=dog&limit=2&offset=2")
    for nothing in ("text=NO%20SUCH", "min_width_px=31"):
        page = html_of(visit.get(f"/datasets/{pets}/explore?{nothing}"))
        assert page.one(".empty a")["href"] == f"/datasets/{pets}/explore"


def test_another_page_of_the_explorer_comes_as_a_part(visit: Any, pets: str) -> None:
    place = f"/datasets/{pets}/explore?split=train&limit=3&offset=3"
    answer = visit.part(place, "found")
    assert answer.headers["HX-Push-Url"] == place
    assert "<html" not in answer.text
    assert "4 to 6 of 8" in answer.text
    assert answer.text.count('name="samples"') == 3
    assert '<input type="hidden" name="offset" value="3">' in answer.text
    assert f'rel="next" href="/datasets/{pets}/explore?split=train&amp;limit=3&amp;offset=6"' in answer.text
    whole = visit.get(place)
    assert "HX-Push-Url" not in whole.headers
    assert '<div id="found" hx-sync="this:replace">' in whole.text
    assert html_of(visit.part(f"/datasets/{pets}/explore?text=NO%20SUCH", "found")).has(".empty")


def test_a_filter_that_cannot_be_is_said_and_kept(visit: Any, pets: str) -> None:
    answer = visit.get(f"/datasets/{pets}/explore?class_name=bird")
    assert answer.status_code == 422
    assert "bird" in answer.text
    html = visit.get(f"/datasets/{pets}/explore?min_width_px=wide").text
    assert 'id="min_width_px-problem">A whole number of pixels, at least 1.' in html
    assert 'value="wide"' in html
    assert html_of(html).one("#found-title").text == "10 of 10 samples"


def test_a_sample_has_its_neighbours_within_the_filter(visit: Any, pets: str) -> None:
    listed = visit.get(f"/datasets/{pets}/explore?class_name=dog").text
    first, second, third = [part.split('"')[0] for part in listed.split(f'href="/datasets/{pets}/samples/')[1:4]]
    html = visit.get(f"/datasets/{pets}/samples/{second}".replace("&amp;", "&")).text
    assert html_of(html).one("#sample-place").text.startswith("2 of 5")
    assert f'rel="prev" id="before" href="/datasets/{pets}/samples/{first}"' in html
    assert f'rel="next" id="after" href="/datasets/{pets}/samples/{third}"' in html
    searched = visit.get(f"/datasets/{pets}/samples/{second.partition('?')[0]}?class_name=dog").text
    assert html_of(searched).one("#sample-place").text.startswith("2 of 5")
    outside = visit.get(f"/datasets/{pets}/samples/{second.partition('?')[0]}?class_name=cat").text
    assert html_of(outside).has("#sample-outside")
    assert visit.get(f"/datasets/{pets}/samples/train/8").status_code == 404


def test_names_are_never_markup(visit: Any, messy: str) -> None:
    html = visit.get(f"/datasets/{messy}/problems").text
    assert "broken &lt;b&gt;.png" in html
    assert "<b>.png" not in html


# ---- corrections


def test_samples_get_another_label_in_a_new_version(visit: Any, studio: Studio, pets: str) -> None:
    typed = {"what": "relabel", "label": "dog", "name": "pets mended", "samples": ["train/0", "train/1"]}
    answer = visit.post(f"/datasets/{pets}/explore", data=typed)
    assert answer.status_code == 303, answer.text
    made = answer.headers["location"].rpartition("/")[2]
    assert studio.jobs.get(made).parent == pets
    assert studio.datasets.explore(made, {"class_name": "dog", "split": "train"})[0].total in (5, 6)
    html = visit.get(f"/datasets/{made}").text
    assert "dog" in html_of(html).one("#made-of ul").text
    assert f'<a href="/datasets/{made}">pets mended</a>' in visit.get(f"/datasets/{pets}").text


def test_all_that_a_filter_leaves_are_left_out(visit: Any, studio: Studio, pets: str) -> None:
    typed = {
        "what": "exclude",
        "everything": "true",
        "class_name": "cat",
        "split": "train",
        "name": "v2",
        "reason": "R",
    }
    made = visit.post(f"/datasets/{pets}/explore", data=typed).headers["location"].rpartition("/")[2]
    page, _ = studio.datasets.explore(made, {"class_name": "cat"})
    assert {entry.split for entry in page.entries} == {"val"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"what": "exclude", "name": "x"}, "Choose at least one sample."),
        ({"what": "exclude", "samples": "train/0", "name": " "}, "A version has a name of 1 to 200 characters ("),
        (
            {"what": "relabel", "samples": "train/0", "name": "x"},
            "Choose the label that the samples are to get.",
        ),
        ({"what": "burn", "samples": "train/0", "name": "x"}, "Samples are given another label, or left out ("),
    ],
)
def test_a_correction_that_cannot_be_keeps_what_was_typed(visit: Any, pets: str, typed: Any, said: str) -> None:
    answer = visit.post(f"/datasets/{pets}/explore", data={**typed, "reason": "kept text", "limit": "24"})
    assert answer.status_code == 400
    assert said in answer.text
    assert 'value="kept text"' in answer.text
    if "samples" in typed:
        assert "checked" in html_of(answer).one('#tiles input[value="train/0"]').attributes


def test_a_sample_corrected_on_its_page_shows_errors_there(visit: Any, pets: str) -> None:
    typed = {"what": "relabel", "label": "bird", "samples": "train/3", "single": "train/3", "name": "x"}
    answer = visit.post(f"/datasets/{pets}/explore", data=typed)
    assert answer.status_code == 422
    page = html_of(answer)
    assert "bird" in page.one('[role="alert"]').text
    assert page.has("#known-title")


def test_a_viewer_sees_and_changes_nothing(visit_as: Any, pets: str) -> None:
    viewer = visit_as("viewer")
    html = viewer.get(f"/datasets/{pets}/explore").text
    assert 'name="samples"' not in html
    assert not html_of(html).has("#correct-title")
    for path in ("explore", "check", "check/mend", "problems/mend", "export", "delete"):
        assert viewer.post(f"/datasets/{pets}/{path}", data={"kind": "x"}).status_code == 403


# ---- check, problems, versions, export


def test_a_check_lists_findings_and_mends_them(visit: Any, studio: Studio, messy: str) -> None:
    html = settled(visit, f"/datasets/{messy}/check", "#dataset-findings progress")
    assert html_of(html).has(f'.finding a[href="/datasets/{messy}/problems?kind=unreadable"]')
    kind = "duplicate-across-splits" if 'id="mend-duplicate-across-splits"' in html else "duplicate"
    made = visit.post(f"/datasets/{messy}/check/mend", data={"kind": kind, "name": "clean"})
    assert made.status_code == 303
    clean = studio.datasets.describe(made.headers["location"].rpartition("/")[2])
    assert sum(clean["splits"].values()) < 18
    refused = visit.post(f"/datasets/{messy}/check/mend", data={"kind": "nothing", "name": "clean"})
    assert refused.status_code == 422
    assert "nothing" in refused.text


def test_the_thorough_check_begins_when_it_is_asked_for(visit: Any, pets: str) -> None:
    path = f"/datasets/{pets}/check?verify=true"
    assert html_of(visit.get(path)).has("#check-not-asked")
    assert visit.post(f"/datasets/{pets}/check").headers["location"] == path
    done = html_of(settled(visit, path, "#dataset-findings progress"))
    assert done.has('[data-check="thorough"]')
    part = visit.part(path, "dataset-findings").text
    assert part.lstrip().startswith('<div id="dataset-findings"')


def test_problems_are_listed_by_kind_and_left_out(visit: Any, studio: Studio, messy: str) -> None:
    html = visit.get(f"/datasets/{messy}/problems?kind=unreadable").text
    page = html_of(html)
    assert page.one(f'a[href="/datasets/{messy}/problems?kind=unreadable"]').text.endswith(" 1")
    assert len(page.all("tbody tr")) == 1
    assert 'id="mend-now"' not in html
    made = visit.post(f"/datasets/{messy}/problems/mend", data={"kind": "duplicate", "name": "v2"})
    assert made.status_code == 303, made.text
    refused = visit.post(f"/datasets/{messy}/problems/mend", data={"kind": "unreadable", "name": "v2"})
    assert refused.status_code == 400
    assert "An exclusion names samples" in refused.text


def test_versions_are_compared(visit: Any, studio: Studio, pets: str) -> None:
    new = studio.datasets.exclude(pets, ["train/0", "train/2"], reason="Blurred.", name="pets v2").id
    html = settled(visit, f"/datasets/{new}/versions?with={pets}", '[aria-labelledby="differences-title"] progress')
    assert html_of(html).one("#differences-title").text.endswith(" pets")
    assert "Excluded: 2" in html
    assert "Blurred." in html
    assert '<th scope="row">Total</th><td class="number">8</td><td class="number">10</td>' in html
    assert not html_of(html).has("#only-version")
    older = html_of(visit.get(f"/datasets/{pets}/versions"))
    assert older.one(f'#version-menu a[href="/datasets/{new}"]').text == "pets v2 version 2"


def test_it_is_taken_away_in_another_format(visit: Any, pets: str) -> None:
    html = visit.get(f"/datasets/{pets}/export").text
    assert 'id="export-class_folders"' in html
    assert 'id="export-coco"' not in html
    answer = visit.post(f"/datasets/{pets}/export", data={"format": "class_folders", "archive": "zip"})
    names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
    assert "info.json" in names
    assert sum(name.endswith(".png") for name in names) == 10


def test_an_export_that_cannot_be_says_why_at_its_format(visit: Any, pets: str) -> None:
    typed = {"format": "tfrecord", "archive": "zip", "records_per_shard": "many"}
    answer = visit.post(f"/datasets/{pets}/export", data=typed)
    assert answer.status_code == 400
    assert "“Records per file” is a whole number, at least 1 (" in answer.text
    assert 'name="records_per_shard" value="many"' in answer.text
    assert visit.post(f"/datasets/{pets}/export", data={"format": "coco"}).status_code == 422


# ---- parts


def test_a_filter_reads_what_was_typed() -> None:
    found = filter_of({"split": "train", "min_width_px": "12", "max_width_px": "x", "limit": "9999", "offset": "-1"})
    assert found.chosen == {"split": "train", "min_width_px": 12}
    assert (found.limit, found.offset) == (192, 0)
    assert list(found.problems) == ["max_width_px"]


def test_the_next_version_has_the_next_number() -> None:
    assert [next_name(name) for name in ("pets", "pets v2", "pets v", "v9")] == [
        "pets v2",
        "pets v3",
        "pets v v2",
        "v9 v2",
    ]


def test_a_result_is_found_once_and_a_failure_again() -> None:
    asked: list[str] = []

    def find() -> str:
        asked.append("x")
        if len(asked) == 1:
            raise DataError("The first time fails.")
        return "found"

    results = BackgroundResults()
    assert str(results.get("key", find, wait_s=DEADLINE_S).error) == "The first time fails."
    assert results.get("key", find, wait_s=DEADLINE_S).value == "found"
    assert results.get("key", find, wait_s=DEADLINE_S).value == "found"
    assert len(asked) == 2
    assert results.peek("other") is None


def test_a_set_that_is_not_trained_says_what_can_be_done(visit: Any, studio: Studio, tmp_path: Path, pets: str) -> None:
    arrays = add_arrays(studio, tmp_path / "arrays")
    page = visit.get(f"/datasets/{arrays}").text
    assert html_of(page).has("#no-training")
    assert html_of(page).one("#dataset-explore")["href"] == f"/datasets/{arrays}/explore"
    assert "/models/new?dataset=" not in page
    assert html_of(visit.get(f"/datasets/{arrays}/explore")).has(f'#export-menu a[href="/datasets/{arrays}/export"]')
    assert not html_of(visit.get(f"/parts/menu/{arrays}")).has('a[href^="/models/new"]')

    trained = visit.get(f"/datasets/{pets}").text
    assert not html_of(trained).has("#no-training")
    assert html_of(trained).one("#dataset-train")["href"] == f"/models/new?dataset={pets}"
    assert html_of(visit.get(f"/parts/menu/{pets}")).has(f'a[href="/models/new?dataset={pets}"]')


def test_the_overview_shows_versions_and_results(visit: Any, studio: Studio, pets: str, train: Any) -> None:
    job = train(dataset=pets)
    page = html_of(settled(visit, f"/datasets/{pets}", '#dataset-charts [role="status"]'))
    assert page.one('[aria-labelledby="versions-title"] li').text.startswith("Version 1")
    users = page.one('[aria-labelledby="users-title"]')
    assert users.one("li a")["href"] == f"/models/{job.id}"
    assert users.one("li").text.startswith("tiny queued model")
    assert not page.has("#about[open]")
    assert page.one("#about-summary").text.startswith("Class folders, ")
    assert [each.text for each in page.all("#class-bars thead th")] == [
        "Class",
        "Bar",
        "Training",
        "Validation",
        "Total",
    ]


def test_sizes_are_closed_lines_with_their_range(visit: Any, pets: str) -> None:
    page = html_of(settled(visit, f"/datasets/{pets}", '#dataset-charts [role="status"]'))
    assert page.one("#images-charts").text == "Image sizes all 30 × 20 px"  # all are one size: no chart
    line = page.one("#size-charts-summary").text
    assert re.fullmatch(r"(all )?[\d.]+ (bytes|kB).*", line), line


def test_charts_of_many_columns_are_a_closed_line() -> None:
    def statistics(columns: int, *classes: str) -> Any:
        bars = [SimpleNamespace(name="x", count=2), SimpleNamespace(name="y", count=3)]
        each = {"type": "class", "bars": bars, "others": 0, "different": 2, "missing": 0, "numbers": None}
        names = [*"abcdefgh"[: columns - 1], "t"]
        found = [SimpleNamespace(name=name, is_target=name == "t", **each) for name in names]
        nothing = {"labels": (), "pictures": None, "objects": None, "texts": None, "source_bytes": None}
        return SimpleNamespace(columns=found, classes=classes, **nothing)

    charts, folds = dataset_charts(statistics(4))
    assert (len(charts), folds) == (4, [])
    charts, (fold,) = dataset_charts(statistics(6))
    assert ([chart.title for chart in charts], fold.summary) == (["Column t (target)"], "a, b, c, d, e")
    charts, (fold,) = dataset_charts(statistics(6, "x", "y"))
    assert (charts, fold.summary) == ([], "a, b, c, d, e, t (target)")
