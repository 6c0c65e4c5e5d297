"""The shelf of warm processes, with processes that are none."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from ziggurat.errors import JobError
from ziggurat.services.process_pool import ProcessPool


class Cup:
    """Stays warm until it is closed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = 0
        self.broken = False
        self.when_asked: Callable[[], object] | None = None

    def is_alive(self) -> bool:
        meanwhile, self.when_asked = self.when_asked, None
        if meanwhile is not None:
            meanwhile()
        return not (self.closed or self.broken)

    def close(self) -> None:
        self.closed += 1


class Kitchen:
    """Makes cups, at a time that stands still."""

    def __init__(self, most: int = 2, idle_s: float = 10.0) -> None:
        self.now = 0.0
        self.made: list[Cup] = []
        self.shelf: ProcessPool[str, Cup] = ProcessPool(
            self.make, most=most, idle_s=idle_s, what="cups", clock=lambda: self.now
        )

    def make(self, name: str) -> Cup:
        if name == "none":
            raise JobError("There is no such cup.")
        self.made.append(Cup(name))
        return self.made[-1]

    def use(self, name: str, wait_s: float = 0.0) -> Cup:
        with self.shelf.use(name, wait_s) as cup:
            return cup


def names(kitchen: Kitchen) -> list[str]:
    return [key for key, _ in kitchen.shelf.entries()]


def test_one_is_made_for_each_key_and_used_again() -> None:
    kitchen = Kitchen()
    assert kitchen.use("a") is kitchen.use("a")
    assert kitchen.use("b") is not kitchen.use("a")
    assert [cup.name for cup in kitchen.made] == ["a", "b"]
    kitchen.shelf.close()


def test_a_broken_one_is_closed_and_made_anew() -> None:
    kitchen = Kitchen()
    kitchen.use("a").broken = True
    assert kitchen.use("a") is kitchen.made[1]
    assert [cup.closed for cup in kitchen.made] == [1, 0]
    kitchen.shelf.close()


def test_what_replaced_a_broken_one_is_not_swept_away() -> None:
    kitchen = Kitchen()
    broken = kitchen.use("a")
    broken.broken, broken.when_asked = True, lambda: kitchen.use("a")
    kitchen.shelf.sweep()
    assert kitchen.use("a") is kitchen.made[1]
    assert [cup.closed for cup in kitchen.made] == [1, 0]
    kitchen.shelf.close()


def test_room_is_made_by_the_least_recent_that_none_uses() -> None:
    kitchen = Kitchen()
    with kitchen.shelf.use("a", 0):
        kitchen.use("b")
        kitchen.use("c")
        assert names(kitchen) == ["a", "c"]
        with kitchen.shelf.use("c", 0), pytest.raises(JobError, match="At most 2 cups are there at a time"):
            kitchen.use("d")
    kitchen.use("d")
    assert names(kitchen) == ["c", "d"]
    kitchen.shelf.close()


def test_who_waits_gets_the_room_that_somebody_leaves() -> None:
    kitchen = Kitchen(most=1)
    leave = threading.Event()

    def sit() -> None:
        with kitchen.shelf.use("a", 0):
            leave.wait(30)

    with ThreadPoolExecutor(2) as threads:
        sitting = threads.submit(sit)
        while not kitchen.made:
            pass
        waiting = threads.submit(kitchen.use, "b", 30.0)
        leave.set()
        assert waiting.result().name == "b"
        sitting.result()
    kitchen.shelf.close()


def test_sweeping_takes_what_is_idle_and_what_is_broken() -> None:
    kitchen = Kitchen(most=4)
    first, _, third = (kitchen.use(name) for name in "abc")
    kitchen.now = 9.0
    kitchen.use("b")
    third.broken = True
    with kitchen.shelf.use("a", 0):
        kitchen.now = 15.0
        kitchen.shelf.sweep()
        assert names(kitchen) == ["b", "a"]
        assert first.closed == 0
    kitchen.now = 19.0
    kitchen.shelf.sweep()
    assert names(kitchen) == ["a"]
    kitchen.now = 25.0
    kitchen.shelf.sweep()
    assert names(kitchen) == []
    assert all(cup.closed for cup in kitchen.made)
    kitchen.shelf.close()


def test_what_cannot_be_made_takes_no_room() -> None:
    kitchen = Kitchen(most=1)
    with pytest.raises(JobError, match="There is no such cup"):
        kitchen.use("none")
    assert names(kitchen) == []
    assert kitchen.use("a").name == "a"
    kitchen.shelf.close()


def test_many_threads_never_make_two_of_a_kind_at_a_time() -> None:
    kitchen = Kitchen(most=3)
    wrong: list[str] = []

    def work(number: int) -> None:
        with kitchen.shelf.use(f"cup {number % 5}", 30.0) as cup:
            if not cup.is_alive() or sum(each.is_alive() for each in kitchen.made) > 4:
                wrong.append(cup.name)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(400)))
    kitchen.shelf.close()
    assert wrong == []
    assert all(cup.closed for cup in kitchen.made)


def test_released_in_use_it_closes_and_the_next_gets_another() -> None:
    kitchen = Kitchen()
    with kitchen.shelf.use("a", 0) as cup:
        kitchen.shelf.release(lambda key: key == "a")
        assert cup.closed
        assert kitchen.use("a") is not cup
    kitchen.shelf.close()
    assert all(each.closed for each in kitchen.made)


def test_closed_it_makes_nothing_and_who_waits_is_told() -> None:
    kitchen = Kitchen(most=1)
    with ThreadPoolExecutor(1) as threads, kitchen.shelf.use("a", 0):
        waiting = threads.submit(kitchen.use, "b", 30.0)
        kitchen.shelf.close()
        with pytest.raises(JobError, match="so no cups are started any more"):
            waiting.result()
    with pytest.raises(JobError, match="so no cups are started any more"):
        kitchen.use("a")
    assert [cup.closed for cup in kitchen.made] == [1]
