"""A backend of another package is on every page, route and command, and trains, with no change in Ziggurat."""

import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from studio_process import StudioProcess, tiny_training

from ziggurat.client import Client
from ziggurat.errors import ZigguratError

NAME, TITLE = "numpy-again", "NumPy again"
CODE = f'''
from dataclasses import replace

from ziggurat.backends.null_info import INFO as NUMPY

INFO = replace(NUMPY, title="{TITLE}", summary="Another package brings it.", rank=100)
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an installed package, which every process from now on sees."""
    information = tmp_path / "site" / "numpy_again-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy-again\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[ziggurat.backends]\n{NAME} = numpy_again_code:INFO\n")
    (information.parent / "numpy_again_code.py").write_text(CODE)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(information.parent))
    return information.parent


@pytest.mark.nightly
def test_a_third_party_backend_is_everywhere_and_trains(package: Path, tmp_path: Path) -> None:
    studio = StudioProcess(tmp_path / "workspace")
    try:
        with Client(studio.address) as client:
            assert [each["name"] for each in client.models.networks(NAME)] == [
                "mlp",
                "linear",
                "table_mlp",
                "table_linear",
            ]
            with pytest.raises(ZigguratError, match=NAME):
                client.models.networks("numpy-agin")
            page = _page(studio.address, "/models/new")
            assert f'value="{NAME}/mlp"' in page
            assert TITLE in page
            about = _page(studio.address, "/about/frameworks")
            assert TITLE in about
            assert "Another package brings it." in about
            assert NAME in [each["backend"] for each in client.machine()["frameworks"]]

            (job,) = client.train({**tiny_training(2), "backend": NAME, "heartbeat_s": 1.0})
            client.wait(job["id"], timeout_s=120, every_s=0.2)
            done = client.job(job["id"])
            assert (done["state"], done["framework"], done["epoch"]) == ("done", NAME, 2)
            assert TITLE in _page(studio.address, f"/models/{job['id']}?tab=configuration")
    finally:
        studio.end(signal.SIGTERM)


def test_a_third_party_backend_is_listed_by_commands(package: Path) -> None:
    command = [sys.executable, "-m", "ziggurat", "plugins", "list", "backends"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert any(line.split()[1:4] == [NAME, "numpy-again", "1.0"] for line in listed.splitlines())


def _page(address: str, path: str) -> str:
    asked = urllib.request.Request(f"{address.rstrip('/')}{path}", headers={"Accept": "text/html"})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        return answer.read().decode()
