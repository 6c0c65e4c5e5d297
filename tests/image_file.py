"""Instructions of the Dockerfile, for tests that do what they say."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCKERFILE", "Instruction", "image_environment", "instructions", "last", "words"]

DOCKERFILE = Path(__file__).parents[1] / "Dockerfile"


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined.

    Args:
        name: such as ``RUN``.
        text: the rest of it.
    """

    name: str
    text: str


def instructions() -> list[Instruction]:
    """Return the instructions of the Dockerfile in order."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", "", "\n".join(lines))
    pairs = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [Instruction(name, text.strip()) for name, text in pairs]


def last(name: str) -> str:
    """Return the text of the last instruction of a name."""
    return [each.text for each in instructions() if each.name == name][-1]


def words(text: str) -> list[str]:
    """Return the words of an instruction in JSON form, such as that of ``CMD``."""
    return json.loads(text[text.index("[") :])


def image_environment() -> Mapping[str, str]:
    """Return the variables that ``ENV`` sets."""
    pairs = [word for each in instructions() if each.name == "ENV" for word in shlex.split(each.text)]
    return dict(pair.split("=", 1) for pair in pairs)
