"""Towers: a tower function is built once for each replica and each prediction graph, under a ``TowerContext``.

The rules of a tower function:

- It may be called several times; it makes trainable variables by ``tf.get_variable``, so that towers share them.
- Only variables that are trained by gradient descent are in ``TRAINABLE_VARIABLES``; what prediction needs beside them
  belongs in ``MODEL_VARIABLES``.
- Names of variables do not depend on name scopes.
- ``get_current_tower_context()`` tells which graph is being built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError, StateError, UnknownNameError, UsageError

__all__ = [
    "MOVING_SUMMARIES",
    "BaseTowerContext",
    "PredictTowerContext",
    "TowerContext",
    "TowerFunc",
    "TowerTensorHandle",
    "TowerTensorHandles",
    "TrainTowerContext",
    "get_current_tower_context",
]

MOVING_SUMMARIES: Final = "MOVING_SUMMARY_OPS"
"""Collection of what ``add_moving_summary`` was given."""

_OF_MAIN_TOWER: Final = (tf.GraphKeys.SUMMARIES, MOVING_SUMMARIES)
_OF_TRAINING: Final = (*_OF_MAIN_TOWER, tf.GraphKeys.UPDATE_OPS, tf.GraphKeys.REGULARIZATION_LOSSES)
_FORBIDDEN_IN_NAMES: Final = (":", "/", " ")

_current: BaseTowerContext | None = None


def get_current_tower_context() -> BaseTowerContext | None:
    """Return the context of the tower that is being built; None outside of any."""
    return _current


class BaseTowerContext:
    """Base of the contexts: scopes of a tower, and what its graph is for.

    Args:
        ns_name: name scope of the tower; empty for none.
        vs_name: variable scope, for a tower with variables of its own; empty where it shares them.
    """

    is_training: bool = False
    """Whether the tower is trained."""

    is_main_training_tower: bool = False
    """Whether it is the first tower of the training, the one that updates statistics and makes summaries."""

    def __init__(self, ns_name: str, vs_name: str = "") -> None:
        self._ns_name = ns_name
        self._vs_name = vs_name
        self._stack: ExitStack | None = None
        self._start: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The name scope of the tower."""
        return self._ns_name

    @property
    def ns_name(self) -> str:
        """The name scope of the tower."""
        return self._ns_name

    @property
    def vs_name(self) -> str:
        """The variable scope of the tower; empty where it shares variables."""
        return self._vs_name

    @property
    def has_own_variables(self) -> bool:
        """Whether the tower has variables that no other one uses."""
        return self.is_main_training_tower or bool(self._vs_name)

    def get_collection_in_tower(self, key: str) -> list[Any]:
        """Return what the tower has added to a collection of the graph so far."""
        return tf.get_collection(key)[self._start.get(key, 0) :]

    def __enter__(self) -> BaseTowerContext:
        global _current
        if _current is not None:
            raise StateError(
                f"The tower context `{self._ns_name}` was entered inside `{_current.ns_name}`, and they do not nest.",
                advice="Leave the first one before you enter the second.",
            )
        graph = tf.get_default_graph()
        self._start = {key: len(graph.get_collection_ref(key)) for key in graph.get_all_collection_keys()}
        _current = self
        self._stack = ExitStack()
        try:
            if self._vs_name:
                self._stack.enter_context(tf.variable_scope(self._vs_name))
                self._stack.enter_context(_plain_name_scope(""))
            elif self._reuses():
                self._stack.enter_context(tf.variable_scope(tf.get_variable_scope(), reuse=True))
            if self._ns_name:
                # With a slash at the end the scope is entered as it is, not made unique.
                self._stack.enter_context(_plain_name_scope(f"{self._ns_name}/"))
        except BaseException:
            _current = None
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        global _current
        _current = None
        assert self._stack is not None
        self._stack.close()
        if error is None:
            self._check_variables()
        self._freeze_collections()

    def _reuses(self) -> bool:
        return False

    def _frozen(self) -> Sequence[str]:
        return ()

    def _freeze_collections(self) -> None:
        for key in self._frozen():
            del tf.get_collection_ref(key)[self._start.get(key, 0) :]

    def _check_variables(self) -> None:
        if self.has_own_variables or not self._reuses():
            return
        made = self.get_collection_in_tower(tf.GraphKeys.TRAINABLE_VARIABLES)
        if made:
            raise ConfigurationError(
                "A tower that shares its variables makes no trainable ones.",
                received=f"tower `{self._ns_name}` made {', '.join(variable.op.name for variable in made[:5])}",
                advice="Make trainable variables by `tf.get_variable`, and give them names that are the same in every "
                "call of the tower function.",
            )

    def __str__(self) -> str:
        return f"TowerContext(name={self._ns_name}, is_training={self.is_training})"


