"""Owns stand-in modules: some names of their own, the rest from the module behind, hints for what is lost."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from ziggurat.errors import nearest_names

__all__ = ["StandInModule"]


class StandInModule(ModuleType):
    """A module with its own names in front of another module's.

    Args:
        name: the module's name, as the user wrote it.
        behind: module that has everything else; None where nothing else exists.
        names: name → value that goes first.
        gone: name → sentence that says why it does not exist any more and what to use.
    """

    def __init__(
        self,
        name: str,
        behind: Any = None,
        *,
        names: Mapping[str, Any] | None = None,
        gone: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name)
        self.__dict__.update(names or {})
        self.__dict__["_behind"] = behind
        self.__dict__["_gone"] = dict(gone or {})
        self.__path__ = []  # so that `import a.b` finds it to be a package

    def __getattr__(self, name: str) -> Any:
        behind = self.__dict__["_behind"]
        try:
            if behind is not None and (not name.startswith("__") or name == "__version__"):
                return getattr(behind, name)
        except AttributeError:
            pass
        raise AttributeError(self._explain(name), name=name, obj=self)

    def __dir__(self) -> list[str]:
        own = [name for name in self.__dict__ if not name.startswith("_")]
        return sorted({*own, *dir(self.__dict__["_behind"])})

    def _explain(self, name: str) -> str:
        module = self.__name__
        if name in self.__dict__["_gone"]:
            return f"`{module}.{name}` does not exist any more. {self.__dict__['_gone'][name]}"
        nearest = nearest_names(name, [each for each in dir(self) if not each.startswith("_")])
        hint = f" Did you mean {' or '.join(f'`{module}.{each}`' for each in nearest)}?" if nearest else ""
        return f"`{module}` has no `{name}`.{hint}"
