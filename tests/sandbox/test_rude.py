"""The sandbox is rude when it is told to be: what its answers have then."""

import asyncio

import pytest
from click.testing import CliRunner

from gateway.cli.sandbox import sandbox
from gateway.sandbox.rude import Behaviour

AUTH = {"Authorization": "Bearer token"}
REPOSITORIES = "/_kinds/gitlab/api/v4/projects"


async def answer_of(http, path, **params):
    async with http.get(path, params=params, headers=AUTH) as answer:
        return answer, await answer.text()


async def become(http, *behaviours, kinds=()):
    body = {"kinds": list(kinds), **({"behaviours": behaviours} if behaviours else {})}
    async with http.post("/_sandbox/rude", json=body) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize(
    ("behaviour", "text"),
    [
        (Behaviour.NULL_ITEMS, "[null,{"),
        (Behaviour.HALF_SURROGATES, r"cut \ud83d"),
        (Behaviour.HUGE_NUMBERS, "1e400"),
    ],
)
async def test_a_page_has_what_the_behaviour_says(http, behaviour, text):
    _, polite = await answer_of(http, REPOSITORIES)
    await become(http, behaviour, kinds=["gitlab"])

    _, rude = await answer_of(http, REPOSITORIES)

    assert text in rude
    assert text not in polite


@pytest.mark.parametrize(
    ("behaviour", "status", "content_type"),
    [
        (Behaviour.HTML_PAGES, 200, "text/html"),
        (Behaviour.WRONG_TYPES, 200, "text/plain"),
        (Behaviour.RATE_LIMITS, 429, "application/json"),
    ],
)
async def test_a_further_page_is_answered_as_the_behaviour_says(http, behaviour, status, content_type):
    await become(http, behaviour)

    answer, _ = await answer_of(http, REPOSITORIES, page=2)

    assert (answer.status, answer.content_type) == (status, content_type)


async def test_a_kind_that_was_not_named_stays_polite(http):
    _, before = await answer_of(http, REPOSITORIES)

    status, told = await become(http, kinds=["jira"])

    assert (status, told) == (200, {"kinds": {"jira": sorted(Behaviour)}})
    assert (await answer_of(http, REPOSITORIES))[1] == before


async def test_rudeness_ends_on_request_and_with_a_reset(http):
    _, before = await answer_of(http, REPOSITORIES)
    for path in ("/_sandbox/rude", "/_sandbox/state"):
        await become(http, Behaviour.NULL_ITEMS)
        assert (await answer_of(http, REPOSITORIES))[1] != before

        (await http.delete(path)).release()

        assert (await answer_of(http, REPOSITORIES))[1] == before


@pytest.mark.parametrize("body", [{"kinds": ["gitlub"]}, {"behaviours": ["silly"]}, {"kind": "gitlab"}])
async def test_unknown_kinds_behaviours_and_members_are_refused(http, body):
    async with http.post("/_sandbox/rude", json=body) as answer:
        assert (answer.status, list(await answer.json())) == (400, ["error"])


async def test_the_command_makes_a_running_sandbox_rude_and_polite(http, origin):
    async def command(*arguments):
        return await asyncio.to_thread(CliRunner().invoke, sandbox, ["rude", *arguments, "--url", str(origin)])

    on = await command("on", "--kind", "gitlab", "--behaviour", "null_items")
    async with http.get("/_sandbox/rude") as answer:
        rude = await answer.json()
    off = await command("off")
    async with http.get("/_sandbox/rude") as answer:
        polite = await answer.json()

    assert (on.exit_code, off.exit_code) == (0, 0)
    assert rude == {"kinds": {"gitlab": ["null_items"]}}
    assert polite == {"kinds": {}}