class TrainTowerContext(BaseTowerContext):
    """Context of a tower that is trained.

    Args:
        ns_name: name scope, such as ``tower0``; empty for none.
        vs_name: variable scope of a tower with its own variables.
        index: number of the tower.
        total: number of towers.
    """

    is_training = True

    def __init__(self, ns_name: str, vs_name: str = "", index: int = 0, total: int = 1) -> None:
        super().__init__(ns_name, vs_name)
        self.index = index
        self.total = total
        self.is_main_training_tower = index == 0

    def _reuses(self) -> bool:
        return not self.is_main_training_tower and not self._vs_name

    def _frozen(self) -> Sequence[str]:
        return () if self.is_main_training_tower else _OF_MAIN_TOWER


class PredictTowerContext(BaseTowerContext):
    """Context of a tower that predicts: with the variables of the training, and without its side effects.

    Args:
        ns_name: name scope; empty for none.
        vs_name: variable scope of the training tower whose variables it takes.
    """

    def __init__(self, ns_name: str, vs_name: str = "") -> None:
        super().__init__(ns_name, vs_name)
        # Read before any scope is entered: a tower in a graph of its own makes its variables.
        self._is_reusing = bool(tf.get_variable_scope().reuse)

    @property
    def has_own_variables(self) -> bool:
        """Whether it makes its variables: in a graph of its own."""
        return not self._is_reusing

    def _frozen(self) -> Sequence[str]:
        return _OF_TRAINING

    def _reuses(self) -> bool:
        return self._is_reusing


def TowerContext(tower_name: str, is_training: bool, vs_name: str = "") -> BaseTowerContext:  # noqa: N802 - Tensorpack's
    """Return the context to use layers in, outside of a trainer.

    Args:
        tower_name: name scope of the tower; empty for none.
        is_training: whether layers such as dropout and batch normalization behave as in training.
        vs_name: variable scope of a tower with its own variables.
    """
    if is_training:
        return TrainTowerContext(tower_name, vs_name)
    return PredictTowerContext(tower_name, vs_name)


@contextmanager
def _plain_name_scope(name: str) -> Iterator[None]:
    """Enter a name scope exactly as named; empty for the root."""
    with tf.get_default_graph().name_scope(name or None):
        yield


class TowerTensorHandle:
    """A tower that was built, with its tensors by names without the tower's scope.

    Args:
        context: the context that it was built in.
        inputs: its input tensors.
        outputs: what the tower function returned.
        signature: the specifications of the inputs; their names stand for the inputs.
    """

    def __init__(
        self, context: BaseTowerContext, inputs: Sequence[Any], outputs: Any, signature: Sequence[Any] = ()
    ) -> None:
        self._context = context
        self.inputs = list(inputs)
        self.outputs = outputs
        self._by_name = {spec.name: tensor for spec, tensor in zip(signature, self.inputs, strict=False)}
        self._graph = tf.get_default_graph()

    @property
    def is_training(self) -> bool:
        """Whether it is a tower of the training."""
        return self._context.is_training

    @property
    def ns_name(self) -> str:
        """Its name scope."""
        return self._context.ns_name

    @property
    def vs_name(self) -> str:
        """Its variable scope."""
        return self._context.vs_name

    def get_tensor(self, name: str) -> Any:
        """Return a tensor by its name in the tower, with or without ``:0``; the name of an input gives the input.

        Raises:
            UnknownNameError: where the tower has none.
        """
        plain = name.removesuffix(":0")
        if plain in self._by_name:
            return self._by_name[plain]
        full = f"{self.ns_name}/{name}" if self.ns_name else name
        found = _tensor(self._graph, full)
        if found is None:
            found = self._variable(name)
        if found is None:
            prefix = f"{self.ns_name}/" if self.ns_name else ""
            known = [
                each.name.removeprefix(prefix) for each in self._graph.get_operations() if each.name.startswith(prefix)
            ]
            what = f"tensor of the tower `{self.ns_name}`" if self.ns_name else "tensor of the tower"
            raise UnknownNameError(what, name, [*self._by_name, *known])
        return found

    def get_tensors(self, names: Sequence[str]) -> list[Any]:
        """Return tensors by their names in the tower.

        Raises:
            UsageError: where a single name is given.
        """
        check_names(names)
        return [self.get_tensor(name) for name in names]

    def get_variable(self, name: str) -> Any:
        """Return a variable by its name without the variable scope of the tower.

        Raises:
            UnknownNameError: where there is none.
        """
        found = self._variable(name)
        if found is None:
            known = [each.op.name for each in self._graph.get_collection(tf.GraphKeys.GLOBAL_VARIABLES)]
            raise UnknownNameError("variable", name, known)
        return found

    def get_variables(self, names: Sequence[str]) -> list[Any]:
        """Return variables by their names without the variable scope of the tower."""
        return [self.get_variable(name) for name in names]

    def get_collection(self, key: str | None = None, name: str | None = None) -> list[Any]:
        """Return what the tower added to a collection and what was not removed from it since.

        Args:
            key: the collection.
            name: another word for it.
        """
        wanted = key or name or ""
        prefix = f"{self.ns_name}/" if self.ns_name else ""
        return [each for each in self._graph.get_collection(wanted) if _name_of(each).startswith(prefix)]

    def __getitem__(self, name: str) -> Any:
        return self.get_tensor(name)

    def _variable(self, name: str) -> Any:
        plain = name.removesuffix(":0")
        full = f"{self.vs_name}/{plain}" if self.vs_name else plain
        kinds = (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES)
        variables = (each for kind in kinds for each in self._graph.get_collection(kind))
        return next((each for each in variables if each.op.name == full), None)


