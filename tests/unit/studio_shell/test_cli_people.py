"""Users and tokens from the shell, without a server: nothing secret is an argument, and nothing is shown twice."""

import json
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

pytest.importorskip("sqlalchemy", reason="the extra `studio` is not installed")
pytest.importorskip("argon2", reason="the extra `studio` is not installed")

from ziggurat.settings import load_settings
from ziggurat.workspace.accounts import LOCAL
from ziggurat.workspace.studio.bootstrap import open_people

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    """Databases to copy, for making one takes a while: one that is empty, and one with anna, who is an admin."""
    folder = tmp_path_factory.mktemp("databases")
    for name in ("empty", "anna"):
        with open_people(settings_of(folder / name)) as people:
            if name == "anna":
                people.create_user(name, PASSWORD, role="admin", by=LOCAL)
    return folder


@pytest.fixture(autouse=True)
def empty_studio(databases, workspace):
    """A studio that nobody has an account of."""
    shutil.copytree(databases / "empty", workspace)


@pytest.fixture
def anna(databases, workspace):
    """The first account."""
    shutil.copytree(databases / "anna", workspace, dirs_exist_ok=True)
    return "anna"


@pytest.fixture
def people(workspace):
    with open_people(settings_of(workspace)) as opened:
        yield opened


def settings_of(workspace):
    return load_settings({"HOME": "/"}, flags={"workspace": workspace})


def test_an_account_made_in_the_shell_can_log_in(ziggurat, people):
    answer = ziggurat("user", "add", "anna", "--role", "admin", "--password-stdin", typed=PASSWORD + "\n")
    assert answer.out == "anna is a user now, with the role admin.\n"
    assert people.login("anna", PASSWORD, address="127.0.0.1").secret


def test_a_new_studio_has_no_users(ziggurat):
    assert ziggurat("user", "list").out == "(none)\n"
    assert ziggurat("user", "list", "--json").content == []


def test_users_are_listed_with_their_roles(ziggurat, anna):
    made = ziggurat("user", "add", "fred-1.x", "--no-password", "--json")
    assert (made.content["name"], made.content["role"], made.content["disabled"]) == ("fred-1.x", "trainer", False)
    lines = [line.split() for line in ziggurat("user", "list").out.splitlines()]
    assert lines == [
        ["name", "role", "state", "last", "seen"],
        ["anna", "admin", "never"],
        ["fred-1.x", "trainer", "never"],
    ]


@pytest.mark.parametrize("name", ["Fred", "1a", "", "-x", "a b", "a\nb", "x" * 65, "../x"])
def test_behaviour_27_a_name_that_is_none_is_refused(ziggurat, anna, name):
    answer = ziggurat("user", "add", "--no-password", "--", name)
    assert answer.code == 2
    assert "is no name of a user: it must begin with a small letter and have only small letters, digits," in answer.err


def test_the_first_account_is_an_admin(ziggurat):
    answer = ziggurat("user", "add", "anna", "--no-password")
    assert answer.code == 2
    assert "must have an admin" in answer.err


def test_a_mistyped_role_is_told(ziggurat):
    answer = ziggurat("user", "add", "anna", "--role", "amdin", "--json")
    assert (answer.code, answer.content["error"]) == (3, "unknown_name")
    assert answer.content["details"]["nearest"] == ["admin"]
    assert ziggurat("user", "role", "anna", "owner").code == 3


def test_a_role_can_be_changed_but_one_admin_stays(ziggurat, anna):
    refused = ziggurat("user", "role", anna, "viewer")
    assert refused.code == 2
    assert "must have an admin" in refused.err
    ziggurat("user", "add", "bert", "--no-password")
    assert ziggurat("user", "role", "bert", "admin").out == "bert has the role admin now.\n"
    assert ziggurat("user", "role", anna, "viewer", "--json").content["role"] == "viewer"


def test_somebody_who_is_shut_out_can_be_let_in_again(ziggurat, anna):
    ziggurat("user", "add", "bert", "--no-password")
    assert ziggurat("user", "disable", "bert").out == "bert is shut out.\n"
    assert "disabled" in ziggurat("user", "list").out
    assert ziggurat("user", "disable", "bert", "--undo").out == "bert may come in again.\n"
    assert ziggurat("user", "disable", "carl").code == 2


def test_a_password_is_set_from_standard_input(ziggurat, anna, people):
    answer = ziggurat("user", "password", anna, "--password-stdin", typed="another good one\r\nmore\n")
    assert answer.out == "anna has a new password; all sessions have ended.\n"
    assert people.login(anna, "another good one", address="127.0.0.1").secret


