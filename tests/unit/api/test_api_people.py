"""Login, logout, users, tokens and the record, as a program or a browser uses them."""

import pytest
from api_parts import PASSWORD, bearer, cookie

from ziggurat.workspace.accounts import LOCAL


@pytest.fixture
def ask(site, run):
    """Asks the app once: (method, path, json, headers) -> the answer."""
    app = site.app()

    def once(method, path, sent=None, **headers):
        async def request():
            async with site.client(app) as client:
                return await client.request(method, f"/api/v1{path}", json=sent, headers=headers)

        return run(request())

    return once


def test_without_accounts_one_at_this_machine_may_do_all(ask):
    answer = ask("GET", "/me")
    assert answer.json() == {"name": "local", "role": "admin", "scope": "admin", "by": "local", "user": None}


def test_the_first_account_is_an_admins_and_logins_begin(ask):
    refused = ask("POST", "/users", {"name": "bob", "role": "viewer", "password": PASSWORD})
    assert refused.status_code == 400
    assert "must have an admin" in refused.json()["message"]
    made = ask("POST", "/users", {"name": "ann", "role": "admin", "password": PASSWORD})
    assert (made.status_code, made.json()["name"], made.json()["last_seen"]) == (201, "ann", None)
    assert ask("GET", "/me").status_code == 401


def test_login_gives_a_cookie_hidden_from_scripts_and_sites(ask, site):
    site.add("ann")
    answer = ask("POST", "/login", {"name": "ann", "password": PASSWORD})
    assert answer.json()["by"] == "session"
    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.startswith("ziggurat_session_5000=")
    assert attributes == ["HttpOnly", "Max-Age=2592000", "Path=/", "SameSite=lax"]
    me = ask("GET", "/me", Cookie=name)
    assert me.json()["user"]["name"] == "ann"
    assert name.partition("=")[2] not in str(site.people.audit().entries)


def test_under_https_and_a_prefix_the_cookie_is_bound_to_them(site, run):
    site.add("ann")

    async def log_in(app, base):
        async with site.client(app, base=base) as client:
            return (await client.post("/api/v1/login", json={"name": "ann", "password": PASSWORD})).headers[
                "set-cookie"
            ]

    plain = run(log_in(site.app(), "https://localhost"))
    assert plain.startswith("__Host-ziggurat_session=")
    assert plain.endswith("Path=/; SameSite=lax; Secure")
    below = run(log_in(site.app(prefix="/ziggurat"), "https://localhost"))
    assert below.startswith("__Secure-ziggurat_session=")
    assert "Path=/ziggurat;" in below


def test_wrong_password_unknown_name_and_disabled_sound_alike(ask, site):
    site.add("ann")
    site.add("bob", "viewer")
    site.people.set_disabled("bob", True, by=LOCAL)
    tries = [("ann", "wrong wrong"), ("nobody", PASSWORD), ("bob", PASSWORD), ("' OR 1=1 --", PASSWORD)]
    answers = [ask("POST", "/login", {"name": name, "password": password}) for name, password in tries]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].json()["error"] == "login"
    assert "set-cookie" not in answers[0].headers


def test_guessing_is_slowed_even_with_the_right_password(ask, site):
    site.add("ann")
    for _ in range(5):
        assert ask("POST", "/login", {"name": "ann", "password": "wrong wrong"}).status_code == 401
    answer = ask("POST", "/login", {"name": "ann", "password": PASSWORD})
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert answer.json()["details"] == {"retry_after_s": 1}
    site.clock.advance(2)
    assert ask("POST", "/login", {"name": "ann", "password": PASSWORD}).status_code == 200


def test_logout_ends_the_session_and_takes_the_cookie_away(ask, site):
    held = cookie(site.add("ann"))
    answer = ask("POST", "/logout", **held)
    assert answer.status_code == 204
    assert answer.headers["set-cookie"].startswith('ziggurat_session_5000=""; ')
    assert answer.headers["clear-site-data"] == '"cache"'  # private images
    assert ask("GET", "/me", **held).status_code == 401
    assert ask("POST", "/logout", **held).status_code == 204


def test_a_new_login_ends_the_session_before_it(ask, site):
    old = cookie(site.add("ann"))
    assert ask("POST", "/login", {"name": "ann", "password": PASSWORD}, **old).status_code == 200
    assert ask("GET", "/me", **old).status_code == 401


def test_a_new_password_ends_all_sessions_and_needs_the_old_one(ask, site):
    one, other = cookie(site.add("ann")), cookie(site.add("ann"))
    wrong = ask("PUT", "/me/password", {"old_password": "wrong wrong", "new_password": "a longer one"}, **one)
    assert wrong.status_code == 401
    short = ask("PUT", "/me/password", {"old_password": PASSWORD, "new_password": "short"}, **one)
    assert (short.status_code, short.json()["rule"].startswith("The password has 5 characters")) == (400, True)
    changed = ask("PUT", "/me/password", {"old_password": PASSWORD, "new_password": "a longer one"}, **one)
    assert changed.status_code == 204
    assert [ask("GET", "/me", **held).status_code for held in (one, other)] == [401, 401]
    assert ask("POST", "/login", {"name": "ann", "password": "a longer one"}).status_code == 200


def test_logging_out_everywhere(ask, site):
    one, other = cookie(site.add("ann")), cookie(site.add("ann"))
    assert ask("DELETE", "/me/sessions", **one).status_code == 204
    assert [ask("GET", "/me", **held).status_code for held in (one, other)] == [401, 401]


