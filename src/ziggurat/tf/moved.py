"""Finder of modules that were in ``ziggurat.tf``: an import of the old name works, with a notice of the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import Any

from ziggurat.plugins import available

__all__ = ["install"]

_PREFIX = "ziggurat.tf."


class _Finder(MetaPathFinder, InspectLoader):
    """Answers for old names, and for what is below them, with the module of the new name: there is one of each."""

    @cached_property
    def _moved(self) -> dict[str, str]:
        return {plugin.name: plugin.target for plugin in available("redirects") if plugin.is_built_in}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        new_name = self._new_name(fullname) if fullname.startswith(_PREFIX) else ""
        if not new_name:
            return None
        if fullname in self._moved:
            warnings.warn(f"`{fullname}` is now `{new_name}`.", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, self, origin=new_name)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(spec.origin))
        spec.loader_state = module.__spec__  # Python puts the spec of the old name in its place
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, for ``python -m OLD_NAME``."""
        spec = find_spec(self._new_name(fullname))
        assert spec is not None
        assert isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(spec.name)

    def get_source(self, fullname: str) -> str | None:
        return None

    def _new_name(self, fullname: str) -> str:
        for old, new in self._moved.items():
            if fullname == old or fullname.startswith(f"{old}."):
                return new + fullname.removeprefix(old)
        return ""


def install() -> None:
    """Let the process find modules by their old names; it goes before the finder that would make a second copy."""
    sys.meta_path.insert(0, _Finder())
