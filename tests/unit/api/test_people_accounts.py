"""Accounts, sessions and tokens below the faces: expiry, limits, the first token, and where one may listen."""

import threading

import pytest
from api_parts import PASSWORD, Clock

from tests.unit.studio_samples import CHEAP
from ziggurat.errors import UsageError
from ziggurat.workspace.accounts import LOCAL, NOBODY, Accounts, LoginError, check_bind, first_token, is_loopback
from ziggurat.workspace.passwords import LoginLimits, PasswordCost, Passwords, TooBusyError, TooManyLoginsError

DAY_S = 86400


def test_a_session_lives_while_used_and_thirty_days_at_most(site):
    secret = site.add("ann")
    for _ in range(5):
        site.clock.advance(6 * DAY_S)
        if site.clock.now < 1_800_000_000 + 30 * DAY_S:
            assert site.people.identity_of_session(secret).name == "ann"
    assert site.people.identity_of_session(secret) is None


def test_a_session_that_is_not_used_for_a_week_is_over(site):
    secret = site.add("ann")
    site.clock.advance(7 * DAY_S - 1)
    assert site.people.identity_of_session(secret) is not None
    site.clock.advance(7 * DAY_S + 1)
    assert site.people.identity_of_session(secret) is None


def test_a_session_cannot_be_made_older_or_younger_than_it_is(site):
    secret = site.add("ann")
    began, _, rest = secret.partition(".")
    assert site.people.identity_of_session(f"{int(began, 16) + 9999:x}.{rest}") is None
    for odd in ("", ".", "zz.x", rest, secret + " ", "\ud800", "x" * 100_000):
        assert site.people.identity_of_session(odd) is None
        assert site.people.identity_of_token(odd) is None


def test_secrets_are_not_in_the_store(site, tmp_path):
    session, token = site.add("ann"), site.add("ann", scope="admin")
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("studio.db*"))
    for secret in (session, session.partition(".")[2], token, token.removeprefix("zig_"), PASSWORD):
        assert secret.encode() not in stored
    assert b"$argon2id$" in stored


def test_the_same_password_by_another_keyboard(site):
    site.people.create_user("ann", "caf\u00e9 caf\u00e9", role="admin", by=LOCAL)
    assert site.people.login("ann", "cafe\u0301 cafe\u0301", address="").user.name == "ann"


class CountingPasswords(Passwords):
    """Counts how often a hash is computed to check a password."""

    def __init__(self):
        super().__init__(cost=PasswordCost(rounds=1, memory_kib=8, lanes=1))
        self.checked = 0

    def verify(self, stored, password):
        self.checked += 1
        return super().verify(stored, password)


def test_an_unknown_name_costs_as_much_as_a_known_one(site):
    passwords = CountingPasswords()
    people = Accounts(site.store, clock=site.clock, passwords=passwords)
    people.create_user("ann", PASSWORD, role="admin", by=LOCAL)
    for name in ("ann", "nobody"):
        with pytest.raises(LoginError):
            people.login(name, "wrong wrong", address="")
    assert passwords.checked == 2


def test_an_account_without_a_password_opens_to_no_password(site):
    site.people.create_user("robot", None, role="admin", by=LOCAL)
    for password in ("", "nobody has this password", PASSWORD):
        with pytest.raises(LoginError):
            site.people.login("robot", password, address="192.0.2.9")


def test_nobody_may_do_anything():
    assert not NOBODY.may("viewer", "read")
    assert LOCAL.may("admin", "admin")


def test_a_change_of_role_acts_on_sessions_and_tokens_at_once(site):
    site.add("ann")
    session, token = site.add("bob", "viewer"), site.add("bob", scope="admin")
    site.people.set_role("bob", "trainer", by=LOCAL)
    assert site.people.identity_of_session(session).role == "trainer"
    assert site.people.identity_of_token(token).may("trainer", "write")
    assert not site.people.identity_of_token(token).may("admin", "read")


