"""The copy of a job folder follows the original, whatever the way between them does with what is said."""

import random
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ziggurat.cluster.exchange import Request, Sizes
from ziggurat.cluster.mirror import Mirror
from ziggurat.cluster.node_folder import NodeFolder
from ziggurat.errors import JobError, StorageError

TINY = Sizes(reply_bytes=256, piece_bytes=32)


def contents(folder):
    """Return path → bytes of every file that is no work in progress."""
    files = (path for path in folder.rglob("*") if path.is_file())
    paths = {path.relative_to(folder).as_posix(): path for path in files}
    return {name: path.read_bytes() for name, path in paths.items() if not name.startswith(".mirror/")}


def follow(mirror, node, ended=None, calls=500):
    """Exchange until the mirror is whole; return the largest reply."""
    largest = 0
    for _ in range(calls):
        reply = node.exchange(mirror.request(), ended)
        largest = max(
            largest, sum(len(each.data) for each in reply.appends.values()) + sum(map(len, reply.pieces.values()))
        )
        assert mirror.take(reply)
        if mirror.is_whole:
            return largest
    raise AssertionError("the mirror is not whole")


@pytest.fixture
def pair(tmp_path):
    """Return a node's folder and its mirror, both with a spec."""
    for name in ("node", "studio"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.json").write_text("{}")
    return NodeFolder(tmp_path / "node", 1, TINY), Mirror(tmp_path / "studio", 1, TINY)


def checkpoint(folder, name, **files):
    made = folder / "checkpoints" / f".tmp-{name}"
    made.mkdir(parents=True)
    for file, content in files.items():
        (made / file).write_bytes(content)
    final = made.with_name(name)
    if final.exists():
        shutil.rmtree(final)
    made.rename(final)


def test_a_folder_arrives_whole_in_small_replies(pair):
    node, mirror = pair
    (node.folder / "events.jsonl").write_bytes(b"event\n" * 100)
    (node.folder / "log.txt").write_bytes(b"line\n" * 100)
    (node.folder / "heartbeat.json").write_text("{}")
    (node.folder / "results").mkdir()
    (node.folder / "results" / "table.csv").write_bytes(bytes(range(256)) * 4)
    checkpoint(node.folder, "step-1", state=b"state", arrays=random.Random(1).randbytes(2000))
    assert follow(mirror, node) <= TINY.reply_bytes
    assert contents(mirror.folder) == contents(node.folder)
    assert not (mirror.folder / ".mirror").exists()


def test_events_come_before_the_log_and_that_before_checkpoints(pair):
    node, mirror = pair
    (node.folder / "heartbeat.json").write_text("{}")
    (node.folder / "events.jsonl").write_bytes(b"e" * 300)
    (node.folder / "log.txt").write_bytes(b"l" * 300)
    checkpoint(node.folder, "step-1", arrays=b"a" * 300)
    order = []
    while not mirror.is_whole:
        mirror.take(node.exchange(mirror.request()))
        order.append(sorted({path.partition("/")[0] for path in contents(mirror.folder)}))
    assert order[0] == ["events.jsonl", "heartbeat.json", "spec.json"]
    assert "log.txt" in order[1]
    assert "checkpoints" not in order[1]


def test_pieces_that_are_there_do_not_travel_again(pair):
    node, mirror = pair
    frozen = random.Random(2).randbytes(40 * TINY.piece_bytes)
    checkpoint(node.folder, "step-1", arrays=frozen + b"1")
    follow(mirror, node)
    checkpoint(node.folder, "step-2", arrays=frozen + b"2")
    sent = 0
    while not mirror.is_whole or sent == 0:
        reply = node.exchange(mirror.request())
        sent += sum(map(len, reply.pieces.values()))
        mirror.take(reply)
    assert sent == 1
    assert contents(mirror.folder) == contents(node.folder)


def test_a_log_that_was_shortened_is_taken_anew(pair):
    node, mirror = pair
    log = node.folder / "log.txt"
    log.write_bytes(b"begin" + b"x" * 90)
    follow(mirror, node)
    for content in (b"begin[left out]" + b"y" * 40, b"begin[left out]" + b"z" * 200):
        log.write_bytes(content)
        follow(mirror, node)
        assert (mirror.folder / "log.txt").read_bytes() == content


def test_events_that_the_node_does_not_have_are_an_error(pair):
    node, mirror = pair
    (mirror.folder / "events.jsonl").write_bytes(b"of another life\n")
    with pytest.raises(JobError, match="must be a beginning of the node's"):
        node.exchange(mirror.request())
    assert (mirror.folder / "events.jsonl").read_bytes() == b"of another life\n"


def test_another_attempt_is_refused_on_both_sides(pair):
    node, mirror = pair
    (node.folder / "events.jsonl").write_bytes(b"event\n")
    with pytest.raises(JobError, match="of another attempt"):
        node.exchange(Request(attempt=2))
    reply = node.exchange(mirror.request())
    later = Mirror(mirror.folder, 2, TINY)
    assert not later.take(reply)
    assert contents(mirror.folder) == {"spec.json": b"{}"}


def test_what_the_studio_put_there_stays(pair):
    node, mirror = pair
    (mirror.folder / "exports").mkdir()
    (mirror.folder / "exports" / "model.onnx").write_bytes(b"model")
    again = Mirror(mirror.folder, 1, TINY)
    (node.folder / "stats.json").write_text("[]")
    follow(again, node)
    (node.folder / "stats.json").unlink()
    follow(again, node)
    assert contents(again.folder) == {"spec.json": b"{}", "exports/model.onnx": b"model"}


def test_a_request_to_stop_lies_in_the_nodes_folder(pair):
    node, mirror = pair
    node.exchange(mirror.request(stop="asked by ann"))
    assert (node.folder / "stop.json").read_text() == "asked by ann\n"
    (node.folder / "stop.json").unlink()
    node.exchange(mirror.request(stop="asked by ann"), (75,))
    assert not (node.folder / "stop.json").exists(), "the worker has ended"


def test_the_end_comes_with_the_last_of_the_folder(pair):
    node, mirror = pair
    (node.folder / "events.jsonl").write_bytes(b"e" * 600)
    replies = []
    while not mirror.is_whole:
        replies.append(node.exchange(mirror.request(), (75,)))
        mirror.take(replies[-1])
    assert {(reply.has_ended, reply.exit_code) for reply in replies} == {(True, 75)}
    assert len(replies) == 3


def test_a_copy_that_could_not_be_written_comes_right(pair, monkeypatch):
    node, mirror = pair
    (node.folder / "stats.json").write_text("[1]")
    blocked = mirror.folder / ".stats.json.part"
    blocked.mkdir()  # a folder where a file must be
    with pytest.raises(StorageError):
        mirror.take(node.exchange(mirror.request()))
    blocked.rmdir()
    follow(mirror, node)
    assert contents(mirror.folder) == contents(node.folder)


# ---- whatever the way does


class Worker:
    """Does at random what workers do in their folder, and knows every checkpoint that was ever whole."""

    def __init__(self, folder, draw):
        self.folder, self.draw, self.step = folder, draw, 0
        self.checkpoints = {}
        self.frozen = draw.randbytes(100)

    def act(self):
        self.step += 1
        act = self.draw.choice(
            [self.say, self.say, self.log, self.shorten, self.beat, self.save, self.save, self.remove]
        )
        act()

    def say(self):
        with (self.folder / "events.jsonl").open("ab") as file:
            file.write(b"event %d %s\n" % (self.step, b"e" * self.draw.randrange(200)))

    def log(self):
        with (self.folder / "log.txt").open("ab") as file:
            file.write(b"line %d\n" % self.step * self.draw.randrange(30))

    def shorten(self):
        path = self.folder / "log.txt"
        if path.exists():
            path.write_bytes(path.read_bytes()[:20] + b"[left out]" + b"line %d\n" % self.step)

    def beat(self):
        (self.folder / "heartbeat.json").write_text(str(self.step))
        (self.folder / "results").mkdir(exist_ok=True)
        (self.folder / "results" / f"{self.step % 3}.csv").write_bytes(self.draw.randbytes(self.draw.randrange(300)))

    def save(self):
        name = f"step-{self.step // self.draw.choice([1, 4])}"
        files = {"state": b"%d" % self.step, "arrays": self.frozen + self.draw.randbytes(self.draw.randrange(90))}
        checkpoint(self.folder, name, **files)
        self.checkpoints.setdefault(name, []).append(files)

    def remove(self):
        there = sorted((self.folder / "checkpoints").glob("step-*"))
        if there:
            shutil.rmtree(self.draw.choice(there))
        (self.folder / "results" / "0.csv").unlink(missing_ok=True)


class Relay:
    """Drops, repeats, delays and reorders what it is given."""

    def __init__(self, draw):
        self.draw, self.waiting = draw, []

    def pass_on(self, message):
        """Return what arrives now."""
        self.waiting += [message] * self.draw.choice([0, 1, 1, 1, 2])
        self.draw.shuffle(self.waiting)
        count = self.draw.randrange(len(self.waiting) + 1)
        arrived, self.waiting = self.waiting[:count], self.waiting[count:]
        return arrived


def check_meanwhile(mirror, node, worker):
    """What holds at any moment: events are a beginning, and every checkpoint was once whole."""
    files = contents(mirror.folder)
    assert (node.folder / "events.jsonl").read_bytes().startswith(files.get("events.jsonl", b""))
    for place in (mirror.folder / "checkpoints").glob("*"):
        assert {path.name: path.read_bytes() for path in place.iterdir()} in worker.checkpoints[place.name]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1 << 32))
