"""One word for one thing: each verb is listed once, and other words for it are the same command."""

from __future__ import annotations

import click
import pytest
from studio_stand_in import studio_stand_in

from ziggurat.cli.commands import Group
from ziggurat.cli.main import root

USUAL = {"list": ("ls",), "show": ("info", "inspect"), "delete": ("remove", "rm"), "check": ("validate",),
         "create": ("new",)}  # fmt: skip
"""Usual word → words that no command has as its name; they reach it."""

TWICE = {"list", "show", "create", "delete", "check", "export", "versions", "dataset", "predict", "move", "add",
         "split", "merge", "append", "version", "restore", "trash"}  # fmt: skip
"""Words that do the same with different things, such as `dataset export` with datasets and `export` with models."""

DOUBLES = ("train", "resume", "stop", "evaluate", "predict")


def groups(command, path, context):
    if isinstance(command, click.Group):
        yield path, command, context
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            yield from groups(found, [*path, name], click.Context(found, info_name=name, parent=context))


GROUPS = list(groups(root, [], click.Context(root, info_name="ziggurat")))


def listed(group, context):
    return [name for name in group.list_commands(context) if not group.get_command(context, name).hidden]


def test_commands_have_the_usual_words():
    others = {other: usual for usual, words in USUAL.items() for other in words}
    wrong = [(*path, name) for path, group, context in GROUPS for name in listed(group, context) if name in others]
    assert wrong == []


def test_other_words_reach_the_usual_one(ziggurat):
    for path, group, context in GROUPS:
        if isinstance(group, Group):
            for usual in set(listed(group, context)) & set(USUAL):
                for other in USUAL[usual]:
                    start = f"Usage: ziggurat {' '.join([*path, usual])} "
                    assert ziggurat(*path, other, "--help").out.startswith(start), (path, other)


def test_a_verb_of_the_top_is_not_listed_again():
    top = set(listed(root, GROUPS[0][2]))
    again = {(*path, name) for path, group, context in GROUPS[1:] for name in listed(group, context) if name in top}
    assert {each[-1] for each in again} <= TWICE
    assert not [each for each in again if each[-1] in DOUBLES and each[0] == "job"]


@pytest.mark.parametrize("name", DOUBLES)
def test_the_hidden_double_is_the_same_command(name):
    job = root.get_command(GROUPS[0][2], "job")
    verb, double = root.get_command(GROUPS[0][2], name), job.commands[name]
    assert double.callback is verb.callback
    assert double.hidden
    assert [param.opts for param in double.params] == [param.opts for param in verb.params]


def test_a_studio_is_asked_where_it_is_meant(ziggurat):
    with studio_stand_in(lambda method, path: (200, {"id": "one", "name": "run", "state": "stopped"})) as stand_in:
        address, asked = stand_in
        for words in (("stop", "--studio", "--server", address), ("job", "stop", "--server", address)):
            assert ziggurat(*words, "My run").code == 0
        assert ziggurat("resume", "My run", "--server", address).out == "My run is stopped now.\n"
        assert ziggurat("--server", address, "resume", "My run").out == "My run is stopped now.\n"
    assert [path for _, path, _ in asked] == ["/jobs/My%20run/stop"] * 2 + ["/jobs/My%20run/resume"] * 2


def test_a_folder_stands_for_its_id_in_the_studio(ziggurat, job):
    with studio_stand_in(lambda method, path: (200, {"id": "job", "state": "stopped"})) as (address, asked):
        ziggurat("resume", job, "--server", address)
    assert asked[0][1] == "/jobs/job/resume"


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (("train", "--out", "a", "--dataset", "b"), ("--out", "--dataset")),
        (("job", "train", "--dry-run"), ("--dry-run", "--studio")),
        (("predict", "a", "--count", "1", "--url", "http://b"), ("--count", "--url")),
        (("evaluate", "a", "--time-limit", "1", "--wait"), ("--time-limit", "--wait")),
        (("resume", "a", "--detach", "--studio"), ("--detach", "--studio")),
        (("--server", "http://b", "resume", "a", "--detach"), ("--detach", "--server")),
    ],
)
def test_options_of_both_faces_exclude_each_other(ziggurat, words, flags):
    answer = ziggurat(*words)
    assert answer.code == 2
    first, second = flags
    assert answer.err == f"Error: `{first}` is for this machine, and `{second}` asks a studio. Leave one of them out.\n"
