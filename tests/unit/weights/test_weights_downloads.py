"""Downloads of a studio in the background: one at a time, with progress, canceled, failed, begun again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.unit.weights.weight_samples import weights_file
from tests.unit.weights.weight_server import WeightServer, entry_of, serving
from tests.waiting import wait_until
from ziggurat.errors import MissingEntryError, UnknownNameError, UsageError
from ziggurat.settings import load_settings
from ziggurat.workspace.studio.weights_downloads import WeightsDownloads
from ziggurat.workspace.weights import Weights
from ziggurat.workspace.workspace import open_folders


@pytest.fixture
def server() -> Iterator[WeightServer]:
    with serving() as made:
        yield made


@pytest.fixture
def weights(server, tmp_path) -> Weights:
    """Return the weights of a workspace whose download list has two entries."""
    content = weights_file(tmp_path, "served.safetensors").read_bytes()
    first = entry_of(server, content, name="first", preprocessing={"color": "RGB"})
    second = entry_of(server, content, name="second")
    settings = load_settings({"ZIGGURAT_WORKSPACE": str(tmp_path / "workspace"), "HOME": str(tmp_path)})
    workspace = open_folders(settings)
    return Weights(settings, workspace.tasks, workspace.jobs, public=[first, second])


@pytest.fixture
def downloads(weights) -> Iterator[WeightsDownloads]:
    told: list[None] = []
    made = WeightsDownloads(weights, lambda: told.append(None), lambda: 7.0)
    yield made
    made.close()
    assert told


def test_a_download_becomes_an_entry(weights, downloads, server):
    asked = downloads.start("first", "ann")
    assert (asked.state, asked.asked, asked.is_under_way) == ("waiting", 7.0, True)
    wait_until(lambda: not downloads.all())
    entry = weights.get("first")

    assert (entry.license, entry.network, entry.class_count) == ("MIT", "resnet18", 3)
    assert (entry.added_by, entry.source) == ("ann", server.url("/small.safetensors"))
    assert entry.preprocessing == {"color": "RGB"}
    assert entry.source_sha256 == hashlib.sha256(server.files["/small.safetensors"]).hexdigest()
    with pytest.raises(UsageError, match="There are pretrained weights of the name"):
        downloads.start("first")


def test_progress_is_told_and_the_next_one_waits(weights, downloads, server):
    server.slow.clear()
    downloads.start("first")
    downloads.start("second")
    half = wait_until(lambda: next((each for each in downloads.all() if each.received_bytes), None))
    states = [(each.name, each.state) for each in downloads.all()]

    assert states == [("first", "running"), ("second", "waiting")]
    assert half.received_bytes == half.total_bytes // 2
    assert not half.is_complete
    assert downloads.start("first") == downloads.all()[0]
    server.slow.set()
    wait_until(lambda: not downloads.all())
    assert [each.name for each in weights.all()] == ["first", "second"]


def test_a_download_is_canceled(weights, downloads, server):
    server.slow.clear()
    downloads.start("first")
    downloads.start("second")
    wait_until(lambda: downloads.all()[0].received_bytes)
    downloads.cancel("second")
    downloads.cancel("first")
    server.slow.set()
    wait_until(lambda: not downloads.all())
    assert weights.all() == []
    assert not list(weights.folder.path.glob(".partial-*"))
    with pytest.raises(MissingEntryError):
        downloads.cancel("first")


def test_a_download_that_failed_is_begun_again(weights, downloads, server):
    content = server.files.pop("/small.safetensors")
    downloads.start("first")
    failed = wait_until(lambda: next((each for each in downloads.all() if each.state == "failed"), None))
    assert "404 Not Found" in failed.error["rule"]
    server.files["/small.safetensors"] = content
    downloads.start("first")
    wait_until(lambda: not downloads.all())
    assert [each.name for each in weights.all()] == ["first"]


def test_an_unknown_entry_and_a_closing_studio_are_told(downloads):
    with pytest.raises(UnknownNameError, match="first"):
        downloads.start("third")
    downloads.start("first")
    downloads.close()
    with pytest.raises(UsageError, match="about to end"):
        downloads.start("second")