def test_the_mirror_equals_the_folder_in_the_end(tmp_path_factory, seed):
    draw = random.Random(seed)
    root = tmp_path_factory.mktemp("mirror")
    for name in ("node", "studio"):
        (root / name).mkdir()
    (root / "node" / "events.jsonl").write_text("begun\n")
    node, worker = NodeFolder(root / "node", 2, TINY), Worker(root / "node", draw)
    mirror = Mirror(root / "studio", 2, TINY)
    there, back = Relay(draw), Relay(draw)
    old = NodeFolder(root / "node", 1, TINY)  # an actor of a superseded attempt says something, too
    for _ in range(draw.randrange(40)):
        for _ in range(draw.randrange(3)):
            worker.act()
        replies = [node.exchange(request) for request in there.pass_on(mirror.request()) if request.attempt == 2]
        replies += [old.exchange(Request(attempt=1))]
        for arrived in [each for reply in replies for each in back.pass_on(reply)]:
            mirror.take(arrived)
            check_meanwhile(mirror, node, worker)
        if draw.randrange(8) == 0:  # the bridge is killed: what it knew is read from the folder again
            mirror = Mirror(root / "studio", 2, TINY)
            back = Relay(draw)
    follow(mirror, node, (0,))
    expected, found = contents(root / "node"), contents(root / "studio")
    assert {path: found.get(path) for path in expected} == expected
    checkpoints = {path for path in found if path.startswith("checkpoints/")}
    assert checkpoints == {path for path in expected if path.startswith("checkpoints/")}
