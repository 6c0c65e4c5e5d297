"""A setting comes from a file, a variable or a flag, in this order, and says which."""

import io
from pathlib import Path

import pytest

from ziggurat.settings import child_environment, describe_settings, has_display, load_settings


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".config/ziggurat").mkdir(parents=True)
    return tmp_path


def test_without_anything_there_are_defaults(home):
    settings = load_settings({"HOME": str(home)})
    assert settings.workspace == home / "ziggurat"
    assert (settings.log_level, settings.color, settings.progress) == ("info", "auto", "auto")
    assert (settings.browser, settings.debug) == (True, False)
    assert set(settings.origins.values()) == {"default"}


def test_flags_win_over_variables_and_variables_over_the_file(home):
    file = home / ".config/ziggurat/settings.toml"
    file.write_text('log_level = "error"\ncolor = "never"\nprogress = "none"\nbrowser = false\n')
    settings = load_settings(
        {"HOME": str(home), "ZIGGURAT_COLOR": "always", "ZIGGURAT_PROGRESS": "bar"},
        flags={"progress": "lines", "workspace": None, "debug": True},
    )
    assert (settings.log_level, settings.color, settings.progress) == ("error", "always", "lines")
    assert (settings.browser, settings.debug) == (False, True)
    assert settings.origins == {
        "workspace": "default",
        "log_level": str(file),
        "color": "ZIGGURAT_COLOR",
        "progress": "--progress",
        "browser": str(file),
        "debug": "--debug",
        **dict.fromkeys(("server", "token", "host", "port", "database"), "default"),
        **dict.fromkeys(("picture_urls", "picture_hosts", "source_hosts", "webhook_hosts"), "default"),
        **dict.fromkeys(
            ("executor", "ray_address", "cache_gib", "slurm_options", "stop_grace_s", "kill_grace_s"), "default"
        ),
        **dict.fromkeys(("build_limit_s", "log_limit_mib", "disk_reserve_mib", "trash_days"), "default"),
        "worker_environment": "default",
    }


@pytest.mark.parametrize("place", ["flag", "variable", "XDG_CONFIG_HOME"])
def test_the_file_can_stand_elsewhere(home, place):
    file = home / "elsewhere/ziggurat/settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text('workspace = "~/jobs"\n')
    variables = {"HOME": str(home)}
    if place == "XDG_CONFIG_HOME":
        variables[place] = str(home / "elsewhere")
    if place == "variable":
        variables["ZIGGURAT_SETTINGS"] = str(file)
    settings = load_settings(variables, file=file if place == "flag" else None)
    assert settings.workspace == home / "jobs"
    assert settings.origins["workspace"] == str(file)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("off", False)])
def test_a_variable_may_say_yes_in_several_ways(text, value):
    assert load_settings({"ZIGGURAT_DEBUG": text}).debug is value


def test_color_follows_terminal_and_no_color():
    assert load_settings({}).use_color(Terminal())
    assert not load_settings({}).use_color(io.StringIO())
    assert not load_settings({"NO_COLOR": "1"}).use_color(Terminal())
    assert load_settings({"NO_COLOR": ""}).use_color(Terminal())
    assert not load_settings({"TERM": "dumb"}).use_color(Terminal())
    assert load_settings({"NO_COLOR": "1", "ZIGGURAT_COLOR": "always"}).use_color(io.StringIO())
    assert load_settings({"NO_COLOR": "1"}).origins["color"] == "NO_COLOR"


def test_a_child_gets_the_same_settings():
    settings = load_settings({"HOME": "/home/a", "NO_COLOR": "1"}, flags={"debug": True, "workspace": "/data/jobs"})
    variables = child_environment(settings, {"HOME": "/home/a", "PATH": "/bin"})
    assert variables == {
        "HOME": "/home/a",
        "PATH": "/bin",
        "ZIGGURAT_WORKSPACE": "/data/jobs",
        "ZIGGURAT_COLOR": "never",
        "ZIGGURAT_DEBUG": "true",
    }
    again = load_settings(variables)
    assert (again.workspace, again.color, again.debug) == (Path("/data/jobs"), "never", True)


def test_every_setting_is_described():
    described = {each.name: each for each in describe_settings()}
    usual = ["workspace", "log_level", "color", "progress", "browser", "debug"]
    of_the_studio = ["host", "port", "database", "picture_urls", "picture_hosts", "source_hosts", "webhook_hosts"]
    of_workers = ["executor", "ray_address", "cache_gib", "slurm_options", "stop_grace_s", "kill_grace_s"]
    of_the_queue = ["build_limit_s", "log_limit_mib", "disk_reserve_mib", "trash_days", "worker_environment"]
    assert list(described) == [*usual, "server", "token", *of_the_studio, *of_workers, *of_the_queue]
    assert all(each.help.endswith(".") for each in described.values())
    level = described["log_level"]
    assert (level.variable, level.flag) == ("ZIGGURAT_LOG_LEVEL", "--log-level")
    assert level.choices == ("debug", "info", "warning", "error")


def test_a_display_is_found():
    assert has_display({"DISPLAY": ":0"})
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"})
    assert not has_display({"DISPLAY": ""})
