"""Settings of notifications: a file of the workspace that only its owner can read, and its validation."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ziggurat.atomic import storage_errors
from ziggurat.errors import ConfigurationError
from ziggurat.layout import SECRETS_FOLDER
from ziggurat.services.receivers import SECURITIES

__all__ = ["KINDS", "NotificationFile", "NotificationSettings", "changed_settings"]

KINDS: Final = ("finished", "failed", "diverged", "disk_low")
"""What can be told."""

_FILE: Final = "notifications.json"
_ADDRESS: Final = re.compile(r"[^@\s,<>\"]+@[^@\s,<>\"]+")
_LEAST_KEY: Final = 16


@dataclass(frozen=True, kw_only=True)
class NotificationSettings:
    """What is told, and to whom.

    Args:
        events: names in ``KINDS``.
        address: URL of the studio, for links in messages; empty for none.
        webhook_url: receiver of the webhook; empty for none. It is kept secret: many contain a token.
        webhook_key: of its signatures; secret.
        email_to: addresses, separated by commas; empty for no e-mail.
        email_from: address of the sender.
        smtp_host: name of the mail server.
        smtp_port: of it.
        smtp_security: a name in ``SECURITIES``.
        smtp_user: for the login; empty for none.
        smtp_password: for the login; secret.
    """

    events: tuple[str, ...] = KINDS
    address: str = ""
    webhook_url: str = field(default="", repr=False)
    webhook_key: str = field(default="", repr=False)
    email_to: str = ""
    email_from: str = ""
    smtp_host: str = ""
    smtp_port: int = 587
    smtp_security: str = "starttls"
    smtp_user: str = ""
    smtp_password: str = field(default="", repr=False)

    @property
    def receivers(self) -> list[str]:
        """Addresses of the receivers of e-mail."""
        return [part.strip() for part in self.email_to.split(",") if part.strip()]

    def describe(self) -> dict[str, Any]:
        """Return the settings without secrets: ``webhook`` names only the host of the URL."""
        shown = asdict(self)
        for name in ("webhook_url", "webhook_key", "smtp_password"):
            del shown[name]
        url = urlsplit(self.webhook_url)
        return {
            **shown,
            "events": list(self.events),
            "webhook": f"{url.scheme}://{url.hostname}/…" if self.webhook_url else "",
            "has_webhook_key": bool(self.webhook_key),
            "has_smtp_password": bool(self.smtp_password),
        }


def changed_settings(before: NotificationSettings, values: Mapping[str, Any]) -> NotificationSettings:
    """Return settings with some values changed; those that are not named stay.

    A password goes with its server and user: if one of them changes, it has to be given again. The key of a webhook
    goes with its URL.

    Raises:
        ConfigurationError: if a value is not valid; its details name the field.
    """
    known = {each.name for each in fields(NotificationSettings)}
    for name in values:
        if name not in known:
            raise ConfigurationError(f"Notifications have no setting `{name}`.", advice=f"Known: {sorted(known)}.")
    given = {name: _plain(value) for name, value in values.items() if value is not None}
    after = replace(before, **given)
    if not after.webhook_url and "webhook_key" not in given:
        after = replace(after, webhook_key="")
    moved = (before.smtp_host, before.smtp_user) != (after.smtp_host, after.smtp_user)
    if moved and "smtp_password" not in given:
        after = replace(after, smtp_password="")
    _check(after)
    return after


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value.strip() if isinstance(value, str) else value


def _check(settings: NotificationSettings) -> None:
    unknown = [name for name in settings.events if name not in KINDS]
    if unknown:
        raise _wrong("events", f"There is no event `{unknown[0]}`.", f"Known: {', '.join(KINDS)}.")
    for name in ("address", "webhook_url"):
        value = getattr(settings, name)
        if value and not _is_url(value):
            # Not repeated: the URL of a webhook may hold a secret.
            raise _wrong(name, "This is no URL.", "It begins with https:// or http:// and names a host.")
    if settings.webhook_url and len(settings.webhook_key) < _LEAST_KEY:
        text = f"The webhook needs a key of {_LEAST_KEY} characters or more."
        raise _wrong("webhook_key", text, "The receiver checks the signature with the same key.")
    if not settings.email_to:
        return
    if not all(map(_ADDRESS.fullmatch, settings.receivers)):
        raise _wrong("email_to", "This is no list of e-mail addresses.", "Separate them by commas.")
    if not _ADDRESS.fullmatch(settings.email_from):
        raise _wrong("email_from", "E-mail needs the address of a sender.")
    if not settings.smtp_host or re.search(r"[\s/@]", settings.smtp_host):
        raise _wrong("smtp_host", "E-mail needs the name of a mail server.", "Such as mail.example.org.")
    if not 1 <= settings.smtp_port <= 65535:
        raise _wrong("smtp_port", "The port must be 1 to 65535.")
    if settings.smtp_security not in SECURITIES:
        raise _wrong("smtp_security", f"The encryption must be one of {', '.join(SECURITIES)}.")
    if settings.smtp_user and not settings.smtp_password:
        raise _wrong("smtp_password", "The login needs its password; after a change of server or user, once more.")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False


def _wrong(name: str, rule: str, advice: str = "") -> ConfigurationError:
    return ConfigurationError(rule, advice=advice, details={"field": name})


class NotificationFile:
    """The settings as a file of the workspace, with mode 0600 in a folder of mode 0700.

    Args:
        workspace: its folder.
    """

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / SECRETS_FOLDER / _FILE

    def read(self) -> NotificationSettings:
        """Return the settings; the defaults, which send nothing, if there is no file.

        Raises:
            ConfigurationError: if the file is damaged; its content is not repeated.
        """
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
            return changed_settings(NotificationSettings(), stored)
        except FileNotFoundError:
            return NotificationSettings()
        except (OSError, ValueError, TypeError, AttributeError, ConfigurationError) as error:
            raise ConfigurationError(
                f"The file {self.path} cannot be used ({type(error).__name__}).",
                advice="Delete it, and set notifications again on the settings page.",
            ) from None

    def write(self, settings: NotificationSettings) -> None:
        """Replace the file.

        Raises:
            StorageError: if it cannot be written.
        """
        folder, partial = self.path.parent, self.path.with_suffix(".partial")
        with storage_errors(self.path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            partial.unlink(missing_ok=True)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(asdict(settings), file)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(self.path)
