"""TensorBoard event files of programs, read while they are written."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from ziggurat.engine.monitors.tensorboard import file_version, image_event, scalar_event, summary_event
from ziggurat.events import EventFile, ScalarLogged, read_events
from ziggurat.layout import JobFolder
from ziggurat.protobuf_wire import bytes_field, float_field, integer_field, tfrecord_frame
from ziggurat.worker.event_files import EventFileReader
from ziggurat.worker.program_curves import ProgramCurves

NAME = "events.out.tfevents.1.host"


def tensor_event(tag: str, kind: int, content: bytes, plugin: bytes = b"scalars") -> bytes:
    """Return an event as TensorFlow 2 writes it."""
    tensor = integer_field(1, kind) + bytes_field(2, b"") + content
    metadata = bytes_field(9, bytes_field(1, bytes_field(1, plugin)))
    return summary_event(1.0, 3, bytes_field(1, bytes_field(1, tag.encode()) + metadata + bytes_field(8, tensor)))


def test_numbers_of_all_writers_are_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    content = lambda data: bytes_field(4, data)  # noqa: E731
    messages = [
        file_version(1.0),
        scalar_event(2.0, 5, "loss", 0.5),
        scalar_event(2.0, 6, "loss", math.nan),
        image_event(2.0, 6, "picture", (1, 1, 1), b"png"),
        tensor_event("keras", 1, content(struct.pack("<f", 0.25))),
        tensor_event("packed", 1, bytes_field(5, struct.pack("<f", 0.125))),
        tensor_event("unpacked", 1, float_field(5, 0.125)),
        tensor_event("double", 2, content(struct.pack("<d", 0.1))),
        tensor_event("half", 19, content(struct.pack("<e", 1.5))),
        tensor_event("bfloat16", 14, content(b"\xc0\x3f")),
        tensor_event("whole", 9, content(struct.pack("<q", -7))),
        tensor_event("two", 1, content(struct.pack("<ff", 1, 2))),
        tensor_event("histogram", 2, content(struct.pack("<d", 1)), plugin=b"histograms"),
    ]
    path.write_bytes(b"".join(map(tfrecord_frame, messages)))
    points = EventFileReader(path).read()
    assert [(each.tag, each.value, each.step) for each in points if not math.isnan(each.value)] == [
        ("loss", 0.5, 5), ("keras", 0.25, 3), ("packed", 0.125, 3), ("unpacked", 0.125, 3), ("double", 0.1, 3),
        ("half", 1.5, 3), ("bfloat16", 1.5, 3), ("whole", -7.0, 3),
    ]  # fmt: skip
    assert [(each.tag, each.step) for each in points if math.isnan(each.value)] == [("loss", 6)]


def test_a_record_counts_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / NAME
    whole = b"".join(tfrecord_frame(scalar_event(1.0, step, "loss", step)) for step in (1, 2))
    reader = EventFileReader(path)
    assert reader.read() == []
    steps = []
    for end in range(len(whole) + 1):
        path.write_bytes(whole[:end])
        steps += [(end, each.step) for each in reader.read()]
    assert steps == [(len(whole) // 2, 1), (len(whole), 2)]


@pytest.mark.parametrize(
    "damage",
    [b"\0" * 40, bytes(range(7, 207, 5)), tfrecord_frame(b"\xff\xff\xff"), tfrecord_frame(b"")],
    ids=["zeros", "noise", "no message", "empty"],
)
def test_damage_ends_nothing_else(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / NAME
    path.write_bytes(tfrecord_frame(scalar_event(1.0, 1, "loss", 1.0)) + damage)
    reader = EventFileReader(path)
    assert [each.step for each in reader.read()] == [1]
    assert reader.read() == []


def curves_of(job: JobFolder) -> dict[str, list[tuple[int, float]]]:
    """Return step and value of the points of each curve."""
    found: dict[str, list[tuple[int, float]]] = {}
    for event in read_events(job.events)[0]:
        if isinstance(event, ScalarLogged):
            found.setdefault(event.tag, []).append((event.step, event.value))
    return found


def write_points(path: Path, *points: tuple[str, int, float]) -> None:
    """Append points to an event file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"".join(tfrecord_frame(scalar_event(1.0, step, tag, value)) for tag, step, value in points))


def test_event_files_of_a_program_become_curves(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    write_points(job.program / "runs" / "old" / NAME, ("loss", 1, 9.0))  # came with the program
    with ProgramCurves(job, EventFile(job.events), lambda: False) as curves:
        write_points(job.program / "logs" / "train" / NAME, ("loss", 1, 0.5), ("loss", 2, 0.25))
        write_points(job.program / "logs" / "validation" / NAME, ("loss", 2, 0.75))
        write_points(job.program / "logs" / "train" / "deeper" / NAME, ("kl", 3, 1.0))
    assert curves_of(job) == {
        "loss": [(1, 0.5), (2, 0.25)],
        "validation/loss": [(2, 0.75)],
        "deeper/kl": [(3, 1.0)],
    }
    assert (curves.has_points, curves.last_step) == (True, 3)


def test_a_trainer_of_ziggurat_has_its_own_curves(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    with ProgramCurves(job, EventFile(job.events), lambda: True) as curves:
        write_points(job.program / NAME, ("loss", 1, 0.5))
    assert curves_of(job) == {}
    assert not curves.has_points


def test_a_dataset_beside_the_program_is_not_searched_to_its_end(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    links = job.program / "loop"
    job.program.mkdir()
    links.symlink_to(job.program)
    with ProgramCurves(job, EventFile(job.events), lambda: False):
        write_points(job.program / "a" / "b" / "c" / NAME, ("loss", 1, 0.5))
    assert curves_of(job) == {"loss": [(1, 0.5)]}
