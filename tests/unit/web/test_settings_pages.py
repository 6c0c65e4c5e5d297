"""The pages of settings, users, tokens, the record and one's own account."""

from __future__ import annotations

import html
import re
from typing import Any

from tests.unit.web.html_page import html_of
from ziggurat.cli.server import Place
from ziggurat.settings import Settings, describe_settings
from ziggurat.web.pages.settings.form import start_up_setting
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.new_jobs import JobRequest

_PASSWORD = "correct horse battery"


def _text(answer: Any) -> str:
    without = re.sub(r"<[^>]*>", " ", answer.text)
    return re.sub(r"[\s\u202f]+", " ", html.unescape(without))


def test_without_accounts_it_says_that_anybody_here_is_an_admin(visit):
    for path in ("/settings", "/settings/users", "/settings/tokens", "/account"):
        assert html_of(visit.get(path)).has("#no-accounts")


def test_limits_are_typed_in_units_of_people_and_hold_at_once(visit, studio):
    sent = {
        "cpu_slots": "3",
        "dataset_slots": "",
        "memory_bytes": "1,5",
        "disk_reserve_bytes": "0",
        "uploads_kept_s": "2",
    }

    answer = visit.post("/settings/limits", data=sent)

    assert (answer.status_code, answer.headers["location"]) == (303, "/settings?saved=limits")
    found = {each.name: each for each in studio.limits.all()}
    assert {name: each.value for name, each in found.items() if each.is_chosen} == {
        "cpu_slots": 3,
        "memory_bytes": 1_500_000_000,
        "disk_reserve_bytes": 0,
        "uploads_kept_s": 172_800,
    }
    assert found["dataset_slots"].value == 1
    page = visit.get("/settings?saved=limits")
    assert html_of(page).has('#settings-saved[role="status"]')
    assert 'name="memory_bytes" type="text" value="1.5"' in page.text
    entry = studio.people.audit(action="settings.limits").entries[0]
    assert entry.details["cpu_slots"] == 3

    visit.post("/settings/limits", data=dict.fromkeys(sent, ""))
    assert not any(each.is_chosen for each in studio.limits.all())


def test_wrong_limits_are_said_at_their_fields_and_not_kept(visit, studio):
    sent = {"cpu_slots": "0", "memory_bytes": "much", "dataset_slots": "1.5", "disk_reserve_bytes": "1,000"}

    answer = visit.post("/settings/limits", data=sent)

    assert answer.status_code == 422
    page = html_of(answer)
    for name, typed in sent.items():
        assert page.one(f'[name="{name}"][aria-invalid="true"]')["value"] == typed
        assert typed in page.one(f"#{name}-problem").text
    assert 'value="much"' in answer.text
    assert not any(each.is_chosen for each in studio.limits.all())


def test_a_start_up_setting_without_a_value_has_a_dash():
    (about,) = [each for each in describe_settings() if each.name == "disk_reserve_mib"]
    shown = start_up_setting(about, Settings())
    assert (shown.value, shown.default, shown.source) == ("–", "–", "Default")


def test_the_strip_warns_by_the_reserve_that_was_chosen(visit, studio):
    studio.limits.choose({"disk_reserve_bytes": 0})
    assert "nearly full" not in visit.get("/parts/strip").text
    total = studio.machine.strip()["disk"]["total_bytes"]

    studio.limits.choose({"disk_reserve_bytes": total})

    assert studio.machine.strip()["disk"]["reserve_bytes"] == total
    assert "nearly full" in visit.get("/parts/strip").text
    found = studio.training.preflight(JobRequest(spec={"network": "mlp", "data": "digits"}), describe=False)
    assert [each["level"] for each in found["findings"] if each["name"] == "disk"] == ["error"]
    studio.limits.choose({"disk_reserve_bytes": None})
    usual = next(each.default for each in studio.limits.all() if each.name == "disk_reserve_bytes")
    assert studio.machine.strip()["disk"]["reserve_bytes"] == usual


