"""Atomic npz files of named arrays: no pickle, any names, complete or absent."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ziggurat.errors import StorageError

__all__ = ["write_arrays"]


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an npz file that ``numpy.load(path)`` reads.

    ``numpy.savez`` would do, were it not for names such as ``file`` and ``allow_pickle``, which are its own arguments.

    Args:
        path: the file; its folder is made.
        arrays: name → array, of any dtype but object.

    Raises:
        StorageError: where the disk is full or not writable.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StorageError(
            f"Arrays must be written to {path}.",
            received=f"{error.strerror} (errno {error.errno})",
            advice="Free space on the disk or mend the folder's rights, then resume the job.",
        ) from error
