"""Spec of a program: its script, arguments and needs."""

import pytest

from ziggurat.errors import SpecError
from ziggurat.specs import ProgramSpec, parse_spec
from ziggurat.workspace.new_jobs import needs_of, network_name, telling_name


def spec_of(**changes):
    return parse_spec({"kind": "program", "version": 1, "script": "src/train.py", **changes})


def test_a_program_is_named_by_its_script():
    spec = spec_of(arguments=["--epochs", "3"])
    assert isinstance(spec, ProgramSpec)
    assert (telling_name(spec), network_name(spec)) == ("train", "train.py")
    assert spec.arguments == ["--epochs", "3"]


def test_a_program_needs_what_its_spec_says():
    assert needs_of(spec_of()).slot == "cpu"
    needs = needs_of(spec_of(gpus=2, memory_gb=1.5))
    assert (needs.slot, needs.devices, needs.memory_bytes, needs.nodes) == ("device", 2, 1_500_000_000, 1)
    assert needs_of(spec_of(gpus=4, nodes=2)).nodes == 2


@pytest.mark.parametrize("script", ["/etc/train.py", "../train.py", "train.txt", "a\\b.py", "src/../../x.py"])
def test_a_script_lies_in_the_folder_of_its_program(script):
    with pytest.raises(SpecError, match="`script` must be a Python file below the folder of the program") as caught:
        spec_of(script=script)
    assert caught.value.details["field"] == "script"


def test_arguments_are_texts():
    with pytest.raises(SpecError, match="arguments"):
        spec_of(arguments=["--epochs", 3])
