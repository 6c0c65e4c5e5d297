"""A catalog finds what a walk over a plain list would find, page by page, and the last page as fast as the first."""

import itertools
import resource
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ziggurat.datasets.catalog import Catalogue, CatalogueWriter, Entry, SampleFilter
from ziggurat.datasets.samples import Problem, Sample
from ziggurat.errors import DataError, StorageError, UnknownNameError

names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=4) | st.sampled_from(
    ["a%b", "A_b", "\\"]
)
sides = st.none() | st.integers(1, 40)
fresh = itertools.count()


@st.composite
def entries(draw):
    """Samples with unique keys, split by split; of some, objects with classes."""
    with_objects = draw(st.booleans())
    found = []
    for split in draw(st.sampled_from([("train", "val", "test"), ("train",), ("",)])):
        for row in range(draw(st.integers(0, 6))):
            classes = draw(st.lists(st.integers(-1, 3), max_size=3)) if with_objects else draw(st.integers(0, 3))
            label = [{"class": each, "box": [0, 0, 1, 1]} for each in classes] if with_objects else classes
            sample = Sample(
                key=f"{draw(names)}/{len(found)}",
                parts=draw(st.sampled_from([("a",), ("a", "ü"), (b"\x00content",)])),
                label=label,
                split=split,
                group=draw(st.sampled_from(["", "patient 1", "patient 2"])),
                time=draw(st.none() | st.floats(0, 2e9)),
            )
            facts = {
                "row": row if split else None,
                "width_px": draw(sides),
                "height_px": draw(sides),
                "picture_hash": draw(st.none() | st.integers(-(2**63), 2**63 - 1)),
                "content_hash": draw(st.none() | st.binary(min_size=16, max_size=16)),
            }
            found.append(replace(Entry.of_sample(len(found), sample), **facts))
    return found


@st.composite
def filters(draw):
    """Any filter."""
    return SampleFilter(
        split=draw(st.none() | st.sampled_from(["train", "val", ""])),
        class_number=draw(st.none() | st.integers(-1, 3)),
        text=draw(st.none() | names),
        problem=draw(st.none() | st.sampled_from(["", "odd", "bad-line"])),
        group=draw(st.none() | st.sampled_from(["", "patient 1"])),
        min_width_px=draw(sides),
        max_height_px=draw(sides),
    )


def holds(chosen, entry, problems):
    """Say by hand whether a filter leaves a sample."""
    kinds = {problem.kind for problem in problems if problem.key == entry.key}
    classes = {each["class"] for each in entry.label} if isinstance(entry.label, list) else {entry.label}
    return (
        chosen.split in (None, entry.split)
        and (chosen.class_number is None or chosen.class_number in classes)
        and (not chosen.text or chosen.text.lower() in entry.key.lower())
        and (chosen.problem is None or (chosen.problem in kinds if chosen.problem else bool(kinds)))
        and chosen.group in (None, entry.group)
        and (chosen.min_width_px is None or (entry.width_px or -1) >= chosen.min_width_px)
        and (chosen.max_height_px is None or (entry.height_px or 99) <= chosen.max_height_px)
    )


