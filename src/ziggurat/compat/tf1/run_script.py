"""Execution of a TensorFlow 1 script as the main program of a process: ``python -m ziggurat.compat.tf1.run_script``.

The script sees TensorFlow 1 under its own imports; TensorFlow itself and installed packages see today's. What was
adapted is said on standard error.
"""

from __future__ import annotations

import functools
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from ziggurat.backends.tensorflow.namespace import proxy
from ziggurat.backends.tensorflow.namespace.proxy import notify, users_frame
from ziggurat.backends.tensorflow.runtime import tf, tf2
from ziggurat.compat.tf1.failure import failure_text
from ziggurat.compat.tf1.files import ScriptFiles
from ziggurat.compat.tf1.numpy_names import NUMPY_NAMES
from ziggurat.compat.tf1.report import Report
from ziggurat.compat.tf1.whole_sizes import whole_dimensions
from ziggurat.errors import UsageError, ZigguratError
from ziggurat.tf.models.arguments import has_gpu

__all__ = ["main", "run_script"]

_INTERRUPTED: Final = 130


def run_script(
    path: str,
    arguments: Sequence[str] = (),
    *,
    report: Report | None = None,
    surroundings: Callable[[ScriptFiles], AbstractContextManager[Any]] | None = None,
) -> int:
    """Execute a TensorFlow 1 script as ``__main__`` and return its exit code.

    What this changes in the process is restored.

    Args:
        path: the script; ``sys.argv[0]`` of it.
        arguments: the rest of ``sys.argv``.
        report: hears what was adapted; a new one if not given.
        surroundings: what else holds while it runs; reference variables, as TensorFlow 1 made them, if not given.

    Raises:
        UsageError: where there is no such file.
    """
    if not Path(path).is_file():
        raise UsageError(f"{path} is not a file." if Path(path).exists() else f"{path} does not exist.")
    report = report or Report(path)
    with ExitStack() as stack:
        files = ScriptFiles(report)
        stack.enter_context(surroundings(files) if surroundings else _older_tensorflow())
        for part in (
            _older_python(),
            _older_numpy(report),
            _tensors_to_gpu(),
            _devices_that_exist(report),
            whole_dimensions(),
            _log(report),
        ):
            stack.enter_context(part)
        module = ModuleType("__main__")
        module.__file__ = path
        stack.enter_context(_as_main(module, path, arguments, files))
        try:
            files.execute(path, module)
            code = 0
        except SystemExit as error:
            code = _code_of(error)
        except KeyboardInterrupt:
            code = _INTERRUPTED
        except BaseException as error:
            if report.names or not isinstance(error, SyntaxError):  # else nothing of it was executed
                report.write_summary()
            sys.stderr.write(failure_text(error, files.is_users))
            return 1
        report.write_summary()
    return code


def main(words: Sequence[str] | None = None) -> int:
    """Execute the script that the command line names; return its exit code.

    Args:
        words: the script and its arguments; those of the process if not given.
    """
    script, *arguments = (sys.argv[1:] if words is None else words) or [""]
    try:
        return run_script(script, arguments)
    except ZigguratError as error:
        sys.stderr.write(f"Error: {error}\n")
        return error.exit_code


def _code_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    sys.stderr.write(f"{error.code}\n")
    return 1


# ---- what a script finds in its process


@contextmanager
def _as_main(module: ModuleType, path: str, arguments: Sequence[str], files: ScriptFiles) -> Iterator[None]:
    """Let a module be ``__main__``, as Python does for a script."""
    kept = sys.modules["__main__"], sys.argv, list(sys.path), list(sys.meta_path)
    sys.modules["__main__"], sys.argv = module, [path, *arguments]
    sys.path.insert(0, str(Path(path).resolve().parent))
    sys.meta_path.insert(0, files)
    try:
        yield
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:], sys.meta_path[:] = kept


@contextmanager
def _older_tensorflow() -> Iterator[None]:
    """Let variables be those of TensorFlow 1, and its log show warnings, without those that a function is old.

    Fetching ``NAME:0`` gives the value of such a variable, and not a handle.
    """
    were_resources, verbosity = tf.resource_variables_enabled(), tf.logging.get_verbosity()
    deprecation: Any = importlib.import_module("tensorflow.python.util.deprecation")
    tf.disable_resource_variables()
    tf.logging.set_verbosity(tf.logging.WARN)
    with _replaced(deprecation, "_PRINT_DEPRECATION_WARNINGS", False):
        try:
            yield
        finally:
            tf.logging.set_verbosity(verbosity)
            if were_resources:
                tf.enable_resource_variables()


@contextmanager
def _older_python() -> Iterator[None]:
    """Let Python 2's call for another encoding of text do nothing."""

    def setdefaultencoding(_name: str) -> None:
        notify("`sys.setdefaultencoding` is Python 2; text is Unicode today, and nothing is done.")

    with _replaced(sys, "setdefaultencoding", setdefaultencoding):
        yield


