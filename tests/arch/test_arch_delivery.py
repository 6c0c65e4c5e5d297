"""Dockerfile, compose.yaml and the unit of systemd hold together, and with the settings that they name."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.image_file import DOCKERFILE, image_environment, instructions, last, words
from tools.release import source_versions
from ziggurat.settings import Settings, load_settings

REPOSITORY = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((REPOSITORY / "compose.yaml").read_text())
UNIT = (REPOSITORY / "deploy" / "ziggurat.service").read_text()

# Of the Compose specification, what compose.yaml uses; an unknown key would be refused by Docker.
SERVICE_KEYS = {
    "build", "depends_on", "environment", "healthcheck", "image", "init", "ports", "restart", "shm_size",
    "stop_grace_period", "volumes",
}  # fmt: skip


def tool(name):
    """Return the path of a tool of this machine or environment."""
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    return found or pytest.skip(f"{name} is not installed")


def test_the_dockerfile_keeps_the_rules_of_hadolint():
    done = subprocess.run([tool("hadolint"), DOCKERFILE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_a_user_and_is_watched():
    assert int(last("USER")) == 1000
    assert f"--uid {last('USER')} " in " ".join(each.text for each in instructions() if each.name == "RUN")
    assert f":{last('EXPOSE')}/" in words(last("HEALTHCHECK"))[-1]
    assert int(last("EXPOSE")) == Settings().port
    assert words(last("CMD")) == ["ziggurat", "up"]


def test_the_image_gets_what_its_build_copies():
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    let_through = [line.removeprefix("!") for line in ignored if line.startswith("!")]
    copied = last("COPY").split()[:-1]
    assert all(any(fnmatch.fnmatch(name, pattern) for pattern in let_through) for name in copied)


@pytest.mark.parametrize(
    ("index", "words_of_pip"),
    [("", ""), ("https://packages.example/cpu", "--extra-index-url https://packages.example/cpu ")],
)
def test_an_index_may_have_other_builds_of_pytorch(index, words_of_pip, tmp_path):
    done = install(tmp_path, index)
    assert done.returncode == 0, done.stderr
    assert f"--constraint constraints.txt {words_of_pip}./ziggurat-1.0.whl[studio,torch]" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["pip"]


def install(folder, index):
    """Run the step that installs, with a pip that only prints its arguments."""
    for name in ("constraints.txt", "ziggurat-1.0.whl"):
        (folder / name).write_text("")
    (folder / "pip").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "pip").chmod(0o755)
    step = next(each.text for each in instructions() if each.name == "RUN" and "pip install" in each.text)
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "INDEX": index, "EXTRAS": "studio,torch"}
    command = [*words(last("SHELL")), step]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_compose_uses_keys_of_the_specification():
    assert set(COMPOSE) == {"services", "volumes"}
    assert {key for service in COMPOSE["services"].values() for key in service} <= SERVICE_KEYS
    mounted = {volume.partition(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert mounted == set(COMPOSE["volumes"])


def test_compose_builds_this_version_with_arguments_of_the_image():
    studio = COMPOSE["services"]["studio"]
    assert studio["image"] == f"ziggurat:{source_versions(REPOSITORY)['pyproject.toml']}"
    assert set(studio["build"]["args"]) <= {each.text.split("=")[0] for each in instructions() if each.name == "ARG"}
    assert studio["volumes"] == [f"workspace:{last('VOLUME')}"]
    assert studio["ports"] == [f"127.0.0.1:{last('EXPOSE')}:{last('EXPOSE')}"]
    assert set(studio["depends_on"]) <= set(COMPOSE["services"])


def test_every_setting_that_delivery_names_exists(tmp_path):
    unit = dict(pair.split("=", 1) for line in re.findall(r"^Environment=(.+)$", UNIT, re.M) for pair in line.split())
    for variables in (image_environment(), COMPOSE["services"]["studio"]["environment"], unit):
        named = {name: value for name, value in variables.items() if name.startswith("ZIGGURAT_")}
        assert len(named) >= 1
        load_settings(environment={**named, "HOME": str(tmp_path)})  # an unknown one is refused


def test_the_unit_is_one_that_systemd_takes(tmp_path):
    unit = UNIT.replace("/opt/ziggurat/bin/ziggurat", shutil.which("true")).replace("User=ziggurat", "User=root")
    (tmp_path / "ziggurat.service").write_text(unit)
    command = [tool("systemd-analyze"), "verify", "--man=no", tmp_path / "ziggurat.service"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})
    assert (done.returncode, done.stderr) == (0, "")


def test_jobs_outlive_a_restart_of_the_unit():
    assert "\nKillMode=process\n" in UNIT
