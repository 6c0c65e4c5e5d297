"""Owns what is built when the package is installed: the native JPEG engine, and the scripts of the pages.

Without a compiler the engine is left out, quietly; without Node the scripts are, and pages work as links and forms.
With ``ZIGGURAT_RELEASE=1`` the build fails instead, since a wheel that is handed on must have both.

It is a plain shared library (no Python interface), made from one C file with the headers of libjpeg-turbo. Where it
cannot be made, Ziggurat decodes with OpenCV instead; ``ziggurat.dataflow.fast.engine()`` tells which.

``python hatch_build.py`` builds it in place, which is what an editable installation does.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCE = Path("src/ziggurat/dataflow/fast/jpeg_crops.c")
LIBRARY = Path("src/ziggurat/dataflow/fast/libziggurat_jpeg.so")
PLACE_IN_WHEEL = "ziggurat/dataflow/fast/libziggurat_jpeg.so"
SCRIPTS = Path("src/ziggurat/web/static/vendor")
SCRIPTS_IN_WHEEL = "ziggurat/web/static/vendor"
TIME_LIMIT_S = 120
RELEASE_VARIABLE = "ZIGGURAT_RELEASE"

# jpeg_crop_scanline came with libjpeg-turbo 1.5; other libjpegs have the headers, but not that.
CHECK = """#include <stdio.h>
#include <jpeglib.h>
#if !defined(LIBJPEG_TURBO_VERSION_NUMBER) || LIBJPEG_TURBO_VERSION_NUMBER < 1005000
#error "libjpeg-turbo 1.5 or newer is needed"
#endif
JDIMENSION (*needed)(j_decompress_ptr, JDIMENSION) = jpeg_skip_scanlines;
"""


def build(root: Path, library: Path) -> str:
    """Build the library; return why that is not possible, or nothing.

    Args:
        root: folder of the project.
        library: file to make; one that stands there is replaced only by a new one.
    """
    if sys.platform != "linux":
        return "it is built on Linux only"
    compiler = _compiler()
    if not compiler:
        return "there is no C compiler"
    with tempfile.TemporaryDirectory() as folder:
        check, made = Path(folder, "check.c"), Path(folder, library.name)
        check.write_text(CHECK)
        if _fails([*compiler, "-fsyntax-only", str(check)]):
            return "the headers of libjpeg-turbo are not installed (Debian: libjpeg62-turbo-dev)"
        command = [*compiler, "-O3", "-shared", "-fPIC", "-o", str(made), str(root / SOURCE), "-ljpeg"]
        reason = _fails(command)
        if reason:
            return f"the compiler failed: {reason}"
        partial = library.with_suffix(".partial")
        shutil.copyfile(made, partial)
        partial.replace(library)
    return ""


def check_complete(left_out: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Refuse a release build that lacks a part.

    Args:
        left_out: name of a part → why it was not built; empty if it was.
        environment: variables of the build.

    Raises:
        RuntimeError: a part is missing, and ``ZIGGURAT_RELEASE`` is set.
    """
    missing = [f"{part}: {reason}" for part, reason in left_out.items() if reason]
    if missing and environment.get(RELEASE_VARIABLE):
        raise RuntimeError(
            f"Parts of the release are missing. {' '.join(missing)} "
            f"Install what they need, or build without {RELEASE_VARIABLE}."
        )


def frontend(root: Path) -> Any:
    """Return the module that builds the scripts of the pages; it stands beside them."""
    spec = importlib.util.spec_from_file_location("ziggurat_frontend", root / "frontend" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _compiler() -> list[str]:
    configured = shlex.split(sysconfig.get_config_var("CC") or "")
    for command in (configured[:1], ["cc"], ["gcc"], ["clang"]):
        if command and shutil.which(command[0]):
            return command
    return []


def _fails(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return result.stderr.strip()[-400:] or f"exit code {result.returncode}" if result.returncode else ""


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script
    BuildHookInterface = None

if BuildHookInterface is not None:

    class BuildHook(BuildHookInterface):
        """Adds library and scripts to a wheel; in an editable installation they stand beside their source."""

        def dependencies(self) -> list[str]:
            """Return what the build needs besides: a Node of its own where the machine has none."""
            module = frontend(Path(self.root))
            return [] if module.node_command() else [module.NODE_PACKAGE]

        def initialize(self, version: str, build_data: dict) -> None:
            """Build before the wheel is put together.

            Args:
                version: "standard" or "editable".
                build_data: what hatchling puts into the wheel.
            """
            root = Path(self.root)
            self._folder = None if version == "editable" else tempfile.mkdtemp()
            library = root / LIBRARY if self._folder is None else Path(self._folder, LIBRARY.name)
            scripts, engine = frontend(root).build(root / SCRIPTS), build(root, library)
            check_complete({"scripts of the pages": scripts, "native JPEG engine": engine}, os.environ)
            if scripts:
                self.app.display_warning(f"The scripts of the pages are left out: {scripts}")
            elif self._folder is not None:
                build_data["force_include"][str(root / SCRIPTS)] = SCRIPTS_IN_WHEEL
            if engine:
                self.app.display_info(f"The native JPEG engine is left out: {engine}.")
            elif self._folder is not None:
                build_data["force_include"][str(library)] = PLACE_IN_WHEEL
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"

        def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
            """Delete what was built for the wheel."""
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)


if __name__ == "__main__":
    folder = Path(__file__).resolve().parent
    problem = build(folder, folder / LIBRARY)
    sys.stdout.write(f"not built: {problem}\n" if problem else f"built {LIBRARY}\n")
