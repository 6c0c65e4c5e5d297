"""A comma in a number field separates values only where it cannot be meant otherwise."""

import pytest

from ziggurat.specs import comma_question


@pytest.mark.parametrize(
    ("text", "kind", "meant"),
    [
        ("0,01", "number", "0.01"),
        ("-1,5e-3", "number", "-1.5e-3"),
        ("0,1, 0,01", "number", "0.1, 0.01"),
        ("0,1; 0,01", "number", "0.1, 0.01"),
        ("1,000", "number", "1.000 or 1000"),
        ("1.000,5", "number", "1000.5"),
        ("1,500.5", "number", "1500.5"),
        ("1,000,000", "integer", "1000000"),
        ("0,5, 1,5", "list", "0.5, 1.5"),
    ],
)
def test_comma_question_names_the_probable_number(text, kind, meant):
    assert comma_question(text, kind).startswith(f"Did you mean {meant}? Write decimals with a point")


def test_comma_question_asks_without_a_guess_too():
    assert comma_question("0,1,0,01", "number").startswith("Write decimals with a point")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0.1, 0.01", "number"),
        ("0.1,0.01", "number"),
        ("1e-3,1e-4", "number"),
        ("0, 1", "number"),
        ("[0,1]", "number"),
        ("16,32,64", "integer"),
        ("1,2", "list"),
        ("0.01", "number"),
        ("many", "number"),
        ("a,b", "text"),
    ],
)
def test_comma_question_is_silent_where_it_is_clear(text, kind):
    assert comma_question(text, kind) == ""
