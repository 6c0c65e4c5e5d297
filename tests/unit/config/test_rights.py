"""New files are for their owner, unless the folder of everything is shared with a group."""

import stat

import pytest

from ziggurat.atomic import folder_mode, private_files, private_umask


@pytest.mark.parametrize(
    ("mode", "umask"),
    [(0o755, 0o077), (0o777, 0o077), (0o700, 0o077), (0o2770, 0o007), (0o2750, 0o027), (0o2775, 0o007)],
)
def test_group_gets_what_a_shared_folder_grants(tmp_path, mode, umask):
    folder = tmp_path / "workspace"
    folder.mkdir()
    folder.chmod(mode)
    assert private_umask(folder) == umask
    assert folder_mode(folder) == 0o777 & ~umask


def test_folder_that_is_not_there_is_private(tmp_path):
    assert private_umask(tmp_path / "none") == 0o077


def test_files_of_a_block_are_private(tmp_path):
    (tmp_path / "before").touch(0o644)
    with private_files(tmp_path):
        (tmp_path / "within").write_text("")
    (tmp_path / "after").touch(0o644)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["within"] == 0o600
    assert modes["after"] == modes["before"]
