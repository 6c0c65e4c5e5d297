"""Receivers of notifications: a webhook, signed by HMAC with a timestamp, and e-mail by SMTP."""

from __future__ import annotations

import hashlib
import hmac
import json
import smtplib
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from typing import Final

from ziggurat.net.http_client import AddressRefusedError, HTTPClient, StatusError
from ziggurat.net.ssrf import AllowedAddresses, status_in_words
from ziggurat.services.outbox import DeliveryError, Message

__all__ = ["SECURITIES", "SIGNATURE_HEADER", "TIMESTAMP_HEADER", "Mail", "Webhook", "signature_of"]

SIGNATURE_HEADER: Final = "Ziggurat-Signature"
TIMESTAMP_HEADER: Final = "Ziggurat-Timestamp"
SECURITIES: Final = ("starttls", "tls", "none")
"""How a connection to a mail server is encrypted."""

_TIMEOUT_S: Final = 10.0
_TRY_AGAIN: Final = (408, 425, 429)


def signature_of(key: str, timestamp: int, body: bytes) -> str:
    """Return ``sha256=HEX``: HMAC-SHA256 of ``TIMESTAMP.BODY`` under a key."""
    signed = f"{timestamp}.".encode() + body
    return "sha256=" + hmac.new(key.encode(), signed, hashlib.sha256).hexdigest()


def _unreached(error: Exception) -> str:
    """Return why a receiver was not reached, without the text of the error, which may repeat a URL."""
    if isinstance(error, socket.gaierror):
        return "cannot be reached: its name is unknown"
    return "did not answer in time" if isinstance(error, TimeoutError) else "cannot be reached"


@dataclass(frozen=True, kw_only=True)
class Webhook:
    """Sends messages as JSON by POST.

    Args:
        url: of the receiver.
        key: of the signature.
        allowed: addresses that may be asked.
        clock: seconds since 1970; each try is signed anew.
    """

    url: str = field(repr=False)
    key: str = field(repr=False)
    allowed: AllowedAddresses
    clock: Callable[[], float] = field(repr=False)

    def __call__(self, message: Message) -> None:
        """Deliver a message.

        Raises:
            DeliveryError: if the receiver may not be asked, cannot be reached, or does not answer 2xx.
        """
        said = {"kind": message.kind, "title": message.title, "text": message.text, "time": message.time}
        body = json.dumps({**said, **message.details}, separators=(",", ":")).encode()
        timestamp = int(self.clock())
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP_HEADER: str(timestamp),
            SIGNATURE_HEADER: signature_of(self.key, timestamp, body),
        }
        try:
            HTTPClient(_TIMEOUT_S).post(self.url, body, headers=headers, allowed=self.allowed)
        except StatusError as error:
            is_final = error.status < 500 and error.status not in _TRY_AGAIN
            raise DeliveryError(f"it answered {status_in_words(error.status)}", is_final=is_final) from None
        except AddressRefusedError:
            # The name may stand for a public address at the next try, but an attacker could wait for that, too.
            text = f"its address is in a network of this machine. {self.allowed.advice}"
            raise DeliveryError(text, is_final=True) from None
        except OSError as error:
            raise DeliveryError(f"it {_unreached(error)}") from None


@dataclass(frozen=True, kw_only=True)
class Mail:
    """Sends messages as e-mail.

    Args:
        host: of the mail server.
        port: TCP port of that host.
        security: a name in ``SECURITIES``.
        user: for the login; empty for none.
        password: for the login.
        sender: address.
        to: addresses.
        tls: configuration of TLS; None for that of the system.
    """

    host: str
    port: int
    security: str
    user: str
    password: str = field(repr=False)
    sender: str
    to: Sequence[str]
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __call__(self, message: Message) -> None:
        """Deliver a message.

        Raises:
            DeliveryError: if the server cannot be reached, or refuses login, sender or receivers.
        """
        mail = EmailMessage()
        mail["Subject"] = f"[Ziggurat] {message.title}"
        mail["From"], mail["To"] = self.sender, ", ".join(self.to)
        mail["Date"] = format_datetime(datetime.fromtimestamp(message.time, UTC))
        mail["Message-ID"] = make_msgid(domain="ziggurat.invalid")
        mail.set_content(message.text + "\n")
        try:
            with self._connection() as server:
                self._log_in(server)
                server.send_message(mail)
        except smtplib.SMTPRecipientsRefused:
            raise DeliveryError("the mail server refused the receivers", is_final=True) from None
        except smtplib.SMTPNotSupportedError as error:
            raise DeliveryError(f"the mail server cannot do this: {error}", is_final=True) from None
        except smtplib.SMTPResponseException as error:
            is_final = 500 <= error.smtp_code < 600
            raise DeliveryError(f"the mail server answered {error.smtp_code}", is_final=is_final) from None
        except (smtplib.SMTPException, OSError) as error:
            raise DeliveryError(f"the mail server {_unreached(error)}") from None

    def _log_in(self, server: smtplib.SMTP) -> None:
        if not self.user:
            return
        try:
            server.login(self.user, self.password)
        except (smtplib.SMTPAuthenticationError, smtplib.SMTPServerDisconnected):  # some hang up
            raise DeliveryError("the mail server refused the login", is_final=True) from None

    def _connection(self) -> smtplib.SMTP:
        tls = self.tls or ssl.create_default_context()
        if self.security == "tls":
            return smtplib.SMTP_SSL(self.host, self.port, timeout=_TIMEOUT_S, context=tls)
        server = smtplib.SMTP(self.host, self.port, timeout=_TIMEOUT_S)
        if self.security == "starttls":
            try:
                server.starttls(context=tls)
            except BaseException:
                server.close()
                raise
        return server
