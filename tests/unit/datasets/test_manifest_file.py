"""A manifest comes back as it was written, and one that is damaged, edited or of another release is refused."""

import itertools
import json
import os
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ziggurat.errors import DataError, StorageError
from ziggurat.records.manifest import (
    MANIFEST_NAME,
    ImageForm,
    Manifest,
    Parent,
    SourceNote,
    SplitNote,
    StoreNote,
)
from ziggurat.records.schema import COLUMN_TYPES, KINDS, Column, Schema

fresh = itertools.count()
texts = st.text(st.characters(codec="utf-8"), max_size=6)
counts = st.integers(0, 2**40)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(texts, values, max_size=3)


def tuples(each, most=3):
    return st.lists(each, max_size=most).map(tuple)


columns = st.builds(Column, name=texts, type=st.sampled_from(COLUMN_TYPES), categories=tuples(texts), missing=counts)
schemas = st.builds(
    Schema,
    kind=st.sampled_from(sorted(KINDS)),
    parts=tuples(texts),
    class_names=tuples(texts),
    columns=tuples(columns),
    target=texts,
    colours=tuples(st.tuples(*[st.integers(0, 255)] * 3)),
    ignore_class=st.none() | st.integers(0, 65_535),
    details=mappings,
)
stores = st.builds(StoreNote, path=texts, record_format=texts, count=counts, size_bytes=counts, sha256=texts)
splits = st.builds(
    SplitNote, count=counts, stores=tuples(stores), rows=texts, labels=texts, class_counts=tuples(counts)
)
sizes = st.none() | st.integers(1, 10_000)
manifests = st.builds(
    Manifest,
    name=texts,
    schema=schemas,
    splits=st.dictionaries(st.sampled_from(["train", "val", "test"]), splits),
    image=st.none()
    | st.builds(ImageForm, encoding=texts, resize_mode=texts, height_px=sizes, width_px=sizes, channels=sizes),
    mean=texts,
    pixel_mean=tuples(st.floats(0, 255)),
    index=texts,
    source=st.none() | st.builds(SourceNote, uri=texts, format=texts, root=texts, options=mappings),
    spec=mappings,
    problems=st.dictionaries(texts, counts, max_size=3),
    parents=tuples(st.builds(Parent, id=texts, name=texts, changes=tuples(texts))),
    release=texts,
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(manifest=manifests)
def test_a_manifest_comes_back_as_it_was_written(manifest, tmp_path):
    folder = tmp_path / str(next(fresh))
    folder.mkdir()
    saved = manifest.save(folder)
    assert saved == replace(manifest, id=manifest.content_id())
    assert Manifest.load(folder) == saved


@pytest.fixture
def manifest():
    schema = Schema(kind="image-classification", class_names=("Katze", "Löwe"))
    note = StoreNote(path="train.lmdb", record_format="lmdb", count=2, size_bytes=9, sha256="00")
    return Manifest(name="Grüße", schema=schema, splits={"train": SplitNote(count=2, stores=(note,))})


def test_same_content_has_the_same_id_and_other_has_another(manifest, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
        manifest.save(tmp_path / name)
    one, two = ((tmp_path / name / MANIFEST_NAME).read_bytes() for name in "ab")
    assert one == two
    assert len(manifest.content_id()) == 64
    assert replace(manifest, name="Gruß").content_id() != manifest.content_id()


def test_every_edit_is_noticed(manifest, tmp_path):
    manifest.save(tmp_path)
    path = tmp_path / MANIFEST_NAME
    text = path.read_text("utf-8")
    for old, new in (("Löwe", "Tiger"), ('"count": 2', '"count": 3'), ('"lmdb"', '"hdf5"'), ("train", "val")):
        path.write_text(text.replace(old, new), "utf-8")
        with pytest.raises(DataError, match="`id` does not belong to its content"):
            Manifest.load(tmp_path)
    path.write_text(json.dumps(json.loads(text)), "utf-8")  # only the layout is another
    assert Manifest.load(tmp_path).name == "Grüße"


def test_a_manifest_that_is_cut_off_anywhere_is_damaged(manifest, tmp_path):
    manifest.save(tmp_path)
    path = tmp_path / MANIFEST_NAME
    content = path.read_bytes().rstrip()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match="A manifest is read as it was written"):
            Manifest.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("splits"),
        lambda content: content.update(splits=3),
        lambda content: content.update(unknown=1),
        lambda content: content["splits"]["train"].pop("stores"),
        lambda content: content["schema"].update(class_names=None),
        lambda content: content.update(image={"encoding": "png", "depth": 3}),
    ],
)
def test_a_manifest_of_another_form_is_refused(manifest, tmp_path, change):
    manifest.save(tmp_path)
    path = tmp_path / MANIFEST_NAME
    content = json.loads(path.read_text("utf-8"))
    change(content)
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(DataError):
        Manifest.load(tmp_path)


def test_a_manifest_of_another_release_is_named(manifest, tmp_path):
    manifest.save(tmp_path)
    path = tmp_path / MANIFEST_NAME
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "version": 2}), "utf-8")
    with pytest.raises(DataError, match=r"is of version 2; this release reads version 1\."):
        Manifest.load(tmp_path)
    path.write_text("[]")
    with pytest.raises(DataError, match="is of version None; this release reads version 1"):
        Manifest.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe{", "{}".encode("utf-16"), b"\x00" * 50, b"null"])
def test_garbage_is_no_manifest(tmp_path, content):
    (tmp_path / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(DataError):
        Manifest.load(tmp_path)


def test_a_folder_without_one_is_no_finished_data_set(tmp_path):
    with pytest.raises(DataError, match=r"No such file or directory\. Make one with: ziggurat dataset create"):
        Manifest.load(tmp_path)
    with pytest.raises(DataError, match="holds no finished dataset"):
        Manifest.load(tmp_path / "nowhere")


def test_a_manifest_is_written_once(manifest, tmp_path):
    saved = manifest.save(tmp_path)
    with pytest.raises(StorageError, match="nothing is ever overwritten"):
        replace(manifest, name="other").save(tmp_path)
    assert Manifest.load(tmp_path) == saved
    with pytest.raises(StorageError, match="does not exist"):
        manifest.save(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_refuses_is_an_error_of_storage(manifest, tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StorageError):
            manifest.save(tmp_path)
    finally:
        tmp_path.chmod(0o700)
