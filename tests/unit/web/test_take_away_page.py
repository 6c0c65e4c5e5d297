"""The page on which a model is taken away: what it offers, exports while nobody waits, and publishing."""

from __future__ import annotations

import html
import io
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.web.html_page import html_of
from tests.waiting import wait_until
from ziggurat.entities import Job
from ziggurat.entities.operating_point import OperatingPoint, checkpoint_digest, write_operating_point
from ziggurat.errors import CheckpointError, JobError, NetworkCodeError, UnknownNameError
from ziggurat.events import CheckpointSaved
from ziggurat.layout import JobFolder
from ziggurat.store import Store
from ziggurat.workspace.studio.exports import Exports
from ziggurat.workspace.studio.serving import ServerState, Serving

_NAME = "onnx-step-00000004-inside"
_PARITY = {
    "samples": 5,
    "largest_difference": 1e-7,
    "relative_difference": 1e-7,
    "tolerance": 1e-5,
    "holds": True,
    "accuracy_before": 0.8,
    "accuracy_after": 0.8,
    "latency_before_ms": 1.0,
    "latency_after_ms": 0.5,
    "size_bytes": 10,
}


@pytest.fixture
def store(studio) -> Iterator[Store]:
    """Return the store of the studio, to say what a worker would have said."""
    with Store.open(studio.root / "studio.db") as opened:
        yield opened


@pytest.fixture
def model(studio, store, train) -> Job:
    """Return a training with TensorFlow that is done and has a checkpoint."""
    job = train(spec={"name": "<lenet>", "backend": "tensorflow", "network": "lenet"})
    assert store.jobs.move(job.id, ("queued",), "running", started=10.0)
    saved = CheckpointSaved(time=12.0, name="step-00000004", epoch=1, step=4, reason="end")
    assert store.events.take(job.id, 0, 1, [saved])
    assert store.jobs.move(job.id, ("running",), "done", ended=13.0)
    folder = Path(job.folder) / "checkpoints" / "step-00000004"
    folder.mkdir(parents=True)
    np.savez(folder / "arrays.npz", names=np.array(["weights"]), a0=np.zeros(3, np.float32))
    (folder / "state.json").write_text(json.dumps({"meta": {"epoch_num": 1, "global_step": 4}}))
    return studio.jobs.get(job.id)


def _text(answer: Any) -> str:
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def _written(_job_id: str, export_format: str, target: Path, **options: Any) -> dict[str, Any]:
    """Write what an export writes, without a framework."""
    target.mkdir(parents=True)
    (target / f"model.{export_format}").write_bytes(b"0123456789")
    (target / "MODEL_CARD.md").write_text("# <lenet>\n")
    (target / "predict.py").write_text("print(1)\n")
    files = sorted(path.name for path in target.iterdir())
    return {
        "folder": "x",
        "out": "y",
        "checkpoint": options["checkpoint"],
        "step": 4,
        "epoch": 1,
        "files": files,
        "split": "val",
        "parity": _PARITY,
    }


@pytest.fixture
def exports(studio) -> Iterator[Callable[..., Exports]]:
    """Return what gives the studio's exports another maker, which needs no framework."""
    made: list[Exports] = []

    def give(make: Callable[..., dict[str, Any]] = _written) -> Exports:
        made.append(Exports(studio.jobs, make, lambda _job_id: None, studio.clock))
        studio.exports = made[-1]
        return made[-1]

    yield give
    for each in made:
        each.close()


def _ended(exports: Exports, job_id: str, name: str = _NAME) -> str:
    wait_until(lambda: not exports.get(job_id, name).is_under_way)
    return exports.get(job_id, name).state


def test_a_training_without_checkpoints_has_nothing_to_take(visit, train):
    job = train()

    page = html_of(visit.get(f"/models/{job.id}/take-away"))

    assert page.one("#take-nothing a")["href"] == f"/models/{job.id}"
    assert not page.has('[name="format"]')


def test_formats_archive_and_publishing_are_offered(visit, model):
    page = visit.get(f"/models/{model.id}/take-away")

    assert page.status_code == 200
    assert "<title>Export &lt;lenet&gt;" in page.text
    for name in ("savedmodel", "onnx", "tflite", "pb", "checkpoint"):
        assert f'name="format" value="{name}"' in page.text
    assert f'action="/api/v1/jobs/{model.id}/download"' in page.text
    assert '<option value="step-00000004">Step 4, epoch 1</option>' in page.text
    assert html_of(page).has("#take-exports .empty")


