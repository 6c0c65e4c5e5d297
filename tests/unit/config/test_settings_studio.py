"""Where a studio is, and with what it is opened: settings as others, but for secrets, which nothing shows."""

import json

import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.main import main
from ziggurat.errors import SettingsError
from ziggurat.settings import Secret, child_environment, describe_settings, load_settings

ADDRESS = "postgresql://anna:pass%40word@db.example.org/studio?sslmode=require"
SECRETS = {"ZIGGURAT_TOKEN": "zig_secret", "ZIGGURAT_DATABASE": ADDRESS}
VARIABLES = {"ZIGGURAT_SERVER": "https://studio.example.org", "ZIGGURAT_HOST": "0.0.0.0", "ZIGGURAT_PORT": "5001"}


def test_they_come_from_variables():
    settings = load_settings(VARIABLES | SECRETS)
    assert (settings.server, settings.host, settings.port) == ("https://studio.example.org", "0.0.0.0", 5001)
    assert (settings.token.value, settings.database.value) == ("zig_secret", ADDRESS)
    assert settings.origins["port"] == "ZIGGURAT_PORT"


def test_they_come_from_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('server = "http://a:1"\ntoken = "zig_x"\nport = 0\nhost = "::1"\ndatabase = "studio.db"\n')
    settings = load_settings({}, file=file)
    assert (settings.server, settings.token, settings.port) == ("http://a:1", Secret("zig_x"), 0)
    assert (settings.host, settings.database.value) == ("::1", "studio.db")


def test_without_them_there_are_defaults():
    settings = load_settings({})
    assert (settings.server, settings.host, settings.port) == ("", "127.0.0.1", 5000)
    assert not settings.token
    assert not settings.database


def test_flags_of_one_verb_are_named_with_it():
    flags = {each.name: each.flag for each in describe_settings()}
    assert (flags["server"], flags["port"], flags["database"]) == ("--server", "up --port", "up --database")


@pytest.mark.parametrize("value", ["65536", "-1", "x", "5000.0", "", "٣"])
def test_a_port_is_a_whole_number(value):
    with pytest.raises(
        SettingsError, match=r"`port` must be a whole number from 0 to 65535 \(received: .* ZIGGURAT_PORT"
    ):
        load_settings({"ZIGGURAT_PORT": value})


@pytest.mark.parametrize("text", ["5", "true", "[1]"])
def test_a_port_in_a_file_is_no_truth_and_a_token_no_number(tmp_path, text):
    file = tmp_path / "mine.toml"
    file.write_text(f"token = {text}\n")
    with pytest.raises(SettingsError, match=r"`token` must be a text \(received: something else from"):
        load_settings({}, file=file)
    file.write_text("port = true\n")
    with pytest.raises(SettingsError, match="whole number"):
        load_settings({}, file=file)


@pytest.mark.parametrize(("name", "nearest"), [("TOKE", "TOKEN"), ("SERVR", "SERVER"), ("DATABASES", "DATABASE")])
def test_a_mistyped_variable_names_the_nearest_without_value(name, nearest):
    with pytest.raises(SettingsError, match=f"Did you mean `ZIGGURAT_{nearest}`") as caught:
        load_settings({f"ZIGGURAT_{name}": "zig_secret"})
    assert "zig_secret" not in str(caught.value)


def test_a_secret_is_not_shown():
    settings = load_settings(SECRETS)
    for text in (repr(settings), str(settings), f"{settings.token} {settings.database!r}"):
        assert "zig_secret" not in text
        assert "pass" not in text
    assert str(settings.token) == "***"
    assert str(settings.database) == "postgresql://anna:***@db.example.org/studio?sslmode=require"
    assert str(Secret("postgresql://anna:p@ss:/w@host/db")) == "postgresql://anna:***@host/db"
    assert str(Secret("")) == ""


def test_the_shell_shows_settings_without_secrets(capfd, monkeypatch, tmp_path):
    for name, value in {**VARIABLES, **SECRETS, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    assert main(["settings", "show"], Application()) == 0
    text = capfd.readouterr().out
    assert main(["settings", "show", "--json"], Application()) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert "zig_secret" not in text + out + err
    assert "pass" not in text + out + err
    assert (found["port"]["value"], found["token"]["value"]) == (5001, "***")
    assert found["token"]["origin"] == "ZIGGURAT_TOKEN"


def test_workers_get_no_secret_and_a_server_gets_all():
    settings = load_settings(VARIABLES | SECRETS)
    worker = child_environment(settings, VARIABLES | SECRETS)
    assert worker == VARIABLES
    assert child_environment(settings, {}, with_secrets=True) == VARIABLES | SECRETS


def test_a_token_goes_to_its_own_studio_alone():
    settings = load_settings(VARIABLES | SECRETS)
    assert settings.token_for("https://studio.example.org/") == "zig_secret"
    assert settings.token_for("https://other.example.org") == ""
    assert load_settings(SECRETS).token_for("https://other.example.org") == "zig_secret"
