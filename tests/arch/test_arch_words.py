"""``tools.check_words`` names glossary words that are used wrongly in public names."""

import pytest

WRONG = {
    "snapshot for checkpoint": ("def save_snapshot(): ...\n", ":1: the glossary says checkpoint, not `snapshot`."),
    "iterations for steps": ("def train(max_iterations): ...\n", ":1: the glossary says steps, not `iterations`."),
    "minibatch for batch": ("class MiniBatch: ...\n", ":1: the glossary says batch, not `mini_batch`."),
    "lr for learning_rate": ("def set_lr(value): ...\n", ":1: the glossary says learning_rate, not `lr`."),
    "a hook for a callback": ("class SaverHook: ...\n", ":1: the glossary says Callback"),
    "db for store": ("def open(*, db): ...\n", ":1: the glossary says store, not `db`. Received: the argument `db`."),
    "a quantity without its unit": ("def wait(timeout): ...\n", ":1: a quantity carries its unit: `timeout_s`"),
    "a number of what": ("class Pool:\n    def __init__(self, num_workers): ...\n", ":2: the glossary says a plural"),
}


@pytest.mark.parametrize(("text", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_word_is_named(planted, text, complaint):
    planted.write("open.py", text)
    code, output = planted.tool("check_words")
    assert code == 1
    assert f"src/ziggurat/open.py{complaint}" in output


def test_a_wrong_name_of_a_module_is_named(planted):
    planted.write("engine/snapshot.py", "")
    code, output = planted.tool("check_words")
    assert code == 1
    assert "engine/snapshot.py:1: the glossary says checkpoint, not `snapshot`. Received: the module" in output


def test_only_whole_words_of_public_names_count(planted):
    planted.write(
        "open.py",
        "class LMDBData:\n    timeout_s: float\n    def _snapshot(self): ...\n    def iterate(self): ...\n"
        "def _iterations(num): ...\ndef hooks(): ...\n",
    )
    assert planted.tool("check_words") == (0, "words: nothing to report\n")


def test_names_that_tensorpacks_users_know_stay(planted):
    planted.write("open.py", "class MultiProcessRunner:\n    def __init__(self, ds, num_prefetch, num_proc): ...\n")
    assert planted.tool("check_words")[0] == 0
