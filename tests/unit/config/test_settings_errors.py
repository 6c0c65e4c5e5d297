"""A wrong setting is answered by rule, what came, where it stands, and what to do."""

import pytest

from ziggurat.errors import SettingsError
from ziggurat.settings import load_settings


def error_of(variables, **options):
    with pytest.raises(SettingsError) as caught:
        load_settings(variables, **options)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_a_wrong_value_names_its_variable():
    assert error_of({"ZIGGURAT_COLOR": "allways"}) == (
        "The setting `color` must be `auto`, `always` or `never` (received: 'allways' from ZIGGURAT_COLOR). "
        "Did you mean `always`? Whether text is colored; `auto` colors a terminal."
    )


def test_a_wrong_value_names_its_flag():
    assert "must be `true` or `false` (received: 'maybe' from --debug)." in error_of({}, flags={"debug": "maybe"})
    assert "The setting `workspace` must be a path (received: '' from --workspace)." in error_of(
        {}, flags={"workspace": ""}
    )


def test_a_wrong_value_names_its_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("log_level = 3\n")
    assert f"received: 3 from {file})." in error_of({}, file=file)


def test_a_mistyped_key_names_the_nearest(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('colour = "never"\n')
    text = error_of({}, file=file)
    assert text.startswith(
        f"`colour` in {file} is not a setting of this release. Did you mean `color`? Known: workspace,"
    )


def test_a_mistyped_variable_names_the_nearest():
    text = error_of({"ZIGGURAT_COLR": "never"})
    assert text.startswith(
        "The environment variable `ZIGGURAT_COLR` is not a setting of this release. Did you mean `ZIGGURAT_COLOR`? "
        "Known: ZIGGURAT_WORKSPACE, "
    )


def test_a_file_that_was_asked_for_must_be_there(tmp_path):
    text = error_of({"ZIGGURAT_SETTINGS": str(tmp_path / "gone.toml")})
    assert text.startswith(f"The settings file {tmp_path / 'gone.toml'} must exist.")


def test_a_file_that_is_no_toml_is_named(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("color = \n")
    text = error_of({}, file=file)
    assert text.startswith(f"The settings file {file} is not readable TOML: Invalid value (at line 1, column")