def test_folders_are_allowed_and_removed_one_by_one(visit, studio, tmp_path):
    studio.paths.choose([])
    place = tmp_path / "data"
    place.mkdir()

    answer = visit.post("/settings/folders/allow", data={"folder": f" {place} "})
    wrong = visit.post("/settings/folders/allow", data={"folder": f"{tmp_path}/<nowhere>"})

    assert (answer.status_code, answer.headers["location"]) == (303, "/settings?saved=folders")
    assert studio.paths.chosen == (str(place),)
    assert wrong.status_code == 400
    page = html_of(wrong)
    assert page.one('#folder[aria-invalid="true"]')["value"] == f"{tmp_path}/<nowhere>"
    assert [each.text for each in page.all("#folders code")] == [str(place)]
    assert studio.people.audit(action="settings.roots").entries[0].details == {"allowed": str(place)}

    assert visit.post("/settings/folders/remove", data={"folder": "/elsewhere"}).status_code == 400
    assert visit.post("/settings/folders/remove", data={"folder": str(place)}).status_code == 303
    assert studio.paths.chosen == ()


def test_a_missing_allowed_folder_is_marked(visit, studio, tmp_path):
    place = tmp_path / "data"
    place.mkdir()
    studio.paths.choose([str(place)])
    place.rmdir()

    assert html_of(visit.get("/settings")).has("#folders .mark-warning")


def test_settings_show_values_in_force_and_their_origin(visit, studio):
    row = html_of(visit.get("/settings")).one("#setting-port")

    assert [each.text for each in row.all("td")][:3] == ["5000", "Default", "5000"]
    studio.settings = Place(host="127.0.0.1", port=0, prefix="", hosts=(), database=None).in_force(
        studio.settings, 5051
    )
    row = html_of(visit.get("/settings")).one("#setting-port")
    assert [each.text for each in row.all("td")][:3] == ["5051", "Flag --port", "5000"]


def test_the_first_account_is_an_admin_and_ends_the_open_door(visit, studio):
    refused = visit.post("/settings/users", data={"name": "ann", "role": "viewer", "password": _PASSWORD})
    made = visit.post("/settings/users", data={"name": "ann", "role": "admin", "password": _PASSWORD})

    assert refused.status_code == 400
    assert "must have an admin" in _text(refused)
    assert 'name="name" type="text" value="ann"' in refused.text
    assert (made.status_code, made.headers["location"]) == (303, "/settings/users")
    assert visit.get("/settings/users").headers["location"].startswith("/login")
    assert studio.people.user("ann").role == "admin"


def test_an_admin_changes_users_and_keeps_at_least_one_admin(visit_as, studio):
    admin = visit_as("admin")
    studio.people.create_user("bob", _PASSWORD, role="viewer", by=LOCAL)

    assert admin.post("/settings/users/bob/role", data={"role": "trainer"}).status_code == 303
    assert admin.post("/settings/users/bob/password", data={"password": "short"}).status_code == 400
    disabled = admin.post("/settings/users/bob/disable")
    assert disabled.status_code == 303
    assert html_of(admin.get(disabled.headers["location"])).one("#users-said").text == "bob is disabled."
    assert not html_of(admin.get(disabled.headers["location"])).has("#users-said"), "it is said once"
    bob = studio.people.user("bob")
    assert (bob.role, bob.disabled) == ("trainer", True)
    (row,) = [each for each in html_of(admin.get("/settings/users")).all("tbody tr") if each.has(".user-disabled")]
    assert row.one('th[scope="row"]').text.startswith("bob ")
    assert admin.post("/settings/users/bob/enable").status_code == 303
    assert admin.post("/settings/users/first/disable").status_code == 303
    refused = admin.post("/settings/users/admin/role", data={"role": "viewer"})
    assert refused.status_code == 400
    assert "Make another user an admin first." in _text(refused)


def test_a_viewer_has_tokens_and_an_account_but_no_settings(visit_as):
    viewer = visit_as("viewer")

    assert [viewer.get(path).status_code for path in ("/settings", "/settings/users", "/settings/audit")] == [403] * 3
    page = viewer.get("/settings/tokens")
    assert page.status_code == 200
    assert 'href="/settings/users"' not in page.text
    assert 'href="/settings/tokens" aria-current="page"' in page.text


