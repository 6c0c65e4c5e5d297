"""The verbs about this installation: settings, plugins, doctor, completion, version."""

import json
import platform
import re
import subprocess
import sys

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


def test_doctor_looks_at_everything_and_says_how_to_mend(ziggurat, tmp_path):
    answer = ziggurat("--workspace", tmp_path, "doctor", "--json")
    findings = {(each["section"], each["name"]): each for each in answer.content}
    assert findings["python", "Python"]["level"] == "ok"
    assert findings["packages", "numpy"]["level"] == "ok"
    assert re.match(r"\d+\.\d", findings["packages", "numpy"]["text"])
    assert findings["workspace", "folder"]["text"].startswith(f"{tmp_path}, ")
    assert {"processor", "memory", "GPUs"} <= {name for section, name in findings if section == "machine"}
    extras = [each for each in answer.content if each["section"] == "extras"]
    assert {each["name"] for each in extras} >= {"tensorflow", "torch", "samples"}
    for each in answer.content:
        assert each["level"] == "ok" or each["advice"], each
    assert answer.code == int(any(each["level"] == "problem" for each in answer.content))


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


def test_words_are_completed(ziggurat, monkeypatch, capfd):
    monkeypatch.setenv("_ZIGGURAT_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "ziggurat ch")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit) as ended:
        ziggurat()
    assert ended.value.code == 0
    assert capfd.readouterr().out == "plain,checkpoint\n"


BACKENDS = """
import os

class Works:
    def why_not(self):
        return ""

class Lacks:
    def why_not(self):
        return "Its framework is not installed. Install it."

class Crashes:
    def why_not(self):
        os._exit(7)

from ziggurat.entities.backend_info import BackendInfo

WORKS, LACKS, CRASHES, MISSING = (
    BackendInfo(title=name, backend=f"zig_three:{name}") for name in ("Works", "Lacks", "Crashes", "Missing")
)
"""


def test_doctor_asks_each_backend_in_a_process_of_its_own(tmp_path):
    information = tmp_path / "zig_three-2.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: zig-three\nVersion: 2.0\n")
    lines = [f"{name} = zig_three:{name.upper()}" for name in ("works", "lacks", "crashes", "missing")]
    lines.append("undescribed = zig_three:Works")
    (information / "entry_points.txt").write_text("[ziggurat.backends]\n" + "\n".join(lines) + "\n")
    (tmp_path / "zig_three.py").write_text(BACKENDS)
    done = subprocess.run(
        [sys.executable, "-m", "ziggurat", "doctor", "--json"],
        env={"PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = {each["name"]: each for each in json.loads(done.stdout) if each["section"] == "backends"}
    assert (found["works"]["level"], found["works"]["text"]) == ("ok", "works (zig-three 2.0)")
    assert found["lacks"]["level"] == "note"
    assert found["lacks"]["advice"] == "Its framework is not installed. Install it."
    assert "ended the process that loaded it (exit code 7)" in found["crashes"]["advice"]
    assert "module 'zig_three' has no attribute 'Missing'" in found["missing"]["advice"]
    rule = "The entry point `undescribed` of `ziggurat.backends` must stand for a `BackendInfo`."
    assert found["undescribed"]["advice"].startswith(rule)
    assert found["torch"]["advice"].startswith("The backend `torch` is not available.")


def test_people_read_what_doctor_finds_line_by_line_and_a_workspace_need_not_be_there(ziggurat, monkeypatch):
    monkeypatch.setenv("HOME", "/nowhere")
    lines = ziggurat("doctor").out.splitlines()
    assert lines[0].startswith(f"python     ok       Python: {platform.python_version()} at ")
    (folder,) = [line for line in lines if line.startswith("workspace ") and " folder: " in line]
    assert folder.split()[1] in ("ok", "problem")
    assert "/nowhere/ziggurat" in folder
