"""``doctor`` starts a process for each backend, and looks at what is installed."""

import json
import platform
import re
import subprocess
import sys

import pytest


@pytest.mark.nightly
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


@pytest.mark.nightly
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
    rule = "The entry point `undescribed` of `ziggurat.backends` must stand for a `BackendInfo` (received: "
    assert found["undescribed"]["advice"].startswith(rule)
    assert (found["torch"]["level"], found["torch"]["text"][:7]) == ("ok", "works (")


@pytest.mark.nightly
def test_people_read_findings_of_doctor_without_a_workspace(ziggurat, monkeypatch):
    monkeypatch.setenv("HOME", "/nowhere")
    lines = ziggurat("doctor").out.splitlines()
    assert lines[0].startswith(f"python     ok       Python: {platform.python_version()} at ")
    (folder,) = [line for line in lines if line.startswith("workspace ") and " folder: " in line]
    assert folder.split()[1] in ("ok", "problem")
    assert "/nowhere/ziggurat" in folder
