"""Saved items and instant checks of code from a program."""

from __future__ import annotations

import pytest

from tests.unit.weights.weight_samples import weights_file
from ziggurat.errors import UsageError


def test_items_are_saved_listed_and_deleted(client):
    saved = client.saved.put("preset", "mine/first", {"page": "new-model", "fields": []})
    assert (saved["kind"], saved["name"]) == ("preset", "mine/first")
    assert [each["name"] for each in client.saved.all("preset")] == ["mine/first"]
    client.saved.delete("preset", "mine/first")
    assert client.saved.all("preset") == []
    with pytest.raises(UsageError, match="no saved preset"):
        client.saved.delete("preset", "mine/first")


def test_what_is_deleted_is_restored_and_removed(client, tmp_path):
    client.empty_trash()  # of other tests
    client.saved.put("view", "mine/first", {"query": "q=x"})
    client.weights.add(weights_file(tmp_path), name="mine")
    assert client.trash() == []  # the upload of the weights is no use to anybody
    (tmp_path / "list.txt").write_text("a.png 0")
    source = client.datasets.upload(tmp_path / "list.txt")
    (upload,) = (each for each in client.datasets.uploads() if each["source"] == source)
    for _ in range(2):
        client.saved.delete("view", "mine/first")
        client.weights.remove("mine")
        client.datasets.delete_upload(upload["id"])
        assert {each["kind"] for each in client.trash()} == {"view", "weights", "upload"}
        assert client.saved.restore("view", "mine/first")["content"] == {"query": "q=x"}
        assert client.weights.restore("mine")["name"] == "mine"
        assert client.datasets.restore_upload(upload["id"]) == upload
    client.saved.delete("view", "mine/first")
    client.weights.remove("mine")
    client.datasets.delete_upload(upload["id"], forever=True)
    client.weights.remove("mine", forever=True)
    assert len(client.empty_trash()) == 1
    assert client.trash() == client.saved.all("view") == []
    assert upload not in client.datasets.uploads()


def test_mistakes_in_code_are_listed(client):
    (found,) = client.models.check("class UserModel(Tower)\n")
    assert (found["line"], found["level"]) == (1, "error")
    assert client.models.check("x = 1\n", backend="null") == []
