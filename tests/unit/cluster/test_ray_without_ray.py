"""The studio's side of a Ray cluster: it loads no Ray, and says what to install where there is none."""

import stat
import subprocess
import sys

import pytest

from ziggurat.cluster.ray import executor as ray_side
from ziggurat.cluster.ray.__main__ import prepare_token
from ziggurat.entities import NodeResources
from ziggurat.errors import MissingDependencyError
from ziggurat.jobs import ExecutorOptions


@pytest.fixture
def options(tmp_path):
    return ExecutorOptions(
        command=(), environment={}, resources=NodeResources, log_limit_bytes=1, workspace=tmp_path, address="auto"
    )


def test_without_ray_it_says_what_to_install(options, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(MissingDependencyError, match=r"`ray` is needed for jobs on other machines.*ziggurat\[ray\]"):
        ray_side.ray_executor(options)


def test_the_studios_side_loads_no_ray():
    code = (
        "import sys\n"
        "import ziggurat.cluster.ray.executor, ziggurat.cluster.bridge, ziggurat.cluster.ray.ray_cluster\n"
        "import ziggurat.workspace.studio.bootstrap\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'ray'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_the_token_is_made_once_and_only_for_its_user(tmp_path):
    path = prepare_token(tmp_path)
    token = path.read_text()
    assert len(token) == 64
    path.chmod(0o644)
    assert prepare_token(tmp_path).read_text() == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
