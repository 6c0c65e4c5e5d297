"""Settings of notifications: who can read them, what is valid, and that secrets stay."""

import json
import stat

import pytest

from ziggurat.errors import ConfigurationError
from ziggurat.workspace.studio.notification_settings import NotificationFile, NotificationSettings, changed_settings

HOOK = {"webhook_url": "https://hooks.example.org/T0/secret-part", "webhook_key": "0123456789abcdef"}
MAIL = {
    "email_to": "ann@example.org, bob@example.org", "email_from": "studio@example.org", "smtp_host": "mail.example.org",
    "smtp_user": "studio", "smtp_password": "secret-word",
}  # fmt: skip


def test_the_file_is_for_its_owner_alone(tmp_path):
    file = NotificationFile(tmp_path)
    assert file.read() == NotificationSettings()
    file.write(changed_settings(NotificationSettings(), HOOK | MAIL))
    assert file.path == tmp_path / "secrets" / "notifications.json"
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert NotificationFile(tmp_path).read() == changed_settings(NotificationSettings(), HOOK | MAIL)
    assert [path.name for path in file.path.parent.iterdir()] == ["notifications.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"webhook_url": "secret-part"}', '{"other": 1}', '{"smtp_port": "x"}'])
def test_a_damaged_file_is_said_without_its_content(text, tmp_path):
    file = NotificationFile(tmp_path)
    file.path.parent.mkdir()
    stored = json.loads(text) if text != "{" else None
    file.path.write_text(json.dumps({**MAIL, **stored}) if isinstance(stored, dict) else text)
    with pytest.raises(ConfigurationError, match="Delete it, and set notifications again") as refused:
        file.read()
    assert "secret" not in str(refused.value).replace("/secrets/", "/")


def test_nothing_that_is_shown_has_a_secret():
    settings = changed_settings(NotificationSettings(), HOOK | MAIL)
    shown = settings.describe()
    assert shown["webhook"] == "https://hooks.example.org/…"
    assert (shown["has_webhook_key"], shown["has_smtp_password"]) == (True, True)
    for text in (json.dumps(shown), repr(settings)):
        for secret in ("secret-part", HOOK["webhook_key"], MAIL["smtp_password"]):
            assert secret not in text


def test_what_is_left_out_stays():
    settings = changed_settings(NotificationSettings(), HOOK | MAIL)
    changed = changed_settings(settings, {"events": ["failed"], "webhook_key": None})
    assert (changed.events, changed.webhook_url, changed.smtp_password) == (
        ("failed",), HOOK["webhook_url"], MAIL["smtp_password"],
    )  # fmt: skip


@pytest.mark.parametrize("moved", [{"smtp_host": "other.example.org"}, {"smtp_user": "other"}])
def test_a_password_goes_to_no_other_server_or_user(moved):
    settings = changed_settings(NotificationSettings(), MAIL)
    with pytest.raises(ConfigurationError, match="after a change of server or user") as refused:
        changed_settings(settings, moved)
    assert refused.value.details == {"field": "smtp_password"}
    assert changed_settings(settings, {**moved, "smtp_password": "new"}).smtp_password == "new"


def test_a_webhook_that_is_removed_takes_its_key_along():
    settings = changed_settings(NotificationSettings(), HOOK)
    assert changed_settings(settings, {"webhook_url": ""}) == NotificationSettings()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"events": ["started"]}, "events"),
        ({"address": "studio.example.org"}, "address"),
        ({**HOOK, "webhook_url": "ftp://example.org/secret-part"}, "webhook_url"),
        ({**HOOK, "webhook_url": "https:///secret-part"}, "webhook_url"),
        ({**HOOK, "webhook_url": "https://example.org:99999/secret-part"}, "webhook_url"),
        ({**HOOK, "webhook_key": "secret-part"}, "webhook_key"),
        ({**MAIL, "email_to": "ann"}, "email_to"),
        ({**MAIL, "email_to": "ann@example.org\nBcc: all@example.org"}, "email_to"),
        ({**MAIL, "email_from": ""}, "email_from"),
        ({**MAIL, "smtp_host": ""}, "smtp_host"),
        ({**MAIL, "smtp_port": 0}, "smtp_port"),
        ({**MAIL, "smtp_security": "ssl"}, "smtp_security"),
        ({**MAIL, "smtp_password": ""}, "smtp_password"),
    ],
)
def test_wrong_values_are_said_at_their_fields(values, field):
    with pytest.raises(ConfigurationError) as refused:
        changed_settings(NotificationSettings(), values)
    assert refused.value.details == {"field": field}
    assert "secret-part" not in str(refused.value)
