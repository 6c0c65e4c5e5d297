"""Manifest and signature of an export: which files it has, where they come from, and who vouches for them.

``export-manifest.json`` lists every file of the folder by its SHA-256, and has the provenance: job, checkpoint,
dataset, release and arithmetic. ``signature.json`` has an Ed25519 signature (RFC 8032) of its bytes, and the public
key; a folder without it is unsigned. Neither says that a model is good: they say that the files are those that were
exported, and by whom.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ziggurat.errors import ChangedExportError, ConfigurationError, MissingDependencyError, StorageError, UsageError

__all__ = [
    "MANIFEST_NAME",
    "SIGNATURE_NAME",
    "ExportCheck",
    "check_export",
    "cryptography_module",
    "fingerprint_of",
    "public_key_of",
    "require_export",
    "sign_export",
    "write_manifest",
]

MANIFEST_NAME: Final = "export-manifest.json"
"""File of an export that lists the others."""

SIGNATURE_NAME: Final = "signature.json"
"""File of an export with the signature of the manifest."""

_NOT_LISTED: Final = frozenset((MANIFEST_NAME, SIGNATURE_NAME, "info.json"))
"""``info.json`` is added when the studio packs a download. Nothing reads it; what it tells stands in signed files."""

_VERSION: Final = 1
_CONTEXT: Final = b"ziggurat export manifest 1\n"
"""What is signed begins so: a signature of it means nothing elsewhere."""

_FINGERPRINT_DIGITS: Final = 32
_BLOCK_BYTES: Final = 1 << 20
_MOST_MANIFEST_BYTES: Final = 16 << 20


@dataclass(frozen=True, kw_only=True)
class ExportCheck:
    """Content of the manifest of an export that has the files it lists.

    Args:
        files: name → SHA-256, hexadecimal.
        provenance: job, checkpoint, dataset, release and arithmetic, as JSON values.
        fingerprint: of the key that signed it; empty if it is unsigned, or the signature was not checked.
        is_known: whether that key is one of those that were given.
    """

    files: Mapping[str, str]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    is_known: bool = False


def write_manifest(folder: Path, provenance: Mapping[str, Any]) -> None:
    """Write the manifest of the files that a folder has now.

    Raises:
        StorageError: if a file cannot be read or written.
    """
    files = {
        name: {"sha256": _sha256(folder / name), "bytes": (folder / name).stat().st_size} for name in _names(folder)
    }
    content = {"manifest": _VERSION, "files": files, "provenance": dict(provenance)}
    (folder / MANIFEST_NAME).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def sign_export(folder: Path, private_key: Any) -> str:
    """Write the signature of the manifest of a folder; return the fingerprint of the key.

    Args:
        folder: of an export with a manifest.
        private_key: an ``Ed25519PrivateKey``.
    """
    public_key = private_key.public_key()
    signature = private_key.sign(_CONTEXT + (folder / MANIFEST_NAME).read_bytes())
    content = {
        "algorithm": "Ed25519",
        "fingerprint": fingerprint_of(public_key),
        "public_key": base64.b64encode(public_key.public_bytes_raw()).decode(),
        "signature": base64.b64encode(signature).decode(),
    }
    (folder / SIGNATURE_NAME).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return str(content["fingerprint"])


def require_export(folder: Path) -> None:
    """Check that a folder looks like an export; its files are not read.

    Raises:
        UsageError: if there is no such folder.
        ConfigurationError: if the folder has no manifest: it is no export, or one of an earlier release.
    """
    if not folder.is_dir():
        problem = f"`{folder}` is a file." if folder.exists() else f"There is no folder `{folder}`."
        raise UsageError(problem, advice="Name the folder of an export.")
    if not (folder / MANIFEST_NAME).exists():
        raise ConfigurationError(
            f"The folder `{folder}` has no manifest.",
            advice="Name the folder of an export; one that was written before release 0.2 must be exported again.",
        )


def check_export(folder: Path, known: Sequence[Any] | None = None) -> ExportCheck:
    """Return what the manifest of an export says, if the folder has exactly the files that it lists.

    Args:
        folder: of the export.
        known: public keys (``Ed25519PublicKey``) that are trusted; None to check the files alone, not the signature.

    Raises:
        UsageError: if there is no such folder.
        ConfigurationError: if the folder has no manifest: it is no export, or one of an earlier release.
        ChangedExportError: if a file was changed, removed or added, or the signature is not that of the manifest;
            ``details["file"]`` names the first one.
        MissingDependencyError: if a signature is to be checked, and `cryptography` is not installed.
    """
    require_export(folder)
    text = _read(folder / MANIFEST_NAME)
    try:
        content = json.loads(text)
        listed = {str(name): str(entry["sha256"]) for name, entry in content["files"].items()}
        provenance = dict(content["provenance"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _changed(folder, MANIFEST_NAME, "it is no manifest") from None
    _check_files(folder, listed)
    if known is None or not os.path.lexists(folder / SIGNATURE_NAME):
        return ExportCheck(files=listed, provenance=provenance)
    return ExportCheck(files=listed, provenance=provenance, **_signer(folder, text, known))


def fingerprint_of(public_key: Any) -> str:
    """Return the fingerprint of a public key: the first 32 hexadecimal digits of the SHA-256 of its 32 bytes."""
    return hashlib.sha256(public_key.public_bytes_raw()).hexdigest()[:_FINGERPRINT_DIGITS]


def public_key_of(content: bytes, name: str) -> Any:
    """Return the Ed25519 public key of a file: PEM, or the ``signature.json`` of an export.

    Args:
        content: of the file.
        name: of the file, for errors.

    Raises:
        ConfigurationError: if there is none in it.
    """
    ed25519 = cryptography_module("hazmat.primitives.asymmetric.ed25519")
    serialization = cryptography_module("hazmat.primitives.serialization")
    try:
        if content.lstrip().startswith(b"{"):
            return ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(json.loads(content)["public_key"]))
        key = serialization.load_pem_public_key(content)
    except (ValueError, TypeError, KeyError, RecursionError, cryptography_module("exceptions").UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ConfigurationError(
            f"The file `{name}` has no public Ed25519 key.",
            advice="Name a PEM file that begins with `BEGIN PUBLIC KEY`, or the signature.json of an export you trust.",
        )
    return key


def cryptography_module(name: str) -> Any:
    """Return a module of the package `cryptography`.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    try:
        return import_module(f"cryptography.{name}")
    except ModuleNotFoundError as error:
        raise MissingDependencyError("cryptography", extra="studio", purpose="signatures of exports") from error


