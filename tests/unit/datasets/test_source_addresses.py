"""A worker of a studio fetches datasets from public addresses, and from the hosts that a setting names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.unit.datasets.folder_sets import picture, put
from tests.unit.datasets.web_folders import fetched, serving
from ziggurat.datasets.creation.chunk import in_processes
from ziggurat.datasets.formats.text_list.importer import TextList
from ziggurat.datasets.sources import limit_addresses
from ziggurat.datasets.sources.web import WebClient, address_limits
from ziggurat.errors import DataError, DatapointError
from ziggurat.net.ssrf import AllowedAddresses, status_in_words
from ziggurat.settings import Settings, child_environment, load_settings
from ziggurat.worker.fetch_limits import keep_to_addresses

RULE = (
    "What a dataset is made of is fetched from a public address, or from a host that the setting `source_hosts` names."
)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[Any, str]]:
    put(tmp_path / "web", "set/a.png")
    with serving(tmp_path / "web") as served:
        yield served


@pytest.fixture(autouse=True)
def _no_limits() -> Iterator[None]:
    yield
    limit_addresses(None)


def limit(hosts: str = "") -> None:
    limit_addresses(AllowedAddresses.of("source_hosts", hosts))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"])
def test_this_machine_is_refused_however_it_is_written(tmp_path: Path, web: tuple[Any, str], host: str) -> None:
    port = web[0].server_port
    limit()

    with pytest.raises(DataError) as refused:
        fetched(tmp_path, f"http://{host}:{port}/set/")

    assert refused.value.rule == RULE
    assert refused.value.received == f"`{host.strip('[]')}:{port}`, which is in a network of the studio's machine"
    assert refused.value.advice == (
        "Send the files, or name a folder. Who runs the studio can add the host to `source_hosts`."
    )
    assert web[0].asked == []


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_networks_of_the_machine_are_refused_before_asking(scheme: str, address: str) -> None:
    limit()
    with pytest.raises(DataError) as refused:
        WebClient(1).open(f"{scheme}://{address}/latest/meta-data/")
    assert refused.value.rule == RULE


@pytest.mark.parametrize("hosts", ["127.0.0.1", "a.example.org, 127.0.0.1:{port}"])
def test_a_host_that_is_named_may_be_asked(tmp_path: Path, web: tuple[Any, str], hosts: str) -> None:
    limit(hosts.format(port=web[0].server_port))
    assert fetched(tmp_path, f"{web[1]}/set/").joinpath("a.png").read_bytes() == picture(0)


def test_a_name_is_asked_under_its_name(tmp_path: Path, web: tuple[Any, str]) -> None:
    limit("LocalHost.")
    source = fetched(tmp_path, f"http://localhost:{web[0].server_port}/set/")
    assert source.joinpath("a.png").read_bytes() == picture(0)


def test_a_redirect_leads_nowhere_else(tmp_path: Path, web: tuple[Any, str]) -> None:
    put(tmp_path / "other", "a.png")
    with serving(tmp_path / "other") as (other, address):
        web[0].away = f"{address}/"
        limit(f"127.0.0.1:{web[0].server_port}")
        with pytest.raises(DataError) as refused:
            fetched(tmp_path, f"{web[1]}/away/a.png")
        assert (refused.value.rule, other.asked) == (RULE, [])
        limit("127.0.0.1")
        assert fetched(tmp_path, f"{web[1]}/away/a.png").read_bytes() == picture(0)


def test_a_person_on_their_own_machine_may_ask_for_everything(tmp_path: Path, web: tuple[Any, str]) -> None:
    assert address_limits() is None
    assert fetched(tmp_path, f"{web[1]}/set/").joinpath("a.png").exists()


def test_pictures_of_a_list_are_refused_one_by_one(tmp_path: Path, web: tuple[Any, str]) -> None:
    tmp_path.joinpath("list.txt").write_text(f"{web[1]}/set/a.png 0\n")
    reader = TextList().reader(tmp_path / "list.txt", {"urls": True})
    assert reader.read(f"{web[1]}/set/a.png") == picture(0)
    limit()
    with pytest.raises(DatapointError) as refused:
        reader.read(f"{web[1]}/set/a.png?key=secret")
    assert refused.value.rule.endswith(f"it may not be fetched. {RULE}")
    assert "secret" not in str(refused.value)


def _limits(_shared: None, _number: int) -> AllowedAddresses | None:
    return address_limits()


def test_processes_that_are_started_keep_to_it_too() -> None:
    limit("nas")
    expected = AllowedAddresses("source_hosts", frozenset({"nas"}))
    assert list(in_processes(_limits, nullcontext, [(1,), (2,)], 1)) == [expected, expected]


def test_only_hosts_that_are_named_go_through_a_proxy(
    tmp_path: Path, web: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", web[1])
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    limit("far.invalid")
    with pytest.raises(DataError, match="answered 404 Not Found"):
        fetched(tmp_path, "http://far.invalid/set/")
    assert web[0].asked == ["http://far.invalid/set/"]
    with pytest.raises(DataError) as refused:
        fetched(tmp_path, "http://10.1.2.3/set/")
    assert (refused.value.rule, len(web[0].asked)) == (RULE, 1)


# ---- who fetches for whom


def test_workers_of_a_studio_are_told_those_of_a_person_not() -> None:
    for_one = load_settings({}, flags={"source_hosts": "nas:8000"})
    keep_to_addresses(load_settings(child_environment(for_one, {})))
    assert address_limits() is None

    variables = child_environment(Settings(source_hosts="nas:8000", is_for_others=True), {})
    assert variables == {"ZIGGURAT_FOR_OTHERS": "1"}
    keep_to_addresses(load_settings(variables))
    assert address_limits() == AllowedAddresses("source_hosts")

    keep_to_addresses(load_settings({"ZIGGURAT_FOR_OTHERS": "1", "ZIGGURAT_SOURCE_HOSTS": "nas:8000"}))
    assert address_limits() == AllowedAddresses("source_hosts", frozenset({"nas:8000"}))


def test_what_a_server_answers_has_one_wording() -> None:
    said = [status_in_words(number) for number in (404, 503, 799)]
    assert said == ["404 Not Found", "503 Service Unavailable", "799"]
