"""``tools.size_figures`` prints the figures and names what is too large."""

import pytest


def lines(count):
    return "".join(f"    value_{number} = {number}\n" for number in range(count))


TOO_LARGE = {
    "a file over 800 lines": ("# line\n" * 801, ":1: a file has at most 800 lines. Received: 801 in `ziggurat.large`."),
    "a function over 80 lines": ("\ndef long():\n" + lines(80), ":2: a function has at most 80 lines. Received: 81 in"),
    "a class over 400 lines": ("class Large:\n" + lines(400), ":1: a class has at most 400 lines. Received: 401 in"),
    "eight arguments": (
        "class Few:\n    def many(self, a, b, c, d, e, *f, g, h, i, **j):\n        pass\n",
        ":2: a function has at most 7 arguments. Received: 8 in `many`.",
    ),
    "a median function over 25 lines": (
        "def one():\n" + lines(26) + "def two():\n" + lines(27),
        "the median function has at most 25 lines. Received: 27.5.",
    ),
}


@pytest.mark.parametrize(("text", "complaint"), TOO_LARGE.values(), ids=TOO_LARGE.keys())
def test_what_is_too_large_is_named(planted, text, complaint):
    planted.write("large.py", text)
    code, output = planted.tool("size_figures")
    assert code == 1
    assert "src/ziggurat/large.py:" in output
    assert complaint in output


def test_a_median_file_over_250_lines_is_named(planted):
    for name in ("one", "two", "three"):
        planted.write(f"{name}.py", "# line\n" * 251)
    code, output = planted.tool("size_figures")
    assert code == 1
    assert "the median file has at most 250 lines. Received: 251." in output


def test_the_figures_are_printed(planted):
    planted.write("small.py", '"""A little."""\n\ndef act(first, second):\n    return first\n')
    code, output = planted.tool("size_figures")
    assert code == 0
    assert "function                    1 of them, lines: median 2 (at most 25), most 2 (at most 80) in act" in output
    assert "arguments of a function     1 of them, arguments: median 2 (at most -), most 2 (at most 7) in act" in output
