"""The helper of the tests waits until something holds, and says what did not come."""

import pytest

from tests.waiting import stays, wait_until


def test_the_first_true_value_is_returned():
    values = iter([0, "", None, "there", "later"])
    assert wait_until(lambda: next(values)) == "there"


def never_there():
    return []


def test_what_did_not_come_is_named_with_the_last_value():
    with pytest.raises(AssertionError) as caught:
        wait_until(lambda: 0, 0.0, what="a checkpoint")
    assert str(caught.value) == "Waited 0 s for: a checkpoint. Last value: 0."
    with pytest.raises(AssertionError, match=r"^Waited 0\.01 s for: never_there\. Last value: \[\]\.$"):
        wait_until(never_there, 0.01)
    with pytest.raises(AssertionError, match=r"for: wait_until\(lambda: never_there\(\) == 5, 0\)\. Last value: False"):
        wait_until(lambda: never_there() == 5, 0)
    with pytest.raises(AssertionError, match=r"for: step 7 of 9\. Last"):
        wait_until(never_there, 0, what=lambda: "step 7 of 9")


def test_what_stays_is_looked_at_to_the_end():
    stays(lambda: True, 0.02)
    values = iter([1, 1, 0])
    with pytest.raises(AssertionError, match=r"^Held for less than 60 s: no further message\. Last value: 0\."):
        stays(lambda: next(values), 60, what="no further message")
