"""Stand-in modules: some names of their own, the rest from the module behind, hints and notices to the author."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any, Final

from ziggurat.errors import nearest_names

__all__ = [
    "FILE_NAME",
    "TOLD",
    "StandInModule",
    "notify",
    "part_of",
    "users_frame",
]

FILE_NAME: Final = "network"
"""``__name__`` of a network file while it runs."""

TOLD: Final = "__notices__"
"""Global name of a user's file with the set of notices that its author has had; a file that has it is a user's."""

_logger = logging.getLogger(__name__)


def notify(text: str) -> None:
    """Log a notice with the line of the user's file that is being executed, once for each file.

    Args:
        text: a sentence.
    """
    frame = users_frame(sys._getframe(1))
    if frame is None:
        return
    told: set[str] = frame.f_globals.setdefault(TOLD, set())
    if text not in told:
        told.add(text)
        _logger.warning("%s, line %d: %s", frame.f_code.co_filename, frame.f_lineno, text)


def users_frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of a user's file: a network file, or a program that has ``TOLD``.

    Args:
        frame: where to begin.
    """
    while frame is not None and frame.f_globals.get("__name__") != FILE_NAME and TOLD not in frame.f_globals:
        frame = frame.f_back
    return frame


class StandInModule(ModuleType):
    """A module with its own names in front of another module's.

    Args:
        name: the module's name, as the user wrote it.
        behind: modules that have everything else, the first one first; none where nothing else exists.
        names: name → value that goes first.
        gone: name → sentence that says why it does not exist any more and what to use.
    """

    def __init__(
        self,
        name: str,
        *behind: Any,
        names: Mapping[str, Any] | None = None,
        gone: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name)
        self.__dict__.update(names or {})
        self.__dict__["_behind"] = behind
        self.__dict__["_gone"] = dict(gone or {})
        self.__path__ = []  # so that `import a.b` finds it to be a package

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") or name == "__version__":
            for module in self.__dict__["_behind"]:
                try:
                    return part_of(module, name)
                except AttributeError:
                    continue
        raise AttributeError(self._explain(name), name=name, obj=self)

    def __dir__(self) -> list[str]:
        own = [name for name in self.__dict__ if not name.startswith("_")]
        return sorted({*own, *(name for module in self.__dict__["_behind"] for name in dir(module))})

    def _explain(self, name: str) -> str:
        module = self.__name__
        if name in self.__dict__["_gone"]:
            return f"`{module}.{name}` does not exist any more. {self.__dict__['_gone'][name]}"
        nearest = nearest_names(name, [each for each in dir(self) if not each.startswith("_")])
        hint = f" Did you mean {' or '.join(f'`{module}.{each}`' for each in nearest)}?" if nearest else ""
        return f"`{module}` has no `{name}`.{hint}"


def part_of(module: Any, name: str) -> Any:
    """Return an attribute of a module, or a module in it, which is imported where nothing has done so yet.

    Raises:
        AttributeError: where it has neither.
    """
    try:
        return getattr(module, name)
    except AttributeError:
        if getattr(module, "__spec__", None) is None:  # a stand-in: it has looked already
            raise
    try:
        return importlib.import_module(f"{module.__name__}.{name}")
    except ImportError as error:
        raise AttributeError(f"`{module.__name__}` has no `{name}`.", name=name, obj=module) from error
