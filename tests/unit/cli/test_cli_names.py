"""Every argument of the shell takes names where it takes ids, and completes what can be known of it."""

from __future__ import annotations

import json
import shutil

import click
import pytest

from ziggurat.cli.application import Application
from ziggurat.cli.here_or_studio import AnyJob
from ziggurat.cli.job_places import JobPlace
from ziggurat.cli.job_requests import JobId
from ziggurat.cli.main import root

JOBS = {"job_id", "job_ids", "model_id", "folder", "folders", "dataset", "other", "model", "evaluation", "map_id",
        "before", "first_id", "second_id"}  # fmt: skip
"""Names of parameters that hold a job or a dataset."""

NO_JOBS = {
    ("dataset list", "folder"), ("model add", "folder"), ("verify", "folder"), ("settings disallow", "folder"),
    ("dump-model-params", "model"),
}  # fmt: skip
"""Folders and files of other things."""

FREE = {
    # texts, numbers and addresses
    "assignments", "colours", "dropped", "drop", "format_options", "group", "host", "keep", "label", "license", "lists",
    "max_points", "mean", "merged", "name", "names", "new_name", "notes", "options", "out", "pattern", "prefix",
    "reason", "rename", "script", "server", "sha256", "size", "source", "std", "text", "texts", "title", "token", "url",
    "user_name", "weights", "feeds", "inputs", "input_name", "input_shape", "output", "output_names", "until", "meta",
    "fields", "rest", "database", "picture_hosts", "source_hosts", "allowed_hosts", "ray", "capture", "rows", "color",
    "grad_cam_class", "grad_cam_layer", "image_folder", "images", "files", "path", "sample", "samples", "class_name",
    "problem", "kind", "folder", "SCRIPT", "arguments", "alias", "classes", "hosts", "shape", "tags",
}  # fmt: skip
"""Parameters of free text."""


def commands(command, path, context):
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            yield from commands(found, [*path, name], click.Context(found, info_name=name, parent=context))
    else:
        yield " ".join(path), command


COMMANDS = dict(commands(root, [], click.Context(root, info_name="ziggurat")))


def test_every_parameter_of_a_job_takes_its_name():
    wrong = [
        (path, param.name)
        for path, command in COMMANDS.items()
        for param in command.params
        if param.name in JOBS
        and (path, param.name) not in NO_JOBS
        and not isinstance(param.type, AnyJob | JobId | JobPlace)
    ]
    assert wrong == []


def is_completed(param):
    if isinstance(param.type, AnyJob | JobId | JobPlace | click.Choice | click.Path):
        return True
    return param._custom_shell_complete is not None


def test_every_text_is_completed_or_free():
    of_specs = ("train", "job train", "dataset create", "job dataset")  # whose flags are the fields of a spec
    missing = {
        (path, param.name)
        for path, command in COMMANDS.items()
        for param in command.params
        if path not in of_specs and isinstance(param.type, click.types.StringParamType)
        and not (isinstance(param, click.Option) and param.is_flag)
        and not is_completed(param) and param.name not in FREE
    }  # fmt: skip
    assert missing == set()


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace with a training and two datasets of one name."""
    place = tmp_path / "workspace"
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(place))
    for folder, name in (("jobs/20261121-160512-9f3ac21e", "My run"), ("jobs/20261121-160512-9f3ac21f", "42")):
        (place / folder).mkdir(parents=True)
        spec = {"kind": "train", "version": 1, "name": name, "network": "mlp", "data": "digits"}
        (place / folder / "spec.json").write_text(json.dumps(spec))
    return place


def test_names_and_ids_stand_for_folders(ziggurat, workspace):
    folder = workspace / "jobs" / "20261121-160512-9f3ac21e"
    for name in ("My run", folder.name, folder):
        assert ziggurat("status", name, "--json").content["folder"] == str(folder), name
    assert ziggurat("status", "42", "--json").content["name"] == "42"


def test_a_new_name_of_the_studio_counts(ziggurat, workspace):
    folder = workspace / "jobs" / "20261121-160512-9f3ac21e"
    (folder / "job.json").write_text(json.dumps({"version": 1, "name": "renamed"}))
    assert ziggurat("status", "renamed", "--json").content["folder"] == str(folder)
    assert ziggurat("status", "My run").code == 10


def test_several_folders_of_a_name_are_listed(ziggurat, workspace):
    shutil.copytree(workspace / "jobs" / "20261121-160512-9f3ac21e", workspace / "jobs" / "second")
    answer = ziggurat("events", "My run")
    assert answer.code == 2
    assert "2 jobs of" in answer.err
    assert "20261121-160512-9f3ac21e (train), second (train)" in answer.err


def test_a_mistyped_name_of_a_folder_is_suggested(ziggurat, workspace):
    answer = ziggurat("export", "my rum", "--format", "onnx")
    assert answer.code == 10
    assert answer.err == "Error: `my rum` does not exist. Did you mean `My run`?\n"
    said = "`nowhere` does not exist. List the datasets of the workspace with: ziggurat dataset list."
    assert said in ziggurat("dataset", "show", "nowhere").err


def completed(words, incomplete=""):
    command = COMMANDS[" ".join(words)]
    context = click.Context(command, obj=Application())
    argument = next(param for param in command.params if isinstance(param, click.Argument))
    return [each.value for each in argument.shell_complete(context, incomplete)]


def test_names_of_folders_are_completed(workspace):
    assert completed(["status"], "4") == ["42"]
    assert completed(["export"], "2026") == ["20261121-160512-9f3ac21f", "20261121-160512-9f3ac21e"]
    assert completed(["call"], "job.st") == ["job.stop"]
    assert completed(["completion"]) == ["bash", "fish", "zsh"]
