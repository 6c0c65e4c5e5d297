"""Scopes and collections of a graph: reuse of variables, name scopes that stay the same, and collections put back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from ziggurat.backends.tensorflow.runtime import tf
from ziggurat.tf import logger

__all__ = [
    "auto_reuse_variable_scope",
    "backup_collection",
    "cached_name_scope",
    "freeze_collection",
    "make_global_step",
    "restore_collection",
    "under_name_scope",
]


def auto_reuse_variable_scope(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes its variables at its first call in a variable scope, and reuses them after that.

    Args:
        func: makes variables by ``tf.get_variable``.
    """
    seen: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()

    @functools.wraps(func)
    def reusing(*args: Any, **kwargs: Any) -> Any:
        scope = tf.get_variable_scope()
        known = seen.setdefault(tf.get_default_graph(), set())
        if scope.name not in known:
            known.add(scope.name)
            return func(*args, **kwargs)
        with tf.variable_scope(scope, reuse=True, auxiliary_name_scope=False):
            return func(*args, **kwargs)

    return reusing


def under_name_scope(name_scope: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that lets a function make its operations under a name scope.

    The function then takes another scope by ``name_scope=``; a warning says where that is taken already.

    Args:
        name_scope: the scope; the function's name where it is None.
    """

    def decorator(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            asked = kwargs.pop("name_scope", None)
            with tf.name_scope(asked or name_scope or func.__name__) as scope:
                if asked and not str(scope).endswith(f"{asked}/"):
                    logger.warning("The name scope `%s` is taken: it is `%s` here.", asked, str(scope).rstrip("/"))
                return func(*args, **kwargs)

        return scoped

    return decorator


@contextmanager
def cached_name_scope(name: str, top_level: bool = True) -> Iterator[str]:
    """Enter a name scope, the same one each time: without ``_1`` behind it.

    Args:
        name: of the scope.
        top_level: below the root; otherwise below the current scope.
    """
    graph = tf.get_default_graph()
    outer = "" if top_level else graph.get_name_scope()
    with graph.name_scope(f"{outer}/{name}/" if outer else f"{name}/") as scope:
        yield str(scope)


def backup_collection(keys: Sequence[str] | None = None) -> dict[str, list[Any]]:
    """Return the content of collections of the graph, as copies.

    Args:
        keys: names of the collections; all of the graph where it is None.
    """
    chosen = tf.get_default_graph().get_all_collection_keys() if keys is None else keys
    return {key: list(tf.get_collection(key)) for key in chosen}


def restore_collection(backup: Mapping[str, Sequence[Any]]) -> None:
    """Give collections of the graph the content that ``backup_collection`` returned."""
    for key, content in backup.items():
        tf.get_collection_ref(key)[:] = content


@contextmanager
def freeze_collection(keys: Sequence[str]) -> Iterator[None]:
    """Put collections of the graph back at the end of the block, also where that raises.

    Args:
        keys: names of the collections.
    """
    backup = backup_collection(keys)
    try:
        yield
    finally:
        restore_collection(backup)


def make_global_step() -> Any:
    """Return the variable ``global_step``; made at the root of the graph, whatever the scope, where there is none."""
    found = tf.train.get_global_step()
    if found is not None:
        return found
    root = tf.VariableScope(reuse=tf.AUTO_REUSE, name="")
    with tf.control_dependencies(None), tf.variable_scope(root, auxiliary_name_scope=False):
        return tf.train.get_or_create_global_step()
