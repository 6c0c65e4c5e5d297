"""Export formats of a dataset, their options, and parsing of the submitted option values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ziggurat.errors import UsageError
from ziggurat.workspace import datasets
from ziggurat.workspace.studio import Studio

__all__ = ["ExportFormat", "ExportOption", "export_formats", "typed_options"]


@dataclass(frozen=True, kw_only=True)
class ExportOption:
    """An option of an export.

    Args:
        name: as the exporter calls it.
        title: for people.
        hint: what it does.
        choices: value and text of each; empty where anything may be typed.
        usual: what holds where nothing is typed.
        is_whole: whether it is a whole number.
        is_switch: whether it is on or off.
    """

    name: str
    title: str
    hint: str = ""
    choices: Sequence[tuple[str, str]] = ()
    usual: str = ""
    is_whole: bool = False
    is_switch: bool = False


@dataclass(frozen=True, kw_only=True)
class ExportFormat:
    """A format that can hold the dataset.

    Args:
        name: as the studio calls it.
        title: for people.
        options: of the export.
    """

    name: str
    title: str
    options: Sequence[ExportOption]


_KNOWN: Final[Mapping[str, ExportOption]] = {
    option.name: option
    for option in (
        ExportOption(
            name="compression",
            title="Compression",
            hint="gzip makes the files smaller and slower to read.",
            choices=(("none", "None"), ("gzip", "gzip")),
            usual="none",
        ),
        ExportOption(
            name="elements_per_file",
            title="Values per file",
            hint="Caffe reads no more than 2147483648.",
            usual="2147483648",
            is_whole=True,
        ),
        ExportOption(
            name="encoding",
            title="Images",
            hint="Caffe without OpenCV needs them not encoded.",
            choices=(("stored", "As they are stored"), ("none", "Not encoded")),
            usual="stored",
        ),
        ExportOption(name="compress", title="Compress the files", hint="With gzip, as MNIST is.", is_switch=True),
        ExportOption(
            name="records_per_shard",
            title="Records per file",
            hint="Typical: 1000 to 10000.",
            usual="10000",
            is_whole=True,
        ),
        ExportOption(
            name="samples_per_shard",
            title="Samples per file",
            hint="Typical: 1000 to 10000.",
            usual="10000",
            is_whole=True,
        ),
        ExportOption(
            name="one_based",
            title="Count pixels from 1",
            hint="As the first VOC files do; else from 0.",
            is_switch=True,
        ),
        ExportOption(
            name="outlines",
            title="Boxes or outlines",
            hint="A YOLO dataset has one or the other. Outlines are for segmentation; boxes become rectangles.",
            choices=(("", "Outlines if every object has one"), ("false", "Boxes"), ("true", "Outlines")),
        ),
    )
}
_ON_OR_OFF: Final = {"true": True, "false": False}
_FILE_FORMATS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "table": (("csv", "CSV"), ("tsv", "TSV"), ("parquet", "Parquet")),
    "text": (("csv", "CSV"), ("tsv", "TSV"), ("jsonl", "JSON lines")),
}


def export_formats(studio: Studio, kind: str) -> list[ExportFormat]:
    """Return the formats that can hold datasets of a kind."""
    return [
        ExportFormat(
            name=each["name"],
            title=each["title"],
            options=[_option(each["name"], name) for name in each["export_options"]],
        )
        for each in datasets.formats()
        if kind in each["exports"]
    ]


def typed_options(chosen: ExportFormat, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the options that were typed; those that were left empty are left out.

    Raises:
        UsageError: where a number is none.
    """
    found: dict[str, Any] = {}
    for option in chosen.options:
        text = typed.get(option.name, "").strip()
        if option.is_switch:
            found[option.name] = text == "true"
        elif option.is_whole and text:
            if not (text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text)):
                raise UsageError(f"“{option.title}” is a whole number, at least 1.", received=f"`{text[:40]}`")
            found[option.name] = int(text)
        elif text:
            found[option.name] = _ON_OR_OFF.get(text, text) if option.choices else text
    return found


def _option(format_name: str, name: str) -> ExportOption:
    if name == "file_format":
        choices = _FILE_FORMATS.get(format_name, ())
        return ExportOption(name=name, title="Kind of file", choices=choices, usual="csv")
    return _KNOWN.get(name) or ExportOption(name=name, title=name.replace("_", " ").capitalize())
