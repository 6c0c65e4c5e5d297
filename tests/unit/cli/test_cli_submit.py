"""``ziggurat submit``: what is wrong is said before a studio is asked."""

import pytest

from ziggurat.cli.main import main


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("import sys\nprint(sys.argv)\n")
    return path


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--epochs", "3"], 2, "`--epochs` is no option of this command; those of the program stand behind `--`."),
        (["x", "y"], 2, "`x y` stands before `--`; arguments of the program stand behind it."),
        (["--script", "other.py"], 5, "`other.py` is not among the files of the program."),
        (["--gpus", "-1"], 2, "--gpus"),
        (["--nodes", "0"], 2, "--nodes"),
        (["--nodes", "2", "--gpus-per-node", "4"], 10, "No studio serves"),
        (["--", "--epochs", "3"], 10, "No studio serves"),
    ],
)
def test_mistyped_use_is_said(script, tmp_path, monkeypatch, capsys, words, code, said):
    monkeypatch.setenv("ZIGGURAT_WORKSPACE", str(tmp_path / "nowhere"))
    assert main(["submit", str(script), *words]) == code
    assert said in capsys.readouterr().err


def test_a_syntax_error_is_said_without_a_studio(script, capsys):
    script.write_text("x = 1\ny = =\n")
    assert main(["submit", str(script)]) == 5
    assert "train.py, line 2: Syntax error" in capsys.readouterr().err


def test_a_program_that_is_not_there_is_said(tmp_path, capsys):
    assert main(["submit", str(tmp_path / "gone.py")]) == 4
    assert "does not exist" in capsys.readouterr().err
