"""The first thing a person types answers at once, lists what there is, and helps with mistyped words."""

import re
import subprocess
import sys
from importlib import import_module

import click
import pytest

from ziggurat import __version__
from ziggurat.cli.main import root

HEAVY = ("numpy", "pydantic", "psutil", "cv2", "tensorflow", "torch", "ziggurat.workspace", "ziggurat.specs")


def python(*words):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("words", [("--help",), (), ("--version",), ("trian",), ("serve",)])
def test_what_does_no_work_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom ziggurat.cli.main import main\n"
        f"code = main({list(words)!r})\n"
        f"print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stderr


def test_help_lists_every_verb_with_its_line(ziggurat):
    answer = ziggurat("--help")
    assert answer.code == 0
    for verb in root.verbs():
        assert re.search(rf"^  {verb.name} +{re.escape(verb.help)}$", answer.out, re.MULTILINE), verb.name
    for heading in ("Training:", "Looking at jobs:", "This installation:"):
        assert heading in answer.out
    assert ziggurat().out == answer.out


@pytest.mark.parametrize("verb", root.verbs(), ids=lambda verb: verb.name)
def test_every_verb_is_a_command_with_help(verb, ziggurat):
    module, _, attribute = verb.target.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.help
    answer = ziggurat(verb.name, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: ziggurat {verb.name} ")


def commands(group, path):
    for name, command in group.commands.items():
        is_group = isinstance(command, click.Group)
        yield from commands(command, f"{path} {name}") if is_group else [(f"{path} {name}", command)]


def leaves():
    for verb in root.verbs():
        module, _, attribute = verb.target.partition(":")
        command = getattr(import_module(module), attribute)
        yield from commands(command, verb.name) if isinstance(command, click.Group) else [(verb.name, command)]


@pytest.mark.parametrize(("path", "command"), list(leaves()), ids=[path for path, _ in leaves()])
def test_every_command_takes_json(path, command):
    assert "--json" in [word for option in command.params for word in option.opts], path


def test_python_m_ziggurat_is_the_same():
    done = python("-m", "ziggurat", "--version")
    assert (done.returncode, done.stdout) == (0, f"ziggurat {__version__}\n")


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("checkpoint", "ls"), "checkpoint list"),
        (("dataset", "ls"), "dataset list"),
        (("job", "rm"), "job delete"),
        (("weights", "delete"), "weights remove"),
        (("job", "info"), "job show"),
        (("spec", "check"), "spec validate"),
    ],
)
def test_a_word_for_the_same_is_taken(ziggurat, words, path):
    assert ziggurat(*words, "--help").out.startswith(f"Usage: ziggurat {path}")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("trian",), "`ziggurat trian` is not a command. Did you mean `ziggurat train` or `ziggurat trash`?"),
        (
            ("checkpoint", "shwo"),
            "`ziggurat checkpoint shwo` is not a command. Did you mean `ziggurat checkpoint show`?",
        ),
        (("spec", "qqq"), "`ziggurat spec qqq` is not a command. Known: rate, schema, show, upgrade, validate."),
        (("status", "--jsn", "x"), "`--jsn` is not an option of `ziggurat status`. Did you mean `--json`?"),
        (
            ("train", "--learning-rat", "1"),
            "`--learning-rat` is not an option of `ziggurat train`. Did you mean `--learn",
        ),
        (("--colour", "never", "version"), "`--colour` is not an option of `ziggurat`. Did you mean `--color`?"),
        (("events",), "Missing argument 'JOB'. See: ziggurat events --help"),
        (("train", "--data"), "Option '--data' requires an argument. See: ziggurat train --help"),
        (("version", "now"), "Got unexpected extra argument (now). See: ziggurat version --help"),
    ],
)
def test_a_mistyped_word_names_the_nearest(ziggurat, words, text):
    answer = ziggurat(*words)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith(f"Error: {text}")
    assert "Traceback" not in answer.err
