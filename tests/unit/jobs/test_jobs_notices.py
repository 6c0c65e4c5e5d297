"""Notices: said once, encoded once, and a listener that is slow gets the newest."""

import threading

from ziggurat.jobs import EventBus


def taken(subscription):
    return [(notice.topic, notice.kind, notice.id, notice.offset) for notice in subscription.take()]


def test_a_listener_gets_what_it_chose():
    hub = EventBus()
    subscription = hub.subscribe(["job:7"])
    hub.publish("job:7", "state", "7")
    hub.publish("job:8", "state", "8")
    assert taken(subscription) == [("job:7", "state", "7", 0)]
    assert taken(subscription) == []


def test_newer_news_of_the_same_thing_takes_the_place_of_older():
    hub = EventBus()
    subscription = hub.subscribe()
    hub.publish("jobs", "events", "7", 100)
    hub.publish("jobs", "state", "7")
    hub.publish("jobs", "events", "7", 900)
    assert taken(subscription) == [("jobs", "state", "7", 0), ("jobs", "events", "7", 900)]


def test_a_notice_is_encoded_once_for_all():
    hub = EventBus()
    listeners = [hub.subscribe() for _ in range(3)]
    hub.publish("jobs", "events", "7", 100)
    encoded = [listener.take()[0].encoded for listener in listeners]
    assert encoded[0] == b'id: 1\nevent: events\ndata: {"topic":"jobs","kind":"events","id":"7","offset":100}\n\n'
    assert encoded[0] is encoded[1] is encoded[2]


def test_a_line_break_in_an_id_cannot_end_the_event():
    assert EventBus().publish("jobs", "state", "7\n\ndata: x").encoded.count(b"\n") == 4


def test_too_much_for_a_slow_listener_becomes_one_reload():
    hub = EventBus()
    subscription = hub.subscribe(limit=3)
    for number in range(4):
        hub.publish("jobs", "state", str(number))
    hub.publish("jobs", "state", "9")
    assert taken(subscription) == [("", "reload", "", 0)]
    hub.publish("jobs", "state", "10")
    assert taken(subscription) == [("jobs", "state", "10", 0)]


def test_who_comes_back_gets_what_it_missed():
    hub = EventBus()
    last = hub.publish("jobs", "state", "1").number
    hub.publish("jobs", "state", "2")
    hub.publish("queue", "waiting")
    assert taken(hub.subscribe(["jobs"], since=last)) == [("jobs", "state", "2", 0)]
    assert taken(hub.subscribe(["jobs"])) == []


def test_who_was_away_for_too_long_asks_for_everything():
    hub = EventBus(kept=2)
    for number in range(5):
        hub.publish("jobs", "state", str(number))
    assert taken(hub.subscribe(since=1)) == [("", "reload", "", 0)]
    assert taken(hub.subscribe(since=4)) == [("jobs", "state", "4", 0)]


def test_the_number_of_another_hub_asks_for_everything():
    assert taken(EventBus().subscribe(since=77)) == [("", "reload", "", 0)]


def test_a_listener_can_wait():
    hub = EventBus()
    subscription = hub.subscribe()
    thread = threading.Timer(0.05, hub.publish, ("jobs", "state", "7"))
    thread.start()
    assert [notice.id for notice in subscription.take(timeout_s=30)] == ["7"]
    thread.join()
    assert subscription.take(timeout_s=0.01) == []


def test_a_loop_is_told_once_when_there_is_something():
    called = []
    hub = EventBus()
    subscription = hub.subscribe(ready=lambda: called.append(1))
    hub.publish("jobs", "state", "7")
    hub.publish("jobs", "state", "8")
    assert len(called) == 1
    subscription.take()
    hub.publish("jobs", "state", "9")
    assert len(called) == 2


def test_a_closed_subscription_gets_nothing_and_keeps_nobody():
    hub = EventBus()
    subscription = hub.subscribe()
    subscription.close()
    subscription.close()
    hub.publish("jobs", "state", "7")
    assert subscription.take(timeout_s=30) == []


def test_many_threads_publish_and_nothing_is_lost():
    hub = EventBus()
    subscription = hub.subscribe(limit=10_000)
    threads = [
        threading.Thread(target=lambda first=first: [hub.publish("jobs", "state", f"{first}-{n}") for n in range(200)])
        for first in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({notice.id for notice in subscription.take()}) == 800
    assert hub.number == 800
