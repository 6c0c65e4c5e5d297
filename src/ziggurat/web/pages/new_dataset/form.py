"""Dataset form: its texts and their conversion to a spec, the detected format with its options, and errors."""

from __future__ import annotations

import json
import os
import re
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import JobError, UnknownNameError, UsageError, ZigguratError
from ziggurat.specs import DatasetSpec, dataset_spec_from_flags
from ziggurat.web.forms import json_or_text, priority_of
from ziggurat.web.pages.dataset.view import KIND_NAMES
from ziggurat.web.pages.new_dataset.field_texts import CHOICES, FIELDS, HINTS, LISTS, SAID, TITLES
from ziggurat.workspace import datasets
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import clone_request
from ziggurat.workspace.studio.paths import NOT_ALLOWED
from ziggurat.workspace.studio.uploads import is_archive

__all__ = [
    "HUB",
    "OUTSIDE",
    "DatasetForm",
    "cloned_texts",
    "fill_form",
    "given_options",
    "is_elsewhere",
    "is_not_allowed",
    "is_unrecognized",
    "option_text",
    "problem_text",
    "refuse",
    "said_content",
    "sent_texts",
    "spec_of",
    "start_texts",
    "texts_of",
    "unrecognized_text",
    "usual_options",
]


def usual_options(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return name → default of the options of a format."""
    return {option["name"]: option["default"] for option in found["options"]}


def option_text(value: Any) -> str:
    """Return the value of an option as a person would type it; a list of plain words needs no brackets."""
    if isinstance(value, list) and all(_is_plain(part) for part in value):
        return ", ".join(value)
    return "" if value == {} else text_of(value)


def given_options(found: Mapping[str, Any], texts: Mapping[str, str], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that differ from what would hold anyway.

    Args:
        found: the format.
        texts: name of an option → text.
        usual: name → value that holds unless another is given.
    """
    given = {}
    for option in found["options"]:
        name = option["name"]
        text = texts.get(name, "")
        if text.strip() == option_text(usual[name]).strip():
            continue
        value = _value(option, text.strip())
        if value != usual[name]:
            given[name] = value
    return given


def _is_plain(part: Any) -> bool:
    return isinstance(part, str) and part != "" and part == part.strip() and "," not in part and part[0] not in "[{"


def _value(option: Mapping[str, Any], text: str) -> Any:
    """Return what a text means; what it cannot mean stays a text, which the importer refuses by name."""
    kind = option["type"]
    if kind == "str":
        return text
    if not text:
        return {"list": [], "dict": {}}.get(kind, option["default"])
    if kind == "list" and not text.startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    return json_or_text(text)


_KEPT: Final = ("options_of", "form_id", "source_kind", "hub")

HUB: Final = "hf://datasets/"
"""Beginning of the address of a dataset on the Hugging Face Hub."""

OUTSIDE: Final = "This folder is not allowed yet."
"""Problem of a source outside of the allowed folders; the page says beside it what can be done."""

_TABLES: Final = (".csv", ".tsv")
_ALL: Final = "*"
"""Options whose texts come from a job, and not from fields that were shown."""


@dataclass(frozen=True, kw_only=True)
class DatasetForm:
    """The form as it is shown.

    Args:
        texts: name → text of each field.
        problems: name → what is wrong there.
        parent: name → text of the job that it is a clone of; empty for none.
        guesses: what the importers think of the source, the most confident first.
        guessed: the guess that is taken where no format is chosen; None for none.
        formats: that can be read.
        chosen: format whose options are shown; None while it is not known.
        options: texts of its options.
        spec: what is asked for; None where something is wrong.
        is_outside: whether the source lies outside of the allowed folders.
    """

    texts: Mapping[str, str]
    problems: Mapping[str, str] = field(default_factory=dict)
    parent: Mapping[str, str] = field(default_factory=dict)
    guesses: Sequence[Any] = ()
    guessed: Any = None
    formats: Sequence[Mapping[str, Any]] = ()
    chosen: Mapping[str, Any] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    spec: DatasetSpec | None = None
    is_outside: bool = False

    @property
    def request(self) -> JobRequest | None:
        """What is asked of the studio; None where something is wrong."""
        return request_of(self.texts, self.spec) if self.spec is not None and not self.problems else None

    @property
    def kind(self) -> str:
        """Kind of dataset that is guessed; empty while it is not known."""
        guess = self.guess
        if guess is not None:
            return guess.kind
        kinds = self.chosen["kinds"] if self.chosen else ()
        return kinds[0] if len(kinds) == 1 else ""

    @property
    def guess(self) -> Any:
        """What the importer of the format thinks of the source; None where it knows nothing of it."""
        if not self.texts.get("format"):
            return self.guessed
        name = self.chosen["name"] if self.chosen else ""
        return next((guess for guess in self.own_guesses if guess.format == name), None)

    @property
    def own_guesses(self) -> list[Any]:
        """The guesses about the source itself, not about folders in it."""
        return [guess for guess in self.guesses if not guess.folder]

    @property
    def shares(self) -> list[tuple[str, float]]:
        """Split → share of it, where the shares are numbers that leave something for training."""
        try:
            val, test = float(self.texts["splits.val_share"]), float(self.texts["splits.test_share"])
        except ValueError:
            return []
        if not (0 <= val <= 1 and 0 <= test <= 1 and val + test < 1):
            return []
        return [("training", 1 - val - test), ("validation", val), ("test", test)]

    @property
    def kinds(self) -> list[tuple[str, list[Mapping[str, Any]]]]:
        """Name of a kind → the formats that are not guessed and can become it."""
        guessed = {guess.format for guess in self.own_guesses}
        rest = [each for each in self.formats if each["name"] not in guessed]
        groups = [(name, [each for each in rest if each["kinds"][0] == kind]) for kind, name in KIND_NAMES.items()]
        return [(name, found) for name, found in groups if found]

    def changed_fields(self, *names: str) -> int:
        """Return how many of these fields differ from their defaults."""
        usual = start_texts()
        return sum(self.texts.get(name, "").strip() not in ("", usual.get(name, "")) for name in names)

    @property
    def changed_options(self) -> int:
        """How many options of the format differ from what would hold anyway."""
        return sum(text != self._usual_texts.get(name) for name, text in self.options.items())

    def wrong_fields(self, *names: str) -> int:
        """Return how many of these fields have a problem; a name that ends with a dot stands for all below it."""
        return sum(
            any(wrong == name or (name.endswith(".") and wrong.startswith(name)) for name in names)
            for wrong in self.problems
        )

    def title_of(self, name: str) -> str:
        """Return what a format is called."""
        return next((each["title"] for each in self.formats if each["name"] == name), name)

    def wrong(self, name: str) -> str:
        """Return what is wrong with a field; empty where nothing is."""
        return self.problems.get(name, "")

    def is_changed(self, name: str) -> bool:
        """Return whether a field differs from that of the job that this is a clone of."""
        if not self.parent:
            return False
        if name.startswith("options."):
            texts, usual = self.options, self._usual_texts
            text = texts.get(name[8:], "")
            return text != self.parent.get(name, usual.get(name[8:], ""))
        return self.texts.get(name, "") != self.parent.get(name, "")

    def field(self, path: str) -> dict[str, Any]:
        """Return what is shown of a field of the spec."""
        known = FIELDS.get(path)
        unit = f" ({known.unit})" if known is not None and known.unit else ""
        return {
            "id": path,
            "title": TITLES.get(path, known.title if known else path) + unit,
            "hint": HINTS.get(path, known.help if known else ""),
            "kind": known.kind if known is not None else "text",
            "choices": CHOICES.get(path, ()),
            "text": self.texts.get(path, ""),
            "wrong": self.wrong(path),
            "changed": self.is_changed(path),
        }

    @property
    def _usual_texts(self) -> Mapping[str, str]:
        if self.chosen is None:
            return {}
        guessed = self.guess.options if self.guess is not None else {}
        return {name: option_text(value) for name, value in {**usual_options(self.chosen), **guessed}.items()}


def sent_texts(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return name → text of a form that a browser sent; a box that is not ticked sends nothing."""
    texts = start_texts()
    texts |= {path: "false" for path, known in FIELDS.items() if known.kind == "boolean"}
    for name, value in sent.items():
        if isinstance(value, str) and (name in texts or name in _KEPT or name.startswith("options.")):
            texts[name] = value.replace("\r\n", "\n")
    texts["source"] = os.path.expanduser(texts["source"].strip())  # `~` is the home of the user who runs the studio
    if texts.get("source_kind") == "hub" and (name := texts.get("hub", "").strip().strip("/")):
        texts["source"] = HUB + name.removeprefix("https://huggingface.co/datasets/").removeprefix(HUB)
    return texts


def cloned_texts(studio: Studio, job_id: str) -> dict[str, str]:
    """Return name → text of a dataset that was made, to be changed and made again.

    Raises:
        JobError: where there is none of that id.
    """
    request = clone_request(studio.jobs, job_id)
    if request.spec.get("kind") != "dataset":
        raise JobError(f"{job_id} is of another kind, and only a dataset can be cloned here.")
    return {**texts_of(request), "options_of": _ALL}


def fill_form(
    studio: Studio, texts: Mapping[str, str], *, is_sent: bool = True, refused: Mapping[str, str] | None = None
) -> DatasetForm:
    """Return the form for what was typed.

    Args:
        studio: knows formats, paths and jobs.
        texts: name → text.
        is_sent: whether the form was sent: then a missing source is wrong, while a person types it is not.
        refused: problems that are known before.
    """
    parent = _parent_texts(studio, texts.get("parent", ""))
    formats = datasets.formats()
    found, problems = _recognition(studio, texts["source"], is_format_named=bool(texts.get("format")))
    guesses, guessed = ((), None) if found is None else (found.guesses, found.chosen)
    form = DatasetForm(texts=texts, parent=parent, formats=formats, guesses=guesses, guessed=guessed)
    form = replace(form, chosen=_chosen(form))
    form, given = _with_options(form)
    try:
        spec = spec_of(texts, given)
        studio.paths.check_spec(spec.model_dump(mode="json"))
        form = replace(form, spec=spec)
    except ZigguratError as error:
        problems = {**field_problems(error, texts), **problems}
    if not texts["source"] and not is_sent:
        problems.pop("source", None)
    try:
        priority_of(texts.get("priority", ""))
    except UsageError as error:
        problems["priority"] = error.rule
    problems = {**problems, **(refused or {})}
    return replace(form, problems=problems, is_outside=problems.get("source") == OUTSIDE)


def refuse(form: DatasetForm, error: ZigguratError) -> DatasetForm:
    """Return the form with an error at its field; under the empty name where it belongs to none."""
    return replace(form, problems={**form.problems, **field_problems(error, {**form.texts, **_named(form.options)})})


def is_not_allowed(error: ZigguratError) -> bool:
    """Return whether an error is about a path outside of the allowed folders."""
    return error.details.get("reason") == NOT_ALLOWED


def is_elsewhere(source: str) -> bool:
    """Tell whether a source is an address of the network."""
    return "://" in source and not source.startswith("file://")


def _named(options: Mapping[str, str]) -> dict[str, str]:
    return {f"options.{name}": text for name, text in options.items()}


def _parent_texts(studio: Studio, job_id: str) -> dict[str, str]:
    if not job_id:
        return {}
    try:
        return cloned_texts(studio, job_id)
    except JobError:  # deleted meanwhile, or none that this form is for
        return {}


def _recognition(studio: Studio, source: str, *, is_format_named: bool) -> tuple[Any, dict[str, str]]:
    """Return what the importers think of a source, and what is wrong with it or its format."""
    if not source or is_elsewhere(source):
        return None, {}
    found = None
    place = Path()
    try:
        place = studio.paths.allowed(source)
        if is_damaged_archive(place):
            return None, {"source": "This archive is damaged or incomplete. Get it again, or upload it again."}
        found = datasets.recognize_source(str(place))
        if not is_format_named and not (is_archive(place.name) and not found.guesses):
            found.required()
    except ZigguratError as error:
        if is_not_allowed(error):
            return None, {"source": OUTSIDE}
        if is_unrecognized(error):
            return found, {"format": unrecognized_text(place, error)}
        if error.details.get("options"):
            return found, field_problems(error, {})
        return None, {"source": problem_text(error)}
    return found, {}


def is_unrecognized(error: ZigguratError) -> bool:
    """Return whether an error says that no importer recognizes a source."""
    return "obstacles" in error.details and not error.details.get("options")


def unrecognized_text(source: Path, error: ZigguratError) -> str:
    """Return what is shown of a source that no importer recognizes."""
    nearest = "; ".join(error.details.get("obstacles", ()))
    if nearest:
        return f"No known format was found. {nearest.rstrip('.').replace('`', '')}."
    if source.is_dir():
        try:
            names = [path.name for path in source.iterdir()]
        except OSError:
            return "This folder cannot be read."
        if not names:
            return "This folder is empty."
        if sum(name.lower().endswith(_TABLES) for name in names) > 1:
            return "This folder holds several tables. Choose one of its files."
        return "No known format was found in this folder. Choose another folder, or the format."
    if is_archive(source.name):
        return "No known format was found in this archive. Choose another source, or the format."
    return "This file is no dataset. Choose its folder, an archive, or a table."


def is_damaged_archive(path: Path) -> bool:
    """Return whether a file has the name of an archive, and does not begin or end like one."""
    if not path.is_file() or not is_archive(path.name):
        return False
    name = path.name.lower()
    try:
        if name.endswith(".zip"):
            return not zipfile.is_zipfile(path)
        return ".tar" in name and not tarfile.is_tarfile(path)
    except (OSError, EOFError):  # cut off in mid-stream
        return True


def _chosen(form: DatasetForm) -> Mapping[str, Any] | None:
    name = form.texts.get("format", "")
    if not name:
        name = form.guessed.format if form.guessed is not None else ""
    return next((each for each in form.formats if each["name"] == name), None)


def _with_options(form: DatasetForm) -> tuple[DatasetForm, dict[str, Any]]:
    """Return the form with the texts of the format's options, and the options that are asked for."""
    found = form.chosen
    if found is None:
        return form, {}
    usual = usual_options(found)
    guessed = {**usual, **(form.guess.options if form.guess is not None else {})}
    start = {name: option_text(value) for name, value in guessed.items()}
    shown_for = form.texts.get("options_of", "")
    sent = {name[8:]: text for name, text in form.texts.items() if name.startswith("options.")}
    if shown_for == found["name"]:
        unticked = {option["name"]: "false" for option in found["options"] if option["type"] == "bool"}
        start |= {**unticked, **{name: text for name, text in sent.items() if name in usual}}
    elif shown_for == _ALL:
        start |= {name: text for name, text in sent.items() if name in usual}
    # A format that is guessed comes with the options of the guess; one that is named does not.
    held = guessed if not form.texts.get("format") else usual
    return replace(form, options=start), given_options(found, start, held)


def text_of(value: Any) -> str:
    """Return a value as a person would type it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def start_texts() -> dict[str, str]:
    """Return name → text of every field, as a new form has them."""
    texts = {path: text_of(field.default) for path, field in FIELDS.items()}
    return {**texts, **dict.fromkeys((*LISTS, *SAID), ""), "priority": "0"}


def texts_of(request: JobRequest) -> dict[str, str]:
    """Return name → text of the request for a dataset, its options included; it may be of an older release."""
    texts = start_texts()
    spec = dict(request.spec)
    splits = spec.get("splits")
    parts = splits if isinstance(splits, Mapping) else {}
    texts |= {path: text_of(spec[path]) for path in FIELDS if path in spec}
    texts |= {path: text_of(parts[path[7:]]) for path in FIELDS if path.startswith("splits.") and path[7:] in parts}
    texts |= {f"splits.lists.{split}": str(file) for split, file in dict(parts.get("lists") or {}).items()}
    texts["size"] = _size_text(spec.get("size"))
    options = dict(spec.get("options") or {})
    texts |= {f"options.{name}": text_of(value) for name, value in options.items()}
    said = {"project": request.project, "tags": ", ".join(request.tags), "notes": request.notes}
    return {**texts, **said, "priority": str(request.priority), "parent": request.parent}


def spec_of(texts: Mapping[str, str], options: Mapping[str, Any]) -> DatasetSpec:
    """Return the spec that a form asks for; an empty field has its default.

    Args:
        texts: name → text.
        options: of the format.

    Raises:
        SpecError: where it is not valid; ``details["problems"]`` says of each field what is wrong.
    """
    usual = start_texts()
    given = {path: texts[path].strip() for path in FIELDS if texts.get(path, "").strip() not in ("", usual[path])}
    flags = {path: text for path, text in given.items() if "." not in path}
    parts = [f"{path}={text}" for path, text in given.items() if "." in path]
    base: dict[str, Any] = {"kind": "dataset", "version": 1, "options": dict(options)}
    lists = {name.rpartition(".")[2]: texts.get(name, "").strip() for name in LISTS}
    if any(lists.values()):
        base["splits"] = {"lists": {split: file for split, file in lists.items() if file}}
    return dataset_spec_from_flags(flags, assignments=parts, base=base)


def said_content(spec: DatasetSpec) -> dict[str, Any]:
    """Return what a spec says beyond the defaults, as JSON values."""
    usual = DatasetSpec(source="-").model_dump(mode="json")
    content = {name: value for name, value in spec.model_dump(mode="json").items() if value != usual[name]}
    if "splits" in content:
        content["splits"] = {name: value for name, value in content["splits"].items() if value != usual["splits"][name]}
    return content


def request_of(texts: Mapping[str, str], spec: DatasetSpec) -> JobRequest:
    """Return what is asked of the studio.

    Raises:
        UsageError: where the priority is no whole number.
    """
    tags = [tag.strip() for tag in texts.get("tags", "").split(",")]
    return JobRequest(
        spec=said_content(spec),
        project=texts.get("project", "").strip(),
        tags=tuple(dict.fromkeys(tag for tag in tags if tag)),
        notes=texts.get("notes", ""),
        priority=priority_of(texts.get("priority", "")),
        parent=texts.get("parent", ""),
    )


def _size_text(size: Any) -> str:
    if isinstance(size, list) and len(size) == 2:
        return str(size[0]) if size[0] == size[1] else f"{size[0]}x{size[1]}"
    return text_of(size)


def field_problems(error: ZigguratError, texts: Mapping[str, str]) -> dict[str, str]:
    """Return name of a field → what is wrong with it; the name is empty where the error belongs to no field.

    Args:
        error: that was raised.
        texts: name → text of the form's fields.
    """
    found = error.details.get("problems")
    if isinstance(found, list) and found:
        return {_shown_field(each["field"]): _sentence(each) for each in found}
    place, text = _field_of(error, texts), problem_text(error)
    if place.startswith("options."):
        text = text.replace(place[8:], place[8:].replace("_", " ").capitalize(), 1)  # as its label has it
    return {place: text}


def problem_text(error: ZigguratError) -> str:
    """Return an error in one line, for the place beside a field."""
    advice = "Choose one of the likely formats." if error.details.get("options") else error.advice
    nearest = "; ".join(error.details.get("obstacles", ()))
    nearest = f"{nearest.rstrip('.')}." if nearest else ""
    return " ".join(part for part in (error.rule, nearest, advice) if part).replace("`", "")


def _field_of(error: ZigguratError, texts: Mapping[str, str]) -> str:
    named = error.details.get("field")
    if isinstance(named, str) and named:
        return _shown_field(named)
    kind = str(error.details.get("kind", ""))
    if isinstance(error, UnknownNameError) and kind.startswith("importer"):
        return "format"
    quoted = re.findall(r"`([^`]+)`", f"{kind} {error.rule} {error.received or ''}")
    for word in filter(None, [(error.received or "").strip("`"), *quoted]):
        same = next((name for name, text in texts.items() if text.strip() == word), "")
        if same:
            return same
    for word in quoted:
        for name in (f"options.{word}", word, f"splits.{word}"):
            if name in FIELDS or name in texts:
                return name
    return "source" if "source" in error.rule else ""


def _shown_field(path: str) -> str:
    """Return the field of the form for a path of the spec; ``size.0`` is shown with ``size``."""
    parts = path.split(".")
    while parts:
        name = ".".join(parts)
        if name in FIELDS or name.startswith(("options.", "splits.lists.")):
            return name
        parts.pop()
    return ""


def _sentence(problem: Mapping[str, Any]) -> str:
    path = problem["field"]
    known = FIELDS.get(path)
    title = TITLES.get(path, known.title if known else path)
    rule = str(problem["rule"]).replace(f"`{path}`", title, 1)
    advice = str(problem.get("advice", ""))
    shown = "" if known is not None and advice.startswith(f"{known.title}:") else f" {advice}"
    text = f"{rule}.{shown}".rstrip().replace("`", "")
    return text.replace("val_share", "the validation share")
