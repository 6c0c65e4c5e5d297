"""The door of the data library: light, complete, and clear about what is missing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ziggurat.dataflow
from ziggurat.dataflow import sources, speed

HEAVY = ["cv2", "torch", "tensorflow", "h5py", "datasets", "numpy", "PIL", "lmdb", "zmq"]


def run(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_it_imports_nothing_heavy():
    assert run(f"import sys, ziggurat.dataflow\nprint([name for name in {HEAVY} if name in sys.modules])") == "[]"


def test_serial_stages_import_numpy_and_no_framework_nor_opencv():
    heavy = [name for name in HEAVY if name != "numpy"]
    program = f"""
import sys
from ziggurat.dataflow import BatchData, CacheData, DataFromArrays, LocallyShuffleData, MapData, TestDataSpeed
list(BatchData(MapData(LocallyShuffleData(DataFromArrays([[1], [2]]), 2), lambda dp: dp), 2))
print([name for name in {heavy} if name in sys.modules])
"""
    assert run(program) == "[]"


def test_what_type_checkers_see_is_what_there_is():
    tree = ast.parse(Path(ziggurat.dataflow.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.asname or alias.name: statement.module for statement in block.body for alias in statement.names}
    assert sorted(seen) == sorted(ziggurat.dataflow.__all__)
    for name, module in seen.items():
        if name not in ("dataset", "imgaug"):
            assert getattr(ziggurat.dataflow, name) is getattr(sys.modules[module], name)


def test_every_name_is_there_and_star_import_gives_all():
    program = """
import ziggurat.dataflow
from ziggurat.dataflow import *
assert all(name in globals() for name in ziggurat.dataflow.__all__)
assert set(ziggurat.dataflow.__all__) <= set(dir(ziggurat.dataflow))
"""
    run(program)


def test_sub_modules_are_still_modules():
    assert sources.FakeData is ziggurat.dataflow.FakeData
    assert speed.PrintData is ziggurat.dataflow.PrintData


def test_an_unknown_name_is_an_attribute_error_with_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'BatchDat'\. Did you mean BatchData"):
        ziggurat.dataflow.BatchDat  # noqa: B018
    assert not hasattr(ziggurat.dataflow, "nothing_like_it")


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("h5py", "HDF5Data('x.h5', ['a'])"),
        ("torch", "to_torch(FakeData([[1]]))"),
        ("datasets", "to_huggingface(FakeData([[1]]))"),
    ],
)
def test_a_missing_optional_package_is_named_with_its_extra(package, use):
    program = f"""
import sys
sys.modules[{package!r}] = None
from ziggurat.dataflow import *
from ziggurat.errors import MissingDependencyError
try:
    {use}
except MissingDependencyError as error:
    print(error)
"""
    assert f"The package `{package}` is needed for" in run(program)
