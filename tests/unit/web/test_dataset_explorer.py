"""Shows that the explorer lists, chooses and corrects samples, and that tiles and originals are the right images."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.unit.studio_samples import add_objects
from tests.unit.web.html_page import errors_of, html_of
from ziggurat.dataflow.preprocessing import Preprocessing
from ziggurat.datasets.creation import CreationRequest, create_dataset
from ziggurat.datasets.splitting import SplitRule
from ziggurat.entities import NewJob
from ziggurat.errors import UsageError
from ziggurat.records.manifest import ImageForm
from ziggurat.records.schema import Schema
from ziggurat.tasks import CLASSIFICATION, TaskContext
from ziggurat.web.pages.dataset.filters import Facet, facets_of, filter_of
from ziggurat.web.pages.dataset.sample_images import places_of, sheet_places, sheet_tiles
from ziggurat.web.pages.dataset.view import used_classes
from ziggurat.worker.results import SampleResults
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.thumbnails import ThumbnailCache


def decoded(content: bytes) -> np.ndarray:
    picture = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    return picture


def made(studio: Studio, source: Path, **options: Any) -> str:
    """Return the id of a dataset of a source, whose samples stand in one split."""
    folder = studio.root / "datasets" / "20260101-000000-00aa"
    rule = options.pop("rule", SplitRule(val_share=0))
    create_dataset(CreationRequest(source=str(source), name="made", workers=0, rule=rule, **options), folder)
    new = NewJob(id=folder.name, kind="dataset", name="made", folder=str(folder), spec={}, created=1.0)
    return studio.datasets.take_in(new, {}).id


def settled(visit: Any, path: str, waiting: str) -> str:
    """Return a page once no element fits ``waiting`` any more; the server waits for what it finds out."""
    for _ in range(100):
        answer = visit.get(path)
        if not html_of(answer).has(waiting):
            return answer.text
        visit.part(path, "dataset-findings")
    raise AssertionError(f"{path} has {waiting} still")


def made_of_one(studio: Studio, folder: Path) -> str:
    """Return the id of a dataset whose images all differ."""
    return add_objects(studio, folder / "one")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return class folders with photographs of 300 x 200 pixels."""
    noise = np.random.default_rng(0)
    for number in range(6):
        file = tmp_path / "photos" / ("cat", "dog")[number % 2] / f"photo {number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        pixels = cv2.resize(noise.integers(0, 255, (4, 6, 3), np.uint8), (300, 200), interpolation=cv2.INTER_CUBIC)
        file.write_bytes(cv2.imencode(".jpg", pixels)[1].tobytes())
    return tmp_path / "photos"


@pytest.fixture
def small(studio: Studio, photos: Path) -> str:
    """Return a dataset that stores its photographs at 16 x 16 pixels."""
    form = ImageForm(encoding="png", resize_mode="squash", height_px=16, width_px=16, channels=3)
    return made(studio, photos, image=form)


# ---- tiles


