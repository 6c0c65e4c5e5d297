"""Every operation of the table: who may, what the audit log says, and that all faces reach it."""

import ast
import importlib
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import click
import pytest

import ziggurat
from ziggurat.api.app import create_app
from ziggurat.cli.main import root
from ziggurat.client import Client
from ziggurat.entities import Identity
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.operations import OPERATIONS, find_operation
from ziggurat.operations.use_case import USE_CASES
from ziggurat.server.permissions import requirements
from ziggurat.workspace.accounts import LOCAL, ForbiddenError

for subject in ("administration", "datasets", "jobs", "models", "weights"):
    importlib.import_module(f"ziggurat.operations.{subject}")

SOURCE = Path(ziggurat.__file__).parent
DOCS = SOURCE.parents[1] / "docs" / "reference"

VALUES = {
    "action": "stop", "chosen": ["a"], "samples": ["train/1"], "labels": {"train/1": "cat"}, "label": "cat",
    "datasets": ["a", "b"], "options": {}, "roots": ["/a"], "values": {"jobs": 3}, "value": 0.5,
}  # fmt: skip
"""Values of parameters; any other one is the text ``x``."""

NO_OPERATION = {
    # Accounts write entries of their own, with the name of whom they are about.
    "POST /login", "POST /logout", "PUT /me/password", "DELETE /me/sessions", "POST /users", "PATCH /users/{name}",
    "POST /tokens", "DELETE /tokens/{token_id}",
    # What only its owner sees: saved views, files on their way into a dataset, boxes that are no version yet.
    "PUT /saved/{kind}/{name:path}", "DELETE /saved/{kind}/{name:path}",
    "POST /saved/{kind}/{name:path}/restore", "POST /uploads/{upload_id}/restore",
    "POST /uploads", "POST /uploads/files", "DELETE /uploads/{upload_id}",
    "PUT /datasets/{job_id}/boxes/{split}/{row}", "DELETE /datasets/{job_id}/boxes/{split}/{row}",
    "POST /datasets/{job_id}/boxes/{split}/{row}/undo",
    # Questions with a body.
    "POST /jobs/{job_id}/tensorboard", "POST /trainings/rate-curve", "POST /trainings/augmented",
    "POST /trainings/preflight", "POST /trainings/test-batch", "DELETE /trainings/test-batch/{ticket}",
    "POST /trainings/text", "POST /datasets/preview", "POST /dataset-guesses", "POST /datasets/{job_id}/check",
    "POST /networks/describe", "POST /networks/debug", "POST /networks/check", "POST /programs/check",
    "POST /models/{job_id}/predict", "POST /models/{job_id}/generate", "POST /models/{job_id}/activations",
    "POST /models/{job_id}/evaluate",
    # Questions of packages; weights that they add are those of `weights.add`.
    "POST /imports/caffe",
    "POST /imports/torch",
}  # fmt: skip
"""Routes that are no operations although their method is not GET."""

each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)


@pytest.fixture(scope="module")
def routes():
    app = create_app(SimpleNamespace(people=None, notices=None))
    return {
        f"{method} {route.path.removeprefix('/api/v1')}": needed
        for route, needed in requirements(app.router.routes)
        for method in route.methods - {"GET", "HEAD"}
        if route.path.startswith("/api/v1")
    }


def arguments_of(use_case):
    parameters = list(inspect.signature(use_case.run).parameters.values())[1:]
    return {
        each.name: VALUES.get(each.name, "x")
        for each in parameters
        if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD
    }


def below(role):
    return Identity(user=None, role="viewer" if role == "trainer" else "trainer", scope="admin", by="token")


@each_operation
def test_it_is_refused_to_those_who_may_not(operation, routes):
    studio = MagicMock()
    use_case = USE_CASES[operation.name]
    with pytest.raises(ForbiddenError, match=f"role `{operation.role}`"):
        use_case(studio, below(operation.role), **arguments_of(use_case))
    assert studio.mock_calls == []
    assert (routes[operation.rest].role, routes[operation.rest].scope) == (operation.role, operation.scope)


@each_operation
def test_it_leaves_an_entry_in_the_audit_log(operation):
    studio = MagicMock()
    studio.training.create.return_value = [MagicMock()]
    use_case = USE_CASES[operation.name]
    use_case(studio, LOCAL, **arguments_of(use_case))
    (entry,) = studio.people.note.call_args_list
    who, action, *_ = entry.args
    assert who is LOCAL
    assert action in operation.actions


