"""`gateway login`: a program by its secret, a person by a browser; then commands need no settings."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest

from gateway.client import Gateway
from gateway.client.browser_sign_in import StoredTokens
from gateway.client.profiles import Profile, Profiles
from tests.harness.command_line import Ended, invoked, started
from tests.harness.processes import bare_environment
from tests.journeys.test_mcp_authorization import Person


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a user who has set nothing."""
    return {**bare_environment(), "XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.fixture
def command(environment, tmp_path) -> Callable[..., Awaitable[Ended]]:
    async def run(*words: str, stdin: bytes = b"", **variables: str) -> Ended:
        return await invoked(*words, environment={**environment, **variables}, directory=tmp_path, stdin=stdin)

    return run


def profiles_in(environment: dict[str, str]) -> Profiles:
    return Profiles(environment)


async def signed_in(running, environment, directory, **consent) -> Person:
    """The person whom a browser has led through `gateway login`."""
    process = await started("login", running.base_url, "--no-browser", environment=environment, directory=directory)
    url = ""
    while not url.startswith("http"):
        url = (await asyncio.wait_for(process.stderr.readline(), 30)).decode().strip()
    ready = {"base_url": running.base_url, "client_id": running.client_id, "client_secret": running.client_secret}
    person = Person(ready, **consent)
    await person.open(url)
    async with aiohttp.ClientSession() as browser, browser.get(person.landed) as page:
        person.pages.append(await page.text())
    _, err = await asyncio.wait_for(process.communicate(), 30)
    person.pages.append(err.decode())
    return person


async def test_a_program_signs_in_by_its_secret(command, running, environment):
    words = ("login", running.base_url, "--profile", "work", "--client-id", running.client_id, "-w", "login")

    wrong = await command(*words, "--client-secret", "@-", stdin=b"wrong")
    unsafe = await command(*words, "--client-secret", running.client_secret)
    right = await command(*words, "--client-secret", "@-", stdin=running.client_secret.encode())
    listed = await command("profiles", "-o", "json")
    called = await command("workspaces", "-o", "json")
    other = await command("workspaces", "--profile", "wrk")

    assert (wrong.code, unsafe.code, right.code) == (3, 2, 0), right.err
    assert "other users can read command lines" in unsafe.err
    assert [(each["name"], each["current"]) for each in listed.json()] == [("work", True)]
    assert running.client_secret not in listed.out
    assert called.code == 0, called.err
    assert (other.code, "did you mean work?" in other.err) == (4, True)


async def test_a_person_signs_in_by_a_browser_and_commands_act_for_them(command, running, environment, tmp_path):
    person = await signed_in(running, environment, tmp_path)

    listed = await command("connectors", "list", "-o", "json")
    shown = await command("profiles", "-o", "json")

    assert "command line" in person.pages[0]
    assert "Done." in person.pages[-2]
    assert (listed.code, isinstance(listed.json(), list)) == (0, True), listed.err
    assert shown.json()[0]["signed_in_as"] == "a person, by browser"


async def test_an_administrators_scope_is_not_given_to_a_command_line(command, running, environment, tmp_path):
    await signed_in(running, environment, tmp_path, scope=["read"])

    audit = await command("audit")
    written = await command("api", "POST", "connect/sessions", "-d", '{"workspace_name": "w"}')

    assert (audit.code, written.code) == (3, 3)
    assert "admin" in audit.err
    assert "write" in written.err


async def test_a_token_of_the_command_line_is_valid_for_the_api_only(command, running, environment, tmp_path):
    await signed_in(running, environment, tmp_path)
    token = (await command("token")).out.strip()

    async with (
        aiohttp.ClientSession(running.base_url, headers={"Authorization": f"Bearer {token}"}) as session,
        session.get("/api/v1/jobs") as jobs,
        session.post("/mcp", json={}) as tools,
    ):
        assert (jobs.status, tools.status) == (200, 401)


async def test_a_person_who_says_no_is_not_signed_in(running, environment, tmp_path):
    person = await signed_in(running, environment, tmp_path, decision="deny")

    assert "Nothing was connected" in person.pages[-2]
    assert "the sign-in was refused" in person.pages[-1]
    assert profiles_in(environment).all() == {}


async def test_processes_that_renew_together_renew_once_each_and_none_ends_the_sign_in(
    command, running, environment, tmp_path
):
    await signed_in(running, environment, tmp_path)
    kept = profiles_in(environment)
    before = kept.get("default")
    async with StoredTokens(kept, "default") as profile:
        ended = Profile(base_url=profile.base_url, client_id=profile.client_id, refresh_token=profile.refresh_token)
        StoredTokens(kept, "default").store(ended)

    processes = [
        await started("workspaces", "-o", "json", environment=environment, directory=tmp_path) for _ in range(3)
    ]
    outputs = [await asyncio.wait_for(each.communicate(), 60) for each in processes]

    assert [each.returncode for each in processes] == [0, 0, 0], outputs
    assert kept.get("default").refresh_token != before.refresh_token
    assert all(json.loads(out) is not None for out, _ in outputs)


async def test_after_logout_the_sign_in_has_ended_at_the_gateway_too(command, running, environment, tmp_path):
    await signed_in(running, environment, tmp_path)
    profile = profiles_in(environment).get("default")

    left = await command("logout")
    without = await command("workspaces", GATEWAY_URL=running.base_url)
    profiles_in(environment).save("default", profile)
    again = await command("workspaces")

    assert left.code == 0, left.err
    assert without.code == 3
    assert (again.code, "has ended; run `gateway login" in again.err) == (3, True)


async def test_an_address_that_is_no_gateway_is_reported(command, running):
    sandbox = await command("login", running.sandbox_url)
    nowhere = await command("login", "http://127.0.0.1:9")

    assert (sandbox.code, nowhere.code) == (4, 5)
    assert "does not answer as a gateway" in sandbox.err


async def test_the_python_client_uses_a_profile(running, environment, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", environment["XDG_CONFIG_HOME"])
    secret = Profile(
        base_url=running.base_url, client_id=running.client_id, client_secret=running.client_secret, workspace_name="w"
    )
    profiles_in(environment).save("work", secret)

    async with Gateway(profile="work") as gateway:
        assert gateway.settings.workspace_name == "w"
        assert await gateway.connectors.list() is not None
