"""The store of features: what it keeps, what it lets go, and what it takes for nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from ziggurat.errors import DataError
from ziggurat.records.feature_store import FeatureKey, FeatureStore


def _key(samples: str = "a", **preprocessing: int) -> FeatureKey:
    return FeatureKey(samples=samples, weights="w", network="n", preprocessing=preprocessing, framework="torch")


def _rows(count: int = 5) -> np.ndarray:
    return np.arange(count * 3, dtype=np.float32).reshape(count, 3)


def test_features_come_back_for_an_equal_key_only(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path / "features")
    assert store.find(_key()) is None
    np.testing.assert_array_equal(store.write(_key(size=3), [_rows()[:2], _rows()[2:]], 5), _rows())
    found = FeatureStore(tmp_path / "features").find(_key(size=3))
    assert found is not None
    np.testing.assert_array_equal(found, _rows())
    assert store.find(_key(size=4)) is None
    assert store.find(_key("b", size=3)) is None


def test_a_cut_file_is_none(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.write(_key(), [_rows()], 5)
    (path,) = tmp_path.glob("*.npy")
    os.truncate(path, path.stat().st_size - 1)
    assert store.find(_key()) is None


@pytest.mark.parametrize("count", [4, 6])
def test_too_few_or_too_many_rows_leave_nothing_behind(tmp_path: Path, count: int) -> None:
    with pytest.raises(DataError, match="another number"):
        FeatureStore(tmp_path).write(_key(), [_rows()], count)
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path, most_bytes=500)  # room for two of 188 bytes each
    for second, name in enumerate("ab"):
        store.write(_key(name), [_rows()], 5)
        os.utime(tmp_path / f"{_key(name).digest}.npy", (second, second))
    assert store.find(_key("a")) is not None
    kept = store.find(_key("b"))
    os.utime(tmp_path / f"{_key('b').digest}.npy", (0, 0))
    store.write(_key("c"), [_rows()], 5)
    assert [store.find(_key(name)) is not None for name in "abc"] == [True, False, True]
    assert kept is not None
    np.testing.assert_array_equal(kept, _rows())


def test_an_entry_is_listed_and_deleted(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    store.write(_key("a"), [_rows()], 5)
    (entry,) = store.entries()
    assert entry.facts["samples"] == "a"
    assert entry.size == 188
    store.delete("../other")
    store.delete(entry.name)
    assert list(tmp_path.iterdir()) == []


def test_what_a_kill_left_is_deleted_after_a_day(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path)
    old, new = tmp_path / ".a.npy.1.2.tmp", tmp_path / ".b.npy.1.2.tmp"
    for each in (old, new):
        each.write_bytes(b"half")
    two_days_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (two_days_ago, two_days_ago))
    store.write(_key(), [_rows()], 5)
    assert not old.exists()
    assert new.exists()
