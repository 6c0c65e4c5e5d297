"""Atomic npz files of named arrays: no pickle, any names, complete or absent."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ziggurat.atomic import replaced_file

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
    advice = "Free space on the disk or fix the folder's rights, then resume the job."
    with replaced_file(path, "Arrays", durable=False, advice=advice) as temporary:
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(temporary, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
