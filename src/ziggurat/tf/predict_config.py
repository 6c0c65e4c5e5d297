"""What a predictor of its own graph is made of: tower function, weights, inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.errors import ConfigurationError
from ziggurat.tf.loading import JustCurrentSession
from ziggurat.tf.model import ModelDescBase
from ziggurat.tf.sessions import NewSessionCreator, SessionInit
from ziggurat.tf.tower import TowerFunc, check_names

__all__ = ["PredictConfig"]


class PredictConfig:
    """Tower function, weights, and the names of what goes in and comes out.

    Args:
        model: a model, in the place of tower function and signature.
        tower_func: the tower function; with the signature, or a ``TowerFunc``.
        input_signature: a ``tf.TensorSpec`` for each input of the tower function.
        input_names: tensors to feed: inputs of the tower function, or others of the tower; all inputs where it is None.
        output_names: tensors to return.
        session_creator: how the session is made; ``NewSessionCreator()`` where it is None.
        session_init: gives the variables their values; None for their initializers.
        return_input: let predictors return (inputs, outputs).
        create_graph: build in a graph of its own; otherwise in the default one.
        inputs_desc: older name of ``input_signature``.

    Raises:
        ConfigurationError: where neither or both of ``model`` and ``tower_func`` are given, a signature or the outputs
            are missing.
        UsageError: where names are no list.
    """

    def __init__(
        self,
        model: ModelDescBase | None = None,
        tower_func: Callable[..., Any] | None = None,
        input_signature: Sequence[Any] | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        session_creator: Any = None,
        session_init: SessionInit | None = None,
        return_input: bool = False,
        create_graph: bool = True,
        inputs_desc: Sequence[Any] | None = None,
    ) -> None:
        self.tower_func = _tower_function(model, tower_func, input_signature or inputs_desc)
        self.input_signature = self.tower_func.input_signature
        for names in (input_names, output_names):
            check_names(names or [])
        self.input_names = list(input_names if input_names is not None else self.tower_func.input_names)
        if not output_names:
            raise ConfigurationError(
                f"output_names={output_names!r} names no output of the predictor.",
                advice="Name tensors of the tower, such as `output_names=['prob']`.",
            )
        self.output_names = list(output_names)
        self.session_creator = session_creator or NewSessionCreator()
        self.session_init = session_init or JustCurrentSession()
        self.return_input = return_input
        self.create_graph = create_graph

    @property
    def inputs_desc(self) -> list[Any]:
        """Older name of ``input_signature``."""
        return self.input_signature

    def new_tower_func(self) -> TowerFunc:
        """Return the tower function, with no towers yet: each predictor builds its own."""
        return TowerFunc(self.tower_func.function, self.input_signature)

    @contextmanager
    def graph(self) -> Iterator[Any]:
        """Make the graph to build in the default one; give it."""
        graph = tf.Graph() if self.create_graph else tf.get_default_graph()
        with graph.as_default():
            yield graph

    def new_session(self) -> Any:
        """Return a session over the default graph, with the weights."""
        self.session_init.setup_graph()
        session = self.session_creator.create_session()
        try:
            with session.as_default():
                self.session_init.init(session)
        except BaseException:
            session.close()
            raise
        return session


def _tower_function(model: Any, function: Callable[..., Any] | None, signature: Sequence[Any] | None) -> TowerFunc:
    if (model is None) == (function is None):
        raise ConfigurationError(
            "Both a model and a tower function are given: a predictor is made of one."
            if model is not None
            else "Neither a model nor a tower function is given: a predictor is made of one.",
            advice="Give `model=`, or `tower_func=` and `input_signature=`.",
        )
    if model is not None:
        return TowerFunc(model.build_graph, model.get_input_signature())
    if signature is None and isinstance(function, TowerFunc):
        signature = function.input_signature
    if signature is None:
        raise ConfigurationError(
            "The tower function has no signature: input_signature=None.",
            advice="Give a `tf.TensorSpec` for each of its inputs.",
        )
    assert function is not None
    return TowerFunc(function, signature)
