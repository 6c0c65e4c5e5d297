"""The release check list finds what must not be handed on."""

import json
from pathlib import Path

import pytest

from tools.release import (
    ENGINE,
    IN_SDIST,
    LICENSES,
    SCRIPTS,
    ReleaseError,
    bill_of_materials,
    changelog_version,
    check_libjpeg,
    check_sdist,
    check_wheel,
    glibc_floor,
    source_versions,
)

REPOSITORY = Path(__file__).parents[2]
ISLANDS = ["parts/boxes-AB12.js"]
PAGES = ["ziggurat/__init__.py", "ziggurat/web/templates/base.html"]
ENGINE_PARTS = [ENGINE, "ziggurat.libs/libjpeg-dad87949.so.62.3.0"]
SCRIPT_FILES = ["studio.js", "graph-worker.js", "islands.json", "licences.json", *ISLANDS]
WHEEL = [
    *PAGES,
    *ENGINE_PARTS,
    *(f"{SCRIPTS}/{name}" for name in SCRIPT_FILES),
    *(f"ziggurat-1.0.dist-info/licenses/{name}" for name in LICENSES),
]
SDIST = [*IN_SDIST, "src/ziggurat/__init__.py", "frontend/build.mjs"]


def test_a_whole_wheel_passes():
    check_wheel(WHEEL, ISLANDS, PAGES)


@pytest.mark.parametrize("name", WHEEL)
def test_a_wheel_without_a_part_fails(name):
    with pytest.raises(ReleaseError, match="missing"):
        check_wheel([other for other in WHEEL if other != name], ISLANDS, PAGES)


@pytest.mark.parametrize("name", ["ziggurat/__pycache__/a.cpython-311.pyc", "tests/conftest.py"])
def test_a_wheel_with_too_much_fails(name):
    with pytest.raises(ReleaseError, match="should not be there"):
        check_wheel([*WHEEL, name], ISLANDS, PAGES)


def test_a_source_archive_has_sources_only():
    check_sdist(SDIST)
    with pytest.raises(ReleaseError, match=r"missing: \['constraints.txt'\]"):
        check_sdist([name for name in SDIST if name != "constraints.txt"])
    with pytest.raises(ReleaseError, match=r"studio\.js"):
        check_sdist([*SDIST, "src/ziggurat/web/static/vendor/studio.js"])


def test_the_native_engine_loads_the_libjpeg_of_the_wheel():
    own, pillow = "/v/site-packages/ziggurat.libs/libjpeg-d.so.62", "/v/site-packages/pillow.libs/libjpeg-6.so.62"
    check_libjpeg([pillow, own])
    for paths in ([], [pillow], [own, "/usr/lib/libjpeg.so.62"]):
        with pytest.raises(ReleaseError, match="the native engine loads"):
            check_libjpeg(paths)


def test_the_glibc_floor_is_in_the_name_of_the_wheel():
    assert glibc_floor("ziggurat-1.0-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl") == "2.17"
    with pytest.raises(ReleaseError, match="no manylinux platform"):
        glibc_floor("ziggurat-1.0-py3-none-linux_x86_64.whl")


def test_every_file_states_the_same_version():
    stated = source_versions(REPOSITORY)
    assert set(stated.values()) == {stated["pyproject.toml"]}


def test_an_unreleased_heading_is_another_version():
    assert changelog_version("# Changelog\n\n## 0.3.0 (unreleased)\n\n## 0.2.0 (2026-11-29)\n") == "0.3.0 (unreleased)"
    assert changelog_version("# Changelog\n\n## 0.2.0 (2026-11-29)\n") == "0.2.0"


def test_the_bill_of_materials_names_every_part():
    pytest.importorskip("cyclonedx", reason="needs the extra `release`")
    parts = [("pypi", "numpy", "2.4.6", "BSD-3-Clause"), ("npm", "@codemirror/view", "6.43.0", "MIT")]
    bill = json.loads(bill_of_materials("1.0", [*parts, ("generic", "libjpeg", "2.1", "IJG AND Zlib")]))
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "ziggurat")
    found = {part["name"]: (part["version"], part["licenses"]) for part in bill["components"]}
    assert found["numpy"] == ("2.4.6", [{"license": {"id": "BSD-3-Clause"}}])
    assert found["libjpeg"] == ("2.1", [{"expression": "IJG AND Zlib"}])
    assert found["@codemirror/view"][0] == "6.43.0"
    (root,) = (each for each in bill["dependencies"] if each["ref"] == "pypi/ziggurat")
    assert len(root["dependsOn"]) == 3
