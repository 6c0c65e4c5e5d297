"""A server follows aliases to versions that pass their self-test, and to no others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.exported_model import make_export
from tests.unit.serving.conftest import Serve
from tests.waiting import wait_until
from ziggurat.errors import (
    ChangedExportError,
    ConfigurationError,
    DataError,
    MissingEntryError,
    UnknownNameError,
    UnknownSignerError,
    UnsignedExportError,
    UsageError,
)
from ziggurat.serving.manifest import sign_export, write_manifest
from ziggurat.serving.versions import ModelVersions

ROW = {"rows": [[1.0, 2.0]]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with three versions of a model; the third one fails its self-test."""
    versions = ModelVersions(tmp_path / "workspace")
    for number, bias in ((1, 0.0), (2, 0.0), (3, 0.5)):
        versions.add("animal", make_export(tmp_path / str(number), seed=number, kind="table", bias=bias))
    return tmp_path / "workspace"


def test_versions_and_aliases(workspace: Path) -> None:
    versions = ModelVersions(workspace)
    assert versions.names() == ["animal"]
    assert [each.version for each in versions.versions("animal")] == [1, 2, 3]
    assert versions.aliases("animal") == {"champion": 1}
    assert versions.resolve("animal").version == 1

    versions.set_alias("animal", "candidate", 3)

    assert [versions.resolve("animal", which).version for which in ("candidate", "2")] == [3, 2]
    versions.set_alias("animal", "champion", None)
    assert versions.resolve("animal").version == 3  # the newest
    for which in ("4", "best", "٣", "1" * 30):
        with pytest.raises(UnknownNameError):
            versions.resolve("animal", which)
    with pytest.raises(MissingEntryError):
        versions.set_alias("animal", "none", None)
    for name in ("", "..", "a/b", "a b"):
        with pytest.raises(ConfigurationError):
            versions.add(name, workspace.parent / "1")
    for alias in ("", "3", "a/b"):
        with pytest.raises(ConfigurationError):
            versions.set_alias("animal", alias, 1)


def test_a_server_follows_its_alias(workspace: Path, serve: Serve) -> None:
    client = serve("animal", workspace=workspace)
    first = client.post("/predict", json=ROW).json()
    assert first["version"] == "1"

    ModelVersions(workspace).set_alias("animal", "champion", 2)

    wait_until(lambda: client.get("/").json()["models"][0]["version"] == "2", what="it answers by version 2")
    second = client.post("/predict", json=ROW).json()
    assert second["version"] == "2"
    assert second["predictions"] != first["predictions"]


def test_a_version_that_fails_its_test_is_not_switched_to(workspace: Path, serve: Serve) -> None:
    client = serve("animal:champion", workspace=workspace)

    ModelVersions(workspace).set_alias("animal", "champion", 3)

    wait_until(lambda: bool(client.get("/").json()["models"][0]["refused"]), what="it refused version 3")
    about = client.get("/").json()["models"][0]
    assert about["version"] == "1"
    assert "of the self-test differs by" in about["refused"]
    assert client.post("/predict", json=ROW).json()["version"] == "1"
    ModelVersions(workspace).set_alias("animal", "champion", 2)
    wait_until(lambda: client.get("/").json()["models"][0]["version"] == "2", what="it answers by version 2")
    assert client.get("/").json()["models"][0]["refused"] == ""


def test_a_version_that_was_changed_is_not_switched_to(workspace: Path, serve: Serve) -> None:
    client = serve("animal", workspace=workspace)
    with (workspace / "models/animal/2/model.onnx").open("r+b") as file:
        file.write(b"\x00")

    ModelVersions(workspace).set_alias("animal", "champion", 2)

    wait_until(lambda: bool(client.get("/").json()["models"][0]["refused"]), what="it refused version 2")
    assert "The export was changed: model.onnx (received: " in client.get("/").json()["models"][0]["refused"]
    assert client.post("/predict", json=ROW).json()["version"] == "1"


def test_a_pinned_version_stays(workspace: Path, serve: Serve) -> None:
    client = serve("animal:2", workspace=workspace)

    assert client.post("/predict", json=ROW).json()["version"] == "2"
    assert client.get("/").json()["models"][0]["follows"] == "version 2"


def test_a_first_version_that_fails_is_an_error_of_the_start(workspace: Path, serve: Serve) -> None:
    with pytest.raises(DataError, match=r"Sample \d+ of the self-test differs by [\d.]+; allowed is 0.001"):
        serve("animal:3", workspace=workspace)


def test_a_changed_export_is_refused(exports: Path, serve: Serve, tmp_path: Path) -> None:
    for name in ("model.onnx", "self-test.npz", "labels.txt", "preprocessing.json"):
        folder = tmp_path / name
        shutil.copytree(exports / "rows", folder)
        content = bytearray((folder / name).read_bytes())
        content[-1] ^= 1
        (folder / name).write_bytes(bytes(content))
        with pytest.raises(ChangedExportError, match=f"The export was changed: {name}"):
            serve(folder)


def test_what_is_no_model_is_refused(exports: Path, serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        serve(tmp_path / "none")
    (tmp_path / "model.onnx").touch()
    with pytest.raises(UsageError, match="` is a file"):
        serve(tmp_path / "model.onnx")
    rule = "`animals` is neither the folder of an export nor a model of the workspace. Export one by `ziggurat export"
    with pytest.raises(UsageError, match=rule):
        serve("animals")
    with pytest.raises(UsageError, match="names no model"):
        serve(":champion")
    with pytest.raises(ConfigurationError, match="has no manifest"):
        serve(tmp_path)
    with pytest.raises(UsageError, match="Two models have the name"):
        serve(exports / "rows", exports / "rows")


def test_any_error_of_the_start_ends_it(exports: Path, serve: Serve, tmp_path: Path) -> None:
    folder = tmp_path / "rows"
    shutil.copytree(exports / "rows", folder)
    content = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**content, "input": {}}))  # as a stranger's program might write it
    write_manifest(folder, {})

    with pytest.raises(KeyError, match="shape"):
        serve(folder)


def test_only_what_a_key_signed_is_served_if_a_key_is_given(exports: Path, serve: Serve, tmp_path: Path) -> None:
    ed25519 = pytest.importorskip(
        "cryptography.hazmat.primitives.asymmetric.ed25519", reason="cryptography is not installed"
    )
    ours, theirs = (ed25519.Ed25519PrivateKey.generate() for _ in range(2))
    folder = tmp_path / "signed"
    shutil.copytree(exports / "rows", folder)
    with pytest.raises(UnsignedExportError):
        serve(folder, keys=[ours.public_key()])
    sign_export(folder, theirs)
    with pytest.raises(UnknownSignerError):
        serve(folder, keys=[ours.public_key()])
    assert serve(folder, keys=[theirs.public_key()]).post("/predict", json=ROW).status_code == 200