def test_the_secret_of_a_token_is_shown_once(visit_as, studio):
    viewer = visit_as("viewer")

    made = viewer.post("/settings/tokens", data={"name": "nightly", "scope": "read", "expires": "7"})

    (secret,) = re.findall(r'id="secret"[^>]*value="(zig_[^"]+)"', made.text)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    identity = studio.people.identity_of_token(secret)
    assert (identity.user.name, identity.scope) == ("viewer", "read")
    page = viewer.get("/settings/tokens")
    assert secret not in page.text
    (token,) = studio.people.tokens(identity.user)
    assert token.expires - token.created == 7 * 24 * 3600
    assert viewer.post(f"/settings/tokens/{token.id}/revoke").status_code == 303
    assert studio.people.identity_of_token(secret) is None
    assert "nightly revoked" in _text(viewer.get("/settings/tokens"))


def test_a_token_needs_a_name_and_is_ones_own(visit_as, studio):
    viewer = visit_as("viewer")
    other, _ = studio.people.create_token("first", "theirs", scope="read", by=LOCAL)

    refused = viewer.post("/settings/tokens", data={"name": " ", "scope": "write", "expires": "never"})

    assert refused.status_code == 422
    assert "The name of the token has 0 characters, not 1 to 200." in _text(refused)
    assert '<option value="write" selected>' in refused.text
    assert viewer.post(f"/settings/tokens/{other.id}/revoke").status_code == 404
    assert "theirs" not in viewer.get("/settings/tokens").text


def test_a_new_password_is_typed_twice_and_logs_out(visit_as, studio):
    viewer = visit_as("viewer")
    sent = {"old_password": _PASSWORD, "new_password": "four other long words", "again": "four other long word"}

    unequal = viewer.post("/account/password", data=sent)
    wrong = viewer.post("/account/password", data={**sent, "old_password": "x", "again": sent["new_password"]})
    done = viewer.post("/account/password", data={**sent, "again": sent["new_password"]})

    assert (unequal.status_code, wrong.status_code) == (422, 401)
    assert "The two new passwords differ." in _text(unequal)
    assert (done.status_code, done.headers["location"]) == (303, "/login")
    assert viewer.get("/account").headers["location"].startswith("/login")
    assert studio.people.login("viewer", sent["new_password"], address="here").user.name == "viewer"


def test_one_logs_out_everywhere(visit_as, studio):
    viewer = visit_as("viewer")
    elsewhere = studio.people.login("viewer", _PASSWORD, address="there")

    answer = viewer.post("/account/logout-everywhere")

    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert studio.people.identity_of_session(elsewhere.secret) is None


def test_the_record_is_filtered_and_paged(visit, studio):
    for number in range(60):
        studio.people.note(LOCAL, "job.delete", f"job {number}", force=True)
    studio.people.note(LOCAL, "project.create", "<i>mine</i>")

    first, second = visit.get("/settings/audit"), visit.get("/settings/audit?offset=50&action=job.")

    assert "&lt;i&gt;mine&lt;/i&gt;" in first.text
    assert "1 to 50 of 61" in _text(first)
    assert "51 to 60 of 60" in _text(second)
    assert "project.create" not in second.text
    assert "force true" in _text(second)
    assert html_of(visit.get("/settings/audit?who=nobody-here")).has(".empty")


def test_the_signing_key_is_shown_and_rotated(visit, studio):
    assert html_of(visit.get("/settings")).has("#signing-key")
    assert "none yet; the first export makes a key" in _text(visit.get("/settings"))
    assert visit.get("/api/v1/signing-key").json() == {"fingerprint": "", "public_key": ""}
    studio.signing_keys.private()
    first = studio.signing_keys.fingerprint
    assert first in _text(visit.get("/settings"))

    answer = visit.post("/settings/signing-key/rotate")

    assert (answer.status_code, answer.headers["location"]) == (303, "/settings?saved=key")
    second = studio.signing_keys.fingerprint
    assert second != first
    assert second in _text(visit.get("/settings"))
    found = visit.get("/api/v1/signing-key").json()
    assert found["fingerprint"] == second
    assert found["public_key"].startswith("-----BEGIN PUBLIC KEY-----")
    assert "PRIVATE" not in str(found)
    assert studio.people.audit(action="settings.signing_key").entries[0].details == {"signing_key": second}


