"""The page on fine-tuning tells the preset as the page for a new model and the command line have it."""

import json
import re
from pathlib import Path

from ziggurat.specs import TrainSpec, assign, describe_fields, parse_spec
from ziggurat.workspace.fine_tuning import fine_tune_fields

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "fine-tune-and-freeze.md"


def test_the_spec_on_the_page_is_the_preset() -> None:
    (text,) = re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shown = json.loads(text)
    built = {name: shown[name] for name in ("kind", "network", "data", "pretrained")}
    fields = {field.path: field for field in describe_fields(TrainSpec)}
    for path, value in fine_tune_fields("momentum").items():
        assign(built, path, value, fields)
    assert parse_spec({"version": 1, **shown}) == parse_spec({"version": 1, **built})


def test_the_table_on_the_page_has_the_values_of_the_preset() -> None:
    rows = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]+?) \|", PAGE.read_text(), re.MULTILINE))
    preset = fine_tune_fields("momentum")
    for path, value in preset.items():
        name = path.removesuffix(".policy")
        assert rows[name].partition(";")[0].strip("`") == str(value)
    assert f"; {fine_tune_fields('adam')['learning_rate']:g} for Adam" in rows["learning_rate"]
