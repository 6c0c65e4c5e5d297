"""``tools.check_prose`` names words that the glossary replaces."""

import pytest

WRONG = {
    "two words for dataset": ("# Reads the data set.\n", ":1: the glossary says dataset. Received: `data set`."),
    "picture for image": ('"""Pictures of a batch."""\n', ":1: the glossary says image. Received: `Pictures`."),
    "British spelling": ("\n# The behaviour of a queue.\n", ":2: the glossary says the American spelling."),
    "a module that owns": ('"""Owns the queue."""\n', ":1: the glossary says a noun phrase"),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_prose_replaced_word_is_named(planted, text, complaint):
    planted.write("open.py", text)
    code, output = planted.tool("check_prose")
    assert code == 1
    assert f"src/ziggurat/open.py{complaint}" in output


def test_prose_of_a_template_is_checked(planted):
    planted.write("open.py", "")
    (planted.root / "src/ziggurat/home.html").write_text("<h1>Home</h1>\n<p class='picture'>A picture</p>\n")
    code, output = planted.tool("check_prose")
    assert (code, output.count("the glossary says")) == (1, 1)
    assert "home.html:2: the glossary says image. Received: `picture`." in output


def test_prose_check_skips_code(planted):
    planted.write("open.py", 'pictures = 1  # ``picture`` in /datasets/pictures, `colour`\nname = "pictures"\n')
    assert planted.tool("check_prose") == (0, "prose: nothing to report\n")
