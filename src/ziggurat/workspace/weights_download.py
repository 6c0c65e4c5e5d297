"""Download of a file of public weights: guarded addresses, a limit, and the checksum before it is used.

A file that comes with Ziggurat is copied, and its checksum is compared likewise.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import CheckpointError, DataError
from ziggurat.net.http_client import AddressRefusedError, ConnectionBrokenError, HTTPClient, HTTPResponse, StatusError
from ziggurat.net.ssrf import AllowedAddresses, status_in_words
from ziggurat.zoo.public_weights import PublicWeights
from ziggurat.zoo.weight_files import file_sha256

__all__ = ["check_sha256", "download_file"]

_SILENT_S: Final = 30.0
_POINTER_BYTES: Final = 4096
_SLACK: Final = 2
"""A file that is so many times larger than it is said to be is another one."""

_OID: Final = re.compile(r"^oid sha256:([0-9a-f]{64})$", re.MULTILINE)


def download_file(
    public: PublicWeights,
    target: Path,
    *,
    allowed: AllowedAddresses | None = None,
    progress: Callable[[int, int | None], None] = lambda _received, _total: None,
) -> str:
    """Download the file of an entry of the download list; return its checksum, which was compared.

    A download that broke off is begun anew. A file that comes with Ziggurat is copied, without any connection.

    Args:
        public: of the list.
        target: a new file; left out where it fails.
        allowed: addresses that may be asked; None for all.
        progress: called with the bytes that came, and those that will come, None if unknown. An error that it raises
            ends the download.

    Raises:
        DataError: if the server cannot be reached, has no such file, or does not send all of it; if a file that comes
            with Ziggurat is not there.
        CheckpointError: if the checksum is another one.
        StorageError: if the disk is full.
    """
    if public.is_packaged:
        return _copy(public, target)
    client = HTTPClient(_SILENT_S)
    try:
        expected = public.sha256 or _pointed_sha256(client, public, allowed)
        with _opened(client, public, public.url, allowed) as response:
            _write(response, public, target, progress)
        found = file_sha256(target)
        check_sha256(found, expected, public.url)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    return found


def check_sha256(found: str, expected: str, what: str) -> None:
    """Raise where a checksum does not begin with the digits that are expected; without any, nothing is compared.

    Raises:
        CheckpointError: it says both.
    """
    if not found.startswith(expected.strip().lower()):
        raise CheckpointError(
            f"`{what}` is not the file that its publisher states: its SHA-256 is {found}, expected {expected}.",
            advice="Download it again; if it stays so, the file is another one: do not use it.",
            details={"field": "sha256"},
        )


def _copy(public: PublicWeights, target: Path) -> str:
    """Copy a file that comes with Ziggurat; return its checksum, which was compared."""
    source = public.packaged_path
    try:
        content = source.read_bytes()
    except OSError as error:
        raise DataError(
            f"The weights `{source}` that come with Ziggurat cannot be read: {error.strerror}.",
            advice="Install Ziggurat again.",
        ) from None
    found = hashlib.sha256(content).hexdigest()
    check_sha256(found, public.sha256, str(source))
    with storage_errors(target):
        target.write_bytes(content)
    return found


def _write(
    response: HTTPResponse, public: PublicWeights, target: Path, progress: Callable[[int, int | None], None]
) -> None:
    total, received, most = response.length, 0, _SLACK * public.size_bytes
    with storage_errors(target), target.open("wb") as out:
        for block in _blocks(response, public):
            received += len(block)
            if received > most:
                raise _broken(public, f"more than {most:,} bytes came")
            out.write(block)
            progress(received, total)
    if total is not None and received != total:
        raise _broken(public, f"{received:,} of {total:,} bytes came")


def _blocks(response: HTTPResponse, public: PublicWeights) -> Iterator[bytes]:
    """Yield the body as it comes; a broken connection is an ``OSError``, and no fault of the disk."""
    try:
        yield from response.parts()
    except ConnectionBrokenError as error:
        raise _broken(public, str(error)) from None


def _pointed_sha256(client: HTTPClient, public: PublicWeights, allowed: AllowedAddresses | None) -> str:
    """Return the checksum in the publisher's pointer to the file."""
    with _opened(client, public, public.pointer_url, allowed) as response:
        try:
            text = response.content(_POINTER_BYTES).decode("ascii", "replace")
        except OSError as error:
            raise _broken(public, str(error)) from None
    match = _OID.search(text)
    if match is None:
        raise DataError(
            f"`{public.pointer_url}` has no line `oid sha256:…`, by which the publisher states the checksum.",
            advice=_by_hand(public),
        )
    return match[1]


def _opened(client: HTTPClient, public: PublicWeights, url: str, allowed: AllowedAddresses | None) -> HTTPResponse:
    try:
        return client.get(url, allowed=allowed)
    except AddressRefusedError as error:
        limits = allowed or AllowedAddresses("source_hosts")
        raise DataError(
            limits.rule("A file of weights"),
            received=f"`{error.host}:{error.port}`, which is in a network of the studio's machine",
            advice=limits.advice,
        ) from None
    except StatusError as error:
        raise DataError(
            f"The server does not give the file: {status_in_words(error.status)} for `{url}`.",
            advice=_by_hand(public),
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(
            f"There is no connection to {public.host} for the download: {str(error) or type(error).__name__}.",
            advice=_by_hand(public),
        ) from None


def _broken(public: PublicWeights, received: str) -> DataError:
    return DataError(
        f"The download broke off: {received}.",
        advice=f"Start it again. {_by_hand(public)}",
    )


def _by_hand(public: PublicWeights) -> str:
    return (
        f"Or download {public.url} on another machine, and add the file here: "
        f"`ziggurat weights add FILE --name {public.name} --network {public.network}`."
    )
