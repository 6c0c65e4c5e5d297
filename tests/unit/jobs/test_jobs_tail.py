"""Following event files: each line once, whatever the lines hold and whoever reads them."""

import json
import os
import threading

import pytest
from jobs_doubles import MemoryStore, new_job

from ziggurat.events import EventFile, Message, ScalarLogged, encode_event
from ziggurat.jobs.event_tail import Tail
from ziggurat.layout import JobFolder


def point(step, value=0.5, tag="cost"):
    return ScalarLogged(time=float(step), tag=tag, value=value, step=step, epoch=1)


class Followed:
    """A job in a store, its events, and a tail."""

    def __init__(self, folder, name="job"):
        self.store = MemoryStore()
        self.add(folder, name)
        self.told = []
        self.tail = Tail(self.store, lambda job_id, offset: self.told.append((job_id, offset)))

    def add(self, folder, name):
        self.path = JobFolder(folder / "jobs" / name).events
        self.store.jobs.add(new_job(folder, name))

    def write(self, *lines):
        with self.path.open("ab") as file:
            for line in lines:
                file.write(line if isinstance(line, bytes) else encode_event(line).encode() + b"\n")

    def look(self, **options):
        self.tail.look(list(self.store.jobs.rows.values()), 7.0, **options)

    def steps(self, name="job"):
        return [event.step for event in self.store.events.taken.get(name, []) if isinstance(event, ScalarLogged)]

    def messages(self, name="job"):
        return [event.text for event in self.store.events.taken.get(name, []) if isinstance(event, Message)]


@pytest.fixture
def followed(tmp_path):
    return Followed(tmp_path)


