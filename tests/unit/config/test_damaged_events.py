"""Lines of events.jsonl that were damaged, or written by somebody else, stop nobody from reading the others."""

import pytest

from ziggurat.errors import JobError
from ziggurat.events import UnknownEvent, decode_event


@pytest.mark.parametrize(
    "line",
    [
        '{"type": "scalar", "time": 1}',
        '{"type": "scalar", "time": 1, "tag": "cost", "value": "x", "step": 1, "epoch": 1}',
        '{"type": "scalar", "time": 1, "version": "x", "tag": "cost", "value": 1, "step": 1, "epoch": 1}',
    ],
)
def test_an_event_that_lacks_something_is_damaged(line):
    with pytest.raises(JobError, match="damaged after it was written"):
        decode_event(line)


def test_an_event_of_a_newer_release_is_kept_and_not_understood():
    assert isinstance(decode_event('{"type": "scalar", "time": 1, "version": 2}'), UnknownEvent)


def test_a_line_that_is_nested_too_deeply_is_damaged():
    with pytest.raises(JobError, match="damaged after it was written"):
        decode_event('{"type": ' + "[" * 100_000)
