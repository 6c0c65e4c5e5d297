"""Importing the package costs nothing, and none of its modules brings a framework or a web or SQL library along."""

import subprocess
import sys

FRAMEWORKS = ["tensorflow", "tf_keras", "torch", "datasets", "pyarrow", "sklearn", "ray"]
SERVER = ["fastapi", "starlette", "sqlalchemy"]
SERVER_HOMES = (
    *("ziggurat.app", "ziggurat.api", "ziggurat.server", "ziggurat.web", "ziggurat.store", "ziggurat.workspace.studio"),
    "ziggurat.workspace.accounts",
    *(
        f"ziggurat.operations.{each}"
        for each in ("administration", "datasets", "jobs", "models", "use_case", "weights")
    ),
    *("ziggurat.compat.digits", "ziggurat.compat.studio_imports"),
    *(f"ziggurat.compat.{tool}.{name}" for tool in ("caffe", "torch7") for name in ("routes", "tab")),
    *("ziggurat.serving", "ziggurat.net.http_protocol"),
    *("ziggurat.workspace.doctor", "ziggurat.cli.doctor"),  # look into the store where that is installed
)

IMPORT_ALL = f"""
import importlib, importlib.util, sys
from pathlib import Path
import ziggurat
package = Path(ziggurat.__path__[0])
homes = (
    *("ziggurat.backends.tensorflow", "ziggurat.backends.torch", "ziggurat.tf", "ziggurat.torch", "ziggurat.zoo."),
    *("ziggurat.compat.tensorpack", "ziggurat.compat.tf1"),
)
names = [
    ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(package.rglob("*.py"))
]
ends = ("__main__", "migrations.env")  # programs, not modules
names = [name for name in names if not name.startswith(homes) and not name.endswith(ends)]

def check(chosen, foreign):
    for name in chosen:
        importlib.import_module(name)
        brought = [each for each in foreign if each in sys.modules]
        if brought:
            sys.exit(f"{{name}} imports {{', '.join(brought)}} at import time")

check([name for name in names if not name.startswith({SERVER_HOMES!r})], {FRAMEWORKS!r} + {SERVER!r})
if importlib.util.find_spec("fastapi") and importlib.util.find_spec("sqlalchemy"):
    check([name for name in names if name.startswith({SERVER_HOMES!r})], {FRAMEWORKS!r})
"""

IMPORT_BARE = """
import sys
before = set(sys.modules)
import ziggurat
print(sorted(name for name in set(sys.modules) - before if name != "ziggurat"))
"""


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_the_bare_package_imports_nothing():
    assert python(IMPORT_BARE) == (0, "[]\n")


def test_no_module_outside_of_a_frameworks_home_imports_one():
    code, output = python(IMPORT_ALL)
    assert (code, output) == (0, ""), output


def test_a_worker_starts_without_the_http_client():
    code = "import sys, ziggurat.worker.main, ziggurat.net.http_client; print('httpx' in sys.modules)"

    assert python(code) == (0, "False\n")
