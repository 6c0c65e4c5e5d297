"""Errors are three sentences and an exit code; ``--json`` makes them JSON, ``--debug`` adds their traceback."""

import subprocess
import sys

import pytest

from ziggurat.cli.main import main


def test_the_exit_code_is_that_of_the_family(ziggurat, tmp_path):
    assert ziggurat("status", tmp_path / "nowhere").code == 10
    assert ziggurat("spec", "validate", tmp_path / "no.json").code == 3
    assert ziggurat("--color", "nevr", "version").code == 3
    assert ziggurat("checkpoint", "shw").code == 2


def test_an_error_is_text_without_traceback(ziggurat, tmp_path):
    answer = ziggurat("status", tmp_path / "nowhere")
    assert answer.out == ""
    assert answer.err == (
        f"Error: `{tmp_path / 'nowhere'}` does not exist. "
        "Name its folder, or the id or name of a job of the workspace.\n"
    )


def test_with_json_an_error_is_one_document(ziggurat, tmp_path):
    answer = ziggurat("status", tmp_path / "nowhere", "--json")
    assert answer.code == 10
    assert answer.err == ""
    assert answer.content["error"] == "job"
    assert answer.content["rule"].endswith("nowhere` does not exist.")
    assert "received" not in answer.content
    mistyped = ziggurat("statsu", "--json")
    assert (mistyped.code, mistyped.content["error"]) == (2, "usage")
    wrong = ziggurat("--json", "--color", "nevr", "version")
    assert (wrong.code, wrong.content["error"]) == (3, "settings")


def test_debug_shows_the_traceback(ziggurat, tmp_path, monkeypatch):
    answer = ziggurat("--debug", "status", tmp_path / "nowhere")
    assert "Traceback (most recent call last):" in answer.err
    assert answer.err.splitlines()[-1].endswith("the id or name of a job of the workspace.")
    assert "Traceback" in ziggurat("status", tmp_path / "nowhere", "--debug").err
    monkeypatch.setenv("ZIGGURAT_DEBUG", "1")
    assert "Traceback" in ziggurat("status", tmp_path / "nowhere").err


@pytest.mark.parametrize(("group", "word"), [("commands", "command"), ("verbs", "verb")])
def test_a_broken_plugin_command_says_whose_it_is(tmp_path, group, word):
    done = with_plugin(tmp_path, f"[ziggurat.{group}]\nfrobnicate = zig_wrong_code:command\n", "frobnicate")
    assert done.returncode == 9
    assert f"The {word} `frobnicate` of zig-wrong 1.0 does not load (received: ModuleNotFoundError" in done.stderr


def test_a_broken_verb_is_listed_and_harms_no_other(tmp_path):
    done = with_plugin(tmp_path, "[ziggurat.verbs]\nfrobnicate = sys:path\n", "--help")
    assert done.returncode == 0
    assert "  frobnicate  does not load: `ziggurat frobnicate` says why\n" in done.stdout
    assert "Run a program for TensorFlow 1, unchanged.\n" in done.stdout


def test_a_verb_with_a_dot_is_a_command_of_a_group(tmp_path):
    done = with_plugin(tmp_path, "[ziggurat.verbs]\nmodel.frobnicate = sys:path\n", "model", "--help")
    assert done.returncode == 0
    assert "  import      Import a network of Caffe or Torch.\n" in done.stdout
    assert "  frobnicate  does not load: `ziggurat model frobnicate` says why\n" in done.stdout
    (tmp_path / "more").mkdir()
    done = with_plugin(tmp_path / "more", "[ziggurat.verbs]\nmodel.frobnicate = sys:path\n", "model", "frobnicate")
    assert done.returncode == 9
    assert "The verb `model.frobnicate` must be a `ziggurat.cli.commands.Verb` (received: " in done.stderr


def with_plugin(folder, entry_points, *words):
    """Run the shell with a package installed that has these entry points."""
    information = folder / "zig_wrong-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: zig-wrong\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(entry_points)
    return subprocess.run(
        [sys.executable, "-m", "ziggurat", *words],
        env={"PYTHONPATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", [["events", "JOB"], ["--help"]])
def test_a_reader_that_leaves_ends_it_quietly(job, words):
    line = '{"type":"message","version":1,"time":1.0,"level":"info","text":"%s","step":0}\n' % ("x" * 200)
    (job / "events.jsonl").write_text(line * 2000)
    words = [str(job) if word == "JOB" else word for word in words]
    command = [sys.executable, "-m", "ziggurat", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=30)


def test_color_is_only_for_terminals_unless_asked_for(ziggurat, job):
    assert "\x1b" not in ziggurat("status", job).out
    assert "\x1b[36mqueued\x1b[0m" in ziggurat("--color", "always", "status", job).out


def test_no_color_is_honoured_and_can_be_overruled(ziggurat, job, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in ziggurat("status", job).out
    assert ziggurat("settings", "show", "--json").content["color"]["origin"] == "NO_COLOR"
    assert "\x1b" in ziggurat("--color", "always", "status", job).out


def test_words_after_two_dashes_are_no_flags(capsys):
    assert main(["status", "--", "--json"]) == 10
    assert capsys.readouterr().err.startswith("Error: `--json` does not exist.")