def _check_files(folder: Path, listed: Mapping[str, str]) -> None:
    present = _names(folder)
    for name in sorted({*present, *listed}):
        if name not in listed:
            raise _changed(folder, name, "it is not in the manifest")
        if name not in present:
            raise _changed(folder, name, "it is missing")
        if (folder / name).is_symlink() or not (folder / name).is_file():
            raise _changed(folder, name, "it is a link")
        if _sha256(folder / name) != listed[name]:
            raise _changed(folder, name, "its content is not that of the manifest")


def _signer(folder: Path, text: bytes, known: Sequence[Any]) -> dict[str, Any]:
    """Return fingerprint and whether it is known of the key that signed the text of a manifest."""
    ed25519 = cryptography_module("hazmat.primitives.asymmetric.ed25519")
    try:
        content = json.loads(_read(folder / SIGNATURE_NAME))
        key = ed25519.Ed25519PublicKey.from_public_bytes(base64.b64decode(content["public_key"], validate=True))
        key.verify(base64.b64decode(content["signature"], validate=True), _CONTEXT + text)
    except (ValueError, TypeError, KeyError, RecursionError, cryptography_module("exceptions").InvalidSignature):
        raise _changed(folder, SIGNATURE_NAME, "it is no signature of this manifest") from None
    raw = key.public_bytes_raw()
    return {"fingerprint": fingerprint_of(key), "is_known": any(each.public_bytes_raw() == raw for each in known)}


def _names(folder: Path) -> list[str]:
    """Return the names of all files and links below a folder, in order, except those that the manifest cannot list."""
    found: list[str] = []
    for path, folders, files in os.walk(folder):
        here = Path(path)
        links = [name for name in folders if (here / name).is_symlink()]
        found += [(here / name).relative_to(folder).as_posix() for name in (*files, *links)]
    return sorted(set(found) - _NOT_LISTED)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except OSError as error:
        raise StorageError(
            f"The file `{path}` of an export cannot be read: {error.strerror}.", advice="Check its rights."
        ) from error
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_MANIFEST_BYTES)


def _changed(folder: Path, name: str, why: str) -> ChangedExportError:
    return ChangedExportError(
        f"The export was changed: {name}.",
        received=f"`{folder}`, where {why}",
        advice="Get the export again from where it was made.",
        details={"file": name, "folder": str(folder)},
    )
