"""Importing the package costs nothing, and none of its modules brings a framework or a web or SQL library along."""

import subprocess
import sys

FOREIGN = [
    *("tensorflow", "tf_keras", "torch", "datasets", "pyarrow", "sklearn"),
    *("fastapi", "starlette", "sqlalchemy", "ray"),
]

IMPORT_ALL = f"""
import importlib, sys
from pathlib import Path
import ziggurat
package = Path(ziggurat.__path__[0])
homes = ("ziggurat.backends.tensorflow", "ziggurat.backends.torch", "ziggurat.tf", "ziggurat.torch", "ziggurat.zoo.")
for path in sorted(package.rglob("*.py")):
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
    if not name.startswith(homes) and not name.endswith("__main__"):
        importlib.import_module(name)
        brought = [foreign for foreign in {FOREIGN!r} if foreign in sys.modules]
        if brought:
            sys.exit(f"{{name}} imports {{', '.join(brought)}} at import time")
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
