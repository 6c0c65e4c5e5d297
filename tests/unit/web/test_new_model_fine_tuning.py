"""Fine-tuning on the page for a new model: one click fills it in, one takes it out, and random weights leave it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.web.html_page import html_of
from tests.unit.web.test_new_model_kept import HTMX, sent_by
from tests.unit.weights.weight_samples import add_entry
from ziggurat.specs import load_train_spec
from ziggurat.web.pages.new_model.form import first_form
from ziggurat.web.pages.new_model.request import read_form
from ziggurat.workspace.fine_tuning import fine_tune_fields

PARTS = ("fine_tuning-frozen_epochs", "fine_tuning-backbone_rate", "fine_tuning-layer_decay")


@pytest.fixture
def weights(studio: Any) -> str:
    add_entry(studio.root, "mine", network="resnet18")
    return "mine"


def click(visit: Any, sent: dict[str, Any], action: str = "apply") -> dict[str, Any]:
    """Return what stands in the form once the button was clicked."""
    answer = visit.post("/models/new/fine-tune", data=sent | {"fine_tune_action": action})
    assert answer.status_code == 303
    return sent_by(visit.get(answer.headers["location"]))


def shown(values: dict[str, Any]) -> tuple[str, ...]:
    return tuple(values[name] for name in (*PARTS, "learning_rate", "epochs", "schedule"))


def test_one_click_fills_in_the_preset_and_one_takes_it_out(visit: Any, weights: str) -> None:
    page = visit.get(f"/models/new?weights={weights}")
    first = sent_by(page)
    assert first["weights"] == "pretrained"
    assert html_of(page).one("#fine-tune-button").text.strip() == "Fine-tune"
    applied = click(visit, first)
    assert shown(applied) == ("2", "0.3", "0.8", "0.05", "15", "cosine")
    page = html_of(visit.get(f"/models/new?weights={weights}"))
    assert page.has("#fine-tune-applied")
    assert page.one("#fine-tune-button").text.strip() == "Undo"
    assert page.one("#fold-fine_tuning-summary").text.startswith("Last layer alone for 2 epochs, other layers at 0.3")
    assert not page.has("#fold-fine_tuning-changed"), "what the page filled in counts as no change"
    assert shown(click(visit, applied, "undo")) == shown(first)


def test_what_was_typed_stays_when_it_is_undone(visit: Any, weights: str) -> None:
    applied = click(visit, sent_by(visit.get(f"/models/new?weights={weights}")))
    undone = click(visit, applied | {"epochs": "7"}, "undo")
    assert undone["epochs"] == "7"
    assert [undone[name] for name in PARTS] == ["0", "1", "1"]


def test_the_recipe_counts_as_applied_beside_it(visit: Any, weights: str, pets: str) -> None:
    sent = sent_by(visit.get(f"/models/new?weights={weights}")) | {"dataset": pets}
    html_of(visit.post("/models/new/dataset", data=sent, headers=HTMX))
    kept = sent_by(visit.get("/models/new"))
    applied = click(visit, kept | {"weights": "pretrained", "pretrained_weights": weights})
    assert applied["learning_rate"] == "0.05"
    part = html_of(visit.post("/models/new/dataset", data=applied | {"dataset": "digits"}, headers=HTMX))
    assert part.has("#fine-tune-applied"), "other data leaves it"


def test_random_weights_take_it_out_and_others_bring_it_back(visit: Any, weights: str) -> None:
    first = sent_by(visit.get(f"/models/new?weights={weights}"))
    applied = click(visit, first)
    part = html_of(visit.post("/models/new/network", data=applied | {"weights": "random"}, headers=HTMX))
    random = {each["name"]: each["value"] for each in part.all("input[name][value]") if each["name"] in applied}
    assert (random["learning_rate"], random["epochs"]) == (first["learning_rate"], first["epochs"])
    assert [random[name] for name in PARTS] == ["0", "1", "1"]
    again = applied | random | {"weights": "pretrained"}
    back = html_of(visit.post("/models/new/network", data=again, headers=HTMX))
    assert [back.one(f"#{name}")["value"] for name in PARTS] == ["2", "0.3", "0.8"]


def test_random_weights_leave_it_out(studio: Any, weights: str) -> None:
    form = first_form()
    form.values.update({PARTS[0]: "2", PARTS[1]: "0.1", "standard_network": "tensorflow/resnet18"})
    assert "fine_tuning" not in read_form(studio, form).request.spec
    form.values.update(weights="pretrained", pretrained_weights=weights)
    asked = read_form(studio, form)
    assert asked.request.spec["fine_tuning"] == {"frozen_epochs": 2, "backbone_rate": 0.1}
    assert asked.problems == {}


def test_a_model_to_go_on_from_counts_as_pretrained(studio: Any) -> None:
    form = first_form()
    form.values.update(method="previous", previous_use="weights")
    assert form.starts_from_model
    form.values["previous_use"] = "network"
    assert not form.starts_from_model
    form.values["method"] = "pretrained"
    assert form.starts_from_model


def test_a_swept_part_makes_several_trainings(studio: Any, weights: str) -> None:
    form = first_form()
    form.values.update(
        {
            "weights": "pretrained",
            "pretrained_weights": weights,
            "standard_network": "tensorflow/resnet18",
            "preprocessing-channels": "3",
            PARTS[1]: "0.1, 0.3",
        }
    )
    asked = read_form(studio, form)
    assert asked.request.sweep == {"fine_tuning.backbone_rate": [0.1, 0.3]}
    assert asked.problems == {}


def test_a_wrong_value_is_said_at_its_field(visit: Any, weights: str) -> None:
    sent = sent_by(visit.get(f"/models/new?weights={weights}")) | {PARTS[1]: "2"}
    refused = visit.post("/models/new", data=sent)
    assert refused.status_code == 422
    assert html_of(refused).has(f'#problems a[href="#{PARTS[1]}"]')
    assert "open" in html_of(refused).one("#fold-fine_tuning").attributes


def test_the_job_and_its_clone_have_it(visit: Any, studio: Any, weights: str) -> None:
    applied = click(visit, sent_by(visit.get(f"/models/new?weights={weights}")))
    started = visit.post("/models/new", data=applied)
    assert started.status_code == 303, started.text
    (job,) = studio.jobs.queue()
    spec = load_train_spec(Path(job.folder) / "spec.json")
    assert spec.fine_tuning is not None
    expected = {path: value for path, value in fine_tune_fields("momentum").items() if path.startswith("fine_tuning.")}
    assert {f"fine_tuning.{name}": value for name, value in spec.fine_tuning.model_dump().items()} == expected
    clone = sent_by(visit.get(f"/models/new?clone={job.id}"))
    assert [clone[name] for name in PARTS] == ["2", "0.3", "0.8"]
    undone = click(visit, click(visit, clone | {"epochs": "3"}), "undo")
    assert undone["epochs"] == "15", "a clone goes back to what its job has"
