"""The descriptions of the built-in backends hold, and a wrong entry harms no other."""

import pytest

from ziggurat.entities.backend_info import (
    BackendInfo,
    StandardNetwork,
    backend_info,
    backend_infos,
    backend_title,
    has_capability,
    open_backend,
    open_capability,
)
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.testing import BackendInfoConformance
from ziggurat.zoo.network_task import kinds_of


class TestNullInfo(BackendInfoConformance):
    def name(self) -> str:
        return "null"


class TestTorchInfo(BackendInfoConformance):
    def name(self) -> str:
        return "torch"


def test_infos_come_by_rank() -> None:
    ranks = [info.rank for info in backend_infos().values()]
    assert ranks == sorted(ranks)
    assert [name for name in backend_infos() if name in ("null", "tensorflow", "torch")] == [
        "tensorflow",
        "torch",
        "null",
    ]


def test_titles_and_capabilities_of_the_unknown() -> None:
    assert backend_title("null") == "NumPy"
    assert backend_title("of-another-machine") == "of-another-machine"
    assert has_capability("tensorflow", "SupportsExport")
    assert not has_capability("null", "SupportsExport")
    assert not has_capability("of-another-machine", "SupportsExport")


def test_a_backend_that_is_not_installed_is_named() -> None:
    with pytest.raises(UnknownNameError, match="`nul` is not a known backend"):
        backend_info("nul")


def test_a_backend_this_version_lacks_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = BackendInfo(title="Later", unavailable="This version has no backend for it yet.")
    monkeypatch.setattr("ziggurat.entities.backend_info.load", lambda *_: missing)
    with pytest.raises(ConfigurationError) as caught:
        open_backend("later")
    assert str(caught.value) == (
        "The backend `later` is not available. This version has no backend for it yet. Use another backend."
    )


def test_a_capability_that_is_not_named_is_none() -> None:
    assert open_capability("null", "SupportsExport") is None


def test_a_network_is_found_by_name() -> None:
    network = StandardNetwork("tiny", "Tiny network")
    info = BackendInfo(title="Mine", networks=(network,))
    assert info.network("tiny") is network
    assert info.network("large") is None
    assert kinds_of(network) == ["image-classification"]


def test_the_environment_keeps_what_is_set() -> None:
    variables = {"LEVEL": "3"}
    BackendInfo(title="Mine", environment={"LEVEL": "2", "MODE": "graph"}).set_environment(variables)
    assert variables == {"LEVEL": "3", "MODE": "graph"}


def test_a_checkpoint_is_told_by_its_suffix(tmp_path) -> None:
    (tmp_path / "model.ckpt.index").write_bytes(b"")
    info = BackendInfo(title="Mine", checkpoint_suffix=".index")
    assert info.has_checkpoint(tmp_path / "model.ckpt")
    assert not info.has_checkpoint(tmp_path / "other.ckpt")
    assert not BackendInfo(title="None").has_checkpoint(tmp_path / "model.ckpt")
