"""The verbs about this installation: settings, plugins, completion, version; ``doctor`` is in ``tests/slow``."""

import platform

import pytest

from ziggurat import __version__
from ziggurat.plugins import GROUPS, available


def test_version(ziggurat):
    assert ziggurat("version").out == f"ziggurat {__version__}\n"
    assert ziggurat("version", "--json").content == {"ziggurat": __version__, "python": platform.python_version()}


def test_settings_show_values_and_origins(ziggurat, monkeypatch, tmp_path):
    monkeypatch.setenv("ZIGGURAT_PROGRESS", "lines")
    content = ziggurat("--no-browser", "settings", "show", "--json").content
    assert content["progress"] == {"value": "lines", "origin": "ZIGGURAT_PROGRESS", "variable": "ZIGGURAT_PROGRESS"}
    assert content["browser"] == {"value": False, "origin": "--browser", "variable": "ZIGGURAT_BROWSER"}
    assert content["workspace"]["value"] == str(tmp_path / "home" / "ziggurat")
    lines = ziggurat("settings", "show").out.splitlines()
    assert lines[0].split() == ["setting", "value", "from", "variable"]
    assert ["browser", "true", "default", "ZIGGURAT_BROWSER"] in [line.split() for line in lines]


def test_a_settings_file_is_named_by_a_flag(ziggurat, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('log_level = "debug"\n')
    content = ziggurat("--settings", file, "settings", "show", "--json").content
    assert (content["log_level"]["value"], content["log_level"]["origin"]) == ("debug", str(file))


def test_plugins_list_what_is_installed(ziggurat):
    content = ziggurat("plugins", "list", "--json").content
    assert len(content) == sum(len(available(group)) for group in GROUPS)
    assert ziggurat("plugins", "list", "backends", "--json").code == 0
    wrong = ziggurat("plugins", "list", "backend")
    assert wrong.code == 3
    assert "`backend` is not a known plugin group. Did you mean `backends`?" in wrong.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_the_shell_reads(ziggurat, shell):
    answer = ziggurat("completion", shell)
    assert answer.code == 0
    assert "_ZIGGURAT_COMPLETE" in answer.out
    assert ziggurat("completion", shell, "--json").content["shell"] == shell


def test_an_unknown_shell_lists_the_known(ziggurat):
    answer = ziggurat("completion", "zhs")
    assert answer.code == 3
    assert answer.err == "Error: `zhs` is not a known shell. Did you mean `zsh`? Known: bash, fish, zsh.\n"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("ch", "plain,checkpoint\n"),
        ("train --network lene", "plain,lenet\n"),
        ("train --network ./my", "file,./my\n"),
        ("train --framework tor", "plain,torch\n"),
        ("train --optimizer adam", "plain,adam\nplain,adamw\n"),
        ("train --data dig", "plain,digits\n"),
        ("debug unet_s", "plain,unet_small\n"),
        ("job show 2", ""),  # no studio runs
    ],
)
def test_words_are_completed(ziggurat, monkeypatch, capfd, words, found):
    monkeypatch.setenv("_ZIGGURAT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"ziggurat {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
    with pytest.raises(SystemExit) as ended:
        ziggurat()
    assert ended.value.code == 0
    assert capfd.readouterr().out.strip() == found.strip()
