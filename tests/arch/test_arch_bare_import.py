"""Importing the package costs nothing, and none of its modules brings a framework or a web or SQL library along."""

import subprocess
import sys

FOREIGN = [
    *("tensorflow", "tf_keras", "torch", "datasets", "pyarrow", "sklearn"),
    *("fastapi", "starlette", "sqlalchemy", "ray"),
]

IMPORT_ALL = f"""
import importlib, pkgutil, sys
import ziggurat
homes = ("ziggurat.backends.tensorflow", "ziggurat.backends.torch", "ziggurat.tf", "ziggurat.torch")
for found in pkgutil.walk_packages(ziggurat.__path__, "ziggurat."):
    if not found.name.startswith(homes) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
        brought = [name for name in {FOREIGN!r} if name in sys.modules]
        if brought:
            sys.exit(f"{{found.name}} imports {{', '.join(brought)}} at import time")
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
    assert python(IMPORT_ALL) == (0, "")