def test_a_digits_script_logs_in_by_name_without_accounts(visit: Any, studio: Any) -> None:
    answer = visit.post("/login", data={"username": "fred"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert visit.post("/login", data={"username": "fred", "next": "//other.host"}).headers["location"] == "/"

    studio.people.create_user("first", None, role="admin", by=LOCAL)
    assert visit.post("/login", data={"username": "first"}).status_code != 303
    assert visit.get("/index.json").status_code == 401


_MAIL = {
    "event-failed": "true", "address": "", "webhook_url": "", "webhook_key": "", "email_to": "ann@example.org",
    "email_from": "studio@example.org", "smtp_host": "mail.example.org", "smtp_port": "465", "smtp_security": "tls",
    "smtp_user": "studio", "smtp_password": "secret-word",
}  # fmt: skip


def test_notifications_are_set_and_secrets_are_never_shown(visit, studio):
    assert not html_of(visit.get("/settings")).has("#test-notifications")

    hook = {"webhook_url": "https://hooks.example.org/T0/secret-part", "webhook_key": "0123456789abcdef"}
    answer = visit.post("/settings/notifications", data={**_MAIL, **hook})

    assert (answer.status_code, answer.headers["location"]) == (303, "/settings?saved=notifications")
    held = studio.notifications.settings
    assert (held.events, held.webhook_url, held.smtp_port) == (("failed",), hook["webhook_url"], 465)
    page = visit.get("/settings")
    found = html_of(page)
    assert found.one("#webhook_url")["placeholder"] == "https://hooks.example.org/…"
    assert found.one("#email_to")["value"] == "ann@example.org"
    assert [each["id"] for each in found.all("#notification-settings input[checked]")] == ["event-failed"]
    for secret in ("secret-part", hook["webhook_key"], "secret-word"):
        assert secret not in page.text

    visit.post("/settings/notifications", data={**_MAIL, "smtp_password": "", "event-finished": "true"})
    held = studio.notifications.settings
    assert (held.events, held.smtp_password, held.webhook_url) == (
        ("finished", "failed"), "secret-word", hook["webhook_url"],
    )  # fmt: skip
    buttons = found.all("form.settings-notifications button")
    assert [each["id"] for each in buttons] == ["save-notifications"]  # what Enter in a field presses
    visit.post("/settings/notifications", data={"remove": "webhook"})
    assert (studio.notifications.settings.webhook_url, studio.notifications.settings.email_to) == (
        "",
        _MAIL["email_to"],
    )


def test_wrong_notifications_are_said_at_their_fields(visit, studio):
    for changed, name in (
        ({"email_to": "ann"}, "email_to"),
        ({"smtp_port": "much"}, "smtp_port"),
        ({"webhook_url": "https://hooks.example.org/T0/secret-part"}, "webhook_key"),
    ):
        answer = visit.post("/settings/notifications", data={**_MAIL, **changed})

        assert answer.status_code == 422
        found = html_of(answer)
        assert found.one(f'#{name}[aria-invalid="true"]')
        assert found.one("#smtp_host")["value"] == "mail.example.org"
        assert "secret-" not in answer.text
    assert studio.notifications.settings.email_to == ""


def test_a_damaged_file_of_notifications_leaves_the_page(visit, studio):
    path = studio.root / "secrets" / "notifications.json"
    path.parent.mkdir()
    path.write_text("{")
    found = html_of(visit.get("/settings"))
    assert "Delete it" in found.one("#notifications-problem").text
    assert found.has("#limits-title")


def test_the_test_message_shows_why_it_failed(visit, studio):
    studio.notifications.set({"webhook_url": "http://127.0.0.1:9/hook", "webhook_key": "0123456789abcdef"})
    answer = visit.post("/settings/notifications/test")
    assert answer.status_code == 200
    assert "Webhook: its address is in a network of this machine" in html_of(answer).one("#notifications-tested").text