def test_tiles_stand_on_few_sheets_with_reserved_places(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?limit=24"))
    sheets = {image["href"] for image in page.all("#tiles image")}
    assert sheets == {f"/datasets/{pets}/tiles?of=train%3A0-7%3Bval%3A0-1&source=true"}
    answer = visit.get(sheets.pop())
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    sheet = decoded(answer.content)
    image = page.all("#tiles image")[0]
    assert sheet.shape[:2] == (int(image["height"]), int(image["width"])) == (40, 180)
    views = [box["viewbox"] for box in page.all("#tiles .tile-image")]
    assert views[:2] == ["0 0 30 20", "30 0 30 20"]
    # Images are gray, each lighter than the one before; rows are those of the catalog.
    with_colors = {int(sheet[10, 15 + 30 * at, 0]) for at in range(6)}
    assert len(with_colors) == 6


def test_tiles_are_kept_on_disk_and_made_once(visit: Any, studio: Studio, pets: str) -> None:
    place = f"/datasets/{pets}/tiles?of=train%3A0-3"
    first = visit.get(place).content
    kept = sorted((studio.root / "cache" / "thumbnails").glob("??/*"))
    assert len(kept) == 4
    times = [path.stat().st_mtime_ns for path in kept]
    assert visit.get(place).content == first
    assert [path.stat().st_mtime_ns for path in kept] == times
    kept[0].write_bytes(b"damaged")  # is made again
    assert visit.get(place).content == first
    assert kept[0].read_bytes() != b"damaged"


def test_a_tile_is_made_of_the_source_while_it_is_there(visit: Any, small: str, photos: Path) -> None:
    place = f"/datasets/{small}/tiles?of=train%3A0"
    sharp = decoded(visit.get(place).content)
    assert sharp.shape == (128, 192, 3)
    source = cv2.resize(cv2.imread(str(photos / "cat" / "photo 0.jpg")), (192, 128), interpolation=cv2.INTER_AREA)
    assert np.abs(sharp.astype(int) - source).mean() < 6
    for file in photos.rglob("*.jpg"):
        file.unlink()
    squares = decoded(visit.get(place).content)
    assert squares.shape == (128, 192, 3)
    assert np.abs(squares.astype(int) - sharp).mean() > 1


def test_an_unreadable_sample_is_a_gray_tile(visit: Any, studio: Studio, photos: Path) -> None:
    dataset = made(studio, photos, image=ImageForm(encoding="reference"))
    (photos / "cat" / "photo 0.jpg").unlink()
    sheet = decoded(visit.get(f"/datasets/{dataset}/tiles?of=train%3A0-1").content)
    assert abs(int(sheet[64, 96, 0]) - 128) <= 2
    assert sheet[:, 192:].std() > 5


@pytest.mark.parametrize(
    "of", ["", "train", "train:x", "train:0-99", "train:1-2-3", "train:0;val:1-2-3", "train:0;;val:1", "../x:1:2"]
)
def test_a_sheet_is_asked_for_by_a_few_samples(visit: Any, pets: str, of: str) -> None:
    assert visit.get(f"/datasets/{pets}/tiles", params={"of": of}).status_code == 400


def test_the_samples_of_a_sheet_are_read_as_written() -> None:
    places = [("train", 3), ("train", 4), ("train", 9), ("val", 0), ("train", 1)]
    assert places_of(sheet_places(places)) == places
    with pytest.raises(UsageError):
        places_of("train:5-1")
    tiles, size = sheet_tiles([(400, 200), None, (10, 10)])
    assert [(each.left, each.width, each.height) for each in tiles] == [(0, 192, 96), (192, 192, 192), (384, 10, 10)]
    assert size == (576, 192)


def test_old_thumbnails_are_removed_first(tmp_path: Path) -> None:
    now = [1e9]
    cache = ThumbnailCache(tmp_path / "cache", most_bytes=1000, clock=lambda: now[0])
    for number in range(5):
        cache.put(bytes([number]) * 180, "image", number)
        path = max((tmp_path / "cache").glob("??/*"), key=lambda each: each.stat().st_mtime_ns)
        os.utime(path, (1e9 + number, 1e9 + number))
    now[0] += 10_000
    assert cache.get("image", 0) == bytes(180)  # is used again, and so the newest
    cache.put(b"x" * 180, "image", 5)
    left = [number for number in range(6) if cache.get("image", number) is not None]
    assert 0 in left
    assert 5 in left
    assert 1 not in left
    assert sum(path.stat().st_size for path in (tmp_path / "cache").glob("??/*")) <= 1000


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    cache = ThumbnailCache(tmp_path / "file" / "cache")
    cache.put(b"image", "key")
    assert cache.get("key") is None


# ---- originals


def test_the_original_is_the_file_of_the_source(visit: Any, small: str, photos: Path) -> None:
    place = f"/datasets/{small}/pictures/train/0?original=true"
    for path in (place, f"/api/v1{place}"):
        answer = visit.get(path)
        assert answer.content == (photos / "cat" / "photo 0.jpg").read_bytes()
        assert answer.headers["image-origin"] == "source"
        assert answer.headers["content-type"] == "image/jpeg"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "photo%200.jpg" in answer.headers["content-disposition"]
    drawer = html_of(visit.part(f"/datasets/{small}/samples/train/0", "drawer"))
    assert drawer.one(".big-image")["src"].endswith("original=true")
    assert (drawer.one(".big-image")["width"], drawer.one(".big-image")["height"]) == ("300", "200")


def test_a_changed_or_missing_source_gives_the_stored_image(visit: Any, small: str, photos: Path) -> None:
    file = photos / "cat" / "photo 0.jpg"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    for change in (lambda: file.write_bytes(bytes(content)), file.unlink):
        change()
        answer = visit.get(f"/datasets/{small}/pictures/train/0?original=true")
        assert (answer.headers["image-origin"], answer.headers["content-type"]) == ("stored", "image/png")
        assert decoded(answer.content).shape[:2] == (16, 16)
        drawer = html_of(visit.part(f"/datasets/{small}/samples/train/0", "drawer"))
        assert "original" not in drawer.one(".big-image")["src"]


def test_a_part_that_is_not_there_has_no_original(visit: Any, small: str) -> None:
    assert visit.get(f"/datasets/{small}/pictures/train/0?original=true&part=7").status_code == 404


def test_no_original_comes_from_outside_the_allowed_folders(
    visit: Any, studio: Studio, small: str, photos: Path, tmp_path: Path
) -> None:
    place = f"/datasets/{small}/pictures/train/0?original=true"
    studio.paths.choose([str(tmp_path / "workspace")])
    assert visit.get(place).headers["image-origin"] == "stored"
    studio.paths.choose([str(photos)])
    assert visit.get(place).headers["image-origin"] == "source"
    file = photos / "cat" / "photo 0.jpg"
    outside = tmp_path / "outside.jpg"
    file.rename(outside)
    file.symlink_to(outside)  # the same content, by a way out of the source
    assert visit.get(place).headers["image-origin"] == "stored"
    studio.paths.choose([str(tmp_path)])
    assert visit.get(place).headers["image-origin"] == "stored"


def test_the_original_of_a_table_is_no_image(visit: Any, studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + "".join(f"{number},{number % 2}\n" for number in range(20)))
    dataset = made(studio, tmp_path / "rows.csv")
    assert visit.get(f"/datasets/{dataset}/pictures/train/0?original=true").status_code == 422


# ---- predictions


@pytest.fixture
def evaluated(studio: Studio, pets: str) -> list[int]:
    """Return the rows of training that a model got wrong, the most confident first; row 3 is one of them."""
    entries = studio.datasets.explore(pets, {"split": "train"})[0].entries
    labels = np.array([entry.label for entry in entries])
    sure = np.array([0.6, 0.7, 0.55, 0.95, 0.65, 0.9, 0.75, 0.85], np.float32)
    predicted = np.where(np.isin(np.arange(8), (1, 3)), 1 - labels, labels)
    scores = np.stack([np.where(predicted == number, sure, 1 - sure) for number in (0, 1)], axis=1)

    def take_in(kind: str, number: int, **fields: Any) -> Path:
        folder = studio.root / "jobs" / f"20260102-000000-{number:04d}"
        folder.mkdir(parents=True)
        name = fields.pop("name", kind)
        new = NewJob(id=folder.name, kind=kind, name=name, folder=str(folder), created=float(number), **fields)
        studio.datasets.take_in(new, {})
        return folder

    model = take_in("train", 1, name="a model", spec={"kind": "train"}, depends_on=(pets,)).name
    spec = {"kind": "evaluate", "split": "train", "checkpoint": ""}
    folder = take_in("evaluate", 2, spec=spec, parent=model, depends_on=(model,))
    schema = Schema(kind="image-classification", class_names=("cat", "dog"))
    results = SampleResults(TaskContext(CLASSIFICATION, schema, Preprocessing(size=(8, 8), channels=3)), 8, 2)
    results.add(list(range(8)), [entry.key for entry in entries], {"probabilities": scores}, {"y": labels})
    summary = {"kind": "evaluate", "split": "train", "data": str(studio.root / "datasets" / pets), "classifier": True}
    summary |= {"classes": ["cat", "dog"], "count": 8, "skipped": 0, "failures": [], "scalars": {}, "openings": None}
    results.write(folder / "results", {**summary, "step": 1, "epoch": 1, "checkpoint": "step-1"})
    return [3, 1]


def test_tiles_show_what_a_model_predicted(visit: Any, pets: str, evaluated: list[int]) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore"))
    said = {tile["data-place"]: tile.all(".pred") for tile in page.all(".tile")}
    assert [place for place, pred in said.items() if pred and pred[0].fits(".no")] == ["train/1", "train/3"]
    assert said["val/0"] == []
    assert said["train/3"][0].text.endswith("95 %")
    drawer = html_of(visit.part(f"/datasets/{pets}/samples/train/3", "drawer"))
    assert drawer.all(".score-bars li")[0].text.split()[-2:] == ["95", "%"]
    assert drawer.has(".digit.suggested")


def test_samples_are_chosen_and_ordered_by_predictions(visit: Any, pets: str, evaluated: list[int]) -> None:
    def places(query: str) -> list[str]:
        return [tile["data-place"] for tile in html_of(visit.get(f"/datasets/{pets}/explore?{query}")).all(".tile")]

    wrong = [f"train/{row}" for row in evaluated]
    assert places("prediction=wrong") == wrong
    assert places("prediction=wrong&order=row") == ["train/1", "train/3"]
    assert places("prediction=doubtful") == ["train/3"]
    assert len(places("prediction=right")) == 6
    assert places("order=doubtful")[:2] == wrong
    assert len(places("order=doubtful")) == 10
    assert places("prediction=wrong&split=val") == []
    counts = [row.text for row in html_of(visit.get(f"/datasets/{pets}/explore")).all(".facet-row")]
    assert counts[-3:] == ["correct 6", "wrong 2", "likely label errors 1"]
    second = html_of(visit.get(f"/datasets/{pets}/samples/train/1?prediction=wrong"))
    assert second.one("#sample-place").text.startswith("2 of 2")
    typed = {"what": "exclude", "everything": "true", "prediction": "doubtful", "name": "v2"}
    version = visit.post(f"/datasets/{pets}/explore", data=typed).headers["location"].rpartition("/")[2]
    assert visit.get(f"/api/v1/datasets/{version}").json()["splits"] == {"train": 7, "val": 2}


# ---- facets, order, drawer


@pytest.mark.parametrize("unknown", ["class_name=cta", "split=vla", "class_name=cta&split=vla"])
def test_an_unknown_name_is_said_above_the_samples(visit: Any, pets: str, unknown: str) -> None:
    answer = visit.get(f"/datasets/{pets}/explore?{unknown}&text=cat")
    page = html_of(answer)
    assert answer.status_code == 422
    assert errors_of(answer)
    assert page.one("#text")["value"] == "cat"
    assert {tile["data-label"] for tile in page.all("#tiles .tile")} == {"cat"}
    assert page.has("#drawer .drawer-head")
    links = page.all("#found a")
    assert links
    assert not any("cta" in link["href"] or "vla" in link["href"] for link in links)


def test_a_filter_by_predictions_needs_an_evaluation(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?prediction=wrong"))
    assert page.one(".empty h3").text == "No predictions for this dataset"


def test_classes_without_samples_are_not_counted() -> None:
    described = {
        "splits": {"train": 2, "val": 0},
        "classes": [{"name": "_background_", "train": 0, "val": 0}, {"name": "wheel", "train": 2, "val": 0}],
    }
    assert [each["name"] for each in used_classes(described)] == ["wheel"]
    uncounted = {**described, "classes": [{"name": "void", "train": 0, "val": 0}]}
    assert [each["name"] for each in used_classes(uncounted)] == ["void"]


def test_facets_count_and_lead_to_their_samples(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?split=train"))
    rows = [row.text for row in page.all(".facet-row")]
    assert rows == ["Training 8", "Validation 2", "cat 4", "dog 4"]
    assert page.one('.facet-row[aria-current="true"]')["href"] == f"/datasets/{pets}/explore"
    dog = page.all(".facet-row")[3]["href"]
    assert html_of(visit.get(dog)).one("#found-title").text == "4 of 10 samples"
    chips = html_of(visit.get(dog)).all(".summary-line a.chip")
    assert [each["href"].partition("?")[2] for each in chips] == ["class_name=dog", "split=train"]


def test_the_largest_of_many_classes_are_offered_first() -> None:
    names = [f"class {number}" for number in range(30)]
    note = SimpleNamespace(count=465, class_counts=tuple(range(1, 31)))
    manifest = SimpleNamespace(splits={"train": note}, schema=SimpleNamespace(class_names=names))

    def classes(**values: str) -> Facet:
        return next(each for each in facets_of(manifest, filter_of(values), {}, None) if each.name == "class_name")

    first = classes()
    assert [row.text for row in first.rows] == names[:9:-1]
    assert first.left == 10
    chosen = classes(class_name="class 0")
    assert [row.text for row in chosen.rows] == ["class 0", *names[:10:-1]]
    assert [row.text for row in classes(classes="all").rows] == names
    assert filter_of({"classes": "all"}).query == {"classes": "all"}


def test_samples_are_ordered_by_name_and_size(visit: Any, small: str) -> None:
    def names(order: str) -> list[str]:
        return [each.text for each in html_of(visit.get(f"/datasets/{small}/explore?order={order}")).all(".tile-name")]

    paths = [f"{folder}/photo {number}.jpg" for number in range(6) for folder in [("cat", "dog")[number % 2]]]
    assert names("name") == [path.partition("/")[2] for path in sorted(paths)]
    sizes = visit.get(f"/api/v1/datasets/{small}/samples?order=largest").json()["samples"]
    assert [each["source_bytes"] for each in sizes] == sorted((each["source_bytes"] for each in sizes), reverse=True)
    assert names("smallest") == names("largest")[::-1]
    assert visit.get(f"/api/v1/datasets/{small}/samples?order=color").status_code == 422


def test_the_drawer_has_one_sample_and_its_neighbours(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/explore?class_name=dog"))
    assert page.one(".drawer-head")["data-place"] == page.all("#tiles li")[0]["data-place"]
    second = page.all("#tiles a[data-step]")[1]["href"]
    drawer = html_of(visit.part(second, "drawer"))
    assert not drawer.has("html")
    assert drawer.one(".drawer-head .faint").text == "2 of 5"
    assert "class_name=dog" in drawer.one("#drawer-next")["href"]
    digits = drawer.all(".digit")
    assert [each.text for each in digits] == ["1 cat", "2 dog"]
    assert [each.attributes.get("aria-pressed") for each in digits] == [None, "true"]


def test_objects_have_a_legend_and_fit_the_original(visit: Any, studio: Studio, tmp_path: Path) -> None:
    objects = add_objects(studio, tmp_path / "objects")
    page = html_of(visit.get(f"/datasets/{objects}/samples/train/0"))
    assert page.one("#sample-title").text == "one.png"
    image = page.one("svg.big-image")
    assert image["viewbox"] == "0 0 40 20"
    assert image.one("image")["href"].endswith("original=true")
    box = image.one(".marks rect")
    assert [box[name] for name in ("x", "y", "width", "height")] == ["6.0", "4.0", "14.0", "8.0"]
    assert page.one(".legend li").text == "thing 1"


def test_masks_have_a_legend_with_their_shares(visit: Any, studio: Studio, tmp_path: Path) -> None:
    for number in range(2):
        mask = np.zeros((20, 20), np.uint8)
        mask[:5] = 1
        mask[5:15] = 2
        for name, pixels in (("images", np.full((20, 20, 3), 60 * number, np.uint8)), ("masks", mask)):
            (tmp_path / "set" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "set" / name / f"{number}.png").write_bytes(cv2.imencode(".png", pixels)[1].tobytes())
    dataset = made(studio, tmp_path / "set", format="masks")
    page = html_of(visit.get(f"/datasets/{dataset}/samples/train/0"))
    rows = {each.text: [mark.attributes.get("fill") for mark in each.all("rect")] for each in page.all(".legend li")}
    assert next(iter(rows)) == "class 2 50.0 %", "the largest share is first"
    assert sorted(rows) == ["class 0 25.0 %", "class 1 25.0 %", "class 2 50.0 %"]
    assert rows[next(name for name in rows if name.startswith("class 0"))] == [None]
    grid = html_of(visit.get(f"/datasets/{dataset}/explore"))
    assert len(grid.all("#tiles image.mask")) == 2
    assert visit.get(grid.all("#tiles image.mask")[0]["href"]).headers["content-type"] == "image/png"


# ---- corrections


def test_many_corrections_become_one_version(visit: Any, studio: Studio, pets: str) -> None:
    before = {each["key"]: each for each in visit.get(f"/api/v1/datasets/{pets}/samples").json()["samples"]}
    first, second, third = list(before)[:3]
    place = {key: f"{each['split']}/{each['row']}" for key, each in before.items()}
    other = {"cat": "dog", "dog": "cat"}
    label = {key: other["cat" if "cat" in key else "dog"] for key in (first, second)}
    edits = {place[first]: label[first], place[second]: label[second], place[third]: None}
    answer = visit.post(f"/datasets/{pets}/explore", data={"what": "edits", "edits": json.dumps(edits), "name": "v2"})
    assert answer.status_code == 303, answer.text
    version = answer.headers["location"].rpartition("/")[2]
    after = {each["key"]: each for each in visit.get(f"/api/v1/datasets/{version}/samples").json()["samples"]}
    assert third not in after
    assert len(after) == 9
    for key in (first, second):
        assert after[key]["label"] != before[key]["label"]
    assert studio.jobs.get(version).parent == pets
    assert html_of(visit.get(f"/datasets/{version}")).has("#made-of ul li")


@pytest.mark.parametrize(
    "edits",
    ["", "{}", "[1]", "{", pytest.param("[" * 100_000, id="nested"), '{"train/99": "cat"}', '{"train/0": "bird"}'],
)
def test_corrections_that_cannot_be_are_kept_and_said(visit: Any, pets: str, edits: str) -> None:
    answer = visit.post(f"/datasets/{pets}/explore", data={"what": "edits", "edits": edits, "name": "v2"})
    assert answer.status_code in (400, 422)
    assert errors_of(answer)
    page = html_of(answer)
    assert page.one("#edits")["value"] == edits
    assert page.has("#explorer[data-refused]")


def test_the_rest_interface_takes_many_corrections(visit: Any, pets: str) -> None:
    body = {"labels": {"train/0": "dog"}, "excluded": ["train/1", "val/0"], "reason": "Blurred.", "name": "v2"}
    job = visit.post(f"/api/v1/datasets/{pets}/corrections", json=body)
    assert job.status_code == 201, job.text
    assert visit.get(f"/api/v1/datasets/{job.json()['id']}").json()["splits"] == {"train": 7, "val": 1}
    refused = visit.post(f"/api/v1/datasets/{pets}/corrections", json={"name": "v2"})
    assert refused.status_code == 400


# ---- overview


def test_a_split_that_leaks_is_said_on_the_overview(visit: Any, studio: Studio, tmp_path: Path) -> None:
    for number in range(12):
        file = tmp_path / "twins" / ("cat", "dog")[number % 2] / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(cv2.imencode(".png", np.full((8, 8, 3), 9 * (number // 6), np.uint8))[1].tobytes())
    dataset = made(studio, tmp_path / "twins", rule=SplitRule(val_share=0.5))
    page = html_of(settled(visit, f"/datasets/{dataset}", "#health-waiting"))
    leak = page.one("#health-duplicate-across-splits")
    assert leak["data-level"] == "error"
    assert "12 samples have the content of a sample in another split" in leak.text
    targets = [each["href"] for each in leak.all("a")]
    assert targets == [
        f"/datasets/{dataset}/check#finding-duplicate-across-splits",
        f"/datasets/new?clone={dataset}",
    ]
    checks = settled(visit, f"/datasets/{dataset}/check", "#dataset-findings progress")
    assert html_of(checks).has("#finding-duplicate-across-splits")
    assert "`" not in html_of(checks).text
    kept_apart = html_of(settled(visit, f"/datasets/{made_of_one(studio, tmp_path)}", "#health-waiting"))
    assert not kept_apart.has("#health-duplicate-across-splits")


def test_the_log_of_the_creation_has_a_page(visit: Any, pets: str) -> None:
    page = html_of(visit.get(f"/datasets/{pets}/log"))
    assert page.one('.tabs a[aria-current="page"]').text == "Build log"
