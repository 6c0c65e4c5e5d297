"""A module that has moved is found by its old name, once, and a notice names the new one."""

import importlib
import subprocess
import sys

import pytest

from ziggurat.plugins import available

MOVED = {plugin.name: plugin.target for plugin in available("redirects")}


@pytest.fixture
def forgotten(monkeypatch):
    """Let no old name have been imported before."""
    for name in list(sys.modules):
        if name.startswith(tuple(MOVED)):
            monkeypatch.delitem(sys.modules, name)


def test_an_old_name_gives_the_module_with_a_notice(forgotten):
    with pytest.warns(DeprecationWarning, match="is now") as notices:
        old = importlib.import_module("ziggurat.tf.tensorpack.notes")
    assert old is importlib.import_module("ziggurat.compat.tensorpack.notes")
    assert [str(each.message) for each in notices] == ["`ziggurat.tf.tensorpack` is now `ziggurat.compat.tensorpack`."]
    assert old.__name__ == old.__spec__.name == "ziggurat.compat.tensorpack.notes"


def test_the_notice_names_the_line_of_the_import(forgotten):
    with pytest.warns(DeprecationWarning, match="is now") as notices:
        from ziggurat.tf import tf1

    assert tf1.__name__ == "ziggurat.compat.tf1"
    assert notices[0].filename == __file__


def test_a_new_name_and_other_modules_give_no_notice(forgotten):
    importlib.import_module("ziggurat.compat.tensorpack.notes")
    importlib.import_module("ziggurat.tf.defaults")


def test_what_is_not_there_is_an_error(forgotten):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ziggurat\.tf\.nothing'"):
        importlib.import_module("ziggurat.tf.nothing")
    with (
        pytest.warns(DeprecationWarning, match="is now"),
        pytest.raises(ModuleNotFoundError, match=r"No module named 'ziggurat\.compat\.tensorpack\.nothing'"),
    ):
        importlib.import_module("ziggurat.tf.tensorpack.nothing")


def test_an_old_name_runs_as_a_program():
    command = [sys.executable, "-m", "ziggurat.tf.tensorpack.in_worker"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_every_old_name_stands_for_a_module(old, new):
    assert importlib.util.find_spec(new) is not None
    assert old.startswith("ziggurat.tf.")