def test_behaviour_27_names_of_users(ask):
    for name in ("Fred", "1a", "", "a b", "a\u0000"):
        answer = ask("POST", "/users", {"name": name, "role": "admin", "password": PASSWORD})
        assert answer.status_code == 400, name
        assert "must begin with a small letter" in answer.json()["rule"]
    assert ask("POST", "/users", {"name": "fred-1.x", "role": "admin", "password": PASSWORD}).status_code == 201


def test_changing_a_user_acts_at_once(ask, site):
    admin, held = cookie(site.add("ann")), cookie(site.add("bob", "viewer"))
    assert ask("GET", "/users", **held).status_code == 403
    changed = ask("PATCH", "/users/bob", {"role": "admin"}, **admin)
    assert changed.json()["role"] == "admin"
    assert [user["name"] for user in ask("GET", "/users", **held).json()] == ["ann", "bob"]
    ask("PATCH", "/users/bob", {"disabled": True}, **admin)
    assert ask("GET", "/users", **held).status_code == 401
    assert ask("GET", "/users/bob", **admin).json()["disabled"] is True
    missing = ask("PATCH", "/users/nobody", {"disabled": True}, **admin)
    assert (missing.status_code, missing.json()["message"]) == (
        404,
        "There is no user 'nobody'. Look at the list of users.",
    )


def test_the_last_admin_stays_one(ask, site):
    admin = cookie(site.add("ann"))
    for change in ({"role": "viewer"}, {"disabled": True}):
        answer = ask("PATCH", "/users/ann", change, **admin)
        assert (answer.status_code, answer.json()["advice"]) == (400, "Make another user an admin first.")
    assert ask("GET", "/me", **admin).json()["role"] == "admin"


def test_a_token_is_shown_once_and_does_what_its_scope_allows(ask, site):
    held = cookie(site.add("bob", "viewer"))
    made = ask("POST", "/tokens", {"name": "script", "scope": "write", "expires_in_s": 60}, **held).json()
    assert made["secret"].startswith("zig_")
    assert (made["user"], made["expires"]) == ("bob", site.clock.now + 60)
    token = bearer(made["secret"])
    assert ask("GET", "/me", **token).json()["scope"] == "write"
    assert ask("GET", "/users", **token).status_code == 403  # the role of bob limits it
    assert ask("POST", "/tokens", {"name": "more", "scope": "write"}, **token).status_code == 403
    (shown,) = ask("GET", "/tokens", **held).json()
    assert "secret" not in shown
    assert shown["last_used"] == site.clock.now
    site.clock.advance(61)
    answer = ask("GET", "/me", **token)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="ziggurat", error="invalid_token"',
    )


def test_tokens_of_others_are_an_admins_business(ask, site):
    admin, held = cookie(site.add("ann")), cookie(site.add("bob", "viewer"))
    mine = ask("POST", "/tokens", {"name": "one", "scope": "read"}, **admin).json()
    assert ask("GET", "/tokens?everybody=true", **held).status_code == 403
    assert ask("DELETE", f"/tokens/{mine['id']}", **held).status_code == 404
    theirs = ask("POST", "/tokens", {"name": "two", "scope": "read"}, **held).json()
    assert [each["name"] for each in ask("GET", "/tokens?everybody=true", **admin).json()] == ["two", "one"]
    assert ask("DELETE", f"/tokens/{theirs['id']}", **admin).status_code == 204
    assert ask("GET", "/me", **bearer(theirs["secret"])).status_code == 401
    assert ask("DELETE", f"/tokens/{theirs['id']}", **admin).status_code == 404
    assert ask("DELETE", f"/tokens/{10**30}", **admin).status_code == 404


def test_a_browser_logs_in_by_the_printed_token_only(ask, site):
    large, small = site.add("ann", scope="admin"), site.add("ann", scope="write")
    assert ask("POST", "/login", {"token": large}).json()["name"] == "ann"
    answer = ask("POST", "/login", {"token": small})
    assert (answer.status_code, answer.json()["error"]) == (401, "login")


def test_the_record_tells_who_did_what_without_secrets(ask, site):
    admin = cookie(site.add("ann"))
    ask("POST", "/users", {"name": "bob", "role": "viewer", "password": "a secret of bob"}, **admin)
    ask("POST", "/login", {"name": "bob", "password": "no secret of bob"})
    page = ask("GET", "/audit?limit=2", **admin).json()
    assert page["total"] == 4
    assert [(each["who"], each["action"], each["target"]) for each in page["entries"]] == [
        ("nobody", "login.refused", "bob"),
        ("ann", "user.create", "bob"),
    ]
    assert page["entries"][0]["details"] == {"address": "127.0.0.1"}
    assert "secret" not in ask("GET", "/audit", **admin).text
    assert ask("GET", "/audit?action=user.&who=ann", **admin).json()["total"] == 1
    assert ask("GET", "/audit?limit=0", **admin).status_code == 422


def test_an_unknown_field_is_a_mistake_without_its_value(ask):
    answer = ask("POST", "/login", {"name": 7, "passwort": "my secret"})
    assert answer.status_code == 422
    assert answer.json()["error"] == "validation"
    assert [(each["field"], each["type"]) for each in answer.json()["details"]["fields"]] == [
        ("body.name", "string_type"),
        ("body.passwort", "extra_forbidden"),
    ]
    assert "my secret" not in answer.text
