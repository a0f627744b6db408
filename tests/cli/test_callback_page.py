"""The page on which a browser lands after consent."""

import aiohttp
import pytest

from gateway.cli.callback_page import callback_page


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?connector_id=1", "Done."),
        ("?error=access_denied&error_description=no", "Nothing was connected."),
        ("?connector_id=1&note=error", "Done."),
    ],
)
async def test_the_page_says_whether_consent_was_given(query, said):
    async with callback_page() as url, aiohttp.ClientSession() as session, session.get(f"{url}{query}") as response:
        text = await response.text()

    assert response.status == 200
    assert said in text
    assert int(response.headers["Content-Length"]) == len(text.encode())
