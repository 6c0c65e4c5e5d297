"""What the page of a job shows of its log: start-up messages and traces folded, epochs once."""

from __future__ import annotations

from ziggurat.web.pages.job.log import log_blocks

_NOISE = """2026-11-22 05:36:01.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] optimized
To enable the following instructions: AVX2, in other operations, rebuild TensorFlow.
E0000 00:00:1782106561.123456 4242 cuda_executor.cc:1309] failed call to cuInit
"""
_TRACE = """Traceback (most recent call last):
  File "network.py", line 5, in inference
    return slim.nothing(self.x)
AttributeError: no `nothing`
"""


def test_start_up_messages_of_a_framework_are_folded():
    blocks = log_blocks(f"first\n{_NOISE}last\n")

    assert [each.kind for each in blocks] == ["text", "noise", "text"]
    assert (blocks[0].text, blocks[2].text) == ("first", "last")
    assert blocks[1].text == _NOISE.rstrip("\n")
    assert "3 lines" in blocks[1].title


def test_a_trace_is_folded_and_its_error_stays_in_sight():
    first, trace, error = log_blocks(f"begun\n{_TRACE}")

    assert (first.kind, trace.kind, error.kind) == ("text", "trace", "text")
    assert error.text == "AttributeError: no `nothing`"


def test_an_epoch_is_shown_once():
    log = "epoch 1/2, step 5/11, cost=2\nepoch 1/2, step 11/11, cost=1\nEpoch 1/2, step 11\n  cost: 1\n"

    (block,) = log_blocks(log)

    assert block.text.splitlines() == ["epoch 1/2, step 5/11, cost=2", "Epoch 1/2, step 11", "  cost: 1"]


def test_a_few_lines_are_not_folded():
    noise = _NOISE.splitlines()[0]

    (block,) = log_blocks(f"one\n{noise}\ntwo\n")

    assert block.text == f"one\n{noise}\ntwo"


def test_an_empty_log_has_no_blocks():
    assert log_blocks("") == []
