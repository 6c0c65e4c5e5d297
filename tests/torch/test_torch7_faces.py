"""Import of a network of Torch from the shell, over REST and in a training: files, report, errors with their line."""

import asyncio
import json
import subprocess
import sys

import httpx
import numpy as np
import pytest

from tests.torch7_files import GRAY, t7
from tests.unit.studio_samples import make_empty_workspace, studio_in_copy
from tests.unit.torch7.test_torch7_t7 import saved_lenet
from ziggurat.api.app import create_app
from ziggurat.compat.caffe.importing import ImportOptions, write_folder
from ziggurat.compat.caffe.sources import ImportFiles
from ziggurat.compat.torch7.importing import convert_torch
from ziggurat.settings import load_settings
from ziggurat.specs import parse_spec
from ziggurat.worker.build import data_of, load_backend, program_request
from ziggurat.workspace.weights import NewWeights
from ziggurat.workspace.workspace import open_folders

pytestmark = pytest.mark.torch
pytest.importorskip("lupa")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "model.lua").write_text(GRAY)
    (folder / "labels.txt").write_text("\n".join("abcdefghij"))
    (folder / "snapshot_3_Model.t7").write_bytes(t7(saved_lenet()[0]))
    (folder / "info.json").write_text(json.dumps({"framework": "torch", "snapshot file": "snapshot_3_Model.t7"}))
    return folder


def ziggurat(*words):
    return subprocess.run(
        [sys.executable, "-m", "ziggurat", *map(str, words)], capture_output=True, text=True, check=False, timeout=120
    )


def test_a_download_of_digits_is_imported_and_trained(files, tmp_path):
    (files / "model.lua").write_text(GRAY.replace("fineTuneHook", "unused"))
    out = tmp_path / "new"
    done = ziggurat("model", "import", files, "--input", "1x8x8", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "The network file gives the same as Torch: largest difference" in done.stdout
    names = ["labels.txt", "network.py", "report.json", "train.json", "weights.safetensors"]
    assert sorted(each.name for each in out.iterdir()) == names
    report = json.loads((out / "report.json").read_text())
    assert report["tool"] == "Torch"
    assert report["weights"]["file"] == "snapshot_3_Model.t7"
    spec = parse_spec(
        json.loads((out / "train.json").read_text()) | {"data": "digits", "learning_rate": 0.05}, source="the test"
    )
    assert spec.batch_size == 64
    backend = load_backend("torch")
    program = backend.build(program_request(spec, data_of(spec), backend, []))
    source = np.random.default_rng(0)
    labels = np.arange(32) % 2
    images = source.uniform(0, 60, (32, 8, 8, 1)).astype(np.float32)
    images[labels == 1, :4] += 190
    costs = [float(program.step((images, labels), ["cost"])["cost"]) for _ in range(80)]
    program.close()
    assert costs[0] > 2
    assert costs[-1] < 0.3


def test_a_fine_tuning_starts_from_the_weights_of_torch(files, tmp_path):
    saved, arrays = saved_lenet()
    (files / "snapshot_3_Model.t7").write_bytes(t7(saved))
    imported = ImportFiles(network=files / "model.lua", weights=files / "snapshot_3_Model.t7")
    conversion = convert_torch(imported, ImportOptions(shape=(1, 8, 8), color="RGB"), classes=10)
    write_folder(conversion, tmp_path / "new", {})
    settings = load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})
    weights = open_folders(settings).weights
    weights.add(tmp_path / "new" / "weights.safetensors", NewWeights(name="old"))
    content = json.loads((tmp_path / "new" / "train.json").read_text())
    content |= {"data": "digits", "pretrained": "weights:old", "learning_rate": 0.01}
    spec = parse_spec(content, source="the test")
    backend = load_backend("torch")
    program = backend.build(program_request(spec, data_of(spec), backend, [weights.folder.path]))
    first = program.state()
    for name, array in zip(("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight"), arrays):
        np.testing.assert_array_equal(first[f"model/{name}"], array.astype(np.float32))
    assert first["model/fc2.weight"].shape == (10, 500)  # of the hook: a new last layer, for the classes of the data
    source = np.random.default_rng(0)
    program.step((source.uniform(0, 255, (32, 8, 8, 1)).astype(np.float32), np.arange(32) % 10), [])
    second = program.state()
    program.close()
    np.testing.assert_array_equal(second["model/conv1.weight"], first["model/conv1.weight"])  # frozen by the hook
    assert np.abs(second["model/conv2.weight"] - first["model/conv2.weight"]).max() > 0


def test_the_command_names_the_line_of_an_error(files, tmp_path):
    (files / "model.lua").write_text(GRAY.replace("lib.ReLU", "lib.Rellu"))
    done = ziggurat("model", "import", files / "model.lua", "--input", "1x8x8", "--out", tmp_path / "n", "--json")
    assert done.returncode == 4
    error = json.loads(done.stdout)
    assert error["error"] == "torch7"
    assert error["rule"] == "Line 20: `Rellu` is not a function or module that an import knows."
    assert error["details"] == {"line": 20}
    assert not (tmp_path / "n").exists()


def post(studio, content):
    async def ask():
        transport = httpx.ASGITransport(create_app(studio), client=("127.0.0.1", 40000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000", timeout=120) as client:
            return await client.post("/api/v1/imports/torch", json=content)

    return asyncio.run(ask())


def test_rest_converts_a_text_and_keeps_its_weights(files, tmp_path):
    with studio_in_copy(make_empty_workspace(tmp_path / "empty"), tmp_path / "copy") as studio:
        studio.paths.allow(str(files))
        weights = str(files / "snapshot_3_Model.t7")
        given = {"text": GRAY, "weights": weights, "labels": str(files / "labels.txt"), "input": "1x8x8", "name": "old"}
        found = post(studio, given)
        assert found.status_code == 200, found.text
        assert found.json()["parity"]["holds"]
        assert found.json()["pretrained"] == "weights:old"
        assert studio.weights.get("old").classes == tuple("abcdefghij")
        wrong = post(studio, {"text": "return nn.Nope()"})
        assert wrong.status_code == 422
        assert "Line 1: `Nope`" in wrong.json()["message"]
        outside = post(studio, {"text": GRAY, "weights": "/etc/hostname"})
        assert "allowed" in outside.json()["message"]
