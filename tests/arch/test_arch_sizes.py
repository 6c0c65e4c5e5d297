"""``tools.size_figures`` prints the figures and names what is too large."""

import pytest


def lines(count):
    return "".join(f"    value_{number} = {number}\n" for number in range(count))


TOO_LARGE = {
    "a file over 500 lines": ("# line\n" * 501, ":1: a file has at most 500 lines. Received: 501 in `ziggurat.large`."),
    "a function over 60 lines": ("\ndef long():\n" + lines(60), ":2: a function has at most 60 lines. Received: 61 in"),
    "a class over 300 lines": ("class Large:\n" + lines(300), ":1: a class has at most 300 lines. Received: 301 in"),
    "eight arguments": (
        "class Few:\n    def many(self, a, b, c, d, e, *f, g, h, i, **j):\n        pass\n",
        ":2: a function has at most 7 arguments. Received: 8 in `many`.",
    ),
    "a median function over 10 lines": (
        "def one():\n" + lines(11) + "def two():\n" + lines(12),
        "the median function has at most 10 lines. Received: 12.5.",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_what_is_too_large_is_named(planted, text, complaint):
    planted.write("large.py", text)
    code, output = planted.tool("size_figures")
    assert code == 1
    assert "src/ziggurat/large.py:" in output
    assert complaint in output


def test_a_median_file_over_150_lines_is_named(planted):
    for name in ("one", "two", "three"):
        planted.write(f"{name}.py", "# line\n" * 151)
    code, output = planted.tool("size_figures")
    assert code == 1
    assert "the median file has at most 150 lines. Received: 151." in output


def test_the_figures_are_printed(planted):
    planted.write("small.py", '"""Owns little."""\n\ndef act(first, second):\n    return first\n')
    code, output = planted.tool("size_figures")
    assert code == 0
    assert "function                    1 of them, lines: median 2 (at most 10), most 2 (at most 60) in act" in output
    assert "arguments of a function     1 of them, arguments: median 2 (at most -), most 2 (at most 7) in act" in output
