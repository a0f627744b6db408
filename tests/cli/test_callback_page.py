"""The page that a browser opens after consent."""

import aiohttp
import pytest

from gateway.cli.callback_page import callback_page


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?connector_id=1", "Done."),
        ("?error=access_denied&error_description=no", "Nothing was connected."),
        ("?connector_id=1&note=error", "Done."),
    ],
)
async def test_the_page_says_whether_consent_was_given(query, message):
    async with callback_page() as url, aiohttp.ClientSession() as session, session.get(f"{url}{query}") as response:
        text = await response.text()

    assert response.status == 200
    assert message in text
    assert int(response.headers["Content-Length"]) == len(text.encode())
