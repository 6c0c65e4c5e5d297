"""Images of the documentation: taken by the browser tests of the pages, and scaled down here.

``python -m tools.screenshots`` writes docs/images; it needs Chromium and takes some minutes.
``python -m tools.screenshots FOLDER`` writes every page in every width, light and dark, to be looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

__all__ = ["SHOWN", "main"]

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PAGES = "tests/browser/test_browser_every_page.py"
FIRST_SCREEN = "tests/browser/test_browser_first_screen.py"
SHOWN = (
    "home", "new-data-set", "data-set", "explore", "map", "new-model", "job", "test", "evaluation", "compare",
    "take-away", "settings",
)  # fmt: skip
"""Pages that the documentation shows, beside the first screen."""
WIDTH_PX = 1100
HEIGHT_PX = 1100


def main(arguments: Sequence[str]) -> int:
    """Make the images; return pytest's exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(arguments[0] if arguments else scratch).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        pages = [PAGES] if arguments else [f"{PAGES}::test_page[{name}]" for name in SHOWN]
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", FIRST_SCREEN, *pages]
        code = subprocess.run(
            command, cwd=ROOT, env=os.environ | {"DOCS_SCREENSHOTS": str(folder)}, check=False
        ).returncode
        if not arguments:
            for name in ("first-screen", *SHOWN):
                _shrink(folder / f"{name}-light-1440.png", IMAGES / f"{name}.png")
    return code


def _shrink(source: Path, target: Path) -> None:
    if not source.is_file():
        print(f"There is no image of {target.stem}.")
        return
    with Image.open(source) as picture:
        height = round(picture.height * WIDTH_PX / picture.width)
        small = picture.convert("RGB").resize((WIDTH_PX, height), Image.Resampling.LANCZOS)
    target.parent.mkdir(parents=True, exist_ok=True)
    small.crop((0, 0, WIDTH_PX, min(height, HEIGHT_PX))).quantize(256, kmeans=1).save(target, optimize=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
