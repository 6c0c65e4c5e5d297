"""Notifications on the settings page: view model, and parsing of the form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ziggurat.errors import ConfigurationError, ZigguratError
from ziggurat.workspace.studio import Studio
from ziggurat.workspace.studio.notification_settings import KINDS, NotificationSettings

__all__ = ["NotificationSection", "notification_section", "typed_notifications"]

_EVENTS: Final = (
    ("finished", "Finished"),
    ("failed", "Failed"),
    ("diverged", "Diverged"),
    ("disk_low", "Disk space low"),
)
_SHOWN: Final = ("address", "email_to", "email_from", "smtp_host", "smtp_security", "smtp_user")
_HIDDEN: Final = ("webhook_url", "webhook_key", "smtp_password")


@dataclass(frozen=True, kw_only=True)
class NotificationSection:
    """The section of the page.

    Args:
        held: settings without secrets, as ``Notifications.describe`` returns them, or as they were typed.
        problem: why the settings cannot be read, or why no test was sent; else empty.
        tested: receiver → why the test failed, empty if it was delivered; None if none was sent.
        wrong: field → what is wrong with it.
        events: name and text of what can be told.
    """

    held: Mapping[str, Any]
    problem: str = ""
    tested: Mapping[str, str] | None = None
    wrong: Mapping[str, str] = field(default_factory=dict)
    events: tuple[tuple[str, str], ...] = _EVENTS


def notification_section(
    studio: Studio, *, typed: Mapping[str, str] | None = None, error: ZigguratError | None = None, **more: Any
) -> NotificationSection:
    """Return the section.

    Args:
        studio: whose settings are shown.
        typed: form that was refused; shown again without its secrets.
        error: why it was refused.
        more: further fields of the section.
    """
    problem = ""
    try:
        held = studio.notifications.describe()
    except ZigguratError as unreadable:  # the other settings must stay in reach
        held, problem = {**NotificationSettings().describe(), "last": {}}, str(unreadable)
    if typed is not None:
        held |= {name: typed.get(name, "") for name in (*_SHOWN, "smtp_port")} | {"events": _ticked(typed)}
    name = "" if error is None else error.details.get("field", "")
    text = "" if error is None else " ".join(filter(None, (error.rule, error.advice))).replace("`", "")
    wrong = {name: text} if name else {}
    return NotificationSection(held=held, problem=problem or ("" if name else text), wrong=wrong, **more)


def typed_notifications(typed: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of a form; an empty secret stays as it is.

    Raises:
        ConfigurationError: if the port is no number.
    """
    if typed.get("remove") == "webhook":
        return {"webhook_url": "", "webhook_key": ""}
    values: dict[str, Any] = {name: typed.get(name, "") for name in _SHOWN}
    values |= {name: typed[name] for name in _HIDDEN if typed.get(name)}
    port = typed.get("smtp_port", "").strip()
    if not (port.isascii() and port.isdecimal()):
        raise ConfigurationError("The port must be 1 to 65535.", details={"field": "smtp_port"})
    return {**values, "smtp_port": int(port), "events": _ticked(typed)}


def _ticked(typed: Mapping[str, str]) -> list[str]:
    return [name for name in KINDS if typed.get(f"event-{name}")]