def test_an_export_is_asked_for_proven_and_downloaded(visit, model, exports):
    place, made = f"/models/{model.id}/take-away", exports()

    answer = visit.post(f"{place}/export", data={"format": "onnx", "preprocessing": "inside"})
    assert (answer.status_code, answer.headers["location"]) == (303, place)
    assert _ended(made, model.id) == "done"
    part = visit.part(place, "take-exports")
    archive = visit.get(f"/api/v1/models/{model.id}/exports/{_NAME}/download?format=zip")

    assert "5 samples of the split val" in html_of(part).one('.note.good[data-parity="holds"]').text
    assert "<html" not in part.text
    lines = [html_of(part).one(f"#serve-{_NAME}-{number}").text for number in range(1, 5)]
    assert lines[:2] == [
        f"ziggurat serve {model.folder}/exports/{_NAME}",
        "curl -F image=@image.png http://127.0.0.1:8600/predict",
    ]
    assert f"zig.load('{model.folder}/exports/{_NAME}').predict(\"image.png\")" in lines[3]
    assert "Not signed." in _text(part)
    with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
        assert packed.namelist() == ["info.json", "MODEL_CARD.md", "model.onnx", "predict.py"]
    card = visit.get(f"{place}/exports/{_NAME}/MODEL_CARD.md")
    assert (card.text, card.headers["content-type"]) == ("# <lenet>\n", "text/plain; charset=utf-8")
    assert visit.get(f"{place}/exports/{_NAME}/model.onnx").status_code == 404
    download = visit.get(f"/api/v1/jobs/{model.id}/download?format=zip")
    with zipfile.ZipFile(io.BytesIO(download.content)) as packed:
        assert not any(name.startswith("exports/") for name in packed.namelist())

    assert visit.post(f"{place}/exports/{_NAME}/delete").status_code == 303
    assert made.of_job(model.id) == []
    assert not (Path(model.folder) / "exports" / _NAME).exists()


class _Servers:
    """Servers of exports that are ready as soon as they are asked for."""

    def __init__(self) -> None:
        self.running: dict[tuple[str, str], ServerState] = {}

    def start(self, key: tuple[str, str], _folder: Path) -> ServerState:
        ready = ServerState(state="ready", url="http://127.0.0.1:8612", started=10.0, requests=3, self_test=5)
        return self.running.setdefault(key, ready)

    def stop(self, key: tuple[str, str]) -> None:
        self.running.pop(key, None)

    def state(self, key: tuple[str, str]) -> ServerState | None:
        return self.running.get(key)


def test_a_server_is_started_and_stopped_on_the_page(visit, studio, model, exports):
    place, made = f"/models/{model.id}/take-away", exports()
    visit.post(f"{place}/export", data={"format": "onnx", "preprocessing": "inside"})
    assert _ended(made, model.id) == "done"
    studio.serving = Serving(made, _Servers(), lambda _job_id: None)
    assert not html_of(visit.get(place)).has(f"#server-{_NAME}")

    begun = visit.post(f"{place}/exports/{_NAME}/server", data={"action": "start"})
    page = html_of(visit.get(place))

    assert (begun.status_code, begun.headers["location"]) == (303, f"{place}#serve-{_NAME}")
    assert page.one(f"#server-{_NAME}")["data-state"] == "ready"
    assert page.one(f"#server-url-{_NAME}").text == "http://127.0.0.1:8612/predict"
    assert page.has(f"#server-stop-{_NAME}")
    assert not page.has(f"#server-start-{_NAME}")
    visit.post(f"{place}/exports/{_NAME}/server", data={"action": "stop"})
    assert html_of(visit.get(place)).has(f"#server-start-{_NAME}")


def test_thresholds_since_an_export_are_said_and_taken_over(visit, model, exports):
    place, made = f"/models/{model.id}/take-away", exports()
    made.start(model.id, "onnx")
    assert _ended(made, model.id) == "done"
    first = made.get(model.id, _NAME)
    before = _text(visit.part(place, "take-exports"))
    folder = JobFolder(Path(model.folder))
    digest = checkpoint_digest(folder, "step-00000004")
    point = OperatingPoint(names=("b",), thresholds=(0.7,), checkpoint="step-00000004", step=4, digest=digest)
    write_operating_point(folder, point)

    after = _text(visit.part(place, "take-exports"))
    again = made.start(model.id, "onnx")

    assert "Other thresholds were chosen since" not in before
    assert "Other thresholds were chosen since" in after
    assert (first.state, again.state) == ("done", "waiting")
    _ended(made, model.id)


