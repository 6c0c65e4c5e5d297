"""``SummariseBatch`` puts what a program makes of the newest batch, once an epoch; ``tb/`` gets the graph, once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_fakes import FakeProgram, Memory, make_trainer, train

from ziggurat.engine.callbacks.summaries import SummariseBatch
from ziggurat.engine.monitor import Monitor
from ziggurat.engine.monitors.tensorboard import TFEventWriter, file_version, graph_event
from ziggurat.errors import NetworkCodeError
from ziggurat.events import Message
from ziggurat.protobuf_wire import tfrecord_frame


class Drawing(FakeProgram):
    """Summarizes a batch as the text of its first number."""

    fails = False

    def summarise(self, batch: Any) -> bytes:
        if self.fails:
            raise NetworkCodeError("A histogram holds numbers.", received="NaN")
        return str(float(np.ravel(batch[0])[0])).encode()

    def graph_bytes(self) -> bytes:
        return b"the graph"


def test_the_newest_batch_is_summarised_at_the_end_of_each_epoch() -> None:
    memory = train(SummariseBatch(), program=Drawing(), epochs=2)
    assert memory.summaries == [(4, b"6.0"), (8, b"6.0")]


def test_steps_pay_nothing_for_it() -> None:
    callback = SummariseBatch()
    make_trainer(callback, program=Drawing(), monitors=[Memory()]).train(1)
    assert callback.hooks() == {"trigger_epoch"}


def test_every_so_many_steps() -> None:
    memory = train(SummariseBatch(None, every_k_steps=2), program=Drawing())
    assert memory.summaries == [(2, b"2.0"), (4, b"6.0")]


def test_an_error_is_said_once_and_ends_nothing() -> None:
    program = Drawing()
    program.fails = True
    memory = train(SummariseBatch(), program=program, epochs=3)
    said = [event.text for event in memory.of_type(Message) if event.level == "warning"]
    assert said == ["Summaries are left out. A histogram holds numbers (received: NaN)."]
    assert program.steps == 12


@pytest.mark.parametrize(
    ("program", "monitor"), [(FakeProgram(), Memory()), (Drawing(), Monitor())], ids=["nothing offered", "no taker"]
)
def test_it_costs_nothing_where_there_is_nothing_to_do(program: FakeProgram, monitor: Monitor) -> None:
    callback = SummariseBatch()
    make_trainer(callback, program=program, monitors=[monitor]).train(1)
    assert callback.hooks() == frozenset()


def test_the_first_event_file_holds_the_graph_later_ones_not(tmp_path: Path) -> None:
    for epochs in (1, 2):
        make_trainer(program=Drawing(), monitors=[TFEventWriter(tmp_path)]).train(epochs)
    first, second = (path.read_bytes() for path in sorted(tmp_path.iterdir()))
    assert first == tfrecord_frame(file_version(1000.0)) + tfrecord_frame(graph_event(1000.0, b"the graph"))
    assert second == tfrecord_frame(file_version(1000.0))


def test_a_program_without_a_graph(tmp_path: Path) -> None:
    make_trainer(monitors=[TFEventWriter(tmp_path)]).train(1)
    (only,) = tmp_path.iterdir()
    assert only.read_bytes() == tfrecord_frame(file_version(1000.0))
