"""Each contract of ``.importlinter`` is seen failing on a tree that breaks it, and names module and line."""

import pytest

BROKEN = {
    "the data library knows the engine": (
        {"dataflow/stage.py": "import ziggurat.engine.loop\n", "engine/loop.py": ""},
        "ziggurat.dataflow.stage -> ziggurat.engine.loop (l.1)",
    ),
    "a spec knows the events beside it": (
        {"specs/train.py": "\nfrom ziggurat import events\n", "events.py": ""},
        "ziggurat.specs.train -> ziggurat.events (l.2)",
    ),
    "the shell reaches round the jobs to the worker": (
        {
            "cli/main.py": "import ziggurat.workspace\n",
            "workspace/__init__.py": "import ziggurat.jobs\n",
            "jobs/__init__.py": "import ziggurat.worker\n",
            "worker/__init__.py": "",
        },
        "ziggurat.jobs -> ziggurat.worker (l.1)",
    ),
    "a page asks the jobs instead of the workspace": (
        {"web/rendering.py": "from ziggurat import jobs\n", "jobs/__init__.py": ""},
        "ziggurat.web.rendering -> ziggurat.jobs (l.1)",
    ),
    "the API uses a page": (
        {"api/routes.py": "from ziggurat.web import urls\n", "web/urls.py": ""},
        "ziggurat.api.routes -> ziggurat.web.urls (l.1)",
    ),
    "a page uses the API": (
        {"web/urls.py": "from ziggurat.api import schemas\n", "api/schemas.py": ""},
        "ziggurat.web.urls -> ziggurat.api.schemas (l.1)",
    ),
    "the server starts a helper process itself": (
        {"server/middleware.py": "import ziggurat.services.pool\n", "services/pool.py": ""},
        "ziggurat.server.middleware -> ziggurat.services.pool (l.1)",
    ),
    "a second HTTP client": (
        {"datasets/sources/web.py": "import httpx\n"},
        "ziggurat.datasets.sources.web -> httpx (l.1)",
    ),
    "the shell reads the database": (
        {"cli/main.py": "import ziggurat.store.tables\n", "store/tables.py": ""},
        "ziggurat.cli.main -> ziggurat.store.tables (l.1)",
    ),
    "the engine knows a spec": (
        {"engine/loop.py": "import os\nimport ziggurat.specs\n", "specs/__init__.py": ""},
        "ziggurat.engine.loop -> ziggurat.specs (l.2)",
    ),
    "a backend reads the settings": (
        {"backends/null.py": "import ziggurat.settings\n", "settings.py": ""},
        "ziggurat.backends.null -> ziggurat.settings (l.1)",
    ),
    "the records use pydantic": (
        {"records/base.py": "import pydantic\n"},
        "ziggurat.records.base -> pydantic (l.1)",
    ),
    "the core imports what lets programs of other tools run": (
        {"tf/trainers.py": "import ziggurat.compat.tensorpack\n", "compat/tensorpack/__init__.py": ""},
        "protected package ziggurat.compat:\n\n- ziggurat.tf.trainers -> ziggurat.compat.tensorpack (l.1)",
    ),
    "a page reads a record itself": (
        {"web/pages/dataset.py": "from ziggurat import records\n", "records/__init__.py": ""},
        "ziggurat.web.pages.dataset -> ziggurat.records (l.1)",
    ),
    "the REST API asks a task instead of the workspace": (
        {"api/routes.py": "import ziggurat.tasks.report\n", "tasks/report.py": ""},
        "ziggurat.api.routes -> ziggurat.tasks.report (l.1)",
    ),
    "one backend borrows from another": (
        {"backends/torch/program.py": "import ziggurat.backends.null\n", "backends/null.py": ""},
        "ziggurat.backends.torch.program -> ziggurat.backends.null (l.1)",
    ),
    "the worker starts a web server": (
        {"worker/main.py": "import uvicorn\n"},
        "ziggurat.worker.main -> uvicorn (l.1)",
    ),
    "the engine writes to the database": (
        {"engine/monitors/sql.py": "import sqlalchemy.orm\n"},
        "ziggurat.engine.monitors.sql -> sqlalchemy (l.1)",
    ),
    "SQL outside of the store": (
        {"jobs/queue.py": "from sqlalchemy import select\n"},
        "ziggurat.jobs.queue -> sqlalchemy (l.1)",
    ),
    "TensorFlow outside of its home": (
        {"engine/loop.py": "def step():\n    import tensorflow\n"},
        "ziggurat.engine.loop -> tensorflow (l.2)",
    ),
    "PyTorch in the other framework's home": (
        {"backends/tensorflow/program.py": "import torch.nn\n"},
        "ziggurat.backends.tensorflow.program -> torch (l.1)",
    ),
}


@pytest.mark.parametrize(("files", "line"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_contract_is_named_with_its_line(planted, files, line):
    for name, text in files.items():
        planted.write(name, text)
    code, output = planted.lint_imports()
    assert code == 1
    assert line in output


def test_a_cycle_of_packages_is_named_with_its_closing_import(planted):
    planted.write("engine/callbacks/saver.py", "import ziggurat.engine.monitors.writer\n")
    planted.write("engine/monitors/writer.py", "\n\nimport ziggurat.engine.callbacks.base\n")
    planted.write("engine/callbacks/base.py", "")
    code, output = planted.lint_imports()
    assert code == 1
    assert "The parts of ziggurat.engine import one another in a circle" in output
    assert "(l.1)" in output or "(l.3)" in output


def test_a_module_without_a_place_is_refused(planted):
    planted.write("helpers.py", "")
    code, output = planted.lint_imports()
    assert code == 1
    assert "- ziggurat.helpers" in output


def test_a_tree_that_keeps_every_contract_passes(planted):
    planted.write("errors.py", "")
    planted.write("events.py", "import ziggurat.errors\n")
    planted.write("dataflow/adapters/torch.py", "def loader():\n    import torch\n")
    planted.write("backends/tensorflow/program.py", "import tensorflow\nimport ziggurat.engine.trainer\n")
    planted.write("engine/trainer.py", "import ziggurat.engine.callback\nimport ziggurat.events\n")
    planted.write(
        "engine/callback.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ziggurat.engine.trainer import Trainer\n",
    )
    planted.write("store/tables.py", "import sqlalchemy\n")
    planted.write("cli/main.py", "import ziggurat.workspace\n")
    planted.write("workspace/__init__.py", "import ziggurat.jobs\n")
    planted.write("jobs/__init__.py", "import ziggurat.store.tables\n")
    code, output = planted.lint_imports()
    assert code == 0, output
