"""A training as a line for a shell and as JSON makes the same spec again."""

from __future__ import annotations

import json
import shlex

import click
import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main
from ziggurat.specs import parse_spec, spec_from_flags
from ziggurat.workspace.studio.training import command_line, short_content, spec_document

_BASE = {"kind": "train", "version": 1, "network": "lenet", "data": "digits"}
_TEXT = "class UserModel:\n    'It''s \"quoted\", with $HOME, `ticks` and = signs'\n\ttab = 'ä'\n"

_SPECS = {
    "plain": {},
    "numbers": {"batch_size": 32, "learning_rate": 0.0005, "seed": 9, "shuffle": False, "gradient_clip": 2.5},
    "schedule": {"schedule": {"policy": "multistep", "at_percent": [10, 90], "warm_up_percent": 3}},
    "default policy changed": {"schedule": {"policy": "step", "gamma": 0.3}},
    "optimizer": {"optimizer": {"name": "adam", "beta_1": 0.8}, "backend": "tensorflow", "weight_decay": 1e-4},
    "pictures": {
        "preprocessing": {"size": [240, 320], "channels": 3, "crop": 224, "mean": "pixel"},
        "augmentation": {"flip": "fliplr", "rotation_deg": 10},
    },
    "lists": {"freeze": ["conv*", "a,b"], "class_weights": [1, 2.5], "devices": ["gpu:0", "gpu:1"]},
    "plugins": {"callbacks": [{"name": "plateau", "options": {"x": [1, "2"]}}, "host_memory"], "monitors": ["events"]},
    "parts": {
        "early_stopping": {"tag": "validation_error", "patience": 3},
        "checkpoints": {"keep_last": None, "keep_best": "validation_error", "every_epochs": 0.5},
        "validation": {"every_epochs": 2},
    },
    "data options": {"data": {"source": "/data/my pets", "options": {"validation_share": 0.1, "on_error": "skip"}}},
    "strange texts": {"name": "--json 'x' \"y\" $z", "pretrained": "/jobs/a=b"},
    "a name that looks like a number": {"name": "123", "pretrained": "5"},
    "spaces": {"data": {"source": " spaced ", "options": {"note": " 5 "}}, "early_stopping": {"tag": " x "}},
    "backend options": {"backend_options": {"a": {"b": [1]}, "text": "5"}},
    "network text": {"network": {"source": "file", "path": "mine.py", "text": _TEXT}},
    "network file": {"network": "nets/mine.py"},
}


@pytest.fixture(params=_SPECS, ids=list(_SPECS))
def spec(request):
    return parse_spec({**_BASE, **_SPECS[request.param]})


def test_the_line_makes_the_same_spec(spec, capfd):
    words = shlex.split(command_line(spec))
    assert words[:2] == ["ziggurat", "train"]

    code = main([*words[1:], "--dry-run"], Application())

    captured = capfd.readouterr()
    assert code == 0, captured.err
    assert parse_spec(json.loads(captured.out)) == spec


def test_json_and_what_is_left_out_of_it_make_the_same_spec(spec):
    assert parse_spec(json.loads(spec_document(spec, {}))) == spec
    assert parse_spec(json.loads(json.dumps(short_content(spec)))) == spec


def test_the_line_is_short():
    spec = parse_spec({**_BASE, "schedule": {"policy": "cosine", "warm_up_percent": 5}, "batch_size": 16})

    assert command_line(spec) == (
        "ziggurat train --network lenet --data digits --batch-size 16 --schedule cosine "
        "--set schedule.warm_up_percent=5.0"
    )
    assert spec_from_flags({"network": "lenet", "data": "digits"}) == parse_spec(_BASE)
    assert click.unstyle(command_line(parse_spec(_BASE))) == "ziggurat train --network lenet --data digits"


def test_a_sweep_is_what_the_rest_api_takes():
    spec = parse_spec(_BASE)

    body = json.loads(spec_document(spec, {"batch_size": (8, 16)}))

    assert body["sweep"] == {"batch_size": [8, 16]}
    assert parse_spec(body["spec"]) == spec
