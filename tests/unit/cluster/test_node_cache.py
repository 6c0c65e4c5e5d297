"""Copies of datasets on a node: complete or absent, within a limit, and never taken from a job that reads them."""

import hashlib
import os
import subprocess
import sys

import pytest

from ziggurat.cluster.node_cache import NodeCache
from ziggurat.errors import JobError, StorageError, UsageError

KIB = 1024


def digest(data):
    return hashlib.blake2b(data, digest_size=16).digest()


def copy(cache, key, target, **files):
    """Copy files into the cache and link them; return what the cache said first."""
    names = {name.replace("__", "/"): data for name, data in files.items()}
    answer = cache.take(key, sum(map(len, names.values())), target)
    if answer == "begun":
        for name, data in names.items():
            cache.write(name, 0, data)
        cache.finish({name: (len(data), digest(data)) for name, data in names.items()}, target)
    return answer


@pytest.fixture
def cache(tmp_path):
    return NodeCache(tmp_path / "cache", 10 * KIB)


def test_a_copy_is_made_once_and_linked_for_each_reader(cache, tmp_path):
    assert copy(cache, "one", tmp_path / "first", a=b"abc", inner__b=b"d" * 100) == "begun"
    assert copy(cache, "one", tmp_path / "second", a=b"abc", inner__b=b"d" * 100) == "there"
    assert (tmp_path / "second" / "inner" / "b").read_bytes() == b"d" * 100
    assert (tmp_path / "first" / "a").stat().st_ino == (tmp_path / "second" / "a").stat().st_ino
    assert (tmp_path / "first" / "a").stat().st_mode & 0o777 == 0o444, "a reader changes nothing for the others"
    assert cache.keys() == {"one"}


def test_parts_that_come_twice_are_written_once(cache, tmp_path):
    assert cache.take("one", 6, tmp_path / "job") == "begun"
    for offset, data in ((0, b"abc"), (0, b"abc"), (3, b"def"), (3, b"def")):
        cache.write("a", offset, data)
    cache.finish({"a": (6, digest(b"abcdef"))}, tmp_path / "job")
    assert (tmp_path / "job" / "a").read_bytes() == b"abcdef"


def test_calls_whose_answer_was_lost_are_repeated(cache, tmp_path):
    assert cache.take("one", 3, tmp_path / "job") == "begun"
    cache.write("a", 0, b"abc")
    assert cache.take("one", 3, tmp_path / "job") == "begun"
    for _ in range(2):
        cache.finish({"a": (3, digest(b"abc"))}, tmp_path / "job")
    assert (tmp_path / "job" / "a").read_bytes() == b"abc"


@pytest.mark.parametrize("sent", [b"abx", b"ab", b""])
def test_a_copy_that_differs_is_given_up(cache, tmp_path, sent):
    cache.take("one", 3, tmp_path / "job")
    cache.write("a", 0, sent)
    with pytest.raises(JobError, match="copy of `a` differs from the original"):
        cache.finish({"a": (3, digest(b"abc"))}, tmp_path / "job")
    assert (cache.keys(), list(tmp_path.glob("job/*"))) == (set(), [])
    assert copy(cache, "one", tmp_path / "job", a=b"abc") == "begun", "it can be made again"


def test_the_copy_that_was_used_least_recently_makes_room(cache, tmp_path):
    for number, key in enumerate(("old", "new")):
        copy(cache, key, tmp_path / key, a=b"x" * 4 * KIB)
        (tmp_path / key / "a").unlink()  # its job has ended
        os.utime(cache.folder / key, (number, number))
    copy(cache, "next", tmp_path / "next", a=b"x" * 4 * KIB)
    assert cache.keys() == {"new", "next"}


def test_what_a_job_reads_stays_and_the_next_one_waits_for_room(cache, tmp_path):
    copy(cache, "one", tmp_path / "one", a=b"x" * 6 * KIB)
    with pytest.raises(StorageError) as caught:
        cache.take("two", 6 * KIB, tmp_path / "two")
    assert caught.value.details["free_bytes"] == 4 * KIB
    (tmp_path / "one" / "a").unlink()
    assert cache.take("two", 6 * KIB, tmp_path / "two") == "begun"


def test_what_is_larger_than_the_cache_is_refused(cache, tmp_path):
    with pytest.raises(JobError, match=r"`one` has 11.0 kB, and the cache of the node holds 10.2 kB"):
        cache.take("one", 11_000, tmp_path / "one")


def test_only_one_process_makes_a_copy(cache, tmp_path):
    other = NodeCache(cache.folder, 10 * KIB)
    assert cache.take("one", 3, tmp_path / "first") == "begun"
    assert other.take("one", 3, tmp_path / "second") == "taken"
    cache.give_up()
    assert copy(other, "one", tmp_path / "second", a=b"abc") == "begun"


def test_half_a_copy_of_a_killed_process_goes(cache, tmp_path):
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from ziggurat.cluster.node_cache import NodeCache\n"
        "cache = NodeCache(Path(sys.argv[1]), 1 << 20)\n"
        "assert cache.take('one', 6, Path(sys.argv[1]) / 'job') == 'begun'\n"
        "cache.write('a', 0, b'abc')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(cache.folder)], timeout=60, check=False)
    assert done.returncode == -9
    assert (cache.folder / ".one.part" / "a").read_bytes() == b"abc"
    assert cache.keys() == set()
    copy(cache, "two", tmp_path / "two", a=b"abc")
    assert not (cache.folder / ".one.part").exists()
    assert copy(cache, "one", tmp_path / "one", a=b"abcdef") == "begun"


def test_names_that_lead_out_are_refused(cache, tmp_path):
    cache.take("one", 3, tmp_path / "job")
    with pytest.raises(UsageError, match="must lie in its folder"):
        cache.write("../a", 0, b"abc")
