"""Images that a job predicts for: a list names none outside the folders that a studio offers."""

import pytest

from ziggurat.errors import DataError
from ziggurat.records.offered_folders import only_offered
from ziggurat.worker.commands.prediction import list_images


def test_picture_list_names_no_files_outside(tmp_path):
    (tmp_path / "offered").mkdir()
    source = tmp_path / "offered/list.txt"
    source.write_text("1.png\n")
    with only_offered([str(tmp_path / "offered")]):
        assert list_images(str(source), "", [], 0).keys == ["1.png"]
        source.write_text(f"1.png\n{tmp_path}/2.png\n")
        with pytest.raises(DataError, match="is not below the folders that this studio offers"):
            list_images(str(source), "", [], 0)
    assert len(list_images(str(source), "", [], 0).keys) == 2
