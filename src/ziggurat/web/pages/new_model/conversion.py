"""Conversion of another tool's network on the new-model page: the network file and its report beside the old text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from ziggurat.entities import Identity
from ziggurat.errors import DataError, ZigguratError, broken_rule
from ziggurat.server.dependencies import StudioDep
from ziggurat.server.errors import NotFoundError, status_of
from ziggurat.server.permissions import new_router, require
from ziggurat.web.forms import sent_files, take_files
from ziggurat.web.pages.new_model.chosen_data import data_of
from ziggurat.web.pages.new_model.fill_in import fill_in, put_values
from ziggurat.web.pages.new_model.form import ModelForm, posted_form
from ziggurat.web.pages.new_model.kept import keep_draft
from ziggurat.web.pages.new_model.looks import preflight_look
from ziggurat.web.pages.new_model.network_tabs import NETWORK_FILE, NetworkTab, network_tabs, seal
from ziggurat.web.pages.new_model.request import read_form
from ziggurat.web.pages.new_model.routes import whole_page
from ziggurat.web.pages.new_model.view import input_of, summary_of
from ziggurat.workspace.studio import Studio

__all__ = ["router"]

router = new_router()

_FILE_BYTES: Final = 2 << 30
_MOST_TEXT_BYTES: Final = 1 << 20
_SenderUser = Annotated[Identity, require("trainer", "write", limit_bytes=_FILE_BYTES)]
"""A user who may make and change, and sends a file of weights."""


@router.post("/models/new/convert/{name}", include_in_schema=False)
async def convert(request: Request, studio: StudioDep, who: _SenderUser, name: str) -> Response:
    """Return the page with the network file beside the old text, or with what is wrong at its line."""
    tab = next((each for each in network_tabs() if each.name == name), None)
    if tab is None:
        raise NotFoundError(f"There is no tab `{name[:40]}`.")
    async with request.form() as sent:
        return await run_in_threadpool(_convert, request, studio, who, tab, sent)


def _convert(request: Request, studio: Studio, who: Identity, tab: NetworkTab, sent: FormData) -> Response:
    form = posted_form(studio, sent)
    form.values.update(method=tab.name, converted="")
    status, sources = 200, list[str]()
    try:
        paths = _taken(studio, tab, sent, sources)
        if network := paths.pop(NETWORK_FILE, None):
            form.values[tab.text_field] = _text_of(network)
        if not form[tab.text_field].strip():
            raise DataError(f"There is no {tab.text_title} yet.", advice="Paste it into the editor, or choose a file.")
        report = tab.convert(studio, who, {**_asked(studio, form, tab), **{k: str(v) for k, v in paths.items()}})
        _take_over(form, tab, report)
        fill_in(studio, form)
        conversion: dict[str, Any] = {"report": report, "problem": None}
    except ZigguratError as error:
        status, conversion = status_of(error), {"report": None, "problem": _problem(error)}
    finally:
        for source in sources:
            studio.uploads.remove(Path(source).parent.name)
    asked, draft = read_form(studio, form), keep_draft(request, form)
    quick = preflight_look(studio, form, asked, whole=False)
    shown = {"conversion": conversion, "draft": draft, "preflight": quick}
    return whole_page(request, studio, form, asked, status, shows_problems=False, **shown)


def _taken(studio: Studio, tab: NetworkTab, sent: FormData, sources: list[str]) -> dict[str, Path]:
    """Return name → path of the files that were sent; their folders are added to ``sources``."""
    found = {}
    for each in tab.files:
        files = sent_files(sent, f"{tab.name}-{each.name}")[:1]
        if files and (source := take_files(studio, files)):
            sources.append(source)
            found[each.name] = next(path for path in Path(source).rglob("*") if path.is_file())
    return found


def _text_of(path: Path) -> str:
    if path.stat().st_size > _MOST_TEXT_BYTES:
        raise DataError(
            f"The file has {path.stat().st_size:,} bytes; the editor takes texts up to 1 MiB.",
            advice="Use `ziggurat model import`.",
        )
    return path.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")


def _asked(studio: Studio, form: ModelForm, tab: NetworkTab) -> dict[str, Any]:
    """Return the request: the text, and the size of the images that the form, else the dataset, names."""
    known = input_of(form, summary_of(studio, form, data_of(studio, form))["what"])
    shape = known["input_shape"]
    usual = "x".join(map(str, (shape[2], shape[0], shape[1]))) if shape and len(shape) == 3 else ""
    request = {"text": form[tab.text_field], "input": form[tab.input_field].strip(), "usual_input": usual}
    return {**request, "classes": known["classes"] or 0}


def _take_over(form: ModelForm, tab: NetworkTab, report: Mapping[str, Any]) -> None:
    """Put what a conversion gave into the form: the network file, settings of the training, weights."""
    stem = "".join(c if c.isalnum() else "_" for c in str(report.get("name") or tab.name)).strip("_").lower()[:60]
    form.values.update(
        network_text=report["network"],
        custom_framework="torch",
        network_file=f"{stem or tab.name}.py",
        converted=seal(tab.name, form[tab.text_field], report["network"]),
    )
    put_values(form, dict(_flat(report["training"])))
    if report.get("pretrained"):
        put_values(form, {"pretrained": report["pretrained"]})


def _flat(values: Mapping[str, Any], owner: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{owner}.{name}" if owner else name
        if isinstance(value, Mapping):
            yield from _flat(value, path)
        else:
            yield path, value


def _problem(error: ZigguratError) -> dict[str, Any]:
    line = error.details.get("line")
    return {
        "rule": broken_rule(error.rule.removeprefix(f"Line {line}: "), error.received),
        "advice": error.advice,
        "line": line if isinstance(line, int) else 0,
    }
