"""Encodings: Western texts are read without a question, Asian ones are asked for, and XML says its own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.datasets.folder_sets import Scanned
from tests.unit.datasets.small_sources import request
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.formats.shared.text_encodings import asian_encodings, xml_text
from ziggurat.datasets.formats.shared.text_files import encoding_of, head_lines, read_class_names
from ziggurat.datasets.formats.table.importer import TableImporter
from ziggurat.datasets.formats.text.importer import TextImporter
from ziggurat.errors import DataError

WESTERN = (
    "Die Übergröße heißt „schön“ – für 5 € fährt man über Köln",
    "L’été dernier, où étiez-vous ? Ça va être très agréable à l’œil",
    "¿Dónde está el niño? ¡Ánimo! El Ñandú corrió más rápido",
    "Não há coração são, amanhã às três avós",
    "På øen står æblerne i året rundt, Århus og Ærø",
    "Hän söi äidin öljyä ja Åbo on täällä",
    "Perché è così? L’università è già più lontana, però",
    "Það er þoka á Íslandi í dag, Ægir",
    "don’t, it’s “fine” … we’re – at 25 °C ± 2 µm",
    "Größe ÄNDERN, FÜR ÖSTERREICH UND ZÜRICH",
    "Škoda, Žagar, Œuvre, naïve façade",
)
EAST = {
    "gb18030": ("这部电影很好看，我喜欢", "太无聊了浪费时间", "正面", "負面評論這部電影"),
    "shift_jis": ("この映画はとても面白い", "カタカナとひらがな", "東京都", "子犬と子猫"),
    "big5": ("這部電影很好看", "太無聊了，浪費時間"),
    "euc_kr": ("이 영화는 정말 재미있다", "시간 낭비였다"),
    "euc_jp": ("この映画はとても面白い", "カタカナとひらがな"),
}


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    words=st.lists(st.sampled_from([word for line in WESTERN for word in line.split()]), min_size=1, max_size=30),
    sign=st.sampled_from([" ", ",", ";", "\t", "\n"]),
)
def test_european_texts_are_never_asked_for(words: list[str], sign: str) -> None:
    assert asian_encodings(sign.join(words).encode("cp1252")) == []


@pytest.mark.parametrize("line", WESTERN)
def test_a_single_european_line_is_never_asked_for(line: str) -> None:
    assert asian_encodings(line.encode("cp1252")) == []
    assert asian_encodings(line.upper().encode("cp1252", "ignore")) == []


@pytest.mark.parametrize(("encoding", "text"), [(name, text) for name, texts in EAST.items() for text in texts])
@pytest.mark.parametrize("form", ["{}", "a.png,{}\nb.png,{}\n", "text {} 12\n", '"{}";1\n'])
def test_asian_texts_are_always_asked_for(encoding: str, text: str, form: str) -> None:
    codec = {"shift_jis": "cp932"}.get(encoding, encoding)
    assert encoding in asian_encodings(form.replace("{}", text).encode(codec))


def test_the_question_shows_both_readings_of_three_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,y\n一月,1\n二月,2\n三月,1\n四月,2\n".encode("gb18030"))
    with pytest.raises(DataError) as caught:
        Scanned(TableImporter(), path)
    error = caught.value
    assert "As gb18030 it reads “一月”, “二月”, “三月”, as cp1252 “Ò»ÔÂ”, “¶þÔÂ”, “ÈýÔÂ”." in error.rule
    assert error.advice.startswith("Set the option `encoding` to gb18030")
    assert error.details["field"] == "options.encoding"
    assert error.details["values"][0] == "gb18030"
    assert head_lines(path)[1] == "一月,1\n"


@pytest.mark.parametrize("name", ["gbk", "GB18030", "gb2312"])
def test_a_named_encoding_is_taken(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("when,y\n一月,1\n二月,2\n".encode("gbk"))
    found = Scanned(TableImporter(), path, encoding=name)
    assert b"\xe4\xb8\x80" in found.samples[0].parts[0]
    assert found.problems == []


def test_an_encoding_that_is_none_or_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,y\né,1\nü,2\n".encode("cp1252"))
    for name, said in (("klingon", "There is no such encoding"), ("hex", "There is no such"), ("utf-8", "is not in")):
        with pytest.raises(DataError, match=said) as caught:
            Scanned(TableImporter(), path, encoding=name)
        assert caught.value.details["field"] == "options.encoding"


def test_curly_quotes_and_the_euro_sign_are_those_of_windows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("text,label\n“fine” for 5 €,x\n– bad and long,y\n".encode("cp1252"))
    found = Scanned(TextImporter(), path, text="text", label="label")
    assert found.samples[0].parts[0].decode() == "“fine” for 5 €"
    assert [problem.kind for problem in found.problems] == ["encoding"]
    assert "read as cp1252" in found.problems[0].reason
    path.write_bytes(b"a \x81 b")
    assert encoding_of(path) == "latin-1"


def test_a_guessed_encoding_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a,y\né,1\nü,2\n".encode("cp1252"))
    create_dataset(request(path), tmp_path / "set")
    assert "encoding" in create_dataset(request(path), tmp_path / "set").problems


def test_names_of_classes_may_be_in_any_encoding(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes("猫\n狗\n".encode("gbk"))
    with pytest.raises(DataError, match="As gb18030 it reads “猫”, “狗”"):
        read_class_names(path)
    assert read_class_names(path, "gbk") == ["猫", "狗"]
    path.write_bytes("Bär\n".encode("cp1252"))
    assert read_class_names(path) == ["Bär"]


@pytest.mark.parametrize("layout", ["lines", "folders"])
def test_texts_in_files_are_asked_for_too(tmp_path: Path, layout: str) -> None:
    for name, text in (("good", "这部电影很好看"), ("bad", "太无聊了浪费时间")):
        path = tmp_path / (f"{name}/1.txt" if layout == "folders" else f"{name}.txt")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("gbk"))
    with pytest.raises(DataError, match="As gb18030 it reads"):
        Scanned(TextImporter(), tmp_path, layout=layout)
    found = Scanned(TextImporter(), tmp_path, layout=layout, encoding="gbk")
    assert sorted(sample.parts[0].decode() for sample in found.samples) == ["太无聊了浪费时间", "这部电影很好看"]


@pytest.mark.parametrize("encoding", ["gbk", "gb2312", "shift_jis", "euc-jp", "utf-8", "utf-16", "big5", "koi8-r"])
def test_xml_is_read_by_its_declaration(encoding: str) -> None:
    name = {"koi8-r": "кот", "big5": "貓"}.get(encoding, "猫")
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n<a>{name}</a>'
    assert ElementTree.fromstring(xml_text(content.encode(encoding))).text == name


def test_xml_without_a_declaration_is_utf_8() -> None:
    assert xml_text("<a>é</a>".encode()) == "<a>é</a>"
    with pytest.raises(ValueError, match="codec can't decode"):
        xml_text("<a>é</a>".encode("cp1252"))
    with pytest.raises(ValueError, match="'klingon', which does not exist"):
        xml_text(b'<?xml version="1.0" encoding="klingon"?><a/>')