def write(path, samples, problems=()):
    with CatalogueWriter(path) as catalogue:
        for entry in samples:
            catalogue.add(entry)
        for problem in problems:
            catalogue.add_problem(problem)
    return path


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=entries(), chosen=filters(), limit=st.integers(1, 5), data=st.data())
def test_pages_by_filter_are_those_of_a_list(samples, chosen, limit, data, tmp_path):
    keys = [entry.key for entry in samples]
    kinds = st.sampled_from(["odd", "bad-line"])
    some = st.builds(Problem, key=st.sampled_from(keys or ["x"]), kind=kinds, reason=st.just("."))
    problems = data.draw(st.lists(some, max_size=4))
    expected = [entry for entry in samples if holds(chosen, entry, problems)]
    with Catalogue(write(tmp_path / f"{next(fresh)}.sqlite", samples, problems)) as catalogue:
        pages = [catalogue.page(chosen, offset=start, limit=limit) for start in range(0, len(samples) + 1, limit)]
        found = [entry for page in pages for entry in page]
        assert found == expected
        assert catalogue.count(chosen) == len(expected)
        assert list(catalogue.walk(chosen)) == expected
        numbers = catalogue.column("number", chosen).tolist()
        assert numbers == [entry.number for entry in expected]
        assert catalogue.entries(numbers[::-1]) == expected[::-1]
        assert catalogue.problems() == problems


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=entries())
def test_columns_and_counts_are_those_of_a_list(samples, tmp_path):
    with Catalogue(write(tmp_path / f"{next(fresh)}.sqlite", samples)) as catalogue:
        assert catalogue.page(limit=100) == samples
        assert len(catalogue) == len(samples)
        assert catalogue.split_counts() == {
            split: len(list(some)) for split, some in itertools.groupby(sorted(entry.split for entry in samples))
        }
        widths = [-1 if entry.width_px is None else entry.width_px for entry in samples]
        assert catalogue.column("width").tolist() == widths
        times = np.array([np.nan if entry.time is None else entry.time for entry in samples], float)
        np.testing.assert_array_equal(catalogue.column("time"), times)
        hashes = [-1 if entry.picture_hash is None else entry.picture_hash for entry in samples]
        assert catalogue.column("picture_hash").tolist() == hashes
        assert [catalogue.texts("group")[number] for number in catalogue.column("group")] == [e.group for e in samples]
        for split in (None, "train"):
            some = [entry for entry in samples if split in (None, entry.split)]
            classes = [
                each
                for entry in some
                for each in ([one["class"] for one in entry.label] if isinstance(entry.label, list) else [entry.label])
            ]
            assert catalogue.class_counts(split) == {each: classes.count(each) for each in sorted(set(classes))}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=entries())
def test_the_same_entries_give_the_same_bytes(samples, tmp_path):
    problems = [Problem(key=entry.key, kind="odd", reason="Grüße.") for entry in samples]
    one, two = (write(tmp_path / f"{next(fresh)}.sqlite", samples, problems).read_bytes() for _ in range(2))
    assert one == two