def test_two_admins_who_demote_each_other_at_once_leave_one(site):
    site.add("ann")
    site.add("bob")
    failures = []

    def demote(name):
        try:
            site.people.set_role(name, "viewer", by=LOCAL)
        except UsageError as error:
            failures.append(error)

    threads = [threading.Thread(target=demote, args=(name,)) for name in ("ann", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) == 1
    assert sorted(user.role for user in site.people.users()) == ["admin", "viewer"]


# ---- limits


def try_until_refused(limits, tries, *, most=1000):
    for count, (name, address) in zip(range(most), tries):
        try:
            limits.begin(name, address)
        except TooManyLoginsError as error:
            return count, error.details["retry_after_s"]
    return most, 0


def test_guessing_at_one_name_at_many_names_and_from_many_places():
    one, network = "192.0.2.1", [(f"name{n}", "192.0.2.1") for n in range(100)]
    assert try_until_refused(LoginLimits(Clock()), [("ann", one)] * 100) == (5, 1)
    assert try_until_refused(LoginLimits(Clock()), network) == (20, 1)
    twice_each = [("ann", f"192.0.2.{n // 2}") for n in range(200)]
    assert try_until_refused(LoginLimits(Clock()), twice_each) == (51, 2)
    same_house = [("ann", f"2001:db8::{n:x}") for n in range(100)]
    assert try_until_refused(LoginLimits(Clock()), same_house) == (5, 1)


def test_waits_double_to_five_minutes_and_reset_in_an_hour():
    clock = Clock()
    limits, waits = LoginLimits(clock), []
    for _ in range(20):
        wait_s = try_until_refused(limits, [("ann", "192.0.2.1")] * 10)[1]
        waits.append(wait_s)
        clock.advance(wait_s)
    assert waits[:11] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    clock.advance(3601)
    assert try_until_refused(limits, [("ann", "192.0.2.1")] * 100) == (5, 1)


def test_a_known_account_clears_no_way_for_guessing_others():
    limits = LoginLimits(Clock())
    tries = 0
    with pytest.raises(TooManyLoginsError):
        for tries in range(1000):
            limits.begin("eve", "192.0.2.1")
            limits.succeeded("eve", "192.0.2.1")
            limits.begin(f"victim{tries}", "192.0.2.1")
    assert tries < 25


def test_others_still_come_in_while_somebody_guesses():
    limits = LoginLimits(Clock())
    try_until_refused(limits, [("ann", "192.0.2.66")] * 100)
    limits.begin("ann", "192.0.2.1")
    limits.begin("bob", "192.0.2.66")


def test_many_networks_never_lock_a_user_out_everywhere():
    clock = Clock()
    limits = LoginLimits(clock)
    limits.begin("ann", "198.51.100.7")
    limits.succeeded("ann", "198.51.100.7")
    for number in range(400):
        try_until_refused(limits, [("ann", f"10.0.{number // 200}.{number % 200}")] * 9)
    limits.begin("ann", "203.0.113.5")  # a network that nobody tried from is heard once
    for _ in range(4):  # mistyped at home: the usual limit of a network counts, not that of the name
        limits.begin("ann", "198.51.100.7")
    with pytest.raises(TooManyLoginsError, match="there is a wait"):
        limits.begin("ann", "10.0.0.1")


def test_what_is_remembered_is_bounded():
    limits = LoginLimits(Clock(), kept=10)
    for number in range(1000):
        limits.begin(f"name{number}", f"2001:db8:{number:x}::1")
    assert try_until_refused(limits, [("name0", "192.0.2.1")] * 100)[0] == 5


def test_a_flood_of_logins_is_refused_and_holds_no_threads():
    passwords = Passwords(at_once=1, waiting=1)
    stored, refused, done = passwords.hash(PASSWORD), [], []
    start = threading.Barrier(12)

    def check():
        start.wait()
        try:
            done.append(passwords.verify(stored, PASSWORD))
        except TooBusyError as error:
            refused.append(error)

    threads = [threading.Thread(target=check) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) + len(refused) == 12
    assert refused
    assert all(done)
    assert CHEAP.verify(CHEAP.hash(PASSWORD), PASSWORD)


# ---- where the studio listens


def test_which_hosts_are_this_machine_alone():
    assert all(is_loopback(host) for host in ("localhost", "LOCALHOST.", "127.0.0.1", "127.1.2.3", "::1", "[::1]"))
    assert is_loopback("::ffff:127.0.0.1")
    others = ("", "0.0.0.0", "::", "192.0.2.1", "localhost.example.org", "127.0.0.1.example.org", "::ffff:192.0.2.1")
    assert not any(is_loopback(host) for host in others)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1", "studio.example.org"])
def test_beyond_this_machine_somebody_must_have_an_account(site, host):
    check_bind("127.0.0.1", site.people)
    with pytest.raises(UsageError) as caught:
        check_bind(host, site.people)
    assert str(caught.value) == (
        "The studio listens beyond this machine only where people must log in "
        f"(received: the address {host!r}, and there is no account). "
        "Make an account with `ziggurat user create NAME --role admin`, or add `--new-token` for a token that is "
        "printed once, or leave `--host` out."
    )
    site.add("ann")
    check_bind(host, site.people)


def test_the_first_token_makes_an_admin_and_opens_the_studio(site):
    secret = first_token(site.people)
    check_bind("0.0.0.0", site.people)
    assert site.people.identity_of_token(secret).may("admin", "admin")
    assert site.people.login_with_token(secret, address="").user.name == "admin"
    second = first_token(site.people)
    assert [user.name for user in site.people.users()] == ["admin"]
    assert second != secret
