"""`ziggurat serve` as a process: it starts light, answers, and ends by SIGTERM once its answers are out."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.exported_model import make_export
from tests.waiting import PROCESS_S, wait_until

MODULES = "import sys; from ziggurat.cli.main import main; code = main(); print(sorted(sys.modules)); sys.exit(code)"
HEAVY = ("fastapi", "pydantic", "sqlalchemy", "jinja2", "torch", "tensorflow", "cv2", "ziggurat.workspace")


@contextmanager
def served(*words: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", MODULES, "serve", *map(str, words), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            text = ""
            while not text.endswith("}\n"):
                line = process.stdout.readline()
                assert line, process.stderr.read() if process.stderr else ""
                text += line
            yield process, json.loads(text)["url"]
        finally:
            process.kill()


def ready(url: str) -> Any:
    def ask() -> bool:
        return httpx.get(f"{url}/v2/health/ready", timeout=PROCESS_S).status_code == 200

    return wait_until(ask, PROCESS_S, what="the server is ready")


@pytest.mark.smoke
def test_a_server_loads_no_framework_and_ends_gracefully(tmp_path: Path) -> None:
    folder = make_export(tmp_path / "rows", kind="table")
    with served(folder) as (process, url):
        ready(url)
        answer = httpx.post(f"{url}/predict", json={"rows": [[1, 2]]}, timeout=PROCESS_S)
        assert answer.json()["predictions"][0]["classes"], answer.text

        process.send_signal(signal.SIGTERM)
        out, errors = process.communicate(timeout=PROCESS_S)

    assert process.returncode == 0, errors
    assert "Ended by SIGTERM." in errors
    assert [name for name in HEAVY if f"'{name}'" in out] == []


def test_a_model_that_fails_its_test_ends_the_start(tmp_path: Path) -> None:
    folder = make_export(tmp_path / "rows", kind="table", bias=0.5)

    done = subprocess.run(
        [sys.executable, "-m", "ziggurat", "serve", folder, "--port", "0", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PROCESS_S,
    )

    assert done.returncode == 4
    assert "of the self-test differs by" in done.stdout
