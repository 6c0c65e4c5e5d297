"""What the backends share in executing a user's network file: errors at its lines, imports, and ``model_property``."""

from __future__ import annotations

import builtins
import linecache
import traceback
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any, Generic, TypeVar, overload

from ziggurat.errors import NetworkCodeError, ZigguratError, nearest_names

__all__ = ["keep_source", "line_in_words", "message_of", "model_property", "need_user_model", "users_errors"]

Value = TypeVar("Value")


class model_property(Generic[Value]):  # noqa: N801 - the name that DIGITS's users write
    """A property of a network that is evaluated once for each tower, and kept.

    It is read as an attribute, without parentheses, as often as the file likes: ``self.inference`` is the same tensor
    each time. Two towers share variables, never values.

    Args:
        function: the method, which takes ``self`` alone.
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self._name = function.__name__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, tower: None, owner: type) -> model_property[Value]: ...
    @overload
    def __get__(self, tower: object, owner: type) -> Value: ...
    def __get__(self, tower: object | None, owner: type) -> Any:
        if tower is None:
            return self
        kept = tower.__dict__.setdefault("_model_properties", {})
        if self._name not in kept:
            kept[self._name] = self.function(tower)
        return kept[self._name]


def keep_source(text: str, path: str) -> None:
    """Let tracebacks show the source of a network file, also where it was typed into an editor and never saved."""
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)


class users_errors:  # noqa: N801 - it is read as the function of a `with` statement
    """Turns whatever is raised inside into a ``NetworkCodeError`` that names the user's own file and line.

    It holds no state, so one object serves many statements. Every step enters it: a generator would cost more.

    Args:
        path: the network file's name.
        known: names that its namespace holds, for the nearest of a name that does not exist.
        message: what an error says, for people; None for ``message_of``.
        passes: errors that stay as they are.
    """

    def __init__(
        self,
        path: str,
        known: Collection[str],
        message: Callable[[BaseException], str] | None = None,
        passes: tuple[type[Exception], ...] = (),
    ) -> None:
        self._path = path
        self._known = known
        self._message = message or message_of
        self._passes = (NetworkCodeError, *passes)

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, self._passes):
            return
        path = self._path
        line = _line_of(error, path)
        source = linecache.getline(path, line).strip() if line else ""
        what = f"{type(error).__name__}: {self._message(error)}"
        raise NetworkCodeError(
            f"{line_in_words(path, line, source)}: {what}",
            advice=_advice(error, self._known),
            details={
                "file": path,
                "line": line,
                "source": source,
                "what": what,
                "error_type": type(error).__name__,
                "traceback": "".join(traceback.format_exception(error)),
            },
        ) from error


def line_in_words(path: str, line: int | None, source: str) -> str:
    """Return where a line of a file is, and the line itself where it is known."""
    where = f"{path}, line {line}" if line else path
    return f"{where}, `{source}`" if source else where


def message_of(error: BaseException) -> str:
    """Return what an error says, as a sentence."""
    if isinstance(error, ZigguratError):
        return str(error)
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).strip()
    return text if text.endswith((".", "?", "!")) else f"{text}."


def need_user_model(
    names: Mapping[str, Any], path: str, bases: Mapping[str, type], advice: str = "", renamed: str = ""
) -> type[Any]:
    """Return the class ``UserModel`` of an executed network file.

    Args:
        names: what the file defined.
        path: its name, for errors.
        bases: what the class may inherit, by the name that a file writes; the usual one first.
        advice: for a file with a function ``build_model``, as before DIGITS's release of such networks; empty for none.
        renamed: sentence for a file whose network has another name; empty for the usual one.

    Raises:
        NetworkCodeError: where there is no such class.
    """
    found = names.get("UserModel")
    wanted, kinds, usual = " or ".join(f"`{name}`" for name in bases), tuple(bases.values()), next(iter(bases))
    if found is None:
        of_file = [name for name, value in names.items() if isinstance(value, type) and issubclass(value, kinds)]
        classes = [name for name in of_file if names[name] not in kinds]
        if advice and callable(names.get("build_model")):
            others, hint = "a function `build_model`", advice
        else:
            near = nearest_names("UserModel", classes)
            others = ", ".join(f"`{name}`" for name in near or classes)
            hint = (not near and renamed) or f"Name the class `UserModel` and let it inherit {wanted}."
        raise NetworkCodeError(
            f"{path} defines no class `UserModel`{f', but {others}' if others else ''}.",
            advice=hint,
            details={"file": path},
        )
    if not isinstance(found, type):
        raise NetworkCodeError(
            f"`UserModel` is a {type(found).__name__}, not a class.",
            advice=f"Write `class UserModel({usual}):`.",
        )
    if not issubclass(found, kinds):
        raise NetworkCodeError(
            f"`UserModel` inherits {', '.join(base.__name__ for base in found.__bases__)}, not {wanted}.",
            advice=f"Write `class UserModel({usual}):`.",
            details={"file": path},
        )
    return found


def _line_of(error: BaseException, path: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    line = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == path:
            line = step.tb_lineno
        step = step.tb_next
    if line is None and error.__cause__ is not None:
        return _line_of(error.__cause__, path)
    return line


def _advice(error: BaseException, known: Collection[str]) -> str:
    if isinstance(error, NameError) and not isinstance(error, UnboundLocalError):
        near = nearest_names(str(error.name), {*known, *vars(builtins)})
        return f"Did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "Define the name first."
    if isinstance(error, SyntaxError):
        return "Fix the line; Python read no further."
    return ""