def test_what_is_new_is_taken_once(followed):
    followed.look()
    assert followed.tail.is_at_end("job")
    followed.write(point(1), point(2))
    followed.look()
    followed.write(point(3))
    followed.look()
    followed.look()
    assert followed.steps() == [1, 2, 3]
    assert followed.told == [
        ("job", size) for size in (2 * followed.path.stat().st_size // 3, followed.path.stat().st_size)
    ]


def test_another_tail_goes_on_where_the_first_was(followed):
    followed.write(point(1))
    followed.look()
    followed.write(point(2))
    followed.tail = Tail(followed.store)
    followed.look()
    assert followed.steps() == [1, 2]


def test_two_tails_double_nothing(followed):
    other = Tail(followed.store)
    followed.write(point(1))
    followed.look()
    other.look([followed.store.jobs.get("job")], 7.0)
    followed.write(point(2))
    other.look([followed.store.jobs.get("job")], 7.0)
    followed.look()
    followed.write(point(3))
    followed.look()
    assert followed.steps() == [1, 2, 3]


def test_half_a_line_counts_when_it_is_whole(followed):
    whole = encode_event(point(2)).encode() + b"\n"
    followed.write(point(1), whole[:20])
    followed.look()
    assert followed.steps() == [1]
    followed.write(whole[20:])
    followed.look()
    assert followed.steps() == [1, 2]


def test_a_shorter_file_is_read_again(followed):
    followed.write(point(1), point(2))
    followed.look()
    followed.path.write_text(encode_event(point(7)) + "\n")
    followed.look()
    assert followed.steps() == [7]


def test_a_file_in_its_place_is_read_from_its_beginning(followed):
    followed.write(point(1))
    followed.look()
    other = followed.path.with_name("other")
    file = EventFile(other)
    file.write(*(point(step) for step in range(20, 30)))
    file.close()
    os.replace(other, followed.path)
    followed.look()
    assert followed.steps() == list(range(20, 30))


def test_a_file_written_over_in_place_is_read_again(followed):
    followed.write(point(1))
    followed.look()
    followed.path.write_text("".join(encode_event(point(step, tag="other")) + "\n" for step in (4, 5)))
    followed.look()
    assert followed.steps() == [4, 5]


def test_a_file_that_is_gone_takes_nothing_with_it(followed):
    followed.write(point(1))
    followed.look()
    away = followed.path.rename(followed.path.with_name("away"))
    followed.look()
    assert followed.steps() == [1]
    away.rename(followed.path)
    followed.write(point(2))
    followed.look()
    assert followed.steps() == [1, 2]


BAD = {
    "no JSON": b"{{{{",
    "no event": b'{"a": 1}',
    "a list": b"[1, 2]",
    "a number": b"7",
    "a point without a value": b'{"type": "scalar", "time": 1, "version": 1, "tag": "a", "step": 1, "epoch": 1}',
    "a version that is a word": b'{"type": "scalar", "time": 1, "version": "x", "tag": "a", "step": 1}',
    "no time": b'{"type": "message", "time": null, "level": "info", "text": "x"}',
    "a time that is none": b'{"type": "message", "time": NaN, "level": "info", "text": "x"}',
    "a step that is a word": b'{"type": "scalar", "time": 1, "tag": "a", "value": 1, "step": "1", "epoch": 1}',
    "a step that is too large": b'{"type": "message", "time": 1, "level": "", "text": "", "step": 9999999999999999999}',
    "a tag that is an object": b'{"type": "scalar", "time": 1, "tag": {}, "value": 1, "step": 1, "epoch": 1}',
    "bytes that are no text": b'{"type": "message", "time": 1, "level": "info", "text": "\xff\xfe"}',
    "deep": b"[" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("line", BAD.values(), ids=BAD.keys())
def test_a_damaged_line_is_told_and_passed_over(followed, line):
    followed.write(point(1), line + b"\n", point(2))
    followed.look()
    assert followed.steps() == [1, 2]
    assert followed.messages() == ["Damaged lines of events.jsonl were passed over: 1."]
    assert followed.tail.problem("job") == ""


def test_characters_that_stores_refuse_are_replaced(followed):
    text = json.dumps({"type": "message", "time": 1, "level": "info", "text": "a\0b\ud800c\U0001f600"})
    followed.write(text.encode() + b"\n")
    followed.look()
    assert followed.messages() == ["a\ufffdb\ufffdc\U0001f600"]


def test_numbers_that_are_none_are_kept(followed):
    followed.write(point(1, float("nan")), point(2, float("inf")))
    followed.look()
    assert [str(event.value) for event in followed.store.events.taken["job"]] == ["nan", "inf"]


def test_a_line_of_a_newer_release_is_no_damage(followed):
    followed.write(b'{"type": "hologram", "version": 3, "time": 1}\n', point(1))
    followed.look()
    assert followed.messages() == []
    assert followed.steps() == [1]


def test_an_endless_line_stops_nothing(followed):
    followed.write(point(1), b"x" * (17 << 20))
    followed.look()
    assert followed.steps() == [1]
    followed.write(b"\n", point(2))
    followed.look()
    followed.look()
    assert followed.steps() == [1, 2]


def test_a_large_file_is_read_in_pieces(followed):
    followed.write(*(point(step) for step in range(30_000)))
    followed.look(patience_s=30)
    assert followed.steps() == list(range(30_000))
    assert len(followed.told) > 1


def test_a_pipe_in_the_place_of_a_file_stops_nobody(followed, tmp_path):
    os.mkfifo(followed.path)
    followed.add(tmp_path, "other")
    followed.write(point(1))
    followed.look()
    assert "The events of a job are in a file" in followed.tail.problem("job")
    assert not followed.tail.is_at_end("job")
    assert followed.steps("other") == [1]


def test_a_full_disk_loses_nothing(followed):
    followed.write(point(1))
    followed.store.events.is_full = True
    followed.look()
    assert followed.tail.problem("job") == "The store must be writable (received: no space left on device)."
    followed.store.events.is_full = False
    followed.look()
    assert followed.steps() == [1]
    assert followed.tail.problem("job") == ""


def test_a_job_that_is_deleted_meanwhile_stops_nobody(followed):
    jobs = list(followed.store.jobs.rows.values())
    followed.write(point(1))
    followed.store.jobs.delete("job")
    followed.tail.look(jobs, 7.0)
    assert "There is no such job" in followed.tail.problem("job")


def test_a_job_that_is_deleted_during_a_look(followed, tmp_path):
    followed.write(point(1))
    followed.add(tmp_path, "other")
    followed.write(point(2))
    forgotten = threading.Event()

    def forget(job_id, _offset):
        if job_id == "other":
            followed.tail.forget("other")
            forgotten.set()
        assert forgotten.wait(10.0)

    followed.tail = Tail(followed.store, forget)
    followed.look(patience_s=20.0)
    assert (followed.steps(), followed.steps("other")) == ([1], [2])
