"""Routes of notifications: who may, that secrets do not come back, and that they are in no log."""

import json
import logging

KEY = "0123456789abcdef"
SECRETS = {"webhook_url": "https://hooks.example.org/T0/secret-part", "webhook_key": KEY}


def test_settings_are_changed_and_shown_without_secrets(ask, studio, caplog):
    with caplog.at_level(logging.DEBUG):
        answer = ask("PUT", "/api/v1/notifications", json={**SECRETS, "events": ["failed", "disk_low"]})
        assert answer.status_code == 200, answer.text
        shown = ask("GET", "/api/v1/notifications").json()
    assert answer.json() == shown
    assert (shown["webhook"], shown["events"], shown["last"]) == (
        "https://hooks.example.org/…", ["failed", "disk_low"], {},
    )  # fmt: skip
    entries = studio.people.audit(action="settings.notifications").entries
    assert entries[0].details == {"changed": ["events", "webhook_key", "webhook_url"]}
    for text in (json.dumps(shown), caplog.text, str(entries)):
        assert "secret-part" not in text
        assert KEY not in text


def test_a_wrong_value_is_said_at_its_field(ask):
    answer = ask("PUT", "/api/v1/notifications", json={"webhook_url": SECRETS["webhook_url"]})
    assert answer.status_code == 422
    assert answer.json()["details"] == {"field": "webhook_key"}
    assert "secret-part" not in answer.text
    assert ask("PUT", "/api/v1/notifications", json={"webhook": "x"}).status_code == 422


def test_a_test_needs_a_receiver(ask):
    answer = ask("POST", "/api/v1/notifications/test")
    assert answer.status_code == 400
    assert "No receiver is set" in answer.text


def test_only_admins_see_and_change_them(ask_as):
    trainer = ask_as("trainer", "write")
    assert trainer("GET", "/api/v1/notifications").status_code == 403
    assert trainer("PUT", "/api/v1/notifications", json={}).status_code == 403
    assert trainer("POST", "/api/v1/notifications/test").status_code == 403
