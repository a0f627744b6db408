"""Load shedding: the refusals of an overloaded front end, its probes, and senders that ignore refusals."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.web_request import BaseRequest

from gateway.settings import Settings
from gateway.web.admission.load_shedding import LOAD_SHEDDING, Limits, LoadShedding
from gateway.web.admission.refusals import NEGLIGIBLE_REFUSALS
from gateway.web.pages.brand import Brand
from gateway.web.pages.rendering import Pages
from gateway.web.server.connection_guard import ConnectionLimits, GuardedRunner

PROBE = "/healthz"
PAGES = Pages(Brand.of(Settings()))


async def alive(_request: web.Request) -> web.Response:
    return web.Response(text="alive")


@pytest.fixture
def limits() -> Limits:
    """The limits of a front end that admits no request."""
    limits = Limits(Settings())
    limits.load.max_in_progress = 0
    return limits


@pytest.fixture
async def base_url(limits: Limits) -> AsyncIterator[str]:
    app = web.Application()
    app[LOAD_SHEDDING] = LoadShedding(limits, frozenset({PROBE}), PAGES)
    app.router.add_route("*", "/{path:.*}", alive)
    runner = GuardedRunner(app, ConnectionLimits(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_refusal_in_an_overload_is_a_problem_document(base_url: str):
    async with aiohttp.ClientSession(base_url) as session:
        answers = [await session.get("/api/v1/jobs") for _ in range(2)]
        problems = [await answer.json(content_type="application/problem+json") for answer in answers]

    assert [answer.status for answer in answers] == [503, 503]
    assert {(problem["code"], problem["retryable"]) for problem in problems} == {("unavailable", True)}
    assert [answer.headers["X-Request-Id"] for answer in answers] == [problem["request_id"] for problem in problems]
    assert problems[0]["request_id"] != problems[1]["request_id"]
    assert {answer.headers["Retry-After"] for answer in answers} == {"1"}
    assert {answer.headers["X-Content-Type-Options"] for answer in answers} == {"nosniff"}


@pytest.mark.parametrize(
    ("path", "accept", "is_page"),
    [
        ("/console", "text/html,*/*;q=0.8", True),
        ("/console/jobs", "text/html", True),
        ("/console/jobs", "*/*", False),
        ("/console-not", "text/html", False),
        ("/api/v1/jobs", "text/html", False),
    ],
)
async def test_a_browser_at_the_console_gets_a_card_with_the_id_of_the_request(
    base_url: str, path: str, accept: str, is_page: bool
):
    async with aiohttp.ClientSession(base_url) as session, session.get(path, headers={"Accept": accept}) as answer:
        body = await answer.text()

    kind = "text/html" if is_page else "application/problem+json"
    assert (answer.status, answer.content_type, answer.headers["Retry-After"]) == (503, kind, "1")
    assert (f"<code>{answer.headers['X-Request-Id']}</code>" in body) == is_page
    assert ("default-src 'none'" in answer.headers.get("Content-Security-Policy", "")) == is_page
    assert "overloaded" in body


async def test_probes_are_answered_in_an_overload_and_all_requests_afterwards(base_url: str, limits: Limits):
    async with aiohttp.ClientSession(base_url) as session:
        probed = await session.get(PROBE)
        limits.load.max_in_progress = 1
        let_in = await session.get("/api/v1/jobs")

    assert (probed.status, let_in.status, limits.in_progress) == (200, 200, 0)


async def test_senders_are_paused_only_if_refusals_are_too_many(limits: Limits):
    rested: list[float] = []
    handle = LoadShedding(limits, frozenset(), PAGES).wrapped(
        cast(Any, alive), lambda _request, seconds: rested.append(seconds)
    )
    request = cast(BaseRequest, SimpleNamespace(path="/api/v1/jobs", headers={}))

    few = [await handle(request) for _ in range(NEGLIGIBLE_REFUSALS)]
    assert rested == []
    await handle(request)

    assert {answer.status for answer in few} == {503}
    assert rested == [1]


def test_in_an_overload_the_organization_that_sent_less_goes_on(limits: Limits):
    limits.turns.learn("Bearer hostile", "hostile")
    limits.turns.learn("Bearer polite", "polite")
    for authorization, count in (("Bearer hostile", 100), ("Bearer polite", 10)):
        for _ in range(count):
            limits.turns.begin(authorization)
    limits.in_progress, limits.load.max_in_progress = 33, 32

    admitted = [limits.admits(f"Bearer {who}") for who in ("hostile", "polite")]
    limits.in_progress = 65
    beyond = limits.admits("Bearer polite")

    assert (admitted, beyond) == ([False, True], False)


def test_in_an_overload_one_request_of_each_organization_goes_on(limits: Limits):
    """Those of a flood that is refused would otherwise be fewer than the polite ones that are admitted."""
    for authorization in ("Bearer hostile", "Bearer polite"):
        limits.turns.learn(authorization, authorization)
    limits.turns.begin("Bearer hostile")
    for _ in range(100):
        limits.turns.end(limits.turns.begin("Bearer polite"))
    limits.in_progress, limits.load.max_in_progress = 33, 32

    first = limits.admits("Bearer polite")
    limits.turns.begin("Bearer polite")
    second = limits.admits("Bearer polite")

    assert (first, second) == (True, False)


def test_strangers_share_one_turn_and_what_was_sent_is_forgotten(limits: Limits):
    limits.turns.learn("Bearer caller", "organization")
    strangers = [limits.turns.begin(f"Bearer unknown {number}") for number in range(100)]
    limits.turns.begin("Bearer caller")
    limits.in_progress, limits.load.max_in_progress = 33, 32

    assert set(strangers) == {None}
    assert not limits.admits("Bearer another")
    for _ in range(10):
        limits.turns.forget_half()
    for _ in range(2):
        limits.turns.begin("Bearer caller")
    assert limits.admits("Bearer another")
