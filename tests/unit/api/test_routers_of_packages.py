"""Routers of packages come after the application's own, and a broken one is named."""

import os
import subprocess
import sys

from ziggurat.api.app import ROUTERS, every_router


def test_the_routes_of_compatibility_come_last():
    own, added = every_router()[: len(ROUTERS)], every_router()[len(ROUTERS) :]
    assert own == ROUTERS
    assert added == (
        "ziggurat.compat.caffe.routes:router",
        "ziggurat.compat.digits.routes:router",
        "ziggurat.compat.digits.inference:router",
        "ziggurat.compat.torch7.routes:router",
    )


def test_a_router_that_does_not_load_is_named(tmp_path):
    information = tmp_path / "zig_wrong-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: zig-wrong\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[ziggurat.routers]\nold = zig_wrong_code:router\n")
    done = subprocess.run(
        [sys.executable, "-c", "from ziggurat.api.app import every_router\nevery_router()"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "The router `old` of zig-wrong 1.0 does not load (received: ModuleNotFoundError" in done.stderr
