"""Stand-ins for tracking packages that are not installed: what programs log to them becomes curves of the job.

``PACKAGE_path/PACKAGE`` is a package of that name. Its folder is put at the end of the search path, of child processes
too, so that an installed package always comes first. What a stand-in does not record does nothing, and says so once.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

__all__ = ["TRACKERS", "Inert", "captured", "notice", "with_submodules"]

TRACKERS: Final = ("wandb", "mlflow")
"""Packages that have a stand-in."""

_PATH: Final = "PYTHONPATH"
_MOST_NOTICES: Final = 20
_told: set[str] = set()


@contextmanager
def captured(names: Sequence[str]) -> Iterator[list[str]]:
    """Let programs find stand-ins for those of the packages that are not installed; give the names of the others.

    Args:
        names: some of ``TRACKERS``.
    """
    absent = [name for name in names if find_spec(name) is None]
    places = [str(Path(__file__).parent / f"{name}_path") for name in absent]
    before = os.environ.get(_PATH)
    sys.path += places
    if places:
        os.environ[_PATH] = os.pathsep.join([*([before] if before else []), *places])
    try:
        yield [name for name in names if name not in absent]
    finally:
        for place in places:
            sys.path.remove(place)
        for name in list(sys.modules):
            if name.partition(".")[0] in absent:
                del sys.modules[name]
        if before is None:
            os.environ.pop(_PATH, None)
        else:
            os.environ[_PATH] = before


def notice(name: str) -> None:
    """Say once on standard error that a name does nothing here."""
    if name not in _told and len(_told) < _MOST_NOTICES:
        _told.add(name)
        sys.stderr.write(f"{name} is not recorded: the package is not installed, and its stand-in does nothing here.\n")


class Inert:
    """An object of which everything can be asked, and which does nothing.

    Args:
        name: as a notice calls it.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        """Return another one, except for what Python itself asks for."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(f"{self._name}.{name}")

    def __call__(self, *values: Any, **_named: Any) -> Any:
        """Do nothing; as a decorator, leave the function as it is."""
        notice(self._name)
        is_decorated = len(values) == 1 and not _named and callable(values[0]) and not isinstance(values[0], Inert)
        return values[0] if is_decorated else self

    def __enter__(self) -> Inert:
        return self

    def __exit__(self, *_exc: object) -> None:
        """Let errors pass."""

    def __getitem__(self, name: Any) -> Inert:
        return Inert(f"{self._name}[{name!r}]")

    def __setitem__(self, name: Any, value: Any) -> None:
        """Do nothing."""

    def _is_never(self, _other: Any) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _is_never  # of limits that a library compares its values with

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False


class _Submodules:
    """Finds ``package.anything`` as a module of inert names."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        """Return how to make a submodule."""
        if not name.startswith(f"{self._package}."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, _spec: Any) -> Any:
        """Leave it to Python."""

    def exec_module(self, module: ModuleType) -> None:
        """Give it its names."""
        found = Inert(module.__name__)
        module.__dict__["__getattr__"] = lambda name: getattr(found, name)


def with_submodules(package: str) -> None:
    """Let a program import any submodule of a stand-in."""
    if not any(isinstance(each, _Submodules) and each._package == package for each in sys.meta_path):
        sys.meta_path.append(_Submodules(package))
