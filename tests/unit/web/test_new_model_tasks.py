"""The page for a new model on data of every kind: what it offers, which fields it needs, what it asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.studio_samples import add_masks, add_table, add_texts
from tests.unit.web.html_page import html_of
from ziggurat.specs import load_train_spec
from ziggurat.web.pages.new_model.chosen_data import data_of, task_choice, unused_fields
from ziggurat.web.pages.new_model.fill_in import fill_in
from ziggurat.web.pages.new_model.form import ModelForm, first_form, model_fields
from ziggurat.web.pages.new_model.looks import preflight_look
from ziggurat.web.pages.new_model.request import read_form


@pytest.fixture
def sets(studio: Any, tmp_path: Path) -> dict[str, str]:
    """Return kind → id of a dataset."""
    return {
        "numbers": add_table(studio, tmp_path / "numbers.csv", has_classes=False),
        "classes": add_table(studio, tmp_path / "classes.csv", has_classes=True),
        "texts": add_texts(studio, tmp_path / "texts.tsv"),
        "masks": add_masks(studio, tmp_path / "masks"),
    }


def _form(studio: Any, dataset: str) -> ModelForm:
    form = first_form()
    form.values["dataset"] = dataset
    fill_in(studio, form)
    return form


def test_each_kind_of_data_gets_its_network_and_task(visit: Any, sets: dict[str, str]) -> None:
    for name, network, task, shape in (
        ("numbers", "table_mlp", "Regression", "table"),
        ("classes", "table_mlp", "Classification", "table"),
        ("texts", "text_cnn", "Classification", "text"),
        ("masks", "unet_small", "Image segmentation", "image"),
    ):
        answer = visit.get(f"/models/new?dataset={sets[name]}")
        page = html_of(answer)
        assert f'value="tensorflow/{network}" checked' in answer.text, name
        assert f"Task {task}" in page.one("#dataset-summary .stats").text
        assert page.one("#dataset-summary")["data-input"] == shape
        assert page.one("#recipe-applied").text.strip() == "Applied"
        lenet = page.one('label[for="network-tensorflow-lenet"]')
        assert lenet.has("input[disabled]"), "an image network cannot be chosen for it"


def test_only_networks_that_fit_are_shown_at_first(visit: Any, sets: dict[str, str]) -> None:
    page = html_of(visit.get(f"/models/new?dataset={sets['masks']}"))
    first = page.all("#networks .network")[: -len(page.all("#more-networks .network"))]
    assert first
    assert not any(each.has("input[disabled]") for each in first)
    titles = [each.one("b").text for each in first]
    assert titles[-1].startswith(("Generative", "Conditional")), "networks for any data come after those for masks"
    assert all("–" not in each.text for each in first), "a figure that is not known is left out"


def test_a_field_without_a_meaning_reaches_no_spec(visit: Any, studio: Any, sets: dict[str, str]) -> None:
    form = _form(studio, sets["numbers"])
    form.values |= {
        "preprocessing-size": "64",
        "preprocessing-mean": "pixel",
        "augmentation-flip": "fliplr",
        "class_weights": "1, 2",
        "preprocessing-numbers": "whiten",
    }

    answer = visit.post("/models/new", data=dict(form.pairs()))

    assert answer.status_code == 303
    (job,) = studio.jobs.queue()
    spec = load_train_spec(Path(job.folder) / "spec.json")
    assert (spec.preprocessing.size, spec.preprocessing.mean, spec.augmentation.flip) == (None, "none", "none")
    assert spec.class_weights == []
    assert (spec.preprocessing.numbers, spec.optimizer.name, spec.learning_rate) == ("whiten", "adam", 0.003)


def test_fields_without_a_meaning_are_hidden(visit: Any, studio: Any, sets: dict[str, str]) -> None:
    sheet = visit.get("/static/pages/new_model.css").text
    rules = next(each for each in sheet.split("}") if "data-input" in each)
    every = set[str]()
    for name, shape in (("numbers", "table"), ("texts", "text"), ("masks", "image")):
        unused = unused_fields(data_of(studio, _form(studio, sets[name])))
        every |= unused
        mixing = {"augmentation-mixup", "augmentation-cutmix"}
        assert mixing <= unused, "samples are mixed where images have one class each"
        assert "augmentation-mosaic" in unused
        assert '[data-joins="no"]) #augmentation-mosaic-field' in rules
        mixing.add("augmentation-mosaic")
        assert all('[data-mixes="no"]' in rules and f"#{field}-field" in rules for field in mixing)
        if "oversample_below" in unused:
            assert '[data-classes="no"]) #oversample_below-field' in rules
        for field in unused - {"class_weights", "oversample_below"} - (mixing if shape == "image" else set()):
            shown = "fold-augmentation" if field.startswith("augmentation") else f"{field}-field"
            lines = [line for line in rules.split(",\n") if f"#{shown}" in line]
            assert any(f'[data-input="{shape}"]' in line for line in lines), (name, field)
    assert {"class_weights", "oversample_below"} <= every
    assert "preprocessing-numbers" not in unused_fields(data_of(studio, _form(studio, sets["numbers"])))
    assert unused_fields(None) == frozenset(), "where nothing is known, everything is offered"
    assert every < set(model_fields())


def test_another_network_brings_its_own_optimizer(studio: Any, sets: dict[str, str]) -> None:
    form = _form(studio, sets["texts"])
    assert (form["optimizer"], form["learning_rate"], form["epochs"]) == ("adam", "0.001", "5")

    form.values["standard_network"] = "tensorflow/text_transformer"
    fill_in(studio, form)
    assert (form["optimizer"], form["epochs"]) == ("adam", "3")

    form = _form(studio, sets["numbers"])
    form.values["standard_network"] = "tensorflow/table_linear"
    fill_in(studio, form)
    assert (form["optimizer"], form["learning_rate"]) == ("momentum", "0.005")
    assert form["preprocessing-numbers"] == "whiten"


def test_the_check_says_nothing_of_images_for_a_table(studio: Any, sets: dict[str, str]) -> None:
    for name in ("numbers", "classes", "texts"):
        form = _form(studio, sets[name])
        found = preflight_look(studio, form, read_form(studio, form), whole=False)
        assert found["error"] is None
        said = " ".join(f"{each['value']} {each['why']}" for each in found["findings"])
        assert "image" not in said, said
        assert " px" not in said, said
        assert "0 classes" not in said
        assert not [each for each in found["findings"] if each["level"] == "error"]


def test_code_of_ones_own_may_learn_any_task(studio: Any, sets: dict[str, str]) -> None:
    form = _form(studio, "digits")
    assert task_choice(form, data_of(studio, form))["for_code"]
    names = [name for name, _ in task_choice(form, data_of(studio, form))["options"]]
    assert names[:2] == ["auto", "classification"]
    assert {"image-to-image", "free"} <= set(names)

    form = _form(studio, sets["texts"])
    form.values["task"] = "segmentation"
    assert "does not fit" in dict(task_choice(form, data_of(studio, form))["options"])["segmentation"]
    assert "task" in read_form(studio, form).problems


def test_sections_name_what_is_done_to_the_input(visit: Any, sets: dict[str, str]) -> None:
    for name, summary, metric in (
        ("numbers", "Numbers standardized", "validation RMSE"),
        ("texts", "Usual number of tokens of a text", ""),
        ("masks", "Size of the dataset", "validation mean IoU"),
    ):
        page = html_of(visit.get(f"/models/new?dataset={sets[name]}"))
        assert summary in page.one("#fold-preprocessing-summary").text
        assert metric in page.one("#fold-early_stopping-summary").text


def test_cards_of_data_sets_say_what_they_are_for(visit: Any, sets: dict[str, str]) -> None:
    page = html_of(visit.get("/datasets"))
    for name, purpose in (("numbers", "For regression"), ("texts", "For classification"), ("masks", "For image segm")):
        assert purpose in page.one(f"#row-{sets[name]}").text
    train = html_of(visit.get(f"/datasets/{sets['masks']}")).one("#dataset-train")
    assert train["title"] == "Train a network for image segmentation"
