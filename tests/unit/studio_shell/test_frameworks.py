"""Which frameworks work is found in processes of their own, once."""

import subprocess
import sys

from ziggurat.workspace.frameworks import Frameworks, FrameworkState, why_backend_does_not_work


def test_a_backend_that_works_has_no_reason():
    assert why_backend_does_not_work("null") == ""


def test_a_backend_that_is_not_there_says_so():
    (state,) = Frameworks(["nul"]).find()
    assert not state.works
    assert state.sentence.startswith("nul support is disabled. `nul` is not a known backend.")
    assert "Did you mean `null`?" in state.why_not


def test_the_sentence_of_a_framework():
    assert FrameworkState("tensorflow", "TensorFlow", "Install it.").sentence == (
        "TensorFlow support is disabled. Install it."
    )
    assert FrameworkState("tensorflow", "TensorFlow", "").sentence == ""


def test_one_that_takes_too_long_is_ended():
    assert why_backend_does_not_work("null", 0.001) == "It did not load within 0 s."


def test_frameworks_keeps_secrets_from_the_probe(tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text("import os; os._exit(4 if 'MY_PASSWORD' in os.environ else 3)")
    monkeypatch.setenv("MY_PASSWORD", "secret")
    environment = {"PYTHONPATH": str(tmp_path)}
    assert "exit code 3" in Frameworks(["null"], environment=environment).find()[0].why_not


def test_frameworks_are_asked_once_until_forgotten():
    frameworks = Frameworks(["null"])
    assert frameworks.known is None
    first = frameworks.find()
    assert frameworks.find() is first
    frameworks.forget()
    assert frameworks.known is None


def test_this_process_imports_no_framework():
    code = (
        "import sys\nfrom ziggurat.workspace.frameworks import Frameworks\n"
        "Frameworks(['null']).find()\nprint([each for each in ('tensorflow', 'torch', 'numpy') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "tensorflow" not in done.stdout
    assert "torch" not in done.stdout
