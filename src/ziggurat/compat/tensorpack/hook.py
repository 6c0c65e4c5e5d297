"""The finder that answers ``import tensorpack`` in this process."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from ziggurat.compat.tensorpack.names import MODULES, resolve, star_names
from ziggurat.errors import UnknownNameError

__all__ = ["AliasModule", "install", "uninstall"]

_ROOT: Final = "tensorpack"


class AliasModule(ModuleType):
    """A module of Tensorpack's name; its content is ours, looked up when it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        child = f"{self.__name__}.{name}"
        if name in star_names(self.__name__) and name not in _shadows(self.__name__):
            value = importlib.import_module(_module_of(self.__name__, name))
        elif child in MODULES and not _is_plain(self.__name__, name):
            value = importlib.import_module(child)
        else:
            try:
                value = resolve(self.__name__, name)
            except UnknownNameError as error:
                raise AttributeError(str(error)) from None
        ModuleType.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # The import of `tfutils.argscope` must not take the place of the function of that name.
        if isinstance(value, AliasModule) and _is_plain(self.__name__, name):
            return
        super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        # Functions that workers run mention modules; there, `in_worker` has installed the finder.
        return importlib.import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *star_names(self.__name__)})


def _is_plain(module: str, name: str) -> bool:
    """Return whether a name of a module is an object, and no module."""
    return name in star_names(module) and _module_of(module, name) not in MODULES


def _shadows(module: str) -> frozenset[str]:
    return frozenset(name for name in star_names(module) if _is_plain(module, name))


def _module_of(module: str, name: str) -> str:
    """Return the whole name of a module that a package gives, its own or one of its members'."""
    entry = MODULES[module]
    if name in entry.modules.split():
        return f"{module}.{name}"
    for member in entry.members:
        found = _module_of(f"{module}.{member}", name)
        if found:
            return found
    return ""


class _Finder(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if fullname not in MODULES:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in MODULES)
        return ModuleSpec(fullname, self, origin="ziggurat.compat.tensorpack", is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return AliasModule(spec.name, f"The names of `{spec.name}`, over those of Ziggurat.")

    def exec_module(self, module: ModuleType) -> None:
        module.__all__ = list(star_names(module.__name__))  # pyright: ignore[reportAttributeAccessIssue]


_finder = _Finder()


def install() -> None:
    """Let this process find our modules under Tensorpack's names, before an installed one; twice does nothing."""
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Take the finder and its modules away again, for tests."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [name for name in sys.modules if name == _ROOT or name.startswith(f"{_ROOT}.")]:
        del sys.modules[name]
