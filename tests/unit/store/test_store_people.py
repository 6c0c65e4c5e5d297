"""People, their sessions and tokens, projects, the audit and the studio's own settings."""

from __future__ import annotations

import pytest
from store_samples import new_job

from ziggurat.entities import AuditEntry
from ziggurat.errors import UnknownNameError, UsageError
from ziggurat.store import AuditFilter, Store, digest_of


def make_user(store: Store, name: str = "fred") -> int:
    return store.people.users.create(name, role="trainer", password_hash="hash", now=1.0).id


@pytest.mark.parametrize("name", ["Fred", "1a", "", "a b", "fred\n", "é", "-x", "a" * 65])
def test_names_that_nobody_may_have(sqlite_store: Store, name: str) -> None:
    with pytest.raises(UsageError, match="must begin with a small letter"):
        make_user(sqlite_store, name)


def test_users(store: Store) -> None:
    users = store.people.users
    assert users.count() == 0
    number = make_user(store, "fred-1.x")
    user = users.get(number)
    assert user is not None
    assert (user.name, user.role, user.disabled, user.created, user.last_seen) == (
        "fred-1.x",
        "trainer",
        False,
        1.0,
        None,
    )
    with pytest.raises(UsageError, match="There is a user"):
        make_user(store, "fred-1.x")
    with pytest.raises(UnknownNameError, match="`boss` is not a known role"):
        users.create("anna", role="boss", password_hash="", now=1.0)
    users.set_role(number, "admin")
    users.touch(number, 5.0)
    assert users.password_hash(number) == "hash"
    users.set_password_hash(number, "other")
    assert users.password_hash(number) == "other"
    make_user(store, "anna")
    assert [(one.name, one.role, one.last_seen) for one in users.all()] == [
        ("anna", "trainer", None), ("fred-1.x", "admin", 5.0)
    ]  # fmt: skip
    assert (users.by_name("nobody"), users.get(99), users.password_hash(99)) == (None, None, None)
    with pytest.raises(UsageError, match="There is no user"):
        users.set_role(99, "viewer")


def test_sessions_live_until_they_are_over_or_revoked(store: Store) -> None:
    number, sessions = make_user(store), store.people.sessions
    for secret in ("one", "two", "three"):
        sessions.create(secret, user_id=number, now=1.0, expires=10.0)
    user = sessions.find(digest_of("one"), 9.0)
    assert user is not None
    assert user.name == "fred"
    assert sessions.find("one", 9.0) is None  # the secret itself is nowhere stored
    assert sessions.find(digest_of("one"), 10.0) is None
    sessions.touch(digest_of("one"), now=9.0, expires=20.0)
    assert sessions.find(digest_of("one"), 10.0) is not None
    assert sessions.revoke(digest_of("two"))
    assert not sessions.revoke(digest_of("two"))
    assert sessions.expire(15.0) == 1
    assert sessions.revoke_all(number) == 1
    assert sessions.find(digest_of("one"), 10.0) is None


def test_a_new_password_and_a_disabled_account_end_sessions(store: Store) -> None:
    number, people = make_user(store), store.people
    people.sessions.create("s", user_id=number, now=1.0, expires=10.0)
    people.users.set_password_hash(number, "new")
    assert people.sessions.find(digest_of("s"), 2.0) is None
    people.sessions.create("t", user_id=number, now=1.0, expires=10.0)
    token = people.tokens.create("k", user_id=number, name="script", scope="read", now=1.0)
    people.users.set_disabled(number, True)
    assert people.sessions.find(digest_of("t"), 2.0) is None
    assert people.tokens.find(digest_of("k"), 2.0) is None
    people.users.set_disabled(number, False)
    assert people.sessions.find(digest_of("t"), 2.0) is None
    assert people.tokens.find(digest_of("k"), 2.0) == (token, people.users.get(number))


def test_tokens(store: Store) -> None:
    number, tokens = make_user(store), store.people.tokens
    first = tokens.create("k1", user_id=number, name="script", scope="read", now=1.0)
    second = tokens.create("k2", user_id=number, name="robot", scope="write", now=2.0, expires=10.0)
    found = tokens.find(digest_of("k2"), 9.0)
    assert found is not None
    assert (found[0], found[1].name) == (second, "fred")
    assert tokens.find(digest_of("k2"), 10.0) is None
    tokens.touch(first.id, 7.0)
    assert tokens.revoke(first.id)
    assert not tokens.revoke(first.id)
    assert tokens.find(digest_of("k1"), 2.0) is None
    assert [(one.name, one.last_used, one.revoked) for one in tokens.all(number)] == [
        ("robot", None, False), ("script", 7.0, True)
    ]  # fmt: skip
    assert tokens.all(number) == tokens.all()
    with pytest.raises(UnknownNameError, match="`all` is not a known scope"):
        tokens.create("k3", user_id=number, name="x", scope="all", now=1.0)


def test_projects(store: Store) -> None:
    projects = store.projects
    first = projects.ensure("faces", 1.0)
    assert projects.ensure("faces", 2.0) == first
    store.jobs.add(new_job("a", project="digits"))
    assert [(project.name, count) for project, count in projects.all()] == [("digits", 1), ("faces", 0)]
    projects.rename("digits", "numbers")
    assert store.jobs.get("a").project == "numbers"
    for call, words in (
        (lambda: projects.rename("numbers", "faces"), "There is a project"),
        (lambda: projects.rename("nothing", "x"), "There is no project"),
        (lambda: projects.ensure(" ", 1.0), "must have a name"),
        (
            lambda: projects.delete("numbers"),
            "The project `numbers` has 1 job; one that is deleted must be empty. Move",
        ),
        (lambda: projects.delete("numbers", move_jobs_to="nothing"), "There is no project"),
        (
            lambda: projects.delete("numbers", move_jobs_to="numbers"),
            "is the project that is deleted; its jobs must move to another one",
        ),
    ):
        with pytest.raises(UsageError, match=words):
            call()
    projects.delete("numbers", move_jobs_to="faces")
    assert store.jobs.get("a").project == "faces"
    projects.delete("faces", move_jobs_to="")
    assert (projects.all(), store.jobs.get("a").project) == ([], "")


def test_the_audit_is_read_from_the_newest_on(store: Store) -> None:
    for number, action in enumerate(["job.add", "job.delete", "user.create", "job.delete"]):
        who = ("anna", "fred")[number % 2]
        store.audit.add(
            AuditEntry(time=float(number), who=who, action=action, target=f"t{number}", details={"n": number})
        )
    page = store.audit.page(AuditFilter(action="job.", limit=2))
    assert (page.total, [entry.target for entry in page.entries]) == (3, ["t3", "t1"])
    assert page.entries[0] == AuditEntry(time=3.0, who="fred", action="job.delete", target="t3", details={"n": 3})
    assert store.audit.page(AuditFilter(who="anna", since=1.0)).total == 1
    assert store.audit.page(AuditFilter(target="t2", until=2.0)).total == 0
    assert [entry.target for entry in store.audit.page(AuditFilter(action="job.delete", offset=1)).entries] == ["t1"]


def test_settings(store: Store) -> None:
    assert store.settings.get("slots", 1) == 1
    store.settings.set("slots", {"cpu": 2})
    store.settings.set("name", "studio")
    store.settings.set("slots", {"cpu": 3})
    assert store.settings.all() == {"slots": {"cpu": 3}, "name": "studio"}
    store.settings.set("name", None)
    assert store.settings.get("name") is None