def test_without_a_terminal_a_password_is_not_asked_for(ziggurat):
    answer = ziggurat("user", "add", "anna", "--role", "admin")
    assert answer.code == 2
    assert "There is no terminal to ask for the password in." in answer.err
    assert "--password-stdin" in answer.err


def test_a_password_is_no_argument(ziggurat):
    answer = ziggurat("user", "add", "anna", "--password", "secret")
    assert answer.code == 2
    assert "`--password` is not an option of `ziggurat user create`." in answer.err


def test_two_ways_to_a_password_exclude_each_other(ziggurat):
    assert "exclude each other" in ziggurat("user", "add", "anna", "--no-password", "--password-stdin").err


@pytest.mark.parametrize("typed", ["", "\n", "short\n", "x" * 5000])
def test_a_bad_password_makes_no_account(ziggurat, typed):
    answer = ziggurat("user", "add", "anna", "--role", "admin", "--password-stdin", typed=typed)
    assert answer.code == 2, answer.err
    assert ziggurat("user", "list", "--json").content == []


def test_a_token_is_shown_once_and_good_for_its_scope(ziggurat, anna, people):
    answer = ziggurat("token", "create", "nightly", "--user", anna, "--scope", "read", "--days", "2")
    secret = answer.out.strip()
    assert secret.startswith("zig_")
    assert "Token 1 of anna, scope read, is good until 20" in answer.err
    identity = people.identity_of_token(secret)
    assert (identity.user.name, identity.scope) == ("anna", "read")
    listed = ziggurat("token", "list", "--json")
    assert secret not in listed.out
    (token,) = listed.content
    assert (token["name"], token["user"], token["scope"]) == ("nightly", "anna", "read")
    assert 1.9 * 86400 < token["expires"] - time.time() <= 2 * 86400


def test_a_revoked_token_is_good_for_nothing(ziggurat, anna, people):
    made = ziggurat("token", "create", "nightly", "--user", anna, "--json").content
    assert ziggurat("token", "revoke", made["id"]).out == "Token 1 is good for nothing any more.\n"
    assert people.identity_of_token(made["secret"]) is None
    assert "revoked" in ziggurat("token", "list", "--user", anna).out
    assert ziggurat("token", "revoke", made["id"]).code == 2


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("token", "create", "x"), 2, "Missing option '--user'"),
        (("token", "create", "x", "--user", "nobody"), 2, "There is no user"),
        (("token", "create", "x", "--user", "anna", "--scope", "wirte"), 3, "Did you mean `write`?"),
        (("token", "create", "x", "--user", "anna", "--days", "0"), 2, "0.0 is not in the range"),
        (("token", "create", "x", "--user", "anna", "--days", "soon"), 2, "'soon' is not a valid float"),
        (("token", "revoke", "one"), 2, "'one' is not a valid integer"),
        (("token", "list", "--user", "nobody"), 2, "There is no user"),
        (("token", "crate", "x"), 2, "Did you mean `ziggurat token create`?"),
        (("user", "ad", "x"), 2, "Did you mean `ziggurat user create`?"),
    ],
)
def test_mistyped_words(ziggurat, anna, words, code, text):
    answer = ziggurat(*words)
    assert answer.code == code
    assert text in answer.err


def test_what_is_done_is_written_down(ziggurat, anna, people):
    ziggurat("user", "add", "bert", "--no-password")
    assert [(entry.who, entry.action, entry.target) for entry in people.audit(action="user.").entries] == [
        ("local", "user.create", "bert"),
        ("local", "user.create", "anna"),
    ]


def test_another_database_can_be_named(ziggurat, tmp_path):
    place = tmp_path / "elsewhere.db"
    ziggurat("user", "add", "anna", "--role", "admin", "--no-password", "--database", place)
    assert len(ziggurat("user", "list", "--json", "--database", f"sqlite:///{place}").content) == 1
    assert ziggurat("user", "list", "--json").content == []
    wrong = ziggurat("user", "list", "--database", "mysql://x/y")
    assert wrong.code == 3
    assert "`postgresql://USER@HOST/DATABASE`" in wrong.err


def test_a_database_that_is_none_is_told(ziggurat, workspace):
    (workspace / "studio.db").write_text("not a database, but long enough to be taken for one" * 20)
    answer = ziggurat("user", "list")
    assert answer.code == 11
    assert "ziggurat reindex" in answer.err


def test_a_newer_database_is_refused(ziggurat, anna, workspace):
    with closing(sqlite3.connect(workspace / "studio.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    answer = ziggurat("user", "list")
    assert answer.code == 11
    assert "revision 9999" in answer.err
    assert json.loads(ziggurat("user", "list", "--json").out)["error"] == "storage"
