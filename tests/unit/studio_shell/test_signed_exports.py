"""Exports of jobs in a workspace are signed by its key; the process that writes them never gets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ziggurat.serving.manifest import check_export
from ziggurat.settings import load_settings
from ziggurat.workspace.signing_keys import SigningKeys
from ziggurat.workspace.tasks import Tasks

pytest.importorskip("cryptography", reason="cryptography is not installed")

EXPORTS = """
import json, sys
from pathlib import Path
from ziggurat.serving.manifest import write_manifest
out = Path(json.load(sys.stdin)["out"])
out.mkdir()
(out / "model.onnx").write_text("model")
write_manifest(out, {"job": "lenet"})
print(json.dumps({"out": str(out), "files": ["export-manifest.json", "model.onnx"]}))
"""


def job_folder(workspace: Path) -> Path:
    folder = workspace / "jobs" / "lenet"
    folder.mkdir(parents=True)
    (folder / "spec.json").write_text("{}")
    (folder / "events.jsonl").write_text("")
    return folder


def exported(folder: Path, workspace: Path, out: Path) -> dict[str, object]:
    settings = load_settings({}, flags={"workspace": str(workspace)})
    return Tasks(settings, command=(sys.executable, "-c", EXPORTS)).export(folder, "onnx", out)


def test_an_export_of_a_workspace_is_signed_by_its_key(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"

    found = exported(job_folder(workspace), workspace, tmp_path / "out")

    keys = SigningKeys(workspace)
    assert found["signed_by"] == keys.fingerprint
    assert found["files"] == ["export-manifest.json", "model.onnx", "signature.json"]
    assert check_export(tmp_path / "out", keys.known()).is_known


def test_a_workspace_elsewhere_signs_by_its_own_key(tmp_path: Path) -> None:
    other = tmp_path / "other"
    folder = job_folder(other)
    (other / "place.json").write_text("{}")

    found = exported(folder, tmp_path / "workspace", tmp_path / "out")

    assert found["signed_by"] == SigningKeys(other).fingerprint != ""
    assert not (tmp_path / "workspace").exists()


def test_an_export_outside_of_a_workspace_says_so(tmp_path: Path) -> None:
    folder = job_folder(tmp_path / "else")

    found = exported(folder, tmp_path / "workspace", tmp_path / "out")

    assert (found["signed_by"], found["unsigned"]) == ("", "The job lies in no workspace, so there is no key.")
    assert not (tmp_path / "else" / "keys").exists()
    assert check_export(tmp_path / "out", []).fingerprint == ""
