"""Draft and presets of the new-model form, which the studio keeps for each user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.datastructures import FormData
from starlette.requests import Request

from ziggurat.entities import Identity
from ziggurat.errors import MissingEntryError, SpecError, UsageError
from ziggurat.web.drafts import Draft, drop_draft, is_pair, load_draft, pairs_of, save_draft
from ziggurat.web.pages.new_model.form import ModelForm, posted_form
from ziggurat.workspace.studio import Studio

__all__ = [
    "LAST",
    "PAGE",
    "delete_preset",
    "draft_form",
    "keep_draft",
    "origin_query",
    "preset_names",
    "save_preset",
    "with_preset",
]

PAGE: Final = "new-model"
LAST: Final = "Last settings"
"""Preset with the settings of the training that was started last."""

_KIND: Final = "preset"
_OF_A_JOB: Final = (
    "dataset", "name", "notes", "origin", "parent", "picked", "recipe", "previous_model", "previous_checkpoint",
    "published_model", "preview_row", "preview_seed", "preview_split",
)  # fmt: skip
"""Fields that belong to one job: no preset holds them."""


def keep_draft(request: Request, form: ModelForm) -> Draft | None:
    """Save a form as the draft of the user who asks; return None where it is too large."""
    return save_draft(request, PAGE, FormData([(name, text) for name, text in form.pairs()]))


def draft_form(request: Request, studio: Studio) -> tuple[ModelForm | None, Draft | None]:
    """Return the draft of the user who asks, as a form and as it was saved; None for both where there is none."""
    draft = load_draft(request, PAGE)
    if draft is None:
        return None, None
    try:
        return posted_form(studio, draft.form()), draft
    except SpecError:  # saved by a program, with names that contradict each other
        drop_draft(request, PAGE)
        return None, None


def origin_query(form: ModelForm) -> dict[str, str]:
    """Return the query of the address at which a form was opened."""
    return dict(parse_qsl(form["origin"]))


def preset_names(studio: Studio, who: Identity) -> list[str]:
    """Return the presets of a user, the last settings first."""
    names = [item.name for item in studio.saved.list(who.name, _KIND) if _is_own(item.content)]
    return sorted(names, key=lambda name: name != LAST)


def save_preset(studio: Studio, who: Identity, name: str, form: ModelForm) -> None:
    """Save the settings of a form under a name.

    Raises:
        UsageError: where the name is empty or too long, or there are too many.
        ConfigurationError: where it has control characters.
    """
    whole = FormData([(each, text) for each, text in form.pairs() if each not in _OF_A_JOB])
    if name != LAST and name.strip().casefold() == LAST.casefold():
        raise UsageError(
            f"The name `{LAST}` is taken: every started training replaces it.", advice="Choose another name."
        )
    studio.saved.put(who.name, _KIND, name.strip(), {"page": PAGE, "fields": pairs_of(whole)})


def with_preset(studio: Studio, who: Identity, name: str, form: ModelForm) -> ModelForm:
    """Return a form with the settings of a preset; dataset, name and notes stay.

    Raises:
        MissingEntryError: where there is no such preset.
    """
    item = studio.saved.get(who.name, _KIND, name)
    if item is None or not _is_own(item.content):
        raise MissingEntryError("There is no such preset.", received=name, advice="Choose one of the list.")
    fields = [tuple(each) for each in item.content["fields"] if is_pair(each)]
    kept = [(name, text) for name, text in form.pairs() if name in _OF_A_JOB and name not in ("picked", "recipe")]
    return posted_form(studio, FormData([*fields, *kept, ("recipe", "off")]))


def delete_preset(studio: Studio, who: Identity, name: str) -> str:
    """Delete a preset; return the id by which it can be restored.

    Raises:
        MissingEntryError: where there is none of that name.
    """
    return studio.saved.delete(who.name, _KIND, name)


def _is_own(content: Any) -> bool:
    return isinstance(content, Mapping) and content.get("page") == PAGE and isinstance(content.get("fields"), list)
