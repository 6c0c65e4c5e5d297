"""The outbox of a receiver: tries, and that nobody waits for it."""

import logging
import threading

import pytest

from ziggurat.services.outbox import DeliveryError, Message, Outbox

SOON = (0.0, 0.0)


def message(title="Run finished: lenet"):
    return Message(kind="finished", title=title, text="It is done.", time=0.0)


class Receiver:
    """Fails as often as told, then takes what it gets."""

    def __init__(self, *errors):
        self.errors, self.tries, self.got = list(errors), 0, []

    def __call__(self, sent):
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        self.got.append(sent.title)


@pytest.fixture
def outbox():
    made = []

    def make(send, **options):
        made.append(Outbox("webhook", send, clock=lambda: 7.0, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_message_is_tried_again_until_it_is_taken(outbox):
    receiver = Receiver(DeliveryError("it answered 503"), DeliveryError("it answered 503"))
    box = outbox(receiver, retry_after_s=SOON)
    outcome = box.put(message()).result(30)
    assert (outcome.problem, receiver.tries, receiver.got) == ("", 3, ["Run finished: lenet"])
    assert box.last == outcome


@pytest.mark.parametrize("options", [{"once": True}, {}])
def test_a_message_is_given_up_after_its_tries(outbox, options):
    receiver = Receiver(*[DeliveryError("it answered 503")] * 9)
    outcome = outbox(receiver, retry_after_s=SOON).put(message(), **options).result(30)
    assert outcome.problem == "it answered 503"
    assert receiver.tries == (1 if options else 3)


def test_a_final_error_is_not_tried_again(outbox):
    receiver = Receiver(DeliveryError("it answered 404 Not Found", is_final=True))
    assert outbox(receiver, retry_after_s=SOON).put(message()).result(30).problem == "it answered 404 Not Found"
    assert receiver.tries == 1


def test_a_strange_error_ends_no_thread_and_tells_no_secret(outbox, caplog):
    receiver = Receiver(ValueError("password123"), ValueError("password123"), ValueError("password123"))
    box = outbox(receiver, retry_after_s=SOON)
    with caplog.at_level(logging.INFO):
        assert box.put(message()).result(30).problem == "unexpected ValueError"
    assert "password123" not in caplog.text
    assert box.put(message("next")).result(30).problem == ""


def test_a_dead_receiver_delays_nobody(outbox):
    began, ends = threading.Event(), threading.Event()

    def never(_sent):
        began.set()
        ends.wait()

    box = outbox(never)
    waiting = [box.put(message()) for _ in range(300)]  # each returns at once, or this test never ends
    assert began.wait(30)
    assert [each.cancelled() for each in waiting].count(True) >= 199  # the oldest ones were dropped
    box.close()  # without waiting
    assert not waiting[0].done() or waiting[0].cancelled()
    ends.set()


def test_a_pause_between_tries_ends_with_the_outbox(outbox):
    receiver = Receiver(DeliveryError("it answered 503"))
    box = outbox(receiver, retry_after_s=(3600.0,))
    result = box.put(message())
    box.close()
    assert box.put(message()).done() is False  # nothing is sent any more
    if receiver.tries:
        assert result.result(30).problem == "it answered 503"
