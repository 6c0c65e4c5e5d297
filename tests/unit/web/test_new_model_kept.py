"""What the page for a new model fills in and keeps: recipe, drafts, presets, sections, mistakes in code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.web.html_page import html_of

SMALL = {"method": "standard", "standard_network": "null/mlp", "dataset": "digits", "shuffle": "true"}
HTMX = {"HX-Request": "true", "HX-Target": "div#preflight"}


def sent_by(answer: Any) -> dict[str, Any]:
    """Return what a browser would send of the form in an answer."""
    form = html_of(answer).one("form#new-model")
    values: dict[str, Any] = {}
    for each in form.all("input[name]"):
        kind = each.attributes.get("type", "text")
        if kind not in ("radio", "checkbox") or "checked" in each.attributes:
            values[each["name"]] = each.attributes.get("value", "")
    for each in form.all("select[name]"):
        chosen = [option["value"] for option in each.all("option[selected]")] or [each.all("option")[0]["value"]]
        values[each["name"]] = chosen[0]
    return values


def test_the_recipe_is_applied_to_an_untouched_form(visit: Any, pets: str) -> None:
    page = visit.get(f"/models/new?dataset={pets}")
    html = html_of(page)
    assert html.has("#recipe-applied")
    assert html.one("#recipe-button")["value"] == "undo"
    recipe = visit.get(f"/models/new?dataset={pets}")
    assert sent_by(recipe)["schedule"] == "cosine"


def test_the_recipe_is_undone_and_applied_again(visit: Any, studio: Any, pets: str) -> None:
    sent = sent_by(visit.get(f"/models/new?dataset={pets}")) | {"seed": "7"}
    undone = visit.post("/models/new/recipe", data=sent | {"recipe_action": "undo"})
    assert undone.headers["location"] == f"/models/new?dataset={pets}"
    page = visit.get(undone.headers["location"])
    assert not html_of(page).has("#recipe-applied")
    assert (sent_by(page)["schedule"], sent_by(page)["seed"]) == ("step", "7")

    visit.post("/models/new/recipe", data=sent_by(page) | {"recipe_action": "apply"})
    again = visit.get(undone.headers["location"])
    assert html_of(again).has("#recipe-applied")
    assert (sent_by(again)["schedule"], sent_by(again)["seed"]) == ("cosine", "7")


def test_the_recipe_of_other_data_replaces_an_untouched_one(visit: Any, pets: str) -> None:
    sent = sent_by(visit.get("/models/new"))
    assert sent["name"] == "lenet on digits"
    typed = sent | {"dataset": pets, "batch_size": "3"}
    part = html_of(visit.post("/models/new/dataset", data=typed, headers=HTMX))
    assert part.one("#name")["value"] == "convnet on pets"
    assert part.one(".network input[checked]")["value"] == "tensorflow/convnet"
    assert not part.has("#recipe-applied"), "the batch size was typed"


def test_a_draft_brings_everything_back(visit: Any, studio: Any) -> None:
    first = sent_by(visit.get("/models/new"))
    sent = first | {"epochs": "77", "notes": "typed", "tags": "a, b"}
    checked = visit.post("/models/new/quick", data=sent, headers=HTMX)
    assert html_of(checked).one("#draft-state").text.startswith("Draft saved")

    again = visit.get("/models/new")
    assert html_of(again).one("#draft-state").text.startswith("Draft saved")
    assert html_of(again).one("#epochs")["value"] == "77"
    assert html_of(again).one("#notes").text == "typed"

    dropped = visit.post("/models/new/reset", data=sent)
    assert dropped.headers["location"] == "/models/new"
    fresh = visit.get("/models/new")
    assert html_of(fresh).one("#draft-state").text == ""
    assert sent_by(fresh) == first


def test_the_last_letters_of_a_page_that_is_left_are_saved(visit: Any) -> None:
    assert visit.post("/models/new/draft", data=SMALL | {"notes": "last letters"}).status_code == 204
    assert html_of(visit.get("/models/new")).one("#notes").text == "last letters"


def test_a_query_goes_before_a_draft_and_keeps_it(visit: Any, pets: str) -> None:
    visit.post("/models/new/quick", data=sent_by(visit.get("/models/new")) | {"epochs": "77"}, headers=HTMX)
    other = visit.get(f"/models/new?dataset={pets}")
    assert html_of(other).has("#other-draft")
    assert html_of(other).one("#epochs")["value"] != "77"
    assert html_of(visit.get("/models/new")).one("#epochs")["value"] == "77"

    replaced = visit.post("/models/new/quick", data=sent_by(other) | {"epochs": "5"}, headers=HTMX)
    assert html_of(replaced).has("#other-draft-place")
    assert not html_of(replaced).has("#other-draft"), "it is replaced"
    reloaded = visit.get(f"/models/new?dataset={pets}")
    assert html_of(reloaded).one("#epochs")["value"] == "5"
    assert not html_of(reloaded).has("#other-draft")


def test_a_started_training_ends_the_draft_and_is_a_preset(visit: Any) -> None:
    first = html_of(visit.get("/models/new")).one("#epochs")["value"]
    sent = {**SMALL, "epochs": "3", "name": "mine", "batch_size": "16"}
    visit.post("/models/new/quick", data=sent, headers=HTMX)
    assert visit.post("/models/new", data=sent).status_code == 303
    page = visit.get("/models/new")
    assert html_of(page).one("#draft-state").text == ""
    assert html_of(page).one("#epochs")["value"] == first
    assert [each["value"] for each in html_of(page).all('#preset-list button[class="quiet"]')] == ["Last settings"]

    loaded = visit.post("/models/new/preset", data=sent_by(page) | {"preset": "Last settings"})
    page = visit.get(loaded.headers["location"])
    assert (sent_by(page)["epochs"], sent_by(page)["batch_size"]) == ("3", "16")
    assert sent_by(page)["standard_network"] == "null/mlp"
    assert sent_by(page)["name"] != "mine"


def test_a_training_starts_where_its_settings_cannot_be_kept(visit: Any, studio: Any) -> None:
    long = "x" * 700_000
    sent = SMALL | {"network_text": long, "pretrained": long, "weights": "random", "batch_size": "16"}
    assert visit.post("/models/new", data=sent).status_code == 303
    assert len(studio.jobs.queue()) == 1
    assert not html_of(visit.get("/models/new")).has('#preset-list button[class="quiet"]')


def test_presets_are_saved_and_deleted(visit: Any, pets: str) -> None:
    sent = {**SMALL, "epochs": "9", "optimizer": "adam"}
    saved = html_of(visit.post("/models/new/presets", data=sent | {"preset_name": "Adam, 9"}, headers=HTMX))
    assert saved.one("#preset-said").text == "Saved as preset “Adam, 9”."
    assert [each["value"] for each in saved.all('#preset-list button[class="quiet"]')] == ["Adam, 9"]

    back = visit.post("/models/new/preset", data={**SMALL, "dataset": pets, "preset": "Adam, 9"})
    loaded = sent_by(visit.get(back.headers["location"]))
    assert (loaded["dataset"], loaded["optimizer"], loaded["epochs"]) == (pets, "adam", "9")

    gone = html_of(visit.post("/models/new/presets/delete", data=sent | {"preset": "Adam, 9"}, headers=HTMX))
    assert not gone.has('#preset-list button[class="quiet"]')
    assert visit.post("/models/new/preset", data=sent | {"preset": "Adam, 9"}).status_code == 404
    twice = visit.post("/models/new/presets/delete", data=sent | {"preset": "Adam, 9"}, headers=HTMX)
    assert not html_of(twice).has("#preset_name-problem"), "it was deleted in another tab"


@pytest.mark.parametrize("name", ["", " ", "last settings", "x" * 201, "a\x01"])
def test_names_that_no_preset_may_have(visit: Any, name: str) -> None:
    answer = visit.post("/models/new/presets", data={**SMALL, "preset_name": name})
    assert answer.status_code == 422
    assert html_of(answer).has("#preset_name-problem")


def test_sections_say_what_is_in_force(visit: Any) -> None:
    page = html_of(visit.get("/models/new"))
    assert all("open" not in each.attributes for each in page.all("details.fold"))
    assert page.one("#fold-schedule-summary").text.startswith("Cosine, 0.01 to 0")
    assert page.one("#fold-augmentation-summary").text == "None"
    typed = SMALL | {"augmentation-flip": "fliplr", "augmentation-rotation_deg": "10", "optimizer": "adamw"}
    part = html_of(visit.post("/models/new/quick", data=typed | {"weight_decay": "0.01"}, headers=HTMX))
    assert part.one("#fold-augmentation-summary").text == "Flip left-right, rotation 10 deg"
    assert part.one("#fold-augmentation-changed").text == "2 changed"
    assert part.one("#fold-optimizer-summary").text == "AdamW, betas 0.9 and 0.999, weight decay 0.01"


def test_a_section_with_a_problem_is_open(visit: Any) -> None:
    page = html_of(visit.post("/models/new", data=SMALL | {"augmentation-hue": "3"}))
    assert "open" in page.one("#fold-augmentation").attributes
    assert page.one("#fold-augmentation-errors").text == "1 problem"
    assert "open" not in page.one("#fold-optimizer").attributes


def test_weights_come_from_a_file_where_that_is_chosen(visit: Any, studio: Any) -> None:
    missing = visit.post("/models/new", data=SMALL | {"weights": "file"})
    assert html_of(missing).has('#problems a[href="#pretrained"]')
    assert visit.post("/models/new", data=SMALL | {"weights": "random", "pretrained": "/nowhere"}).status_code == 303
    (job,) = studio.jobs.queue()
    assert job.spec["pretrained"] is None


def test_mistakes_in_code_come_at_once_and_stop_a_start(visit: Any) -> None:
    code = (
        "class UserModel(Tower):\n    @model_property\n    def inference(self):\n        return slim.conv3d_(self.x\n"
    )
    part = html_of(visit.post("/models/new/code", data={"network_text": code, "custom_framework": "tensorflow"}))
    assert part.one("#code-findings .finding.error button")["data-goto-line"] == "4"
    page = html_of(visit.post("/models/new/check", data=SMALL | {"method": "custom", "network_text": code}))
    assert page.one('#preflight a[href="#network_text"]').text.startswith("Line 4: Syntax error")
    assert "disabled" in page.one("#start").attributes


def test_lines_that_a_network_lacks_can_be_added(visit: Any) -> None:
    code = "class Mine(nn.Module):\n    def forward(self, x):\n        return x\n"
    part = html_of(visit.post("/models/new/code", data={"network_text": code, "custom_framework": "torch"}))
    assert part.one("[data-add-code]")["data-add-code"] == (
        "class UserModel(Mine):\n    def __init__(self, nclasses, input_shape):\n        super().__init__()"
    )
    other = html_of(visit.post("/models/new/code", data={"network_text": code, "custom_framework": "tensorflow"}))
    assert not other.has("[data-add-code]")


def test_a_name_that_nothing_defines_stops_a_start(visit: Any) -> None:
    code = (
        "class UserModel(nn.Module):\n    def __init__(self, nclasses, input_shape):\n        super().__init__()\n\n"
        "    def forward(self, x):\n        return slim.flatten(x)\n"
    )
    sent = SMALL | {"method": "custom", "network_text": code, "custom_framework": "torch"}
    page = html_of(visit.post("/models/new/check", data=sent))
    assert page.one('#preflight a[href="#network_text"]').text.startswith("Line 6: slim is not defined.")
    assert "disabled" in page.one("#start").attributes


def test_each_framework_has_its_code_and_keeps_what_was_typed(visit: Any) -> None:
    def switched(sent: dict[str, Any], framework: str) -> Any:
        back = visit.post("/models/new/code-framework", data=sent | {"framework": framework})
        return visit.get(back.headers["location"])

    first = sent_by(visit.get("/models/new")) | {"method": "custom", "network_text": "x = 1 # of TensorFlow\n"}
    answer = switched(first, "torch")
    torch = html_of(answer)
    assert torch.one("#framework-torch")["aria-pressed"] == "true"
    assert "class UserModel(nn.Module):" in torch.one("#network_text").text
    assert not torch.has("#code-findings .finding"), "the other framework's mistakes are gone"
    assert "disabled" not in torch.one("#start").attributes

    back = switched(sent_by(answer) | {"network_text": "y = 2 # of PyTorch\n"}, "tensorflow")
    assert html_of(back).one("#network_text").text.strip() == "x = 1 # of TensorFlow"
    again = switched(sent_by(back) | {"network_text": html_of(back).one("#network_text").text}, "torch")
    assert html_of(again).one("#network_text").text.strip() == "y = 2 # of PyTorch"


def test_untouched_code_follows_the_framework_of_the_networks(visit: Any) -> None:
    sent = sent_by(visit.get("/models/new")) | {"framework": "torch"}
    page = html_of(visit.get(visit.post("/models/new/framework", data=sent).headers["location"]))
    assert "class UserModel(nn.Module):" in page.one("#network_text").text
    assert page.one("#custom_framework")["value"] == "torch"

    typed = sent_by(visit.get("/models/new")) | {"network_text": "mine = 1\n", "framework": "tensorflow"}
    page = html_of(visit.get(visit.post("/models/new/framework", data=typed).headers["location"]))
    assert page.one("#network_text").text.strip() == "mine = 1"


def test_an_odd_preset_is_read_as_far_as_it_goes(visit: Any, studio: Any) -> None:
    odd = {"page": "new-model", "fields": [5, ["epochs"], ["batch_size", 16], ["epochs", "9"]]}
    studio.saved.put("local", "preset", "odd", odd)
    loaded = visit.post("/models/new/preset", data=SMALL | {"preset": "odd"})
    assert sent_by(visit.get(loaded.headers["location"]))["epochs"] == "9"


def test_names_that_an_older_draft_filled_in_are_skipped(visit: Any) -> None:
    sent = SMALL | {"picked": '{"field_of_0_1": "7", "epochs": "30"}'}
    assert visit.post("/models/new/network", data=sent, headers=HTMX).status_code == 200
