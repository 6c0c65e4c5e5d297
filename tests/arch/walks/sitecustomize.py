"""Notes which modules of the package a process enters: those of which a function runs outside of an import.

Python imports it at the start of every process whose path has its folder. With ``TESTS_WALK``, a process writes its
modules to a file of that folder when it ends; it begins at once, or by ``begin`` if ``TESTS_WALK_LATER`` is set.
"""

import atexit
import os
import sys
import threading

FOLDER = os.environ.get("TESTS_WALK", "")
SOURCE = f"{os.sep}src{os.sep}ziggurat{os.sep}"
known: set[object] = set()
entered: set[str] = set()


def note(frame, event, _argument):
    if event != "call" or frame.f_code in known:
        return
    code = frame.f_code
    if SOURCE not in code.co_filename or code.co_name in ("<module>", "<lambda>"):
        known.add(code)
        return
    outer = frame.f_back
    while outer is not None:
        if outer.f_code.co_filename == "<frozen importlib._bootstrap>":
            return  # during an import; it may run again
        outer = outer.f_back
    known.add(code)
    entered.add(code.co_filename.partition(SOURCE)[2])


def begin():
    threading.setprofile(note)
    sys.setprofile(note)


def write():
    with open(os.path.join(FOLDER, f"{os.getpid()}.txt"), "w") as file:
        file.write("\n".join(sorted(entered)))


if FOLDER:
    atexit.register(write)
    if not os.environ.get("TESTS_WALK_LATER"):
        begin()
