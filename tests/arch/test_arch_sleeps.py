"""``tools.check_sleeps`` names each place where a test sleeps."""

import pytest

NAP = "sleep"  # written so that this file does not hold what it plants
PLANTED = {
    "time": (f"import time\ntime.{NAP}(0.1)\n", f":2: a test does not sleep. Received: `time.{NAP}(0.1)`. Wait for"),
    "asyncio": (
        f"async def f():\n    await asyncio.{NAP}(1)\n",
        f":2: a test does not sleep. Received: `asyncio.{NAP}",
    ),
    "by its name": (f"from time import {NAP}\n", f":1: a test does not sleep. Received: `from time import {NAP}`."),
    "under another": (f"from time import {NAP} as nap\nnap(1)\n", ":1: a test does not sleep. Received: `from time"),
    "passed on": (f"import time\ncall(time.{NAP}, 5)\n", f":2: a test does not sleep. Received: `time.{NAP}`. Wait"),
    "a page": ("page.wait_for_" + "timeout(300)\n", ":1: a test does not sleep. Received: `page.wait_for_"),
    "a program": (
        f'PROGRAM = """\nimport time\ntime.{NAP}(600)\n"""\n',
        f":3: a test does not sleep. Received: `{NAP}(` in a string. Wait for",
    ),
    "a command": (f"COMMAND = 'from time import {NAP}; nap(1)'\n", ":1: a test does not sleep. Received: `from time"),
}


@pytest.mark.parametrize(("text", "complaint"), PLANTED.values(), ids=PLANTED.keys())
def test_a_sleep_is_named(planted, text, complaint):
    (planted.root / "tests" / "unit").mkdir(parents=True)
    (planted.root / "tests" / "unit" / "test_naps.py").write_text(text)
    code, output = planted.tool("check_sleeps")
    assert code == 1
    assert f"tests/unit/test_naps.py{complaint}" in output
    assert output.endswith("sleeps: 1 findings\n")


def test_the_helper_sleeps_and_others_let_others_run(planted):
    (planted.root / "tests").mkdir()
    (planted.root / "tests" / "waiting.py").write_text(f"import time\ntime.{NAP}(0.1)\n")
    (planted.root / "tests" / "test_turns.py").write_text(
        f"async def f():\n    await asyncio.{NAP}(0)\n    notices([], {NAP}=[].append)\n"
        f"    run(['{NAP}', '300'])\n    threading.Event().wait(1)\n"
    )
    assert planted.tool("check_sleeps") == (0, "sleeps: nothing to report\n")
