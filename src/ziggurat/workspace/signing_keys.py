"""Keys of a workspace that sign exports: the present one, and the public keys of earlier ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from ziggurat.atomic import storage_errors
from ziggurat.errors import ConfigurationError
from ziggurat.layout import KEYS_FOLDER
from ziggurat.serving.manifest import cryptography_module, fingerprint_of, public_key_of

__all__ = ["SigningKeys"]

_PRIVATE: Final = "signing.pem"
_PUBLIC: Final = "signing-{}.pub.pem"


class SigningKeys:
    """The Ed25519 keys of a workspace. The first signature makes the first key.

    Args:
        workspace: its folder.
    """

    def __init__(self, workspace: Path) -> None:
        self.folder = workspace / KEYS_FOLDER

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the present key; empty if there is none yet.

        Raises:
            ConfigurationError: if its file holds no such key.
            MissingDependencyError: if `cryptography` is not installed.
        """
        key = self._read()
        return "" if key is None else fingerprint_of(key.public_key())

    def describe(self) -> dict[str, str]:
        """Return ``fingerprint`` and ``public_key`` (PEM) of the present key; both empty if there is none yet."""
        fingerprint = self.fingerprint
        path = self.folder / _PUBLIC.format(fingerprint)
        return {"fingerprint": fingerprint, "public_key": path.read_text() if fingerprint else ""}

    def private(self) -> Any:
        """Return the present private key; it is made if there is none yet.

        Raises:
            ConfigurationError: if its file holds no such key.
            MissingDependencyError: if `cryptography` is not installed.
            StorageError: if it cannot be written.
        """
        return self._read() or self._make(replaces=False)

    def rotate(self) -> str:
        """Make a new key; return its fingerprint. The old private key is deleted, its public key stays known.

        Raises:
            MissingDependencyError: if `cryptography` is not installed.
            StorageError: if it cannot be written.
        """
        return fingerprint_of(self._make(replaces=True).public_key())

    def known(self) -> list[Any]:
        """Return the public keys that this workspace trusts: its own, also earlier ones."""
        paths = sorted(self.folder.glob(_PUBLIC.format("*")))
        return [public_key_of(path.read_bytes(), str(path)) for path in paths]

    def _read(self) -> Any:
        serialization = cryptography_module("hazmat.primitives.serialization")
        ed25519 = cryptography_module("hazmat.primitives.asymmetric.ed25519")
        path = self.folder / _PRIVATE
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            raise _unusable(path, str(error)) from error
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            raise _unusable(path, "a key of another kind")
        return key

    def _make(self, *, replaces: bool) -> Any:
        serialization = cryptography_module("hazmat.primitives.serialization")
        ed25519 = cryptography_module("hazmat.primitives.asymmetric.ed25519")
        key = ed25519.Ed25519PrivateKey.generate()
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        fingerprint, path = fingerprint_of(key.public_key()), self.folder / _PRIVATE
        partial = self.folder / f".{_PRIVATE}.{fingerprint}.partial"
        with storage_errors(path):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The public key first: what a key has signed must be known, wherever this process ends.
            (self.folder / _PUBLIC.format(fingerprint)).write_bytes(public)
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(private)
                file.flush()
                os.fsync(file.fileno())
            if replaces:
                partial.replace(path)
                return key
            try:
                os.link(partial, path)  # refused if another process was faster
            except FileExistsError:
                (self.folder / _PUBLIC.format(fingerprint)).unlink()
                return self._read()
            finally:
                partial.unlink()
        return key


def _unusable(path: Path, received: str) -> ConfigurationError:
    return ConfigurationError(
        f"The key that signs exports, `{path}`, cannot be used: {received}.",
        advice="Restore it from a backup, or make a new one: ziggurat settings rotate-key.",
    )
