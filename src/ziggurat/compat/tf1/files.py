"""Files of a script: the script and its own modules, compiled from either Python, with a script's ``import``."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

import tf_keras

import ziggurat
from ziggurat.backends.tensorflow.namespace.proxy import TOLD, StandInModule, part_of
from ziggurat.backends.tensorflow.namespace.python2 import compile_network
from ziggurat.compat.tf1.channels_first import channels_first_on_cpu
from ziggurat.compat.tf1.names import AdaptedModule, script_tensorflow
from ziggurat.compat.tf1.python2 import EXTENDED, OLD_MODULES
from ziggurat.compat.tf1.report import Report
from ziggurat.compat.tf1.scipy_names import scipy_module

__all__ = ["ScriptFiles"]

_INSTALLED: Final = ("site-packages", "dist-packages")


class ScriptFiles(importlib.abc.MetaPathFinder):
    """Finds and executes the files of one script; to be put first in ``sys.meta_path``.

    A module belongs to the script where it is neither installed nor of Python itself. Such modules, and only they,
    see TensorFlow 1 when they import ``tensorflow``.

    Args:
        report: hears of notices and adapted names.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._files: set[str] = set()
        self._older = False
        paths = sysconfig.get_paths()
        self._others = [paths["stdlib"], paths["platstdlib"], str(Path(ziggurat.__file__).parent)]
        self.tensorflow: Any = script_tensorflow(report)
        """What the script gets for ``import tensorflow``."""
        self._aliases: dict[str, Any] = {
            "tensorflow": self.tensorflow,
            "keras": StandInModule("keras", tf_keras, importlib.import_module("tf_keras.src")),
            "importlib": StandInModule("importlib", importlib, names={"import_module": self._import_module}),
            "imp": StandInModule("imp", names={"load_source": self._load_source, "reload": importlib.reload}),
            **EXTENDED,
        }

    def is_users(self, file: str) -> bool:
        """Return whether a file of the script has been compiled from this path."""
        return file in self._files

    def execute(self, path: str, module: ModuleType) -> None:
        """Execute a file in a module, with a script's own ``import``.

        Args:
            path: the file, as it shall be named in errors.
            module: gets its names.

        Raises:
            SyntaxError: where it is Python 3 as little as Python 2.
        """
        self._files.add(path)
        code, own_builtins = self._compiled(path)
        module.__dict__["__builtins__"] = own_builtins
        if module.__name__ == "__main__":  # where it is a module, as some scripts rely on
            module.__dict__["__builtins__"] = ModuleType("builtins")
            module.__dict__["__builtins__"].__dict__.update(own_builtins)
        module.__dict__[TOLD] = set()
        is_whole = module.__name__ == "__main__"  # modules are executed inside of it
        with channels_first_on_cpu(self._report) if is_whole else nullcontext():
            exec(code, module.__dict__)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module of the script is loaded; None for all others, which Python finds itself."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or not isinstance(spec.loader, SourceFileLoader) or not self._is_ours(spec.origin or ""):
            return None
        spec.loader = _Loader(fullname, str(spec.origin), self)
        return spec

    def _is_ours(self, origin: str) -> bool:
        path = Path(origin)
        return not any(path.is_relative_to(folder) for folder in self._others) and not any(
            part in _INSTALLED for part in path.parts
        )

    def _compiled(self, path: str) -> tuple[CodeType, dict[str, Any]]:
        text = importlib.util.decode_source(Path(path).read_bytes())
        compiled = compile_network(text, path, older=self._older)
        for line, notice in compiled.notices:
            self._report.notice(path, line, notice)
        self._older = self._older or bool(compiled.notices)
        return compiled.code, {**vars(builtins), **compiled.builtins, "__import__": self._import}

    # ---- import

    def _import(
        self,
        name: str,
        globals_: Mapping[str, object] | None = None,
        locals_: Mapping[str, object] | None = None,
        wanted: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """Stand in for ``__import__`` in the script's files."""
        first, *rest = name.split(".")
        if not level and first == "scipy" and first not in self._aliases:
            self._aliases[first] = scipy_module()
        if level or first not in self._aliases:
            try:
                found = builtins.__import__(name, globals_, locals_, wanted or (), level)
            except ModuleNotFoundError as error:
                if level or error.name != first or first not in OLD_MODULES:
                    raise
                new, found = OLD_MODULES[first]
                self._report.adapt(f"import {first}", f"import {new}")
                return found
            _check_names(found, wanted or ())
            return found
        if first == "keras":
            self._report.adapt("import keras", "import tf_keras")
        found = self._traversed(first, rest)
        for part in wanted or ():
            if part != "*":
                _attribute(found, part)
            elif isinstance(found, AdaptedModule):
                found.take_all()
        return found if wanted else self._aliases[first]

    def _import_module(self, name: str, package: str | None = None) -> Any:
        """Stand in for ``importlib.import_module`` in the script's files."""
        first, *rest = name.split(".")
        return self._traversed(first, rest) if first in self._aliases else importlib.import_module(name, package)

    def _load_source(self, name: str, pathname: str, _file: Any = None) -> ModuleType:
        """Stand in for ``imp.load_source``: execute a file of the script as a module."""
        module = sys.modules[name] = ModuleType(name)
        module.__file__ = pathname
        self.execute(pathname, module)
        return module

    def _traversed(self, first: str, rest: Sequence[str]) -> Any:
        found = self._aliases[first]
        for part in rest:
            found = _attribute(found, part)
        return found


class _Loader(SourceFileLoader):
    """Executes a module of the script; nothing of it is cached, for it may be compiled from Python 2."""

    def __init__(self, fullname: str, path: str, files: ScriptFiles) -> None:
        super().__init__(fullname, path)
        self._script_files = files

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module's file in it."""
        self._script_files.execute(self.path, module)


def _check_names(module: Any, wanted: Sequence[str]) -> None:
    """Let what a module that stands for another one says of a missing name be the error of the import."""
    if type(module) is ModuleType:  # Python says it
        return
    for name in wanted:
        if name == "*" or f"{module.__name__}.{name}" in sys.modules:
            continue
        try:
            getattr(module, name)
        except AttributeError as error:
            raise ImportError(str(error), name=name) from None


def _attribute(module: Any, name: str) -> Any:
    try:
        return part_of(module, name)
    except AttributeError as error:
        raise ImportError(str(error), name=name) from None
