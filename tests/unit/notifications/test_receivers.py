"""Webhook and e-mail, each with a real server."""

import hashlib
import hmac
import json
import socket

import pytest

pytest.importorskip("aiosmtpd", reason="needs aiosmtpd, of the extra `dev`")

from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message as MessageHandler
from aiosmtpd.smtp import AuthResult

from ziggurat.net.ssrf import AllowedAddresses
from ziggurat.services.outbox import DeliveryError, Message
from ziggurat.services.receivers import Mail, Webhook, signature_of

# The server has no certificate: that a password goes to none without TLS is tested below.
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")

KEY = "a key that both sides know"
SENT = Message(
    kind="failed", title="Run failed: lenet", text="Out of memory.", time=1000.5, details={"job": {"id": "7"}}
)


def webhook(receiver, hosts="127.0.0.1", url=""):
    allowed = AllowedAddresses.of("webhook_hosts", hosts)
    return Webhook(url=url or receiver.url, key=KEY, allowed=allowed, clock=lambda: 1700.9)


def test_a_webhook_gets_json_that_is_signed_with_its_time(receiver):
    webhook(receiver)(SENT)
    (got,) = receiver.got
    assert (got.path, got.headers["Content-Type"]) == ("/hook?token=in-the-url", "application/json")
    assert json.loads(got.body) == {
        "kind": "failed", "title": "Run failed: lenet", "text": "Out of memory.", "time": 1000.5, "job": {"id": "7"},
    }  # fmt: skip
    assert got.headers["Ziggurat-Timestamp"] == "1700"
    expected = hmac.new(KEY.encode(), b"1700." + got.body, hashlib.sha256).hexdigest()
    assert got.headers["Ziggurat-Signature"] == f"sha256={expected}" == signature_of(KEY, 1700, got.body)


@pytest.mark.parametrize(
    ("status", "is_final"), [(500, False), (503, False), (429, False), (404, True), (410, True), (302, True)]
)
def test_other_answers_are_errors(receiver, status, is_final):
    receiver.answers, receiver.location = [status], receiver.url
    with pytest.raises(DeliveryError, match=str(status)) as refused:
        webhook(receiver)(SENT)
    assert refused.value.is_final is is_final
    assert len(receiver.got) == 1  # a redirect is not followed


def test_a_local_webhook_is_refused_unless_it_is_named(receiver):
    with pytest.raises(DeliveryError, match=r"network of this machine\..*`webhook_hosts`") as refused:
        webhook(receiver, hosts="example.org")(SENT)
    assert refused.value.is_final
    assert receiver.got == []


def test_errors_of_a_webhook_do_not_repeat_its_url(receiver):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/T0/secret-part"
    hook = webhook(receiver, url=url)
    with pytest.raises(DeliveryError) as refused:
        hook(SENT)
    assert not refused.value.is_final
    for text in (str(refused.value), repr(hook)):
        assert "secret-part" not in text
        assert KEY not in text


def test_a_name_that_nobody_knows_is_said(receiver):
    with pytest.raises(DeliveryError, match=r"^it cannot be reached: its name is unknown$"):
        webhook(receiver, hosts="nobody.invalid", url="http://nobody.invalid/T0/secret-part")(SENT)


class Kept(MessageHandler):
    """Keeps what comes."""

    def __init__(self):
        super().__init__()
        self.got = []

    def handle_message(self, message):
        self.got.append(message)


@pytest.fixture
def mail_server():
    kept = Kept()

    def login(_server, _session, _envelope, _mechanism, data):
        return AuthResult(success=(data.login, data.password) == (b"studio", b"pass word"))

    options = {"authenticator": login, "auth_require_tls": False, "auth_required": True}
    controller = Controller(kept, hostname="127.0.0.1", port=0, **options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        controller.port = free.getsockname()[1]
    controller.start()
    yield controller, kept
    controller.stop()


def mail(port, **changed):
    fields = {
        "host": "127.0.0.1", "port": port, "security": "none", "user": "studio", "password": "pass word",
        "sender": "studio@example.org", "to": ["ann@example.org", "bob@example.org"],
    }  # fmt: skip
    return Mail(**{**fields, **changed})


def test_a_mail_comes_with_subject_and_text(mail_server):
    controller, kept = mail_server
    mail(controller.port)(SENT)
    (got,) = kept.got
    assert (got["Subject"], got["From"]) == ("[Ziggurat] Run failed: lenet", "studio@example.org")
    assert got["To"] == "ann@example.org, bob@example.org"
    assert got.get_payload().strip() == "Out of memory."


def test_a_wrong_password_is_final_and_not_repeated(mail_server):
    controller, kept = mail_server
    sender = mail(controller.port, password="wrong word")
    with pytest.raises(DeliveryError, match="refused the login") as refused:
        sender(SENT)
    assert refused.value.is_final
    assert kept.got == []
    assert "wrong word" not in repr(sender) + str(refused.value)


def test_a_server_without_tls_gets_no_password(mail_server):
    controller, kept = mail_server
    with pytest.raises(DeliveryError, match="STARTTLS"):
        mail(controller.port, security="starttls")(SENT)
    assert kept.got == []


def test_a_mail_server_that_is_away_is_asked_again():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DeliveryError, match="cannot be reached") as refused:
        mail(port)(SENT)
    assert not refused.value.is_final
