"""``tools.check_docstrings`` names what users may touch and nobody explains."""

import pytest

UNEXPLAINED = {
    "a module": ("value = 1\n", ":1: a module has a docstring that says what is in it."),
    "a module that owns": ('"""Owns a value."""\n', ":1: a module's docstring begins with a noun phrase."),
    "a class": ('"""Doors."""\n__all__ = []\nclass Open:\n    pass\n', ":3: a public class has a docstring."),
    "a function": ('"""Doors."""\n__all__ = []\ndef act(): ...\n', ":3: a public function has a docstring."),
    "a method": (
        '"""Doors."""\n__all__ = []\nclass Open:\n    """Says."""\n    def act(self): ...\n',
        ":5: a public method has a docstring. Received: none at `Open.act`.",
    ),
    "the list of public names": (
        '"""Doors."""\ndef act():\n    """Act."""\n',
        ":1: a module lists its public names in `__all__`.",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), UNEXPLAINED.values(), ids=UNEXPLAINED.keys())
def test_what_is_unexplained_is_named(planted, text, complaint):
    planted.write("open.py", text)
    code, output = planted.tool("check_docstrings")
    assert code == 1
    assert f"src/ziggurat/open.py{complaint}" in output


def test_what_repeats_an_explained_thing_may_go_without(planted):
    planted.write(
        "base.py",
        '"""Doors."""\n__all__ = ["Base"]\nclass Base:\n    """Says."""\n    def act(self):\n        """Act."""\n',
    )
    planted.write(
        "other.py",
        '"""Doors."""\nfrom typing import overload\nfrom ziggurat import base\n__all__ = ["Child"]\n'
        'class Child(base.Base):\n    """Says."""\n    def act(self): ...\n    def _hidden(self): ...\n'
        "    @property\n    def size(self):\n"
        '        """Size."""\n'
        "    @size.setter\n    def size(self, value): ...\n    @overload\n    def get(self): ...\n"
        'def outer():\n    """Act."""\n    def inner(): ...\n',
    )
    code, output = planted.tool("check_docstrings")
    assert (code, output) == (0, "docstrings: nothing to report\n")


def test_a_network_of_the_zoo_explains_itself_as_it_likes(planted):
    planted.write("zoo/table.py", '"""Table of networks."""\n')
    network = planted.root / "src/ziggurat/zoo/tensorflow/lenet.py"
    network.parent.mkdir()
    network.write_text("class UserModel(Tower): ...\n")
    assert planted.tool("check_docstrings")[0] == 0


def test_a_file_that_is_no_python_is_named(planted):
    planted.write("open.py", '"""Doors."""\n\ndef act(:\n')
    code, output = planted.tool("check_docstrings")
    assert code == 1
    assert "src/ziggurat/open.py:3: a module is Python. Received: invalid syntax." in output
