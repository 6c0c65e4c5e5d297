"""Files of a program: which script runs, what is left out, and what is refused before there is a job."""

import io
import re
import shutil
import subprocess
import zipfile

import pytest

from ziggurat.errors import DataError, ProgramCodeError
from ziggurat.layout import JobFolder
from ziggurat.workspace import programs
from ziggurat.workspace.programs import (
    check_program,
    packed,
    program_at,
    program_of_job,
    program_of_text,
    program_origin,
    unpacked,
    write_program,
)


def zip_of(files, **options):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue()


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "project"
    for name in ("main.py", "helper.py", "lib/tools.py", "data.csv", ".git/config", "__pycache__/main.pyc"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("x = 1\n")
    (place / "own/pyvenv.cfg").parent.mkdir()
    (place / "own/pyvenv.cfg").write_text("")
    (place / "own/site.py").write_text("")
    return place


def test_a_folder_is_taken_without_hidden_files(folder):
    program = program_at(folder)
    assert program.script == "main.py"
    assert sorted(program.files) == ["data.csv", "helper.py", "lib/tools.py", "main.py"]


def test_an_archive_equals_its_folder(folder):
    program = program_at(folder)
    assert unpacked(packed(program)) == program
    around = {f"project/{name}": content for name, content in program.files.items()}
    assert unpacked(zip_of({**around, "__MACOSX/project/._main.py": b"x"})) == program


@pytest.mark.parametrize(
    ("names", "script", "chosen"),
    [
        (["train.py"], "", "train.py"),
        (["a.py", "train.py"], "", "train.py"),
        (["a.py", "lib/b.py"], "", "a.py"),
        (["src/only.py", "x.txt"], "", "src/only.py"),
        (["a.py", "b.py"], "b.py", "b.py"),
        (["a.py", "b.py"], "./b.py", "b.py"),
    ],
)
def test_the_script_is_found_or_named(names, script, chosen):
    assert unpacked(zip_of({"readme.md": "", **dict.fromkeys(names, "x = 1")}), script).script == chosen


def test_several_scripts_need_a_choice():
    with pytest.raises(ProgramCodeError, match="Which of the 2 Python files to run is not known") as caught:
        unpacked(zip_of({"a.py": "", "b.py": ""}))
    assert "There are: `a.py`, `b.py`" in str(caught.value)


def test_a_mistyped_script_names_the_nearest():
    with pytest.raises(ProgramCodeError, match="Did you mean `train"):
        unpacked(zip_of({"train.py": "", "other.py": ""}), "trian.py")


def test_an_archive_without_a_script_is_refused():
    with pytest.raises(ProgramCodeError, match="None of the 2 files is a Python file"):
        unpacked(zip_of({"readme.md": "", "x.txt": ""}))


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04 broken"])
def test_a_broken_archive_is_refused(content):
    with pytest.raises(DataError, match="cannot be read as a zip file"):
        unpacked(content)


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py"])
def test_a_member_outside_of_the_folder_is_refused(name):
    with pytest.raises(DataError, match="lies in its folder"):
        unpacked(zip_of({"main.py": "", name: "x"}))


def test_what_is_too_large_is_refused():
    content = zip_of({"main.py": "x = 1", "big.bin": bytes(programs.MOST_BYTES)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(DataError, match=r"more than 64\.0 MB together"):
        unpacked(content)


def test_other_places_are_refused(tmp_path):
    (tmp_path / "x.tar").write_text("")
    with pytest.raises(DataError, match="no Python file, zip archive or folder"):
        program_at(tmp_path / "x.tar")
    with pytest.raises(DataError, match="does not exist"):
        program_at(tmp_path / "gone.py")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("x = 1\ndef f(:\n", "train.py, line 2: Syntax error: invalid syntax."),
        ('print "x"\n', "train.py, line 1: Syntax error: Missing parentheses"),
        ("x = '\0'\n", "train.py, line 1: "),
    ],
)
def test_a_syntax_error_names_its_line(text, rule):
    with pytest.raises(ProgramCodeError) as caught:
        check_program(program_of_text(text, "train.py"))
    assert caught.value.rule.startswith(rule)
    assert caught.value.details["file"] == "train.py"


@pytest.mark.parametrize("text", ["", "  \n\n"])
def test_an_empty_script_is_refused(text):
    with pytest.raises(ProgramCodeError, match="is empty"):
        check_program(program_of_text(text))


def test_a_script_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "train.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(ProgramCodeError, match="UTF-8"):
        check_program(program_at(tmp_path / "train.py"))


def test_imported_files_are_checked_and_others_not():
    files = {"main.py": "import lib.tools", "lib/tools.py": "import deep", "deep.py": "x ="}
    with pytest.raises(ProgramCodeError, match=r"deep\.py, line 1"):
        check_program(unpacked(zip_of(files)))
    check_program(unpacked(zip_of({"main.py": "import os", "old.py": "print 'x'"})))


def test_nothing_of_a_script_is_executed(tmp_path):
    check_program(program_of_text(f"open({str(tmp_path / 'made')!r}, 'w')"))
    assert not (tmp_path / "made").exists()


def test_a_job_keeps_the_files_that_came_and_no_others(tmp_path, folder):
    job = JobFolder(tmp_path / "job")
    job.path.mkdir()
    program = program_at(folder)
    write_program(program.files, job)
    (job.program / "output.bin").write_bytes(b"made while it ran")
    assert program_of_job(job, "main.py") == program


def _git(folder, *words):
    named = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *named, *words], check=True, capture_output=True)


def test_the_origin_of_a_program_is_its_path(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert program_origin(tmp_path / "train.py") == str(tmp_path / "train.py")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program_origin(tmp_path) == str(tmp_path), "there is no Git"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs Git")
def test_the_origin_of_a_program_has_its_commit(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("print(1)\n", encoding="utf-8")
    _git(tmp_path, "init")
    assert program_origin(script) == str(script), "nothing is committed yet"
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "First")
    assert re.fullmatch(rf"{re.escape(str(script))}, commit [0-9a-f]{{12}}, clean", program_origin(script))
    script.write_text("print(2)\n", encoding="utf-8")
    assert program_origin(tmp_path).endswith(", with changes")
