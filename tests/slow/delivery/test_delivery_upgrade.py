"""The commands of "Upgrade and back up", on workspaces of earlier releases."""

import json
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the extra `studio` is not installed")

from tests.old_workspaces import RELEASES, unpack

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "upgrade-and-back-up.md"
ZIGGURAT = Path(sys.executable).with_name("ziggurat")


def commands(heading):
    """Return the shell block below a heading of the page."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2]
    return re.search(r"```shell\n(.+?)```", section, re.DOTALL)[1]


class Home:
    """A home folder with the commands that the page uses; ``pip`` notes what it is asked for."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        tools = folder / "tools"
        tools.mkdir(parents=True)
        (tools / "ziggurat").symlink_to(ZIGGURAT)
        (tools / "pip").write_text('#!/bin/sh\necho "$@" >> pip.txt\n')
        (tools / "pip").chmod(0o755)
        self.variables = {"HOME": str(folder), "PATH": f"{tools}:/usr/bin:/bin", "ZIGGURAT_PORT": str(port)}

    def run(self, text):
        # `doctor` says by its exit code that this machine lacks something, which is not what is tested.
        command = [
            "bash",
            "-euo",
            "pipefail",
            "-c",
            text.replace("ziggurat doctor", "ziggurat doctor || test $? -eq 1"),
        ]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def states(self):
        jobs = json.loads(self.run("ziggurat job list --limit 1000 --json"))
        return {job["id"]: job["state"] for job in (jobs if isinstance(jobs, list) else jobs["jobs"])}


@pytest.mark.nightly
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.timeout(600)
def test_an_old_workspace_is_backed_up_upgraded_restored(release, tmp_path):
    home = Home(tmp_path / "home")
    old = unpack(release, tmp_path)
    old.folder.rename(home.folder / "ziggurat")
    secret = home.folder / "ziggurat" / "secrets" / "notifications.json"
    secret.parent.mkdir()
    secret.write_text("{}")
    states = {job_id: job["state"] for job_id, job in old.jobs.items()}
    backup = commands("Back up")
    # The old release is not installed here: its studio is not running, which `down` says by its exit code.
    home.run("\n".join(line for line in backup.splitlines() if line.startswith("tar")))
    assert "notifications.json" not in home.run("tar -tzf ziggurat-backup.tar.gz")

    home.run(commands("Upgrade").replace("ziggurat down", "ziggurat down || true"))
    try:
        assert (home.folder / "pip.txt").read_text() == "install --upgrade ziggurat[studio]\n"
        assert home.states() == states
        home.run(f"ziggurat job delete {next(iter(states))} --force || true")

        home.run(commands("Restore"))
        assert home.states() == states
        home.run(backup)
        assert home.states() == states
    finally:
        home.run("ziggurat down")
