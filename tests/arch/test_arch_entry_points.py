"""Entry points of ``pyproject.toml`` are installed, and they are the only way from the core to ``ziggurat.compat``."""

import tomllib
from pathlib import Path

from ziggurat.plugins import GROUPS, available

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ziggurat"
COMPATIBILITY = SOURCE / "compat"


def mentions(text, folder, without):
    """Return the Python files below a folder that hold a text, except those of one folder in it."""
    files = (path for path in sorted(folder.rglob("*.py")) if not path.is_relative_to(without))
    return [path.relative_to(folder).as_posix() for path in files if text in path.read_text()]


def test_every_entry_point_is_installed():
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    written = {f"{group}: {name} = {target}" for group, names in groups.items() for name, target in names.items()}
    found = {
        f"ziggurat.{each.group}: {each.name} = {each.target}"
        for group in GROUPS
        for each in available(group)
        if each.is_built_in
    }
    assert written == found, "install Ziggurat again: `python -m pip install --no-deps -e .`"


def test_the_core_does_not_name_the_compatibility_package():
    assert mentions("ziggurat.compat", SOURCE, COMPATIBILITY) == []


def test_a_name_in_the_core_is_found(tmp_path):
    (tmp_path / "compat").mkdir()
    (tmp_path / "compat" / "digits.py").write_text("import ziggurat.compat.tf1\n")
    (tmp_path / "app.py").write_text('ROUTERS = ["ziggurat.compat.digits.routes:router"]\n')
    assert mentions("ziggurat.compat", tmp_path, tmp_path / "compat") == ["app.py"]
