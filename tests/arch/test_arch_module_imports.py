"""``tools.check_imports`` sees an own import inside a function and a cycle of modules."""


def test_an_own_import_inside_a_function_is_named(planted):
    planted.write("engine/loop.py", "def train():\n    from ziggurat.engine import batches\n")
    planted.write("engine/batches.py", "")
    code, output = planted.tool("check_imports")
    assert code == 1
    assert "src/ziggurat/engine/loop.py:2: an own module is imported at the top of a file." in output
    assert "Received: ziggurat.engine.batches inside `train`." in output


def test_a_relative_import_inside_a_method_is_named_too(planted):
    planted.write("engine/loop.py", "class Loop:\n    async def run(self):\n        from .batches import Batch\n")
    planted.write("engine/batches.py", "Batch = list\n")
    code, output = planted.tool("check_imports")
    assert code == 1
    assert "loop.py:3: " in output
    assert "Received: ziggurat.engine.batches inside `run`." in output


def test_two_modules_importing_each_other_are_both_named(planted):
    planted.write("engine/one.py", "import ziggurat.engine.two\n")
    planted.write("engine/two.py", "import os\nfrom ziggurat.engine import one\n")
    code, output = planted.tool("check_imports")
    assert code == 1
    assert "src/ziggurat/engine/one.py:1: modules import one another in one direction only." in output
    assert "src/ziggurat/engine/two.py:2: " in output
    assert "the cycle ziggurat.engine.one -> ziggurat.engine.two -> ziggurat.engine.one" in output


def test_a_cycle_over_three_modules_and_a_door_is_named_once(planted):
    planted.write("dataflow/__init__.py", "from ziggurat.dataflow.stages import Stage\n")
    planted.write("dataflow/stages.py", "from ziggurat.dataflow.base import Base\nStage = Base\n")
    planted.write("dataflow/base.py", "import ziggurat.dataflow\nBase = object\n")
    code, output = planted.tool("check_imports")
    assert code == 1
    assert output.count("modules import one another in one direction only") == 3


def test_types_and_foreign_packages_may_be_imported_anywhere(planted):
    planted.write(
        "engine/callback.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ziggurat.engine.trainer import Trainer\n"
        "def read():\n    import json\n",
    )
    planted.write("engine/trainer.py", "from ziggurat.engine.callback import read\nTrainer = read\n")
    assert planted.tool("check_imports") == (0, "imports: nothing to report\n")


def test_a_folder_without_a_package_is_named_once(planted):
    planted.write("engine/loop.py", "")
    planted.write("engine/trainer.py", "")
    (planted.root / "src/ziggurat/engine/__init__.py").unlink()
    code, output = planted.tool("check_imports")
    assert code == 1
    assert "src/ziggurat/engine/loop.py:1: a folder of modules has an `__init__.py`." in output
    assert output.endswith("imports: 1 findings\n")
