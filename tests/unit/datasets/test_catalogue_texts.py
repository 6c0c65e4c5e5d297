"""Texts in a catalog: search in any script, and a damaged file that says so."""

from pathlib import Path

import pytest

from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry, SampleFilter
from ziggurat.errors import DataError


def catalogue_of(path: Path, keys: list[str]) -> Path:
    with CatalogueWriter(path) as writer:
        for number, key in enumerate(keys):
            writer.add(Entry(number=number, split="train", row=number, key=key, parts=(key,), label=0, class_number=0))
    return path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("grün", ["GRÜN.png", "grün/1.png"]),
        ("GRÜN", ["GRÜN.png", "grün/1.png"]),
        ("a_b", ["a_b.png"]),
        ("A", ["a_b.png", "axb.png"]),
    ],
)
def test_a_text_is_found_whatever_its_case_in_any_script(tmp_path: Path, text: str, found: list[str]) -> None:
    path = catalogue_of(tmp_path / "index.sqlite", ["GRÜN.png", "grün/1.png", "a_b.png", "axb.png"])
    with Catalogue(path) as catalogue:
        assert [entry.key for entry in catalogue.page(SampleFilter(text=text))] == found


def test_a_damaged_catalogue_says_so(tmp_path: Path) -> None:
    path = catalogue_of(tmp_path / "index.sqlite", [f"{number:06d}.png" for number in range(3000)])
    content = bytearray(path.read_bytes())
    content[16384:] = b"\xa5" * (len(content) - 16384)
    path.write_bytes(content)
    with pytest.raises(DataError, match="read as it was written"):  # noqa: SIM117 - opening may find it already
        with Catalogue(path) as catalogue:
            list(catalogue.walk())
            catalogue.count(SampleFilter(text="2"))
