"""Namespace of an eager run: modules whose functions notify a listener of the calls in the user's file."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

from ziggurat.backends.tensorflow.namespace.proxy import part_of
from ziggurat.backends.tensorflow.runtime import tf

__all__ = ["Listener", "recorded_module", "silent_summaries"]

_SUMMARIES: Final = ("audio", "histogram", "image", "merge", "merge_all", "scalar", "tensor_summary", "text")
_OLD_SUMMARIES: Final = (
    *("audio_summary", "histogram_summary", "image_summary", "merge_all_summaries", "merge_summary", "scalar_summary"),
)
# These call what they are given, layer by layer: the layers are listed, not the whole.
_TRANSPARENT: Final = ("slim.repeat", "slim.stack", "layers.repeat", "layers.stack")
# They make no layer of a tensor, but show, check or write it.
_SILENT: Final = ("tf.Print", "tf.debugging.", "tf.summary.", "tf.test.", "tf.train.")

Heard = Callable[[str, str, int | None, Any], None]


class Listener:
    """Hears of each call that the user's file makes of a recorded function with a tensor.

    What a layer calls inside itself is not heard, only what stands in the file.

    Args:
        path: the user's file.
        heard: called with the function's name as the user sees it, the scope, the line, and what it returned.
    """

    def __init__(self, path: str, heard: Heard) -> None:
        self._path = path
        self._heard = heard
        self._depth = 0

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        scope: str = "",
    ) -> Any:
        """Call a function for the user, and tell of it.

        Args:
            name: as the user sees it.
            function: what to call.
            arguments: by place.
            options: by name.
            scope: name that the user gave it, where it is not among the options.
        """
        caller = sys._getframe(2)
        is_users = caller.f_code.co_filename == self._path
        if name.endswith(_TRANSPARENT) or not (is_users or self._depth == 0) or not _has_tensor((arguments, options)):
            return function(*arguments, **options)
        self._depth += 1
        try:
            result = function(*arguments, **options)
        finally:
            self._depth -= 1
        self._heard(name, scope or str(options.get("scope") or options.get("name") or ""), self.line(caller), result)
        return result

    def line(self, frame: FrameType | None) -> int | None:
        """Return the line of the user's file that a frame belongs to, or was called from."""
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        return None if frame is None else frame.f_lineno


def recorded_module(module: ModuleType, name: str, listener: Listener, names: Mapping[str, Any]) -> ModuleType:
    """Return a module like another one, whose functions, and those of the modules in it, tell a listener of calls.

    Args:
        module: the module.
        name: as the user writes it, such as ``tf``.
        listener: hears of the calls.
        names: dotted name (``tf.summary.image``) → what stands there instead.
    """
    return _Recorded(module, name, listener, dict(names))


def silent_summaries(listener: Listener, left_out: Callable[[str, int | None], None]) -> dict[str, Any]:
    """Return the summary functions of ``tf`` that do nothing but tell, for ``names`` of ``recorded_module``.

    Args:
        listener: knows the user's lines.
        left_out: called with the function's name and the line.
    """

    def silent(name: str) -> Callable[..., Any]:
        def summary(*_arguments: Any, **_options: Any) -> Any:
            left_out(name, listener.line(sys._getframe(1)))
            return tf.constant(b"")

        return summary

    names = [f"tf.summary.{name}" for name in _SUMMARIES] + [f"tf.{name}" for name in _OLD_SUMMARIES]
    return {name: silent(name) for name in names}


class _Recorded(ModuleType):
    """A module whose attributes are recorded when they are first asked for."""

    def __init__(self, module: ModuleType, name: str, listener: Listener, names: dict[str, Any]) -> None:
        super().__init__(name)
        self.__dict__.update(_module=module, _listener=listener, _names=names)
        self.__path__ = []  # so that `import a.b` finds it to be a package

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        whole = f"{self.__name__}.{name}"
        found = own["_names"].get(whole)
        own[name] = value = self._recorded(whole, part_of(own["_module"], name)) if found is None else found
        return value

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_module"])

    def _recorded(self, name: str, value: Any) -> Any:
        listener = self.__dict__["_listener"]
        if isinstance(value, ModuleType):
            return _Recorded(value, name, listener, self.__dict__["_names"])
        if not isinstance(value, FunctionType) or name.startswith(_SILENT):
            return value

        @functools.wraps(value)  # keeps the key that slim's arg_scope knows the layer by
        def recorded(*arguments: Any, **options: Any) -> Any:
            return listener.call(name, value, arguments, options)

        return recorded


def _has_tensor(values: Any) -> bool:
    return any(isinstance(each, tf.Tensor | tf.Variable) for each in _leaves(values))


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, list | tuple):
        for each in values:
            yield from _leaves(each)
    elif isinstance(values, dict):
        for each in values.values():
            yield from _leaves(each)
    else:
        yield values
