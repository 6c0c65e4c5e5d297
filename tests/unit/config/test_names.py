"""Names have no control characters; notes may have several lines."""

import pytest

from ziggurat.entities.names import check_job_texts, check_name, check_notes
from ziggurat.errors import ConfigurationError


@pytest.mark.parametrize("name", ["", "LeNet on digits", "žluťoučký kůň", "手書き", "👩‍🔬 run", "a / b — c", "\u00a0"])
def test_names_may_be_any_text(name):
    check_name(name, "A tag")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\0", r"U+0000 in '\x00'"),
        ("one\ntwo", r"U+000A in 'one\ntwo'"),
        ("tab\there", "U+0009"),
        ("\x1b[31mred", "U+001B"),
        ("\x7f", "U+007F"),
        ("\u0085", "U+0085"),
        ("half \ud800", r"U+D800 in 'half \ud800'"),
    ],
)
def test_control_character_in_a_name_is_refused(name, shown):
    with pytest.raises(ConfigurationError) as caught:
        check_name(name, "The name of a job")
    assert str(caught.value).startswith("The name of a job must be text without control characters (received: U+")
    assert shown in str(caught.value)


def test_notes_may_have_lines_and_tabs():
    check_notes("first\r\n\tsecond\n", "The notes")
    with pytest.raises(ConfigurationError, match=r"U\+0000"):
        check_notes("first\0", "The notes")


@pytest.mark.parametrize("texts", [{"name": "\n"}, {"project": "\n"}, {"tags": ("a", "\n")}, {"notes": "\0"}])
def test_each_text_of_a_job_is_checked(texts):
    with pytest.raises(ConfigurationError, match="must be text without control characters"):
        check_job_texts(**texts)
