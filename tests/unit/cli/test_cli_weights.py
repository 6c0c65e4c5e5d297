"""The commands of pretrained weights, from a file to a training that names them."""

from __future__ import annotations

import json

import pytest

from tests.unit.weights.weight_samples import add_entry, weights_file


@pytest.fixture
def call(ziggurat, tmp_path):
    """Call ``ziggurat`` in a workspace."""
    return lambda *words: ziggurat("--workspace", tmp_path / "workspace", *words)


def test_weights_are_added_shown_listed_and_removed(call, tmp_path):
    (tmp_path / "names.txt").write_text("cat\ndog\nhen\n")
    file = weights_file(tmp_path)
    words = ("--license", "MIT", "--network", "resnet18", "--classes", tmp_path / "names.txt", "--mean", "0.5,0.4,0.3")
    made = call("weights", "add", file, "--name", "mine", *words)
    shown = call("weights", "show", "mine")
    listed = call("weights", "list", "--json")

    assert made.code == 0, made.err
    assert "--pretrained weights:mine" in made.out
    for text in (
        "MIT",
        "resnet18",
        "3: cat, dog, hen",
        "mean 0.5, 0.4, 0.3",
        "5 arrays, 128 parameters",
        "no training",
    ):
        assert text in shown.out
    assert [(each["name"], each["reference"]) for each in listed.content] == [("mine", "weights:mine")]
    assert call("weights", "remove", "mine").code == 0
    assert call("weights", "list").out.startswith("No pretrained weights yet.")
    gone = call("weights", "show", "mine", "--json")
    assert (gone.code, gone.content["not_there"]) == (2, True)


def test_bad_files_and_names_end_with_one_error(call, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"x" * 100)
    answer = call("weights", "add", tmp_path / "bad.safetensors")
    assert answer.code == 7
    assert answer.err.startswith("Error: `weights.safetensors` is damaged, or is no file in the format safetensors: ")
    assert call("weights", "add", weights_file(tmp_path), "--sha256", "00000000").code == 7
    assert call("weights", "add", weights_file(tmp_path), "--network", "resnet19").code == 3


def test_the_download_list_is_shown_without_a_network(call):
    shown, content = call("weights", "download"), call("weights", "download", "--json").content
    assert "resnet18" in shown.out
    assert "f37072fd…" in shown.out
    (entry,) = (each for each in content if each["name"] == "resnet18")
    assert entry["url"] == "https://download.pytorch.org/models/resnet18-f37072fd.pth"
    assert not entry["is_added"]
    assert call("weights", "download", "resnet19").code == 3


def test_weights_that_come_with_ziggurat_need_no_network(call, monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    listed = call("weights", "download").out.splitlines()
    made = call("weights", "download", "convnet-fashion")
    shown, content = call("weights", "show", "convnet-fashion"), call("weights", "download", "--json").content

    (row,) = (line for line in listed if line.startswith("convnet-fashion "))
    assert "  Ziggurat  " in row
    assert (made.code, made.err) == (0, "")
    assert "--pretrained weights:convnet-fashion" in made.out
    for text in ("10: T-shirt/top, Trouser", "GRAY, 28 × 28 px", "github.com/zalandoresearch/fashion-mnist", "MIT"):
        assert text in shown.out
    assert content[0]["is_added"]
    assert call("weights", "download", "convnet-fashion").code == 2


def test_a_training_names_weights_of_the_workspace(call, tmp_path):
    add_entry(tmp_path / "workspace", classes=10)
    words = ("--network", "mlp", "--backend", "null", "--data", "digits", "--epochs", "1")
    missing = call("train", *words, "--pretrained", "weights:gone")
    made = call("train", *words, "--pretrained", "weights:small", "--name", "mine")

    assert missing.code == 2
    assert "Known: `small`" in missing.err
    assert made.code == 0, made.err
    (spec,) = (tmp_path / "workspace" / "jobs").glob("*/spec.json")
    assert json.loads(spec.read_text())["pretrained"] == "weights:small"
    assert "mine (done)" in call("weights", "show", "small").out


def test_removed_weights_come_back(call, tmp_path):
    assert call("weights", "add", weights_file(tmp_path), "--name", "mine").code == 0
    removed = call("weights", "remove", "mine")
    item_id = removed.out.split()[-1]
    assert removed.out.startswith("mine was removed. Bring it back with: ziggurat weights restore weights-")
    assert call("weights", "restore", item_id).out == "mine is back.\n"
    assert call("weights", "restore", "mine").code != 0
    call("weights", "remove", "mine")
    assert call("weights", "remove", "mine", "--forever").code == 0
    assert "no deleted weights `mine`" in call("weights", "restore", "mine").err
    assert list((tmp_path / "workspace" / ".trash").iterdir()) == []


def test_nothing_is_kept_where_the_trash_is_off(call, ziggurat, tmp_path):
    call("weights", "add", weights_file(tmp_path), "--name", "mine")
    (tmp_path / "settings.toml").write_text("trash_days = 0\n")
    words = ("--settings", tmp_path / "settings.toml", "--workspace", tmp_path / "workspace")
    assert ziggurat(*words, "weights", "remove", "mine").out == "mine was removed.\n"
    assert not (tmp_path / "workspace" / ".trash").exists()
