"""Record stores in HDF5 (see ``ziggurat.records.sharded`` for the arrays); needs the extra ``hdf5``."""

from __future__ import annotations

import numpy as np

from ziggurat.records.base import not_a_store
from ziggurat.records.hdf5_file import HDF5File, NewHDF5File
from ziggurat.records.sharded import INDEX_NAME, ShardedReader, ShardedWriter, shard_name

__all__ = ["HDF5Reader", "HDF5Writer"]

_FORMAT = "ziggurat-records-1"


class HDF5Writer(ShardedWriter):
    """Writes an HDF5 store."""

    def _create(self) -> None:
        self._file = NewHDF5File(self._target.path)
        self._file.root.attrs["format"] = _FORMAT

    def _write_array(self, name: str, pieces: list[bytes]) -> None:
        self._file.root[name] = np.frombuffer(b"".join(pieces), np.uint8)
        self._file.check()

    def _complete(self) -> None:
        self._file.close()

    def _abandon(self) -> None:
        self._file.abandon()


class HDF5Reader(ShardedReader):
    """Reads an HDF5 store at random."""

    def _open_arrays(self) -> list[int]:
        self._file = HDF5File(self.path)
        root = self._file.root
        if root.attrs.get("format") != _FORMAT or INDEX_NAME not in root:
            self._file.close()
            raise not_a_store(self.path, "HDF5", "no store of records; HDF5Data reads other HDF5 files")
        shards = [name for name in map(shard_name, range(len(root))) if name in root]
        return [root[name].shape[0] for name in shards]

    def _index_bytes(self) -> int:
        return self._file[INDEX_NAME].shape[0]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self, shard: int | None, offset: int, size: int) -> bytes:
        name = INDEX_NAME if shard is None else shard_name(shard)
        return self._file[name][offset : offset + size].tobytes()
