"""Old specs are lifted step by step; newer ones are refused with the reason."""

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import (
    SPEC_KINDS,
    DatasetSpec,
    EmbedSpec,
    EvaluateSpec,
    InferSpec,
    ProgramSpec,
    TrainSpec,
    parse_spec,
    upgrade,
)


def rename_max_epoch(content):
    """The step of an imagined version 0, which said `max_epoch` and had the policy beside the rate."""
    rest = {name: value for name, value in content.items() if name not in ("max_epoch", "lr_policy")}
    return {**rest, "epochs": content["max_epoch"], "schedule": content["lr_policy"]}


def test_an_old_spec_becomes_todays():
    old = {"kind": "train", "version": 0, "network": "mlp", "data": "digits", "max_epoch": 7, "lr_policy": "cosine"}
    content = upgrade(old, upgrades={("train", 0): rename_max_epoch})
    spec = parse_spec(content)
    assert (spec.version, spec.epochs, spec.schedule.policy) == (1, 7, "cosine")
    assert old["version"] == 0, "the old content stays as it was"


def test_steps_follow_one_another():
    steps = {
        ("train", 1): lambda content: {**content, "path": [*content["path"], "1 to 2"]},
        ("train", 2): lambda content: {**content, "path": [*content["path"], "2 to 3"]},
    }
    content = upgrade({"kind": "train", "version": 1, "path": []}, newest={"train": 3}, upgrades=steps)
    assert content == {"kind": "train", "version": 3, "path": ["1 to 2", "2 to 3"]}


def test_a_newer_version_says_what_this_release_knows():
    with pytest.raises(SpecError) as caught:
        parse_spec({"kind": "train", "version": 2, "something": "new"})
    assert str(caught.value) == (
        "The `train` spec is of version 2; this release of Ziggurat knows version 1 and older. "
        "Use a newer release of Ziggurat."
    )


def test_a_version_that_no_step_leaves_is_refused():
    with pytest.raises(SpecError, match=r"^A `train` spec of version 0 cannot be read any more\."):
        parse_spec({"kind": "train", "version": 0})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({}, "The spec does not say its `kind`. Known: `train`, `dataset`, `evaluate`, `infer`, `program`, `embed`."),
        (
            {"kind": "trian"},
            "`trian` is not a kind of job that this release knows. Did you mean `train`?",
        ),
        ({"kind": "train", "version": "new"}, "`version` is new; it must be a whole number from 0 on"),
        ({"kind": "train", "version": True}, "`version` is True; it must be a whole number from 0 on"),
    ],
)
def test_kind_and_version_are_checked_first(content, text):
    with pytest.raises(SpecError) as caught:
        parse_spec(content)
    assert str(caught.value).startswith(text)


def test_a_spec_without_version_is_of_the_first():
    assert parse_spec({"kind": "train", "network": "mlp", "data": "digits"}).version == 1
    assert parse_spec({"kind": "dataset", "source": "pictures"}).version == 1
    assert parse_spec({"kind": "evaluate", "model": "job"}).version == 1
    assert parse_spec({"kind": "infer", "model": "job", "source": "pictures"}).version == 1
    assert parse_spec({"kind": "embed", "dataset": "pets"}).version == 1
    kinds = {
        "train": TrainSpec,
        "dataset": DatasetSpec,
        "evaluate": EvaluateSpec,
        "infer": InferSpec,
        "program": ProgramSpec,
        "embed": EmbedSpec,
    }
    assert kinds == SPEC_KINDS
