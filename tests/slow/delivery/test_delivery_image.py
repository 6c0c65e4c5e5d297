"""The steps of the Dockerfile, done in a root of its own that has Python and neither compiler, libjpeg nor Node."""

import glob
import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.image_file import image_environment, instructions, last, words
from tests.waiting import PROCESS_S, wait_until
from tools.release import CONSTRAINTS, Release, build

NEEDED = ("mmdebstrap", "unshare", "chroot")
PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def cannot_run():
    """Return why this machine cannot make a root, or nothing."""
    if os.geteuid() != 0:
        return "only root may change the root folder"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    missing += [name for name in ("auditwheel", "build") if importlib.util.find_spec(name) is None]
    return f"{', '.join(missing)} not installed" if missing else ""


pytestmark = [
    pytest.mark.nightly,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(bool(cannot_run()), reason=cannot_run() or "it can run"),
]


class ScratchRoot:
    """A root folder in which commands run, with processes of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.user, self.place = "0", "/"
        self.variables = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "HOME": "/root"}
        self.variables |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        self.variables |= {name: value for name, value in os.environ.items() if name.startswith("PIP_")}

    def inside(self, path):
        return self.folder / str(path).lstrip("/")

    def command(self, *parts):
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        outside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.inside('/proc')}"]
        changed = ["chroot", f"--userspec={self.user}:{self.user}", self.folder, "/usr/bin/env", "-i", *variables]
        return [*outside, *changed, "/bin/sh", "-c", f'cd {self.place} && exec "$@"', "sh", *parts]

    def run(self, *parts, check=True):
        done = subprocess.run(self.command(*parts), capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        return done


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """The root after all steps of the Dockerfile, without PyTorch, which is only large."""
    context, folder = tmp_path_factory.mktemp("context"), tmp_path_factory.mktemp("image") / "root"
    build(Release(context / "dist"))
    shutil.copy(CONSTRAINTS, context)
    made = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "bookworm", folder]
    subprocess.run(made, check=True, capture_output=True, timeout=900)
    root = ScratchRoot(folder)
    as_the_image_of_python(root)
    arguments = {"INDEX": "", "EXTRAS": "studio,serve,samples"}
    shell = []
    for each in instructions():
        if each.name == "ARG":
            name = each.text.partition("=")[0]
            root.variables[name] = arguments[name]
        elif each.name == "SHELL":
            shell = words(each.text)
        elif each.name == "WORKDIR":
            root.place = each.text
            root.inside(each.text).mkdir(parents=True, exist_ok=True)
        elif each.name == "COPY":
            *patterns, _here = each.text.split()
            for name in [name for pattern in patterns for name in glob.glob(str(context / pattern))]:
                shutil.copy(name, root.inside(root.place))
        elif each.name == "RUN":
            root.run(*shell, each.text)
        elif each.name == "USER":
            root.user, root.variables["HOME"] = each.text, "/home/ziggurat"
        elif each.name == "ENV":
            root.variables |= image_environment()
    yield root
    shutil.rmtree(folder)


def as_the_image_of_python(root):
    """Give Debian what the image of Python has: `python`, and a pip that installs for all."""
    for path in root.inside("/usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        path.unlink()
    root.inside("/usr/bin/python").symlink_to("python3")
    for name in ("etc/resolv.conf", CERTIFICATES):
        if Path("/", name).is_file():
            shutil.copy(Path("/", name), root.inside(name))


def test_the_image_has_neither_compiler_nor_libjpeg(image):
    for name in ("gcc", "cc", "node", "npm"):
        assert image.run("sh", "-c", f"command -v {name}", check=False).returncode != 0
    # Not the ones that packages bring along for themselves.
    found = [path for path in image.folder.rglob("libjpeg*.so*") if "-packages" not in str(path)]
    assert found == []


def test_the_native_engine_works_in_it(image):
    code = "from ziggurat.dataflow.fast import engine; r = engine(); print(r.name, dict(r.passed_over))"
    assert image.run("python", "-c", code).stdout.strip() == "native {}"


def test_the_image_serves_and_its_health_check_sees_it(image):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    image.variables["ZIGGURAT_PORT"] = str(port)
    health = [word.replace(":5000/", f":{port}/") for word in words(last("HEALTHCHECK"))]
    assert image.run(*health, check=False).returncode != 0

    refused = image.run(*words(last("CMD")), check=False)
    assert refused.returncode != 0
    assert "user create" in refused.stderr  # nobody is served on a network before there is an account

    image.run("sh", "-c", "echo correct-horse-battery | ziggurat user create ann --role admin --password-stdin")
    with subprocess.Popen(image.command(*words(last("CMD"))), stdout=subprocess.DEVNULL) as studio:
        try:
            wait_until(lambda: image.run(*health, check=False).returncode == 0, PROCESS_S)
            assert image.inside("/data/studio.db").stat().st_uid == int(image.user)
            assert oct(image.inside("/data").stat().st_mode)[-3:] == "700"
        finally:
            # `unshare` ignores SIGTERM while it waits, and its child outlives it, for it has changed its user.
            for child in psutil.Process(studio.pid).children():
                child.kill()
