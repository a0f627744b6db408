"""Errors of the console: each keeps the navigation bar and names its request."""

import contextlib
from io import BytesIO
from uuid import UUID, uuid4

import pytest

from gateway.errors import Unavailable
from tests.harness.caller import Answer
from tests.harness.console import ConsoleBrowser, new_browser, signed_in
from tests.harness.in_process import FrontEnd, front_end


def has_bar_and_request(answer: Answer) -> bool:
    """Whether the page has the navigation, and the id of its request."""
    page = answer.body.decode()
    bar = '<a href="/console/connectors"' in page and "Sign out" in page
    return bar and f"<code>{answer.headers['X-Request-Id']}</code>" in page


async def too_large(browser: ConsoleBrowser) -> Answer:
    """The answer to a form that is larger than bodies may be."""
    form, headers = BytesIO(b"x" * (2 << 20)), {"Content-Type": "application/x-www-form-urlencoded"}
    async with browser.session.post("/console/webhooks", data=form, headers=headers) as response:
        return Answer(response.status, response.headers, await response.read())


async def test_every_error_keeps_the_bar_and_names_the_request(
    browser: ConsoleBrowser, front: FrontEnd, organization_id: UUID
):
    async with signed_in(front, *await front.client(organization_id, ["read"])) as reader:
        held = []
        answers = {
            "forbidden": await reader.get("/console/settings"),
            "foreign form": await browser.send("/console/webhooks", csrf="other"),
            "not found": await browser.get(f"/console/jobs/{uuid4()}"),
            "no id": await browser.get("/console/jobs/x"),
            "no page": await browser.get("/console/nothing"),
            "too large": await too_large(browser),
        }
        with contextlib.suppress(Unavailable):
            while True:
                held.append(front.limits.requests.acquire(organization_id))
        answers["overloaded"] = await browser.get("/console/jobs")
        for slot in held:
            slot.release()

    statuses = {name: answer.status for name, answer in answers.items()}
    assert statuses == {
        "forbidden": 403,
        "foreign form": 403,
        "not found": 404,
        "no id": 404,
        "no page": 404,
        "too large": 413,
        "overloaded": 503,
    }
    assert [name for name, answer in answers.items() if not has_bar_and_request(answer)] == []
    assert answers["overloaded"].headers["Retry-After"]


async def test_a_client_that_sends_too_much_is_told_so_with_the_bar(tmp_path, database_url, redis_url):
    rated = front_end(tmp_path, database_url, redis_url, client_rate=1)
    async with rated as front, signed_in(front, *await front.client()) as browser:
        answer = await browser.get("/console/jobs")
        while answer.status == 200:
            answer = await browser.get("/console/jobs")

    assert answer.status == 429
    assert has_bar_and_request(answer)
    assert answer.headers["Retry-After"]


@pytest.mark.parametrize("path", ["/console/sign-in", "/console/jobs"])
async def test_an_error_without_a_session_names_the_request(front: FrontEnd, path: str):
    async with (
        new_browser(front) as stranger,
        stranger.session.delete(path, headers={"X-Request-Id": "r-1"}) as refused,
    ):
        page = await refused.text()

    assert (refused.status, refused.headers["Allow"]) == (405, refused.headers["Allow"])
    assert "<code>r-1</code>" in page
    assert 'href="/console/jobs"' in page
    assert "Back to the console" in page
