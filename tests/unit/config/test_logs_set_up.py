"""Logging: lines for people, a job's own file, and nothing for a program that did not ask."""

import io
import logging
import re
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path

import pytest

from ziggurat.errors import StorageError, UnknownNameError
from ziggurat.logs import set_up_logging

LOGGER = logging.getLogger("ziggurat.worker")


def test_a_message_is_one_line_with_its_time():
    stream = io.StringIO()
    with set_up_logging(stream=stream):
        LOGGER.info("step %d done", 7)
        LOGGER.debug("not shown")
    assert re.fullmatch(r"\d\d:\d\d:\d\d INFO    ziggurat\.worker: step 7 done\n", stream.getvalue())


def test_further_lines_are_indented():
    stream = io.StringIO()
    with set_up_logging(stream=stream):
        LOGGER.warning("first\nsecond")
    assert stream.getvalue().endswith("WARNING ziggurat.worker: first\n    second\n")


def test_the_level_is_chosen():
    stream = io.StringIO()
    with set_up_logging("error", stream=stream):
        LOGGER.warning("hidden")
        LOGGER.error("shown")
    assert "hidden" not in stream.getvalue()
    assert "ERROR   ziggurat.worker: shown" in stream.getvalue()
    with pytest.raises(UnknownNameError, match=r"`warn` is not a known log level\. Did you mean `warning`\?"):
        set_up_logging("warn")


def test_levels_are_coloured_where_asked():
    stream = io.StringIO()
    with set_up_logging(stream=stream, color=True):
        LOGGER.warning("mind")
        LOGGER.info("plain")
    first, second = stream.getvalue().splitlines()
    assert "\x1b[33mWARNING\x1b[0m" in first
    assert "\x1b" not in second


def test_a_job_log_is_appended_to_with_dates(tmp_path):
    path = tmp_path / "job" / "log.txt"
    for text in ("one", "two"):
        with set_up_logging(stream=io.StringIO(), color=True, job_log=path):
            LOGGER.error(text)
    lines = path.read_text().splitlines()
    assert [line.split()[-1] for line in lines] == ["one", "two"]
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ERROR   ziggurat\.worker: one", lines[0])


def test_a_stream_that_is_the_log_gets_each_message_once(tmp_path):
    path = tmp_path / "log.txt"
    with path.open("w") as stream, set_up_logging(stream=stream, job_log=path):
        LOGGER.info("once")
    assert path.read_text().count("once") == 1


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"The log must be written to .*file/log\.txt \(received: "):
        set_up_logging(stream=io.StringIO(), job_log=tmp_path / "file" / "log.txt")


def test_warnings_are_messages():
    stream = io.StringIO()
    with set_up_logging(stream=stream), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning("take care", UserWarning, "here.py", 3)
    assert "WARNING py.warnings: here.py:3: UserWarning: take care" in stream.getvalue()


def test_closing_gives_everything_back():
    own = logging.getLogger("ziggurat")
    before = (own.level, own.propagate, list(own.handlers), warnings.showwarning)
    set_up = set_up_logging(stream=io.StringIO())
    set_up.close()
    set_up.close()
    assert (own.level, own.propagate, list(own.handlers), warnings.showwarning) == before


def test_a_library_users_root_logger_is_left_alone():
    code = (
        "import logging; import ziggurat.logs as logs; root = logging.getLogger(); "
        "assert not root.handlers and not logging.getLogger('ziggurat').handlers; "
        "logs.set_up_logging(); assert not root.handlers and root.level == logging.WARNING"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_full_disk_loses_lines_and_hides_no_error(capsys):
    full = open("/dev/full", "w")  # noqa: SIM115 - closing it fails
    with pytest.raises(ZeroDivisionError), set_up_logging(stream=full, job_log=Path("/dev/full")):
        LOGGER.info("a line that fits nowhere")
        raise ZeroDivisionError
    with suppress(OSError):
        full.close()
    assert capsys.readouterr().err == ""
