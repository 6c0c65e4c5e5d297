"""Text format of protocol buffers: every form of a field, and errors that name the line."""

import pytest

from ziggurat.compat.caffe.errors import CaffeError
from ziggurat.compat.caffe.text import parse_text


def test_all_forms_of_fields_are_read():
    root = parse_text(
        """
        name: "one" 'two'   # a comment: "not a field"
        shape { dim: 1 dim: 0x10 } shape: < dim: -3; > ;
        values: [1, 2.5f, 3e-1], flag: true
        escaped: "a\\n\\101\\x42\\"q"
        empty: []
        """
    )
    assert root.text("name") == "onetwo"
    assert [each.integers("dim", -9) for each in root.messages("shape")] == [[1, 16], [-3]]
    assert root.numbers("values") == [1.0, 2.5, 0.3]
    assert root.flag("flag", False)
    assert root.text("escaped") == 'a\nAB"q'
    assert root.numbers("empty") == []


def test_choices_are_words_or_numbers():
    root = parse_text("pool: 1 phase: TEST")
    assert root.choice("pool", ("MAX", "AVE"), "MAX") == "AVE"
    assert root.choice("phase", ("TRAIN", "TEST"), "TRAIN") == "TEST"
    assert root.choice("other", ("A",), "A") == "A"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb {\nc: 2\n", 2, "A message has an end (received: "),
        ("a: 1\n}\n", 2, "Here is the name of a field expected (received: "),
        ("a:\n\n", 1, "the end of the file"),
        ("a 1", 1, "Here is `:` or `{` expected (received: "),
        ('a: "open\n', 1, "not in the text format"),
        ("a: 1\nb: [1 2]", 2, "`,` or `]`"),
        ("a { b < c: 1 } }", 1, "the name of a field"),
        ("\x08\x96\x01", 1, "a `.caffemodel` belongs to the weights"),
        ("a {" * 50, 1, "at most 40 deep"),
    ],
)
def test_a_broken_text_is_an_error_with_its_line(text, line, words):
    with pytest.raises(CaffeError) as caught:
        parse_text(text)
    assert words in str(caught.value)
    assert caught.value.details["line"] == line


@pytest.mark.parametrize(
    ("text", "ask", "words"),
    [
        ("n: x", lambda root: root.integer("n", 0), "Line 1: `n` is 'x', not a whole number."),
        ("n: 7", lambda root: root.integer("n", 0, 0, 5), "a whole number from 0 to 5"),
        ("n: " + "9" * 5000, lambda root: root.integer("n", 0), "a whole number from"),
        ("n: nan", lambda root: root.number("n", 0.0), "a finite number"),
        ("n: 1e999", lambda root: root.number("n", 0.0), "a finite number"),
        ("n: maybe", lambda root: root.flag("n", False), "`true` or `false`"),
        ("n: SOME", lambda root: root.choice("n", ("MAX", "AVE"), "MAX"), "`MAX` or `AVE`"),
        ("n { }", lambda root: root.text("n"), "a value, and no message"),
        ("n: 1", lambda root: root.message("n"), "a message in braces"),
        ("n: 1\nn: 2", lambda root: root.integer("n", 0), "Line 2: `n` may stand only once"),
        ("n: 1\nm: 2", lambda root: root.only("n"), "Line 2: `m` is not a field"),
    ],
)
def test_a_value_of_another_kind_is_an_error(text, ask, words):
    with pytest.raises(CaffeError, match="Line") as caught:
        ask(parse_text(text))
    assert words in str(caught.value)
