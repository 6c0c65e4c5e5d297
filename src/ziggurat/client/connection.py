"""HTTP connection to a studio: requests, downloads, and its event stream with automatic reconnection."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx

from ziggurat.atomic import AtomicFile, storage_errors
from ziggurat.errors import UsageError, ZigguratError

__all__ = [
    "Connection",
    "Notice",
    "given",
    "notices",
]


_SHOWN = 500


def error_of(status: int, shape: Any, text: str = "") -> ZigguratError:
    """Return the error of an answer.

    Args:
        status: of HTTP; kept as ``details["status"]``.
        shape: decoded JSON of the answer.
        text: of the answer, where it is no JSON.
    """
    if not isinstance(shape, Mapping) or not isinstance(shape.get("rule"), str):
        return UsageError(
            f"A studio answers with JSON; this answer has the status {status}.",
            received=text[:_SHOWN] or "nothing",
            advice="Check the address; a proxy may stand in between.",
            details={"status": status},
        )
    code = str(shape.get("error", ""))
    family = next((each for each in _families(ZigguratError) if each.code == code), _family_of_status(status))
    return _made(family, code, status, shape)


def _made(family: type[ZigguratError], code: str, status: int, shape: Mapping[str, Any]) -> ZigguratError:
    error = family.__new__(family)
    options = {"received": shape["received"]} if "received" in shape else {}
    details = {**(shape.get("details") or {}), "status": status}
    # The families have constructors of their own; the answer holds what these would make.
    ZigguratError.__init__(error, shape["rule"], advice=shape.get("advice", ""), details=details, **options)
    error.__dict__["code"] = code
    return error


def _families(family: type[ZigguratError]) -> Iterator[type[ZigguratError]]:
    yield family
    for each in family.__subclasses__():
        yield from _families(each)


def _family_of_status(status: int) -> type[ZigguratError]:
    return UsageError if status < 500 else ZigguratError


_BLOCK_BYTES: Final = 1 << 20


class Connection:
    """A connection to a studio.

    Args:
        url: address of the studio, as ``ziggurat up`` prints it.
        token: secret of a token; empty for a studio on this machine without accounts.
        timeout_s: how long the studio may be silent.
    """

    def __init__(self, url: str, token: str, timeout_s: float) -> None:
        if not all("!" <= letter <= "~" for letter in token):
            raise UsageError(
                "The token has spaces or other signs than plain letters, digits and signs.",
                # it must not appear in a message
                advice="Copy it again, without blanks and line ends.",
            )
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = url.rstrip("/")
        if not _is_address(self.url):
            raise UsageError(f"`{url}` is not the URL of a studio.", advice="Use what `ziggurat up` prints.")
        self._http = httpx.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=timeout_s)

    def close(self) -> None:
        """Close it; closing twice does nothing."""
        self._http.close()

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON values of an answer; None where it has no content.

        Args:
            method: of HTTP.
            path: below ``/api/v1``.
            options: of ``httpx.Client.request``.

        Raises:
            ZigguratError: of the family that the studio says.
            UsageError: where there is no studio at the address.
        """
        with self._reached():
            answer = self._http.request(method, _checked(path), **options)
        if answer.is_success and answer.status_code != 204:
            return _values(answer)
        if not answer.is_success:
            raise error_of(answer.status_code, _json(answer), answer.text)
        return None

    def save(self, method: str, path: str, target: Path, **options: Any) -> Path:
        """Write the content of an answer to a file, whole or not at all; return the file.

        Raises:
            StorageError: where the file is there already, or cannot be written.
        """
        partial = AtomicFile(target)
        try:
            with (
                self._streamed(method, path, **options) as answer,
                storage_errors(target),
                partial.path.open("wb") as file,
            ):
                for block in answer.iter_bytes(_BLOCK_BYTES):
                    file.write(block)
            partial.publish()
        finally:
            partial.discard()
        return target

    def content(self, path: str, **options: Any) -> bytes:
        """Return the content of an answer."""
        with self._streamed("GET", path, **options) as answer:
            return answer.read()

    def lines(self, path: str, **options: Any) -> Iterator[str]:
        """Yield the lines of an answer while they come, until the studio or the network ends it.

        Raises:
            UsageError: where the connection breaks off.
        """
        with self._streamed("GET", path, **options) as answer:
            yield from answer.iter_lines()

    @contextmanager
    def _streamed(self, method: str, path: str, **options: Any) -> Iterator[httpx.Response]:
        with self._reached(), self._http.stream(method, _checked(path), **options) as answer:
            if not answer.is_success:
                answer.read()
                raise error_of(answer.status_code, _json(answer), answer.text)
            yield answer

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except (httpx.TransportError, httpx.StreamError) as error:
            raise UsageError(
                f"The studio at {self.url} does not answer: {type(error).__name__}: {str(error).rstrip('.')}.",
                advice="Start it with `ziggurat up`, or check address and network.",
                details={"unreachable": True},
            ) from error


def _checked(path: str) -> str:
    """Return a path whose parts are names as they are: an id with `..` in it must not reach another route."""
    if any(part in ("", ".", "..") for part in path.split("/")[1:]):
        raise UsageError(f"`{path}` has an id or a name that is a path, which none is in the studio.")
    return quote(path)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _values(answer: httpx.Response) -> Any:
    try:
        return json.loads(answer.content)
    except ValueError:
        raise error_of(answer.status_code, None, answer.text) from None


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are not None."""
    return {name: value for name, value in values.items() if value is not None}


_FIRST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 15.0


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something has news; who wants them asks for them.

    Args:
        kind: ``state``, ``events``, ``added``, ``deleted``, ``changed``, ``waiting``; ``reload`` at the start, after
            a break, and where notices may have been missed.
        topic: what was listened to.
        id: of the job.
    """

    kind: str
    topic: str
    id: str


def notices(
    connection: Connection, topics: Sequence[str], *, tries: int = 8, sleep: Callable[[float], None] = time.sleep
) -> Iterator[Notice]:
    """Yield notices without end; a connection that breaks is made again, and goes on where it was.

    Args:
        connection: to the studio.
        topics: such as ``jobs`` or ``job:ID``.
        tries: how often in a row the studio may be out of reach.
        sleep: waits so many seconds.

    Raises:
        UsageError: where the studio stays out of reach.
        ZigguratError: where it refuses.
    """
    ids: list[str] = []
    failures = 0
    while True:
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": ids[-1]} if ids else {})}
        try:
            # The studio says something every 15 s; who hears nothing for four times as long has lost it.
            lines = connection.lines("/events", params={"topics": ",".join(topics)}, headers=headers, timeout=60.0)
            for notice in _parsed(lines, ids):
                failures = 0
                yield notice
        except UsageError as error:
            if not error.details.get("unreachable") or failures >= tries:
                raise
        failures += 1
        sleep(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**failures))


def _parsed(lines: Iterator[str], ids: list[str]) -> Iterator[Notice]:
    """Yield the notices of a stream; the id of the newest event is kept as the only one of ``ids``."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "id" in fields:
            ids[:] = [fields["id"]]
        notice = _notice(fields)
        fields = {}
        if notice is not None:
            yield notice


def _notice(fields: dict[str, str]) -> Notice | None:
    if fields.get("event") == "hello":
        return Notice(kind="reload", topic="", id="")
    try:
        data = json.loads(fields.get("data", ""))
        return Notice(kind=str(data["kind"]), topic=str(data["topic"]), id=str(data["id"]))
    except (ValueError, KeyError, TypeError):
        return None