class TowerTensorHandles:
    """The towers of a tower function, in the order in which they were built.

    Args:
        handles: of the towers.
    """

    def __init__(self, handles: Sequence[TowerTensorHandle]) -> None:
        self._handles = list(handles)

    def __getitem__(self, key: int | str) -> TowerTensorHandle:
        """Return a tower by its number or its name scope."""
        if isinstance(key, int):
            return self._handles[key]
        found = next((each for each in self._handles if each.ns_name == key), None)
        if found is None:
            raise UnknownNameError("tower", key, [each.ns_name for each in self._handles])
        return found

    def __iter__(self) -> Iterator[TowerTensorHandle]:
        return iter(self._handles)

    def __len__(self) -> int:
        return len(self._handles)

    def training(self) -> TowerTensorHandles:
        """Return those that are trained."""
        return TowerTensorHandles([each for each in self._handles if each.is_training])

    def inference(self) -> TowerTensorHandles:
        """Return those that predict."""
        return TowerTensorHandles([each for each in self._handles if not each.is_training])


class TowerFunc:
    """A tower function with the specifications of its inputs; it notes every tower that it builds.

    Args:
        tower_fn: takes one tensor an input, and builds a tower.
        input_signature: a ``tf.TensorSpec`` for each input, with names that differ.

    Raises:
        ConfigurationError: where a name is missing, taken twice, or has a colon, a slash or a space.
    """

    def __init__(self, tower_fn: Callable[..., Any], input_signature: Sequence[Any]) -> None:
        if isinstance(tower_fn, TowerFunc):
            tower_fn = tower_fn.function
        self.function = tower_fn
        self.input_signature = list(input_signature)
        self._handles: list[TowerTensorHandle] = []
        check_input_names([spec.name for spec in self.input_signature])

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [spec.name for spec in self.input_signature]

    @property
    def towers(self) -> TowerTensorHandles:
        """The towers that were built."""
        return TowerTensorHandles(self._handles)

    def __call__(self, *inputs: Any) -> Any:
        """Build a tower.

        Raises:
            StateError: outside of a ``TowerContext``.
        """
        context = get_current_tower_context()
        if context is None:
            raise StateError(
                "A tower function was called outside of a `TowerContext`.",
                advice="Write `with TowerContext('', is_training=False):` around it.",
            )
        outputs = self.function(*inputs)
        self._handles.append(TowerTensorHandle(context, inputs, outputs, self.input_signature))
        return outputs


def check_input_names(names: Sequence[str | None]) -> None:
    """Refuse names of inputs that are missing, taken twice, or could not be told from a path in the graph."""
    bad = [name for name in names if not name or any(part in name for part in _FORBIDDEN_IN_NAMES)]
    twice = [name for number, name in enumerate(names) if name in names[:number]]
    if bad or twice:
        raise ConfigurationError(
            f"The names of inputs are equal, or have a colon, slash or space: {', '.join(map(repr, names))}.",
            advice="Name each `tf.TensorSpec`.",
        )


def check_names(names: Sequence[str]) -> None:
    """Refuse a text in the place of a list: its letters are no names."""
    if isinstance(names, str):
        raise UsageError(f"Names are given as the text {names!r}, not as a list.", advice=f"Write `[{names!r}]`.")


def _tensor(graph: Any, name: str) -> Any:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError):
        return None


def _name_of(item: Any) -> str:
    if isinstance(item, Mapping):
        return ""
    operation = getattr(item, "op", item)
    return str(getattr(operation, "name", ""))
