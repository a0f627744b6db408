"""Names of hosts are looked up in threads that organizations share."""

import asyncio
import socket
import threading

import pytest

from gateway.foundation.aio.turns import compute_for
from gateway.upstream.egress import EgressConnector, EgressPolicy


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Names below `silent.test` have a name server that answers when this is set."""
    answers, looked_up = threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: object, **options: object) -> object:
        if host.endswith(".silent.test"):
            answers.wait(10)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return looked_up(host, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


async def looked_up(organization: str, host: str) -> list[str]:
    """The addresses of a host, as a connection to it looks them up."""
    compute_for(organization)
    async with EgressConnector(EgressPolicy()) as connector:
        return [each["host"] for each in await connector._resolve_host(host, 443)]


async def test_names_that_are_not_answered_hold_up_no_other_organizations_look_ups(silent: threading.Event):
    hostile = [asyncio.create_task(looked_up("hostile", f"{number}.silent.test")) for number in range(200)]
    await asyncio.sleep(0)

    async with asyncio.timeout(5):
        assert "127.0.0.1" in await looked_up("polite", "localhost")
    assert not any(each.done() for each in hostile)
    silent.set()
    failed = await asyncio.gather(*hostile, return_exceptions=True)
    assert {type(each) for each in failed} == {socket.gaierror}


async def test_a_look_up_whose_caller_left_keeps_its_place_until_it_ends(silent: threading.Event):
    left = [asyncio.create_task(looked_up("hostile", f"{number}.silent.test")) for number in range(8)]
    await asyncio.sleep(0)
    for each in left:
        each.cancel()
    waiting = asyncio.create_task(looked_up("hostile", "localhost"))
    assert "127.0.0.1" in await looked_up("polite", "localhost")
    assert not waiting.done()

    silent.set()

    async with asyncio.timeout(5):
        assert "127.0.0.1" in await waiting


async def test_a_text_that_is_no_name_is_an_error():
    with pytest.raises(socket.gaierror):
        await looked_up("polite", f"{'a' * 70}.test")
