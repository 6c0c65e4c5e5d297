"""The event stream, asked as a server asks the app: parts come one by one."""

import asyncio
import json
import threading

import pytest
from api_parts import bearer, cookie

from ziggurat.jobs.pubsub import EventBus
from ziggurat.server.event_stream import Streams


class Reader:
    """Reads a stream in the running event loop."""

    def __init__(self, app, query="", **headers):
        self.parts = []
        self.status = None
        self.headers = {}
        self._gone = asyncio.Event()
        self._asked = False
        self._news = asyncio.Event()
        given = [(b"host", b"localhost:5000"), *((k.lower().encode(), v.encode()) for k, v in headers.items())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/api/v1/events",
            "raw_path": b"/api/v1/events",
            "query_string": query.encode(),
            "root_path": "",
            "headers": given,
            "client": ("127.0.0.1", 40000),
            "server": ("127.0.0.1", 5000),
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self):
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        elif message.get("body"):
            self.parts.append(message["body"])
        self._news.set()

    @property
    def text(self):
        return b"".join(self.parts).decode()

    async def until(self, wanted):
        async with asyncio.timeout(20):
            while wanted not in self.text:
                self._news.clear()
                await self._news.wait()

    async def end(self):
        async with asyncio.timeout(20):
            await self.task

    async def leave(self):
        self._gone.set()
        await self.end()


def test_a_notice_reaches_who_chose_its_topic(site, run):
    async def scene():
        app = site.app()
        jobs, queue, all_of_it = Reader(app, "topics=jobs,job:1-a"), Reader(app, "topics=queue"), Reader(app)
        for reader in (jobs, queue, all_of_it):
            await reader.until("hello")
        site.notices.publish("job:1-a", "events", "1-a", 512)
        site.notices.publish("queue", "waiting")
        data = '{"topic":"job:1-a","kind":"events","id":"1-a","offset":512}'
        await jobs.until(f"\nid: {app.state.streams.server}-1\nevent: events\ndata: {data}\n\n")
        await queue.until("-2\nevent: waiting\n")
        await all_of_it.until("-2\nevent: waiting\n")
        assert "-1\nevent: events\n" in all_of_it.text
        assert "event: events\n" not in queue.text
        for reader in (jobs, queue, all_of_it):
            await reader.leave()
        assert len(app.state.streams) == 0
        assert jobs.headers[b"content-type"].startswith(b"text/event-stream")
        assert jobs.headers[b"x-accel-buffering"] == b"no"

    run(scene())


def test_the_first_event_says_place_and_life_of_the_server(site, run):
    async def scene(app):
        site.notices.publish("jobs", "added", "1-a")
        reader = Reader(app)
        await reader.until("hello")
        await reader.leave()
        return reader.text

    first, second = run(scene(site.app())), run(scene(site.app()))
    servers = [json.loads(text.partition("data: ")[2])["server"] for text in (first, second)]
    assert first.startswith(f"retry: 2000\nid: {servers[0]}-1\nevent: hello\ndata: ")
    assert len(set(servers)) == 2


def test_who_comes_back_gets_what_they_missed(site, run):
    async def scene():
        app = site.app()
        for number in range(3):
            site.notices.publish("jobs", "changed", f"job-{number}")
        first = f"{app.state.streams.server}-1"
        by_header, by_query = Reader(app, **{"Last-Event-ID": first}), Reader(app, f"last_event_id={first}")
        for reader in (by_header, by_query):
            await reader.until('"id":"job-2"')
            assert '"id":"job-1"' in reader.text
            assert '"id":"job-0"' not in reader.text
            await reader.leave()

    run(scene())


@pytest.mark.parametrize("last", ["7", "-3", "a'; --", "9" * 30, "9" * 5000, "١"])
@pytest.mark.parametrize("life", ["{}-", "{}", "another-", "", "-"])
def test_who_comes_back_from_elsewhere_asks_for_everything(site, run, last, life):
    async def scene():
        app = site.app()
        last_id = life.format(app.state.streams.server) + last
        reader = Reader(app, **{"Last-Event-ID": last_id.encode().decode("latin-1")})
        await reader.until("event: reload\n")
        await reader.leave()

    site.notices.publish("jobs", "added", "1-a")
    run(scene())


def ids_of(text):
    return [line.removeprefix("id: ") for line in text.splitlines() if line.startswith("id: ")]


@pytest.mark.parametrize(("before", "after"), [(7, 3), (3, 7), (5, 5), (0, 4), (4, 0)])
def test_who_comes_back_to_another_life_reloads_everything(site, run, before, after):
    async def life(numbers, last, later):
        site.notices = EventBus()  # it begins to count anew in each life
        for number in range(numbers):
            site.notices.publish("jobs", "changed", f"{later}-{number}")
        reader = Reader(site.app(), "topics=jobs", **({"Last-Event-ID": last} if last else {}))
        await reader.until("event: reload\n" if last else "event: hello\n")
        site.notices.publish("jobs", "added", later)
        await reader.until(f'"id":"{later}"')
        await reader.leave()
        return ids_of(reader.text)[-1], reader.text

    async def scene():
        last, text = await life(before, "", "first")
        assert "event: reload" not in text
        last, text = await life(after, last, "second")
        assert text.index("event: reload\n") < text.index('"id":"second"')
        assert "event: reload\n" in (await life(after, last, "third"))[1]

    run(scene())


