"""People read the state of the studio in a few lines."""

import io

from ziggurat.cli.output import Output
from ziggurat.cli.server import studio_text

GIB = 10**9  # sizes are shown in powers of 1000

MACHINE = {
    "devices": [],
    "why_no_devices": "no NVIDIA driver",
    "cpu": {"cores": 8, "load": 0.25},
    "memory": {"total_bytes": 32 * GIB, "free_bytes": 20 * GIB},
    "disk": {"path": "/w", "total_bytes": 100 * GIB, "free_bytes": 50 * GIB, "reserve_bytes": 2 * GIB},
}
CARD = {
    "index": 0,
    "name": "Card",
    "memory_bytes": 24 * GIB,
    "free_bytes": 20 * GIB,
    "load": 0.5,
    "temperature_c": 41,
    "processes": [{"pid": 7, "user": "anna"}, {"pid": 8, "user": ""}],
    "error": "",
}


def text(**changes):
    machine = MACHINE | changes.pop("machine", {})
    summary = {"server": None, "workspace": "/w", "jobs": {}, "unlisted": [], "machine": machine} | changes
    return studio_text(summary, Output(io.StringIO(), io.StringIO(), as_json=False, color=False)).splitlines()


def test_a_studio_that_does_not_run():
    assert text() == [
        "studio     does not run; start it with: ziggurat up",
        "workspace  /w",
        "jobs       none",
        "device     none: no NVIDIA driver",
        "processor  8 cores, 25% busy",
        "memory     20.0 GB of 32.0 GB free",
        "disk       50.0 GB of 100 GB free",
    ]


def test_jobs_are_counted_by_state():
    assert text(jobs={"running": 2, "queued": 5})[2] == "jobs       2 running, 5 queued"


def test_devices_tell_who_uses_them():
    lost = CARD | {"index": 1, "error": "GPU is lost"}
    quiet = CARD | {"index": 2, "load": None, "temperature_c": None, "processes": []}
    assert text(machine={"devices": [CARD, lost, quiet]})[3:6] == [
        "device     GPU 0 Card: 4.0 GB of 24.0 GB used, 50% busy, 41 °C, used by process 7 of anna, process 8",
        "           GPU 1 cannot be used: GPU is lost",
        "           GPU 2 Card: 4.0 GB of 24.0 GB used",
    ]


def test_a_full_disk_says_what_follows():
    disk = MACHINE["disk"] | {"free_bytes": GIB}
    assert text(machine={"disk": disk})[-1] == "disk       1.0 GB of 100 GB free; no job starts below 2.0 GB"