def test_keys_find_samples_and_problems(tmp_path):
    samples = [Entry.of_sample(number, Sample(key=key, parts=(key,))) for number, key in enumerate(["ä b.png", "c"])]
    listed = [
        Problem(key="c", kind="odd", reason="One."),
        Problem(key="lost", kind="bad-line", reason="Two.", left_out=True),
    ]
    with CatalogueWriter(tmp_path / "c.sqlite") as writer:
        for entry in samples:
            writer.add(entry)
        for problem in listed:
            writer.add_problem(problem)
        writer.note("warnings", ["Grüße", 1.5, None])
    with Catalogue(tmp_path / "c.sqlite") as catalogue:
        assert catalogue.find("ä b.png") == samples[0]
        assert catalogue.find("ä") is None
        assert catalogue.problems_of(["c", "ä b.png"]) == {"c": [listed[0]]}
        assert catalogue.problem_counts() == {"bad-line": 1, "odd": 1}
        assert catalogue.problems("bad-line") == [listed[1]]
        assert catalogue.problems(offset=1, limit=1) == [listed[1]]
        assert (catalogue.note("warnings"), catalogue.note("none")) == (["Grüße", 1.5, None], None)
        with pytest.raises(DataError, match=r"numbers that they have \(received: \[7\]"):
            catalogue.entries([0, 7])
        with pytest.raises(UnknownNameError, match="column of the catalog"):
            catalogue.column("widht")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A catalog of 100,000 samples in 10 classes and two splits."""
    path = tmp_path_factory.mktemp("large") / "index.sqlite"
    with CatalogueWriter(path) as catalogue:
        for number in range(100_000):
            split, row = ("train", number) if number < 80_000 else ("val", number - 80_000)
            sample = Sample(key=f"{number:06d}", parts=("x",), label=number % 10, split=split)
            catalogue.add(replace(Entry.of_sample(number, sample), row=row))
    return path


@pytest.mark.parametrize(
    ("chosen", "offset", "first"),
    [
        (None, 90_000, "090000"),
        (SampleFilter(split="train"), 79_000, "079000"),
        (SampleFilter(split="val"), 19_000, "099000"),
        (SampleFilter(class_number=3), 9_000, "090003"),
        (SampleFilter(class_number=3, split="val"), 1_900, "099003"),
    ],
)
def test_a_late_page_is_found_by_an_index(large, chosen, offset, first):
    """No sample is sorted or looked at in full on the way to it: SQLite says that it walks along an index."""
    with Catalogue(large) as catalogue:
        assert catalogue.page(chosen, offset=offset, limit=3)[0].key == first
    for query in statements_of(large, lambda catalogue: catalogue.page(chosen, offset=offset, limit=3)):
        plan = explained(large, query)
        assert "TEMP B-TREE" not in plan, f"{query}: {plan}"
        assert chosen is None or "SCAN" not in plan, f"{query}: {plan}"


@pytest.mark.parametrize(
    "read", [lambda c: c.find("000007"), lambda c: c.entries([5, 90_000]), lambda c: c.problems_of(["1"])]
)
def test_a_sample_is_found_by_an_index(large, read):
    for query in statements_of(large, read):
        plan = explained(large, query)
        assert "SCAN" not in plan, f"{query}: {plan}"


HANDLES = []


def listen(event, arguments):
    """Keep the newest connection to a database; Python announces each by an audit event."""
    if event == "sqlite3.connect/handle":
        HANDLES[:] = arguments


sys.addaudithook(listen)


def statements_of(path, read):
    """Return the queries that reading causes, with their values filled in."""
    asked = []
    with Catalogue(path) as catalogue:
        HANDLES[0].set_trace_callback(asked.append)
        read(catalogue)
    assert asked
    return asked


def explained(path, query):
    """Return how SQLite goes about a query, in its own words."""
    connection = sqlite3.connect(path)
    try:
        return " / ".join(step[3] for step in connection.execute(f"EXPLAIN QUERY PLAN {query}"))
    finally:
        connection.close()


def test_a_file_that_is_no_catalogue_is_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        Catalogue(tmp_path / "none.sqlite")
    (tmp_path / "text.sqlite").write_text("no database" * 100)
    with pytest.raises(DataError, match="read as it was written"):
        Catalogue(tmp_path / "text.sqlite")
    sqlite3.connect(tmp_path / "other.sqlite").close()
    with pytest.raises(DataError, match="no such table"):
        Catalogue(tmp_path / "other.sqlite")


def test_a_catalogue_that_is_refused_is_closed(tmp_path):
    with closing(sqlite3.connect(tmp_path / "half.sqlite")) as connection:
        connection.execute("CREATE TABLE samples (number, picture_hash)")
    before = psutil.Process().num_fds()
    with pytest.raises(DataError, match="no such table: object_classes") as _held:
        Catalogue(tmp_path / "half.sqlite")
    assert psutil.Process().num_fds() == before


def test_nothing_stays_of_a_catalogue_that_cannot_be_begun(tmp_path):
    before, limits = psutil.Process().num_fds(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(StorageError, match="free space") as _held:
            CatalogueWriter(tmp_path / "c.sqlite")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert psutil.Process().num_fds() == before
    assert list(tmp_path.iterdir()) == []


def test_a_catalogue_is_there_whole_or_not_at_all(tmp_path):
    entry = Entry(number=0, split="", row=None, key="a", parts=("a",))
    with pytest.raises(RuntimeError), CatalogueWriter(tmp_path / "c.sqlite") as catalogue:
        catalogue.add(entry)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "c.sqlite", [entry])
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        CatalogueWriter(tmp_path / "c.sqlite")
    with CatalogueWriter(tmp_path / "c.sqlite", replace=True), Catalogue(tmp_path / "c.sqlite") as old:
        assert old.page() == [entry]
    with Catalogue(tmp_path / "c.sqlite") as again:
        assert len(again) == 0
