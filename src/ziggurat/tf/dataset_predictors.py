"""Predictors over whole data flows, and one that batches the tasks of many threads."""

from __future__ import annotations

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final

import numpy as np

from ziggurat.dataflow.adapting import method_of
from ziggurat.errors import ConfigurationError, StateError
from ziggurat.tf.offline_predictors import OfflinePredictor
from ziggurat.tf.predict_config import PredictConfig
from ziggurat.tf.predictors import PredictorBase
from ziggurat.tf.sessions import NewSessionCreator, ReuseSessionCreator

__all__ = [
    "AsyncPredictorBase",
    "DatasetPredictorBase",
    "MultiProcessDatasetPredictor",
    "MultiThreadAsyncPredictor",
    "SimpleDatasetPredictor",
]

_PER_PREDICTOR: Final = 2
"""Datapoints that each predictor of several has at a time: one in work, one that waits."""

_WAITING_TASKS: Final = 100


class DatasetPredictorBase(ABC):
    """Base of predictors over a data flow.

    Args:
        config: what predicts.
        dataset: a data flow whose datapoints are the inputs of the predictor.
    """

    def __init__(self, config: PredictConfig, dataset: Iterable[Any]) -> None:
        self.config = config
        self.dataset = dataset
        reset = method_of(dataset, "reset_state")
        if reset is not None:
            reset()

    @abstractmethod
    def get_result(self) -> Iterator[Any]:
        """Yield the outputs of each datapoint; (inputs, outputs) where the configuration says so."""

    def get_all_result(self) -> list[Any]:
        """Return the outputs of all datapoints."""
        return list(self.get_result())


class SimpleDatasetPredictor(DatasetPredictorBase):
    """Predicts one datapoint after the other."""

    def __init__(self, config: PredictConfig, dataset: Iterable[Any]) -> None:
        super().__init__(config, dataset)
        self.predictor = OfflinePredictor(config)

    def get_result(self) -> Iterator[Any]:
        """Yield the outputs of each datapoint, in their order."""
        for datapoint in self.dataset:
            yield self.predictor(*datapoint)


class MultiProcessDatasetPredictor(DatasetPredictorBase):
    """Predicts with several predictors at a time, each with a graph, a session and a thread of its own.

    Sessions compute outside of Python's lock, so threads do what Tensorpack's processes did, and an error of the data
    or of a predictor is raised here.

    Args:
        config: what predicts; with ``create_graph=True``.
        dataset: a data flow whose datapoints are the inputs of the predictors.
        nr_proc: number of predictors, at least 1.
        use_gpu: let them use GPUs.
        ordered: yield in the order of the data flow; otherwise as they come.

    Raises:
        ConfigurationError: for less than one predictor, or where they would share a graph or a session.
    """

    def __init__(
        self,
        config: PredictConfig,
        dataset: Iterable[Any],
        nr_proc: int,
        use_gpu: bool = True,
        ordered: bool = True,
    ) -> None:
        if nr_proc < 1:
            raise ConfigurationError("`nr_proc` is at least 1.", received=nr_proc, advice="Set how many predict.")
        if not config.create_graph or (nr_proc > 1 and isinstance(config.session_creator, ReuseSessionCreator)):
            raise ConfigurationError(
                f"{'`create_graph=False` is' if not config.create_graph else 'A `ReuseSessionCreator` is'} "
                "given, and each of several predictors has a graph and a session of its own.",
                advice="Leave them at their defaults.",
            )
        super().__init__(config, dataset)
        self._ordered = ordered
        if not use_gpu and isinstance(config.session_creator, NewSessionCreator):
            config.session_creator.config.device_count["GPU"] = 0
        self._predictors = [OfflinePredictor(config) for _ in range(nr_proc)]

    def get_result(self) -> Iterator[Any]:
        """Yield the outputs of each datapoint."""
        free: queue.SimpleQueue[OfflinePredictor] = queue.SimpleQueue()
        for each in self._predictors:
            free.put(each)

        def predict(datapoint: Sequence[Any]) -> Any:
            predictor = free.get()
            try:
                return predictor(*datapoint)
            finally:
                free.put(predictor)

        waiting: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(len(self._predictors), thread_name_prefix="predictor") as pool:
            try:
                for datapoint in self.dataset:
                    waiting.append(pool.submit(predict, datapoint))
                    if len(waiting) >= _PER_PREDICTOR * len(self._predictors):
                        yield self._next(waiting).result()
                while waiting:
                    yield self._next(waiting).result()
            finally:
                for future in waiting:
                    future.cancel()

    def _next(self, waiting: deque[Future[Any]]) -> Future[Any]:
        if self._ordered:
            return waiting.popleft()
        done = next(iter(wait(waiting, return_when=FIRST_COMPLETED).done))
        waiting.remove(done)
        return done


