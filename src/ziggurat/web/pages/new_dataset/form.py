"""The dataset form: submitted texts, errors, the detected format, and the options of the format."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ziggurat.errors import JobError, SpecError, ZigguratError
from ziggurat.specs import DatasetSpec
from ziggurat.web.dataset_kinds import KIND_NAMES
from ziggurat.web.pages.new_dataset.labels import CHOICES, HINTS, TITLES
from ziggurat.web.pages.new_dataset.problems import field_problems, problem_text
from ziggurat.web.pages.new_dataset.texts import FIELDS, request_of, spec_of, start_texts, text_of, texts_of
from ziggurat.workspace import datasets
from ziggurat.workspace.new_jobs import JobRequest
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.jobs import clone_request

__all__ = [
    "DatasetForm",
    "cloned_texts",
    "fill_form",
    "given_options",
    "is_elsewhere",
    "option_text",
    "refuse",
    "sent_texts",
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
    try:
        return json.loads(text)
    except ValueError:
        return text


_KEPT: Final = ("options_of", "form_id")

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

    @property
    def options_differ(self) -> bool:
        """Whether an option is not what it would be anyway, or wrong."""
        is_wrong = any(name.startswith("options.") for name in self.problems)
        return is_wrong or any(text != self._usual_texts.get(name) for name, text in self.options.items())

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
            "hint": HINTS.get(path, known.help if known else "").replace("`", ""),
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
    texts["source"] = texts["source"].strip()
    return texts


def cloned_texts(studio: Studio, job_id: str) -> dict[str, str]:
    """Return name → text of a dataset that was made, to be changed and made again.

    Raises:
        JobError: where there is none of that id.
    """
    request = clone_request(studio.jobs, job_id)
    if request.spec.get("kind") != "dataset":
        raise JobError("A dataset is made again from a dataset.", received=f"{job_id}, of another kind")
    return {**texts_of(request), "options_of": _ALL}


def fill_form(
    studio: Studio, texts: Mapping[str, str], *, is_sent: bool = True, refused: Mapping[str, str] | None = None
) -> DatasetForm:
    """Return the form for what was typed.

    Args:
        studio: knows formats, paths and jobs.
        texts: name → text.
        is_sent: whether a source that is missing is wrong; while a person is at it, it is not.
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
    except SpecError as error:
        problems = {**field_problems(error, texts), **problems}
    except ZigguratError as error:
        problems = {**problems, **field_problems(error, texts)}
    if not texts["source"] and not is_sent:
        problems.pop("source", None)
    if not texts.get("priority", "").strip().removeprefix("-").isdigit():
        problems["priority"] = "Priority must be a whole number."
    return replace(form, problems={**problems, **(refused or {})})


def refuse(form: DatasetForm, error: ZigguratError) -> DatasetForm:
    """Return the form with an error at its field; under the empty name where it belongs to none."""
    return replace(form, problems={**form.problems, **field_problems(error, {**form.texts, **_named(form.options)})})


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
    try:
        found = datasets.recognize_source(str(studio.paths.allowed(source)))
    except ZigguratError as error:
        return None, {"source": problem_text(error)}
    if not is_format_named and found.guesses:
        try:
            found.required()
        except ZigguratError as error:
            return found, field_problems(error, {})
    return found, {}


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
