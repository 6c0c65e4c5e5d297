"""Base of callbacks that need a graph: operations, tensors and the session of a ``ziggurat.tf`` trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.engine.callback import Callback as EngineCallback
from ziggurat.errors import UsageError

if TYPE_CHECKING:
    from ziggurat.tf.trainers import Trainer

__all__ = ["Callback", "RunContext", "RunValues", "fetch_name"]


@dataclass(frozen=True)
class RunContext:
    """What ``_before_run`` is told of the step to come.

    Args:
        session: the session.
        original_args: what the step runs, as ``tf.train.SessionRunArgs``; its fetches are those of the trainer.
    """

    session: Any
    original_args: Any = None


@dataclass(frozen=True)
class RunValues:
    """What ``_after_run`` gets.

    Args:
        results: values, in the structure in which ``_before_run`` asked for them; None where it asked for nothing.
    """

    results: Any = None
    options: Any = None
    run_metadata: Any = field(default=None, repr=False)


class Callback(EngineCallback):
    """A callback with a graph. It has the hooks of every callback, and Tensorpack's.

    ``_before_run(ctx)`` may return a tensor, an operation, a name, a list or a mapping of these, or
    ``tf.train.SessionRunArgs``; ``_after_run(ctx, values)`` gets their values in ``values.results``.
    """

    trainer: Trainer  # pyright: ignore[reportIncompatibleVariableOverride]
    """The trainer; there from ``setup_graph`` on."""

    _wanted: Any = None
    _flat: tuple[str, ...] = ()

    @property
    def graph(self) -> Any:
        """The graph of the training."""
        return self.trainer.graph

    @property
    def name_scope(self) -> str:
        """A name scope for the operations of this callback."""
        return type(self).__name__

    def set_chief_only(self, v: bool = True) -> Callback:
        """Let it run in the first process of a distributed training only, or in all; return the callback."""
        self.chief_only = v  # pyright: ignore[reportAttributeAccessIssue]
        return self

    def get_tensors_maybe_in_tower(self, names: Sequence[str]) -> list[Any]:
        """Return tensors by their names in the graph or, where there is none, in the first training tower.

        Raises:
            UnknownNameError: where neither has one.
        """
        program = self.trainer.program
        return [program.tensor(name) for name in names]

    def before_run(self) -> Sequence[str]:
        """Ask for what ``_before_run`` returns."""
        method = getattr(self, "_before_run", None)
        if method is None:
            return ()
        wanted = method(RunContext(self.trainer.sess))
        if isinstance(wanted, tf.train.SessionRunArgs):
            if wanted.feed_dict:
                raise UsageError(
                    "A callback asks for values; what is fed comes from the input source.",
                    received=f"feed_dict of {type(self).__name__}",
                    advice="Give the value by an input source, or assign it to a variable by `trainer.sess.run`.",
                )
            wanted = wanted.fetches
        self._wanted = wanted
        if wanted is None:
            return ()
        self._flat = tuple(fetch_name(each) for each in tf2.nest.flatten(wanted))
        return self._flat

    def after_run(self, values: Mapping[str, Any]) -> None:
        """Hand the values to ``_after_run``."""
        method = getattr(self, "_after_run", None)
        if method is None:
            return
        results = None
        if self._wanted is not None:
            results = tf2.nest.pack_sequence_as(self._wanted, [values[name] for name in self._flat])
        method(RunContext(self.trainer.sess), RunValues(results))

    def hooks(self) -> frozenset[str]:
        """Return the hooks that it has, by either name."""
        found = set(super().hooks())
        for hook in ("before_run", "after_run"):
            own = getattr(type(self), hook) is not getattr(Callback, hook)
            if not own and not hasattr(self, f"_{hook}"):
                found.discard(hook)
        return frozenset(found)


def fetch_name(fetch: Any) -> str:
    """Return the name under which a program fetches a tensor, an operation, a variable or a name."""
    if isinstance(fetch, str):
        return fetch
    if isinstance(fetch, tf.Operation | tf.Tensor):
        return str(fetch.name)
    as_element = getattr(fetch, "_as_graph_element", None)  # of variables: the tensor that reads them
    name = getattr(fetch if as_element is None else as_element(), "name", None)
    if not isinstance(name, str):
        raise UsageError(
            f"A step cannot fetch a {type(fetch).__name__}, only tensors, operations and variables.",
            advice="Return a tensor, its name, or a list of these from `_before_run`.",
        )
    return name