@each_operation
def test_it_is_documented(operation):
    assert f"| `{operation.name}` |" in (DOCS / "operations.md").read_text()
    assert operation.path.replace(":path", "") in (DOCS / "rest.md").read_text()
    assert inspect.getdoc(USE_CASES[operation.name].run)


@each_operation
def test_client_and_shell_reach_it(operation):
    if operation.client:
        assert f"{operation.method} {shape(operation.path)}" in asked_by(operation.client)
    context = click.Context(root)
    command = root
    for word in operation.command.split():
        assert isinstance(command, click.Group)
        command = command.get_command(context, word)
        assert command is not None, f"there is no `ziggurat {operation.command}`"


def shape(path):
    return re.sub(r"{[^}]*}", "{}", path)


def asked_by(method):
    """Return the routes that a method of the client asks, as METHOD and path with empty braces."""
    found = set()
    name = method.rpartition(".")[2]
    for file in (SOURCE / "client").glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef) and function.name == name:
                found |= {route for call in ast.walk(function) if (route := route_of(call))}
    return found


def route_of(call):
    if not isinstance(call, ast.Call) or len(call.args) < 2 or not isinstance(call.args[0], ast.Constant):
        return ""
    text = ast.unparse(call.args[1]).strip("f'\"")
    return f"{call.args[0].value} {shape(text)}"


def test_routes_that_change_something_are_operations(routes):
    listed = {each.rest for each in OPERATIONS.values()}
    assert set(routes) - listed == NO_OPERATION
    assert listed <= set(routes)


def test_only_operations_name_actions_of_the_audit_log():
    allowed = {"operations/use_case.py", "workspace/accounts.py"}
    found = {
        str(file.relative_to(SOURCE))
        for file in SOURCE.rglob("*.py")
        if re.search(r"people\.note\(|\.note\(\s*(who|by|LOCAL|_shell)\b", file.read_text())
    }
    assert found <= allowed
    assert set(USE_CASES) == set(OPERATIONS)


def test_requests_are_made_of_fields():
    stop = find_operation("job.stop")
    assert stop.request({"job_id": "a b", "now": True}) == ("/jobs/a%20b/stop", {"now": True}, {})
    rename = find_operation("project.rename")
    assert rename.request({"name": "a/b", "new_name": "c"}) == ("/projects/a/b", {}, {"name": "c"})
    delete = find_operation("job.delete")
    assert delete.request({"job_id": "1", "force": True}) == ("/jobs/1", {"force": True}, {})
    with pytest.raises(UsageError, match=r"`job\.stop` misses `job_id`"):
        stop.request({"now": True})
    with pytest.raises(
        UsageError,
        match=r"with a file, and not with JSON\. Save it by `client\.datasets\.export` or `ziggurat dataset export`",
    ):
        find_operation("dataset.export").request({"job_id": "1", "format": "coco"})
    with pytest.raises(UnknownNameError, match=r"Did you mean `job\.stop`"):
        find_operation("job.stopp")


def test_the_client_does_an_operation_by_its_name(monkeypatch):
    asked = []
    with Client("http://127.0.0.1:9") as client:
        monkeypatch.setattr(client._connection, "ask", lambda *words, **options: asked.append((*words, options)))
        client.call("project.rename", name="a", new_name="b")
        client.call("job.delete", job_id="1", force=True)
    assert asked == [
        ("PATCH", "/projects/a", {"params": {}, "json": {"name": "b"}}),
        ("DELETE", "/jobs/1", {"params": {"force": True}}),
    ]


def test_the_five_changes_of_datasets_leave_entries_over_rest(ask, studio, pets):
    bodies = {
        "relabel": {"samples": ["train/0"], "label": "dog"},
        "exclude": {"samples": ["train/0"]},
        "corrections": {"labels": {"train/0": "dog"}},
        "classes": {"rename": [["cat", "puss"]]},
    }
    for name, body in bodies.items():
        made = ask("POST", f"/api/v1/datasets/{pets}/{name}", json=body)
        assert made.status_code == 201, made.text
    assert ask("POST", "/api/v1/dataset-merges", json={"datasets": [pets, pets]}).status_code == 201
    entries = [each.action for each in studio.people.audit().entries]
    assert entries[:5] == ["dataset.merge", "dataset.classes", "dataset.edits", "dataset.exclude", "dataset.relabel"]