class AsyncPredictorBase(ABC):
    """Base of predictors that return futures."""

    @abstractmethod
    def start(self) -> None:
        """Start to work on tasks."""

    @abstractmethod
    def put_task(
        self, dp: Sequence[Any], callback: Callable[[Future[list[Any]]], object] | None = None
    ) -> Future[list[Any]]:
        """Add a task; return the future of its outputs.

        Args:
            dp: one array an input, without the axis of rows.
            callback: called with the future once it is done.
        """

    def __call__(self, *dp: Any) -> list[Any]:
        """Add a task and wait for its outputs."""
        return self.put_task(dp).result()


class MultiThreadAsyncPredictor(AsyncPredictorBase):
    """Predicts tasks that come one by one, in batches of what is waiting: one thread a predictor.

    A predictor takes a first task as soon as it is free, and with it up to ``batch_size - 1`` others that wait. Inputs
    of one batch are stacked, so they have one shape. An error of a predictor goes to the futures of its batch, and the
    predictor goes on. Use it in a ``with`` statement, or call ``start`` and ``close``.

    Args:
        predictors: predictors that take and return arrays with an axis of rows first.
        batch_size: tasks of a batch at most.
        wait_s: how long a predictor waits for its batch to fill, in seconds.

    Raises:
        ConfigurationError: without predictors, with one that returns its input, or for a batch size below 1.
    """

    def __init__(self, predictors: Sequence[PredictorBase], batch_size: int = 5, *, wait_s: float = 0.0) -> None:
        if not predictors or batch_size < 1 or any(each.return_input for each in predictors):
            raise ConfigurationError(
                "An asynchronous predictor has predictors that return outputs alone, and batches of at least 1.",
                received=f"{len(predictors)} predictor(s), batch_size={batch_size}",
                advice="Make the predictors with `return_input=False`.",
            )
        self._batch_size = batch_size
        self._wait_s = wait_s
        self._tasks: queue.Queue[tuple[Sequence[Any], Future[list[Any]]] | None] = queue.Queue(_WAITING_TASKS)
        self._lock = threading.Lock()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._work, args=(each,), name="async-predictor", daemon=True)
            for each in predictors
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def put_task(
        self, dp: Sequence[Any], callback: Callable[[Future[list[Any]]], object] | None = None
    ) -> Future[list[Any]]:
        """Add a task; it waits where very many tasks wait already.

        Args:
            dp: one array an input, without the axis of rows.
            callback: called with the future once it is done, in a thread of a predictor.

        Returns:
            Future of the outputs, one array each, without the axis of rows.

        Raises:
            StateError: after ``close``.
        """
        future: Future[list[Any]] = Future()
        if callback is not None:
            future.add_done_callback(callback)
        while True:
            with self._lock:
                if self._is_closed:
                    raise StateError("A predictor that is closed takes no tasks.", advice="Make another one.")
                try:
                    self._tasks.put_nowait((dp, future))
                    return future
                except queue.Full:
                    pass
            time.sleep(0.001)

    def close(self) -> None:
        """Do the tasks that wait, and end the threads; closing twice does nothing."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        started = [thread for thread in self._threads if thread.is_alive()]
        for _ in started:
            self._tasks.put(None)
        for thread in started:
            thread.join()
        while not self._tasks.empty():  # it was never started
            task = self._tasks.get_nowait()
            if task is not None:
                task[1].cancel()

    def __enter__(self) -> MultiThreadAsyncPredictor:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _work(self, predictor: PredictorBase) -> None:
        is_last = False
        while not is_last:
            batch: list[tuple[Sequence[Any], Future[list[Any]]]] = []
            until = None
            while len(batch) < self._batch_size and not is_last:
                left_s = None if until is None else until - time.monotonic()
                try:
                    is_over = left_s is not None and left_s <= 0
                    task = self._tasks.get_nowait() if is_over else self._tasks.get(timeout=left_s)
                except queue.Empty:
                    break
                if task is None:
                    is_last = True
                elif task[1].set_running_or_notify_cancel():
                    batch.append(task)
                    until = until or time.monotonic() + self._wait_s
            if batch:
                _predict_batch(predictor, batch)


def _predict_batch(predictor: PredictorBase, batch: Sequence[tuple[Sequence[Any], Future[list[Any]]]]) -> None:
    """Predict tasks as one batch; outputs or the error go to their futures."""
    try:
        columns = zip(*(inputs for inputs, _ in batch), strict=True)
        outputs = predictor(*(np.stack([np.asarray(each) for each in column]) for column in columns))
        rows = [[output[number] for output in outputs] for number in range(len(batch))]
    except BaseException as error:
        for _, future in batch:
            future.set_exception(error)
        return
    for (_, future), row in zip(batch, rows, strict=True):
        future.set_result(row)
