"""Standard network of a job: its text is kept in the job folder when the job begins, and read there from then on.

A later release may give a network of the same name other layers or other names of variables; the checkpoints of a job
then still fit the network that made them.
"""

from __future__ import annotations

from pathlib import Path

from ziggurat.atomic import atomic_write_text, storage_errors
from ziggurat.entities.backend_info import backend_info
from ziggurat.errors import DataError
from ziggurat.layout import JobFolder
from ziggurat.specs import FileNetwork, TrainSpec
from ziggurat.zoo import former_network_path, network_path
from ziggurat.zoo.backends import with_backend

__all__ = ["keep_network", "kept_network", "standard_text"]


def standard_text(spec: TrainSpec) -> str | None:
    """Return the text of the standard network of a spec; None where it is no standard network, or has no file.

    Raises:
        UnknownNameError: where the backend has no network of the name.
        DataError: where its file cannot be read.
    """
    chosen = with_backend(spec)
    if isinstance(chosen.network, FileNetwork) or backend_info(chosen.backend).zoo is None:
        return None
    return _text(network_path(chosen.network.name, chosen.backend))


def keep_network(spec: TrainSpec, job: JobFolder) -> str | None:
    """Write the text of the standard network of a job that begins into its folder; return it as ``standard_text`` does.

    Raises:
        ZigguratError: as ``standard_text``.
        StorageError: where it cannot be written.
    """
    text = standard_text(spec)
    if text is not None:
        with storage_errors(job.path):
            job.path.mkdir(parents=True, exist_ok=True)
        atomic_write_text(job.network, text, "The network of a job")
    return text


def kept_network(spec: TrainSpec, job: JobFolder) -> str | None:
    """Return the text of the standard network of a job that has begun; None where ``standard_text`` is None.

    Release 0.1 kept none: a job of that release has the network that the name stood for then.

    Raises:
        ZigguratError: as ``standard_text``.
    """
    if isinstance(spec.network, FileNetwork):
        return None
    if job.network.is_file():
        return _text(job.network)
    chosen = with_backend(spec)
    former = former_network_path(spec.network.name, chosen.backend)
    return standard_text(spec) if former is None else _text(former)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            "The file of a standard network must be readable.",
            received=f"{path}: {error}",
            advice="Restore it from a backup, or install Ziggurat anew.",
        ) from None
