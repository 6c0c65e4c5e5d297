"""Folders whose files the users of a studio may use: allowed from the shell, over REST, and never by a link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ziggurat.errors import UsageError
from ziggurat.workspace.datasets import stored_source
from ziggurat.workspace.studio.paths import NOT_ALLOWED, Paths


class _Settings(dict[str, Any]):
    """Settings in memory, in the form that ``Paths`` takes."""

    def set(self, name: str, value: Any) -> None:
        self[name] = value


@pytest.fixture
def paths() -> Paths:
    return Paths((), _Settings(roots=[]))


def test_an_error_names_the_command_that_allows_a_path(paths: Paths, tmp_path: Path) -> None:
    place = tmp_path / "my data"
    place.mkdir()
    with pytest.raises(UsageError) as caught:
        paths.allowed(str(place))
    assert caught.value.details == {"reason": NOT_ALLOWED, "command": f"ziggurat settings allow '{place}'"}
    with pytest.raises(UsageError) as missing:
        paths.allowed(str(place / "nothing"))
    assert (
        missing.value.rule.replace("/nothing", "") == caught.value.rule
    )  # of what is outside, it is not said whether it exists


def test_a_file_stands_for_its_folder(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n")
    assert paths.allow(str(tmp_path / "table.csv")) == str(tmp_path)
    assert paths.chosen == (str(tmp_path),)
    assert paths.allow(str(tmp_path)) == str(tmp_path)
    assert paths.chosen == (str(tmp_path),)  # it is not listed twice
    with pytest.raises(UsageError, match="does not exist"):
        paths.allowed(str(tmp_path / "nothing"))


@pytest.mark.parametrize("path", ["/", "relative", "/nowhere/at/all", "~nobody-of-this-name"])
def test_some_paths_cannot_be_allowed(paths: Paths, path: str) -> None:
    with pytest.raises(UsageError, match="cannot be an allowed folder"):
        paths.allow(path)


def test_a_link_is_allowed_as_what_it_leads_to(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert paths.allow(str(tmp_path / "link")) == str(tmp_path / "real")
    (tmp_path / "real" / "out").symlink_to("/etc")
    with pytest.raises(UsageError, match="is in no folder that is allowed in this studio"):
        paths.allowed(str(tmp_path / "real" / "out" / "passwd"))
    assert [each.name for each in paths.listing(str(tmp_path / "real")).entries] == []


def test_a_folder_is_removed_however_it_is_written(paths: Paths, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    paths.choose([f"{tmp_path}/a/", str(tmp_path / "b"), str(tmp_path / "c")])
    paths.disallow(str(tmp_path / "link"))
    assert paths.chosen == (str(tmp_path / "b"), str(tmp_path / "c"))
    with pytest.raises(UsageError, match="is not in the list, so it cannot be removed from it"):
        paths.disallow(str(tmp_path / "a"))


def test_a_folder_that_is_gone_hinders_no_other(paths: Paths, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    paths.choose([str(tmp_path / "a"), str(tmp_path / "b")])
    for name in ("a", "b"):
        (tmp_path / name).rmdir()
    paths.allow(str(tmp_path / "c"))
    paths.disallow(str(tmp_path / "a"))
    assert paths.chosen == (str(tmp_path / "b"), str(tmp_path / "c"))


def test_a_link_to_itself_hides_nothing_else(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "inner").mkdir()
    (tmp_path / "near").symlink_to(tmp_path / "inner")
    paths.allow(str(tmp_path))
    found = paths.listing(str(tmp_path)).entries
    assert [(each.name, each.is_folder) for each in found] == [("inner", True), ("near", True), ("loop", False)]
    assert f"{tmp_path}/inner/" in paths.suggestions(f"{tmp_path}/")


def test_a_list_has_the_way_up_to_the_allowed_folder(paths: Paths, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "c.zip").write_bytes(b"")
    paths.allow(str(tmp_path))
    found = paths.listing(str(tmp_path / "a"))
    assert [each.name for each in found.parents] == [str(tmp_path), "a"]
    assert [(each.name, each.is_folder) for each in found.entries] == [("b", True), ("c.zip", False)]
    assert [each.path for each in paths.listing().entries] == [str(tmp_path)]


def test_the_shell_allows_lists_and_removes_folders(ziggurat: Any, tmp_path: Path) -> None:
    place = tmp_path / "data"
    place.mkdir()
    allowed = ziggurat("settings", "allow", place, "--json")
    assert allowed.code == 0
    assert str(place) in allowed.content["folders"]
    assert str(place) in ziggurat("settings", "folders").out.splitlines()
    assert str(place) not in ziggurat("settings", "disallow", place, "--json").content["folders"]
    wrong = ziggurat("settings", "disallow", place)
    assert wrong.code == 2
    assert "is not in the list, so it cannot be removed from it" in wrong.err


def test_a_mistyped_workspace_is_not_made(ziggurat: Any, tmp_path: Path) -> None:
    for words in (("folders",), ("disallow", tmp_path)):
        answer = ziggurat("--workspace", tmp_path / "typo", "settings", *words)
        assert answer.code == 10
        assert "no studio in" in answer.err
    assert not (tmp_path / "typo").exists()


def test_a_tilde_is_the_home_of_the_user_who_runs_the_studio(
    paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "pets" / "cats").mkdir(parents=True)
    with pytest.raises(UsageError, match="is in no folder that is allowed in this studio"):
        paths.allowed("~/pets")
    assert paths.folder_to_allow("~/pets") == str(tmp_path / "home" / "pets")
    assert paths.allow("~/pets") == str(tmp_path / "home" / "pets")
    assert paths.allowed("~/pets/cats") == tmp_path / "home" / "pets" / "cats"
    assert paths.suggestions("~/pets/c") == ["~/pets/cats/"]
    with pytest.raises(UsageError, match="is in no folder that is allowed in this studio"):
        paths.allowed("~/pets/../other")
    assert stored_source("~/pets") == str(tmp_path / "home" / "pets")