def test_an_export_that_does_not_hold_warns(visit, model, exports):
    def wrong(*words: Any, **options: Any) -> dict[str, Any]:
        return {**_written(*words, **options), "parity": {**_PARITY, "holds": False, "largest_difference": 0.5}}

    made = exports(wrong)
    made.start(model.id, "onnx")
    assert _ended(made, model.id) == "done"

    page = html_of(visit.get(f"/models/{model.id}/take-away"))

    assert page.has('.note.error[data-parity="differs"]')
    assert "primary" not in page.one(f"#download-{_NAME}")["class"].split()


def test_a_failure_is_told_and_tried_again(visit, model, exports):
    fails = [True]

    def maybe(*words: Any, **options: Any) -> dict[str, Any]:
        if fails.pop() if fails else False:
            raise NetworkCodeError("A network must be written (", received="`<x>`", advice="Mend it.")
        return _written(*words, **options)

    made = exports(maybe)
    made.start(model.id, "onnx")
    assert _ended(made, model.id) == "failed"
    page = visit.get(f"/models/{model.id}/take-away")
    made.start(model.id, "onnx")

    assert _text(page).count("A network must be written (") == 1
    assert "&lt;x&gt;" in page.text
    assert _ended(made, model.id) == "done"


def test_what_is_done_is_found_again_and_not_made_twice(studio, model, exports):
    first = exports()
    first.start(model.id, "onnx")
    assert _ended(first, model.id) == "done"
    first.close()
    (Path(model.folder) / "exports" / "pb-step-00000004-inside").mkdir()  # what is left of one that was killed

    second = exports(lambda *_words, **_options: pytest.fail("it is there already"))

    assert [each.name for each in second.of_job(model.id)] == [_NAME]
    assert second.start(model.id, "onnx", checkpoint="latest").state == "done"


def test_one_begun_before_the_studio_ended_is_made_again(visit, model, exports):
    place, pending = f"/models/{model.id}/take-away", "pb-step-00000004-inside"
    folder, begun, released = Path(model.folder) / "exports" / _NAME, threading.Event(), threading.Event()

    def never_ends(_job_id: str, _format: str, target: Path, **_options: Any) -> dict[str, Any]:
        target.mkdir(parents=True)
        (target / "model.part").write_bytes(b"half")
        begun.set()
        released.wait()
        raise NetworkCodeError("A network must be written (", received="it is not", advice="Mend it.")

    first = exports(never_ends)
    first.start(model.id, "onnx")
    first.start(model.id, "pb")
    assert begun.wait(30)
    assert [each.state for each in first.of_job(model.id)] == ["waiting", "running"]
    after = exports()  # as a studio that starts in the same workspace when the first was killed

    assert {each.name: each.state for each in after.of_job(model.id)} == dict.fromkeys((_NAME, pending), "interrupted")
    page = visit.get(place)
    assert len(html_of(page).all('.take-export[data-state="interrupted"]')) == 2
    assert f'id="download-{_NAME}"' not in page.text
    assert visit.get(f"/api/v1/models/{model.id}/exports/{_NAME}/download?format=zip").status_code == 409
    assert visit.get(f"{place}/exports/{_NAME}/MODEL_CARD.md").status_code == 409
    again = re.search(rf'<form[^>]*>((?:<input[^>]*>)*)<button class="small" id="again-{_NAME}"', page.text)
    assert again is not None
    sent = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', again[1]))

    assert visit.post(f"{place}/export", data=sent).status_code == 303
    assert _ended(after, model.id) == "done"
    assert sorted(path.name for path in folder.iterdir()) == ["MODEL_CARD.md", "model.onnx", "predict.py"]
    assert visit.post(f"{place}/exports/{pending}/delete").status_code == 303
    assert [each.name for each in exports().of_job(model.id)] == [_NAME]
    first.close()
    released.set()
    assert _ended(first, model.id) == "failed"
    assert exports().get(model.id, _NAME).state == "done"