def test_the_place_before_the_first_notice_can_be_resumed(site, run):
    async def scene():
        app = site.app()
        reader = Reader(app)
        await reader.until("hello")
        await reader.leave()
        site.notices.publish("jobs", "added", "1-a")
        again = Reader(app, **{"Last-Event-ID": ids_of(reader.text)[-1]})
        await again.until('"id":"1-a"')
        assert "event: reload" not in again.text
        await again.leave()

    run(scene())


@pytest.mark.parametrize(
    "query", ["topics=Jobs", "topics=a%0ab", "topics=" + ",".join(["a"] * 65), "topics=" + "a" * 9000]
)
def test_odd_topics_are_refused(site, run, query):
    async def scene():
        reader = Reader(site.app(), query)
        await reader.end()
        return reader

    reader = run(scene())
    assert reader.status in (400, 422)
    assert json.loads(reader.text)["error"] in ("usage", "validation")


def test_a_quiet_stream_says_that_it_lives(site, run):
    async def scene():
        reader = Reader(site.app(streams=Streams(heartbeat_s=0.01)))
        await reader.until(": still here\n\n: still here\n\n")
        await reader.leave()

    run(scene())


def test_logging_out_ends_the_stream(site, run):
    held = cookie(site.add("ann"))

    async def scene():
        app = site.app(streams=Streams(recheck_s=3600))
        mine, other = Reader(app, **held), Reader(app, **cookie(site.add("ann")))
        await mine.until("hello")
        await other.until("hello")
        async with site.client(app) as client:
            await client.post("/api/v1/logout", headers=held)
        await mine.end()
        site.notices.publish("jobs", "added", "1-a")
        await other.until("1-a")
        assert "1-a" not in mine.text
        await other.leave()

    run(scene())


@pytest.mark.parametrize("how", ["disabled", "session", "token", "first account"])
def test_whoever_loses_their_right_elsewhere_loses_the_stream(site, run, how):
    headers = {}
    if how == "token":
        headers = bearer(site.add("bob", "viewer", scope="read"))
    elif how != "first account":
        headers = cookie(site.add("bob", "viewer"))

    def lose():  # as the shell does it, in another process
        if how == "first account":
            site.add("ann")
        elif how == "disabled":
            site.store.people.users.set_disabled(site.people.user("bob").id, True)
        elif how == "session":
            site.store.people.sessions.revoke_all(site.people.user("bob").id)
        else:
            site.store.people.tokens.revoke(site.people.tokens()[0].id)

    async def scene():
        reader = Reader(site.app(streams=Streams(recheck_s=0.01)), **headers)
        await reader.until("hello")
        lose()
        await reader.end()

    run(scene())


def test_a_hundred_readers_get_all_and_notices_encode_once(site, run):
    encoded = {}

    def publish():
        for number in range(200):
            notice = site.notices.publish("jobs", "changed", f"job-{number}")
            encoded[notice.encoded] = notice

    async def scene():
        app = site.app()
        readers = [Reader(app, "topics=jobs") for _ in range(100)]
        for reader in readers:
            await reader.until("hello")
        assert len(app.state.streams) == 100
        thread = threading.Thread(target=publish)
        thread.start()
        for reader in readers:
            await reader.until('"id":"job-199"')
        thread.join()
        for reader in readers:
            assert [line for line in reader.text.splitlines() if line.startswith("id: ")][1:] == [
                f"id: {app.state.streams.server}-{number}" for number in range(1, 201)
            ]
            await reader.leave()
        assert len(app.state.streams) == 0

    run(scene())
    assert len(encoded) == 200


def test_too_slow_readers_are_told_to_ask_for_everything(site, run):
    async def scene():
        app = site.app()
        slow, quick = Reader(app), Reader(app)
        await slow.until("hello")
        await quick.until("hello")
        for number in range(2000):  # nobody takes one meanwhile: this loop does not give way
            site.notices.publish("jobs", "changed", f"job-{number}")
        for reader in (slow, quick):
            await reader.until("event: reload\n")
            await reader.leave()

    run(scene())


def test_streams_have_a_limit(site, run):
    async def scene():
        app = site.app(streams=Streams(most=2))
        readers = [Reader(app), Reader(app)]
        for reader in readers:
            await reader.until("hello")
        third = Reader(app)
        await third.end()
        assert third.status == 503
        assert third.headers[b"retry-after"] == b"10"
        for reader in readers:
            await reader.leave()
        fourth = Reader(app)
        await fourth.until("hello")
        await fourth.leave()

    run(scene())


def test_streams_of_one_user_leave_room_for_others(site, run):
    async def scene():
        site.add("ann")
        bob, cid = (bearer(site.add(name, "viewer", scope="read")) for name in ("bob", "cid"))
        app = site.app(streams=Streams(most=10, most_each=2))
        mine = [Reader(app, **bob) for _ in range(2)]
        for reader in mine:
            await reader.until("hello")
        third = Reader(app, **bob)
        await third.end()
        assert (third.status, third.headers[b"retry-after"]) == (503, b"10")
        assert "A user has at most 2 event streams open at a time." in third.text
        other = Reader(app, **cid)
        await other.until("hello")
        for reader in (*mine, other):
            await reader.leave()

    run(scene())


def test_the_end_of_the_server_ends_all_streams(site, run):
    async def scene():
        app = site.app()
        readers = [Reader(app) for _ in range(3)]
        for reader in readers:
            await reader.until("hello")
        app.state.streams.close()
        for reader in readers:
            await reader.end()
        late = Reader(app)
        await late.end()
        assert late.status == 503

    run(scene())
