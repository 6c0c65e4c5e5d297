"""The list of names that instant checks of network files use, against the installed TensorFlow and tf-slim.

``python -m tests.tensorflow.test_network_names`` writes the list anew.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tf_slim

from ziggurat.backends.tensorflow import digits
from ziggurat.backends.tensorflow.namespace.tensorflow import user_slim, user_tensorflow
from ziggurat.backends.tensorflow.network_file import load_network
from ziggurat.backends.tensorflow.tower import Tower
from ziggurat.workspace.network_checks import check_network
from ziggurat.workspace.network_checks.frameworks import FRAMEWORKS
from ziggurat.zoo import network_path

NAMES_FILE = FRAMEWORKS["tensorflow"].names_file
TF_PARTS = (
    "bitwise", "image", "initializers", "io", "layers", "linalg", "losses", "math", "metrics", "nn", "random", "signal",
    "sparse", "strings", "summary", "train",
)  # fmt: skip
CONTRIB_PARTS = ("framework", "layers", "losses", "metrics", "rnn", "training")
SLIM_PARTS = ("layers", "losses", "metrics", "nets")
MEMBERS = (
    "categories",
    "inference",
    "inference_inputs",
    "is_inference",
    "is_training",
    "input_shape",
    "loss",
    "nclasses",
    "summaries",
    "target_mean",
    "target_shape",
    "target_std",
    "train",
    "vocabulary_size",
    "x",
    "y",
)


def all_names() -> dict[str, list[str]]:
    """Return module → its names, as a network file finds them."""
    tf: Any = user_tensorflow()
    slim: Any = user_slim()
    found = {"tf": names_of(tf), "tf.contrib": names_of(tf.contrib), "slim": names_of(slim), "digits": names_of(digits)}
    found |= {f"tf.{part}": names_of(getattr(tf, part)) for part in TF_PARTS}
    found |= {f"tf.contrib.{part}": names_of(getattr(tf.contrib, part)) for part in CONTRIB_PARTS}
    found |= {f"slim.{part}": names_of(getattr(slim, part)) for part in SLIM_PARTS}
    for place, folder in (("slim", ""), ("tf.contrib", ""), *((f"slim.{part}", part) for part in SLIM_PARTS)):
        found[place] = sorted({*found[place], *submodules(Path(tf_slim.__path__[0]) / folder)})
    for part in ("layers", "losses", "metrics", "training"):
        place = f"tf.contrib.{part}"
        found[place] = sorted({*found[place], *submodules(Path(tf_slim.__path__[0]) / part)})
    found["Tower"] = sorted({*MEMBERS, *(name for name in dir(Tower) if not name.startswith("__"))})
    return found


def names_of(module: ModuleType) -> list[str]:
    return sorted(name for name in dir(module) if not name.startswith("_"))


def submodules(folder: Path) -> Iterator[str]:
    return (each.name for each in pkgutil.iter_modules([str(folder)]) if not each.name.endswith("_test"))


def test_every_installed_name_is_in_the_list() -> None:
    listed = json.loads(NAMES_FILE.read_text("utf-8"))
    missing = {place: sorted({*names} - {*listed.get(place, ())}) for place, names in all_names().items()}
    assert {place: names for place, names in missing.items() if names} == {}


@pytest.mark.parametrize("name", ["max_pol2d", "fuly_connected"])
def test_a_name_that_is_found_wrong_fails(name: str) -> None:
    text = network_path("lenet", "tensorflow").read_text().replace("slim.conv2d", f"slim.{name}", 1)
    (found,) = check_network(text)
    assert f"`slim` has no `{name}`. Did you mean `slim." in found.sentence
    assert load_network(text, "network.py")  # the class is made; the line fails when it runs


if __name__ == "__main__":
    lines = [f" {json.dumps(place)}: {json.dumps(names)}" for place, names in all_names().items()]
    NAMES_FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
