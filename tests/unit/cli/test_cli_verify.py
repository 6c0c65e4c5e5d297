"""`ziggurat verify` tells whether an export is intact, and who signed it; each answer has its exit code."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.exported_model import make_export
from ziggurat.cli.main import main
from ziggurat.errors import ChangedExportError
from ziggurat.serving.manifest import check_export, sign_export
from ziggurat.workspace.signing_keys import SigningKeys
from ziggurat.workspace.studio.archives import archive, files_below

pytest.importorskip("cryptography", reason="cryptography is not installed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_export(tmp_path_factory.mktemp("made") / "export")


@pytest.fixture
def export(made: Path, tmp_path: Path) -> Path:
    """A copy that a test may change, signed by the key of `WORKSPACE`."""
    folder = tmp_path / "export"
    shutil.copytree(made, folder)
    sign_export(folder, SigningKeys(tmp_path / "workspace").private())
    return folder


def verified(folder: Path, capsys: pytest.CaptureFixture[str], *more: str, workspace: str = "workspace") -> Any:
    capsys.readouterr()
    code = main(["--workspace", str(folder.parent / workspace), "verify", str(folder), "--json", *more])
    return code, json.loads(capsys.readouterr().out)


def test_an_export_of_this_workspace_is_known(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = verified(export, capsys)

    fingerprint = SigningKeys(export.parent / "workspace").fingerprint
    assert (code, found["verdict"]) == (0, f"intact; signed by {fingerprint}")
    assert found["provenance"]["dataset"] == {"id": "1" * 64, "name": "zoo"}


def test_another_workspace_does_not_know_the_key(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = verified(export, capsys, workspace="other")

    assert (code, found["verdict"]) == (13, "intact; signed by an unknown key")
    key = export.parent / "key.pem"
    key.write_text(SigningKeys(export.parent / "workspace").describe()["public_key"])
    assert verified(export, capsys, "--key", str(key), workspace="other")[0] == 0
    assert verified(export, capsys, "--key", str(export / "signature.json"), workspace="other")[0] == 0


def test_the_info_of_a_download_is_no_change(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, data in list(zipped(export)):
        (export.parent / "unpacked" / name).parent.mkdir(exist_ok=True)
        (export.parent / "unpacked" / name).write_bytes(data)

    code, _ = verified(export.parent / "unpacked", capsys)

    assert (code, (export.parent / "unpacked" / "info.json").is_file()) == (0, True)


def zipped(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the members of the archive that the studio sends."""
    with zipfile.ZipFile(io.BytesIO(b"".join(archive("zip", files_below(folder), {"job": "x"}, now=1e9)))) as packed:
        for name in packed.namelist():
            yield name, packed.read(name)


def test_an_unsigned_export_says_so(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (export / "signature.json").unlink()

    code, found = verified(export, capsys)

    assert (code, found["verdict"]) == (14, "intact; not signed")


@pytest.mark.parametrize("name", ["model.onnx", "task.json", "self-test.npz", "predict.py", "labels.txt"])
def test_one_changed_byte_is_found(export: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray((export / name).read_bytes())
    content[len(content) // 2] ^= 1
    (export / name).write_bytes(bytes(content))

    code, found = verified(export, capsys)

    assert (code, found["details"]["file"]) == (12, name)
    assert found["rule"] == f"The export was changed: {name}."


def _remove(folder: Path) -> str:
    (folder / "labels.txt").unlink()
    return "labels.txt"


def _add(folder: Path) -> str:
    (folder / "more").mkdir()
    (folder / "more" / "evil.py").write_text("")
    return "more/evil.py"


def _link(folder: Path) -> str:
    shutil.copyfile(folder / "labels.txt", folder.parent / "labels.txt")
    (folder / "labels.txt").unlink()
    (folder / "labels.txt").symlink_to(folder.parent / "labels.txt")
    return "labels.txt"


def _change_manifest(folder: Path) -> str:
    path = folder / "export-manifest.json"
    path.write_text(path.read_text().replace("animals", "AnimalS"))
    return "signature.json"


def _break_manifest(folder: Path) -> str:
    (folder / "export-manifest.json").write_text('{"files": 3}')
    return "export-manifest.json"


def _break_signature(folder: Path) -> str:
    (folder / "signature.json").write_text('{"public_key": "AA==", "signature": []}')
    return "signature.json"


@pytest.mark.parametrize("change", [_remove, _add, _link, _change_manifest, _break_manifest, _break_signature])
def test_every_other_change_is_found(export: Path, change: Any) -> None:
    name = change(export)

    with pytest.raises(ChangedExportError) as caught:
        check_export(export, [])
    assert caught.value.details["file"] == name


def test_a_folder_without_manifest_and_a_wrong_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = verified(tmp_path, capsys)
    assert (code, found["rule"].endswith("has no manifest.")) == (3, True)
    code, found = verified(tmp_path / "none", capsys)
    assert (code, found["rule"]) == (2, f"There is no folder `{tmp_path / 'none'}`.")
    (tmp_path / "model.onnx").touch()
    code, found = verified(tmp_path / "model.onnx", capsys)
    assert (code, found["rule"]) == (2, f"`{tmp_path / 'model.onnx'}` is a file.")
    (tmp_path / "key.pem").write_text("no key")
    assert verified(tmp_path, capsys, "--key", str(tmp_path / "key.pem"))[1]["rule"].endswith(
        "has no public Ed25519 key."
    )
    assert verified(tmp_path, capsys, "--key", str(tmp_path / "none.pem"))[0] == 2


def test_what_an_earlier_key_signed_stays_known(export: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = SigningKeys(export.parent / "workspace")
    before = keys.fingerprint

    after = keys.rotate()

    assert keys.fingerprint == after != before
    assert (keys.folder / "signing.pem").stat().st_mode & 0o777 == 0o600
    assert verified(export, capsys)[1]["signed_by"] == before
    assert verified(export, capsys)[0] == 0
    sign_export(export, keys.private())
    assert verified(export, capsys)[1]["signed_by"] == after
    assert sorted(path.name for path in keys.folder.iterdir()) == sorted(
        ["signing.pem", f"signing-{before}.pub.pem", f"signing-{after}.pub.pem"]
    )


def test_the_key_is_private_and_made_once(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path)
    assert keys.describe() == {"fingerprint": "", "public_key": ""}

    made = keys.private()

    assert (keys.folder / "signing.pem").stat().st_mode & 0o777 == 0o600
    assert SigningKeys(tmp_path).private().private_bytes_raw() == made.private_bytes_raw()


def test_predict_py_tests_itself(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = make_export(tmp_path / "wrong", bias=0.01)
    for folder, code, said in ((made, 0, "16 of 16"), (wrong, 1, "sample 1 differs by")):
        done = subprocess.run(
            [sys.executable, folder / "predict.py", "--self-test"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr
        check_export(folder)  # it left nothing in the folder