def test_a_failure_is_still_told_when_the_studio_starts_again(model, exports):
    def fails(*_words: Any, **_options: Any) -> dict[str, Any]:
        raise NetworkCodeError("A network must be written (", received="it is not", advice="Mend it.")

    first = exports(fails)
    first.start(model.id, "onnx")
    assert _ended(first, model.id) == "failed"
    first.close()

    after = exports()
    (found,) = after.of_job(model.id)

    assert found.state == "failed"
    assert found.error is not None
    assert found.error["rule"] == "A network must be written ("
    after.remove(model.id, _NAME)
    assert after.of_job(model.id) == []


def test_what_cannot_be_exported_is_said_at_its_field(visit, model, exports, train):
    made, place = exports(), f"/models/{model.id}/take-away"

    unknown = visit.post(f"{place}/export", data={"format": "onyx"})
    missing = visit.post(f"{place}/export", data={"format": "onnx", "export_checkpoint": "step-00000009"})

    assert (unknown.status_code, missing.status_code) == (422, 404)
    assert "Did you mean <code>onnx</code>?" in unknown.text
    assert 'id="format-problem"' in unknown.text
    assert 'id="export_checkpoint-problem"' in missing.text
    with pytest.raises(CheckpointError, match="has no checkpoint yet"):
        made.start(train().id, "onnx")
    with pytest.raises(UnknownNameError, match="preprocessing"):
        made.start(model.id, "onnx", preprocessing="outside")


def test_a_model_is_published_offered_kept_and_withdrawn(visit, studio, model):
    place = f"/models/{model.id}/take-away"

    done = visit.post(f"{place}/publish", data={"name": "LeNet <1>", "notes": "mine"})
    twice = visit.post(f"{place}/publish", data={"name": "LeNet <1>", "notes": "kept text"})
    nameless = visit.post(f"{place}/publish", data={"name": "a/../b"})

    assert done.status_code == 303
    assert (twice.status_code, nameless.status_code) == (400, 422)
    assert "There is a published model of the name" in _text(twice)
    assert ">kept text</textarea>" in twice.text
    assert 'id="name-problem"' in nameless.text
    (published,) = studio.published.all()
    assert (published.name, published.checkpoint, published.owner) == ("LeNet <1>", "step-00000004", "local")
    assert studio.published.is_whole(published)
    assert '<option value="LeNet &lt;1&gt;">LeNet &lt;1&gt; (step-00000004)</option>' in visit.get("/models/new").text

    with pytest.raises(JobError, match=r"published as LeNet <1>.*Withdraw it first"):
        studio.jobs.delete(model.id, force=True)
    with pytest.raises(JobError, match=r"step-00000004 is published as LeNet <1>"):
        studio.outputs.remove_checkpoint(model.id, "step-00000004")

    assert visit.post(f"{place}/withdraw", data={"name": "LeNet <1>"}).status_code == 303
    studio.jobs.delete(model.id)
    assert studio.published.all() == []


def test_a_new_model_starts_from_a_published_one(visit, studio, model):
    studio.published.publish(model.id, "LeNet on digits")
    sent = {"method": "pretrained", "published_model": "LeNet on digits", "dataset": "digits", "name": "second"}

    refused = visit.post("/models/new", data={**sent, "published_model": "another"})
    made = visit.post("/models/new", data=sent)

    assert refused.status_code == 422
    assert "Choose a model that was published, or another network." in _text(refused)
    assert made.status_code == 303, _text(made)
    job = studio.jobs.get(made.headers["location"].rpartition("/")[2])
    assert job.spec["pretrained"] == str(Path(model.folder) / "checkpoints" / "step-00000004")
    assert (job.framework, job.network, job.depends_on) == ("tensorflow", "lenet", (model.id,))


def test_a_model_that_waits_is_not_published(visit, studio, train):
    job = train()
    (Path(job.folder) / "checkpoints" / "step-00000002").mkdir(parents=True)

    answer = visit.post(f"/models/{job.id}/take-away/publish", data={"name": "early"})

    assert answer.status_code == 409
    assert studio.published.all() == []


def test_a_viewer_looks_and_downloads_only(visit_as, model):
    viewer, place = visit_as("viewer"), f"/models/{model.id}/take-away"

    page = viewer.get(place)

    assert html_of(page).has("#take-exports .empty")
    assert "<form" not in page.text.partition('id="publish-title"')[2].partition("</section>")[0]
    assert viewer.post(f"{place}/export", data={"format": "onnx"}).status_code == 403
    assert viewer.post(f"{place}/publish", data={"name": "x"}).status_code == 403
