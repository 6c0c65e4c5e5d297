"""First use of a wheel: from an empty folder and an empty home to an answer by curl, with the seconds of each step.

    python -m tools.from_the_wheel dist/ziggurat-0.2.0-….whl

Installs the wheel into a new environment, starts a studio, trains LeNet on the handwritten digits, exports and serves
it, and asks it by curl. ``PATH`` holds the new environment and curl alone: neither a compiler nor Node. Packages come
from pip's usual index.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["EXTRAS", "Machine", "empty_machine", "first_use", "main"]

EXTRAS: Final = "studio,torch,samples,export,serve"
TIME_LIMIT_S: Final = 1800
_PASSED_ON: Final = re.compile(r"PIP_\w+|https?_proxy|no_proxy|SSL_CERT_\w+|LANG|LC_ALL", re.IGNORECASE)

_SEVEN: Final = """
import numpy as np, sklearn.datasets, PIL.Image
digits = sklearn.datasets.load_digits()
image = digits.images[np.flatnonzero(digits.target == 7)[0]]
PIL.Image.fromarray((image * 255 / 16).astype("uint8")).save("seven.png")
"""


class Machine:
    """An empty folder with a home and an environment of its own.

    Args:
        folder: existing empty folder.
        constraints: file with pinned versions, or None.
    """

    def __init__(self, folder: Path, constraints: Path | None = None) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        self._constraints = ["--constraint", str(constraints)] if constraints else []
        tools = folder / "tools"
        for name in ("home", "tools"):
            (folder / name).mkdir()
        curl = shutil.which("curl")
        if curl is not None:
            (tools / "curl").symlink_to(curl)
        passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        self.environment = passed_on | {"HOME": str(folder / "home"), "PATH": f"{self.python.parent}:{tools}"}

    def install(self, wheel: Path, extras: str) -> None:
        """Install a wheel with extras into the new environment."""
        subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True, timeout=TIME_LIMIT_S)
        requirement = f"ziggurat[{extras}] @ {wheel.resolve().as_uri()}"
        self.run("python", "-m", "pip", "install", "--quiet", *self._constraints, requirement)

    def run(self, *words: str) -> str:
        """Run a command; return its output.

        Raises:
            RuntimeError: it failed; with the end of what it wrote.
        """
        done = subprocess.run(
            [shutil.which(words[0], path=self.environment["PATH"]) or words[0], *words[1:]],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                f"`{' '.join(words)}` failed ({done.returncode}): {(done.stderr or done.stdout)[-2000:]}"
            )
        return done.stdout

    def ziggurat(self, *words: str) -> dict:
        """Run a command of Ziggurat; return its JSON."""
        return json.loads(self.run("ziggurat", *words, "--json"))

    @contextmanager
    def serving(self, export: str) -> Iterator[str]:
        """Serve an export; yield the URL of its predictions, as soon as it answers."""
        command = [self.python.with_name("ziggurat"), "serve", export, "--port", "0"]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stdout is not None
                line = next((line for line in process.stdout if "/predict" in line), "")
                if not line:
                    raise RuntimeError(f"`ziggurat serve {export}` ended before it answered.")
                yield line.split()[0]
            finally:
                process.terminate()


@contextmanager
def empty_machine(constraints: Path | None = None) -> Iterator[Machine]:
    """Yield an empty machine, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="ziggurat-wheel-") as folder:
        yield Machine(Path(folder), constraints)


def first_use(machine: Machine, wheel: Path) -> Iterator[tuple[str, float]]:
    """Yield (step, seconds) of each step from the wheel to the answer of the served model.

    Raises:
        RuntimeError: a step failed.
    """
    began = time.perf_counter()

    def lap() -> float:
        nonlocal began
        before, began = began, time.perf_counter()
        return began - before

    machine.install(wheel, EXTRAS)
    yield "wheel installed", lap()
    machine.run("ziggurat", "up", "--detach", "--no-open", "--port", "0")
    try:
        yield "studio started", lap()
        words = ("--data", "digits", "--network", "lenet", "--framework", "torch", "--epochs", "5", "--name", "digits")
        job = machine.ziggurat("job", "train", *words)["id"]
        machine.run("ziggurat", "job", "wait", job)
        yield "digits trained", lap()
        (folder,) = machine.folder.glob(f"home/*/jobs/{job}")
        machine.run("ziggurat", "export", str(folder), "--format", "onnx", "--out", "lenet")
        yield "exported", lap()
        machine.run("python", "-c", _SEVEN)
        lap()
        with machine.serving("lenet") as url:
            ask = ("curl", "--silent", "--fail", "--retry", "30", "--retry-delay", "1", "-F", "image=@seven.png", url)
            answer = json.loads(machine.run(*ask))
        best = answer["predictions"][0]["classes"][0]["class"]
        yield f"served, asked by curl: {best}", lap()
        if best != "7":
            raise RuntimeError(f"The served model takes a seven for {best!r}.")
    finally:
        machine.run("ziggurat", "down")
    yield "studio ended", lap()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the first use; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--constraints", type=Path, help="file with pinned versions")
    options = parser.parse_args(arguments)
    total_s = 0.0
    with empty_machine(options.constraints and options.constraints.resolve()) as machine:
        for step, seconds in first_use(machine, options.wheel):
            total_s += seconds
            print(f"{seconds:7.1f} s  {step}", flush=True)
    print(f"{total_s:7.1f} s  in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
