"""The words of ``demo``."""

from ziggurat.cli.server import Place


def test_mistakes_are_told(ziggurat, tmp_path):
    answer = ziggurat("demo", "--out", tmp_path, "--epochs", "0")
    assert answer.code == 2
    assert "; it must be at least 1" in answer.err


def test_a_place_says_its_words_again():
    place = Place(host="0.0.0.0", port=7, prefix="/z", hosts=("a",), database=None)
    assert place.words() == ["--host", "0.0.0.0", "--port", "7", "--prefix", "/z", "--allowed-host", "a"]
