"""Changes to how ``tf.get_variable`` gives variables: other getters, functions of variables, and freezing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["custom_getter_scope", "freeze_variables", "remap_variables"]

_AVERAGE: Final = "/EMA"


@contextmanager
def custom_getter_scope(custom_getter: Callable[..., Any]) -> Iterator[None]:
    """Let ``tf.get_variable`` ask a function inside.

    Args:
        custom_getter: called as ``custom_getter(getter, name, ...)``; see ``tf.variable_scope``.
    """
    scope = tf.get_variable_scope()
    with tf.variable_scope(scope, custom_getter=custom_getter, auxiliary_name_scope=False):
        yield


@contextmanager
def remap_variables(fn: Callable[[Any], Any]) -> Iterator[None]:
    """Let a function decide what ``tf.get_variable`` returns inside: quantized weights, for example.

    Running averages of layers, variables named ``.../EMA``, stay as they are: operations assign to them.

    Args:
        fn: variable → the tensor or variable to use in its place.
    """

    def get(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        variable = getter(*args, **kwargs)
        name = str(args[0] if args else kwargs.get("name", ""))
        return variable if name.endswith(_AVERAGE) else fn(variable)

    with custom_getter_scope(get):
        yield


@contextmanager
def freeze_variables(stop_gradient: bool = True, skip_collection: bool = False) -> Iterator[None]:
    """Let the trainable variables that are made inside stay as they are.

    Args:
        stop_gradient: use them behind ``tf.stop_gradient``, so that they get no gradient.
        skip_collection: put them into ``MODEL_VARIABLES`` in place of ``TRAINABLE_VARIABLES``, so that regularization
            and gradient processors do not see them either.
    """

    def get(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        is_trainable = kwargs.get("trainable") in (None, True)
        if is_trainable and skip_collection:
            kwargs["trainable"] = False
        variable = getter(*args, **kwargs)
        if not is_trainable:
            return variable
        models = tf.get_collection_ref(tf.GraphKeys.MODEL_VARIABLES)
        if skip_collection and all(each is not variable for each in models):
            models.append(variable)
        return tf.stop_gradient(variable) if stop_gradient else variable

    with custom_getter_scope(get):
        yield