@contextmanager
def _older_numpy(report: Report) -> Iterator[None]:
    """Let the script's files, and only them, find the names that NumPy had."""
    newer: Callable[[str], Any] = vars(np)["__getattr__"]

    def older(name: str) -> Any:
        frame = sys._getframe(1)
        if name in NUMPY_NAMES and users_frame(frame) is frame:
            new, value = NUMPY_NAMES[name]
            report.adapt(f"np.{name}", new, frame)
            return value
        return newer(name)

    reshape: Any = np.reshape

    @functools.wraps(reshape)
    def older_reshape(*arguments: Any, **options: Any) -> Any:
        if "newshape" in options:
            options["shape"] = options.pop("newshape")
            report.adapt("np.reshape(newshape=…)", "np.reshape(shape=…)")
        return reshape(*arguments, **options)

    with (
        _replaced(np, "__getattr__", older),
        _replaced(np, "reshape", older_reshape),
        _replaced(np, "array", _of_uneven_rows(np.array, report)),
        _replaced(np, "asarray", _of_uneven_rows(np.asarray, report)),
        _replaced(np, "frombuffer", _single_numbers(np.frombuffer)),
        _replaced(np, "save", _saving_uneven_rows(np.save, report)),
    ):
        yield


def _of_uneven_rows(make: Callable[..., Any], report: Report) -> Callable[..., Any]:
    """Return a function that makes the script's lists of unequal lengths arrays of objects, as NumPy did."""

    @functools.wraps(make)
    def made(*arguments: Any, **options: Any) -> Any:
        try:
            return make(*arguments, **options)
        except ValueError as error:
            frame = sys._getframe(1)
            has_dtype = len(arguments) > 1 or "dtype" in options
            if "inhomogeneous" not in str(error) or has_dtype or users_frame(frame) is not frame:
                raise
            report.adapt(f"np.{make.__name__}(rows of unequal lengths)", "dtype=object", frame)
            return make(*arguments, dtype=object, **options)

    return made


class _SingleNumber(np.ndarray):
    """An array of one whole number that is a size, too, as all such arrays were."""

    def __index__(self) -> int:
        return int(self.item())


def _single_numbers(frombuffer: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``np.frombuffer``, which gives the script sizes: its reader of MNIST reads a header so."""

    @functools.wraps(frombuffer)
    def made(*arguments: Any, **options: Any) -> Any:
        found = frombuffer(*arguments, **options)
        frame = sys._getframe(1)
        is_size = found.size == 1 and found.dtype.kind in "iu" and users_frame(frame) is frame
        return found.view(_SingleNumber) if is_size else found

    return made


def _saving_uneven_rows(save: Callable[..., Any], report: Report) -> Callable[..., Any]:
    """Return ``np.save`` for lists of unequal lengths, too."""

    @functools.wraps(save)
    def saved(file: Any, arr: Any, *arguments: Any, **options: Any) -> None:
        if isinstance(arr, list | tuple):
            try:
                arr = np.asanyarray(arr)
            except ValueError:
                report.adapt("np.save(rows of unequal lengths)", "dtype=object", sys._getframe(1))
                arr = np.array(arr, dtype=object)
        save(file, arr, *arguments, **options)

    return saved


@contextmanager
def _tensors_to_gpu() -> Iterator[None]:
    """Let ``tensor.gpu()`` of eager execution leave the tensor where it is on a machine without that GPU."""
    eager: Any = importlib.import_module("tensorflow.python.framework.ops")._EagerTensorBase
    to_gpu = eager.gpu

    def gpu(self: Any, gpu_index: int = 0) -> Any:
        count = len(tf2.config.list_logical_devices("GPU"))
        if gpu_index < count:
            return to_gpu(self, gpu_index)
        notify(f"There is no GPU {gpu_index} here: the tensor stays where it is.")
        return self

    with _replaced(eager, "gpu", gpu):
        yield


@contextmanager
def _devices_that_exist(report: Report) -> Iterator[None]:
    """Let ``tf.device("/gpu:0")`` in a graph mean the processor on a machine without a GPU."""
    base: Any = importlib.import_module("tensorflow.python.client.session").BaseSession
    make = base.__init__

    @functools.wraps(make)
    def made(self: Any, target: str = "", graph: Any = None, config: Any = None) -> None:
        named = {each.device for each in (graph or tf.get_default_graph()).get_operations()}
        if any("gpu" in each.lower() for each in named):
            report.adapt('tf.device("/gpu:0")', "the CPU, as no GPU is here")
        if config is None or isinstance(config, tf.ConfigProto):
            placed = tf.ConfigProto()
            placed.MergeFrom(config or placed)
            placed.allow_soft_placement = True
            config = placed
        make(self, target, graph, config)

    if has_gpu():
        yield
        return
    with _replaced(base, "__init__", made):
        yield


@contextmanager
def _log(report: Report) -> Iterator[None]:
    """Write the notices of Ziggurat's names through the report, whatever the script does with its own log."""

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            file, line, text = record.args if isinstance(record.args, tuple) else ("", 0, record.getMessage())
            report.notice(str(file), int(str(line)), str(text))

    logger, handler = logging.getLogger(proxy.__name__), Notices()
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    there, old = name in vars(owner), vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, old) if there else delattr(owner, name)


if __name__ == "__main__":
    sys.exit(main())
