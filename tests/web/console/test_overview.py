"""The overview: calls by client or connector."""

from uuid import UUID

import asyncpg
import pytest

from gateway.access.audit.usage import LATEST_CALLS
from tests.harness.console import ConsoleBrowser

_CLIENTS = """
    INSERT INTO clients (id, name, secret_hashes, scopes)
    SELECT gen_random_uuid(), $1 || ' ' || number, '{}', '{}' FROM generate_series(1, 22) AS number
"""
_CALLS = """
    INSERT INTO audit (organization_id, at, actor, what, outcome)
    SELECT $1, now() - number * interval '0.01 seconds', clients.id, 'tickets.list', 'succeeded'
    FROM generate_series(1, $3::integer) AS number JOIN clients ON clients.name = $2 || ' ' || 1 + number % 22
"""


async def called(database_url: str, organization_id: UUID, calls: int) -> None:
    """So many calls of the organization, by 22 clients."""
    owner = await asyncpg.connect(database_url)
    await owner.execute(_CLIENTS, str(organization_id))
    await owner.execute(_CALLS, organization_id, str(organization_id), calls)
    await owner.close()


async def shown(browser: ConsoleBrowser, query: str) -> str:
    answer = await browser.get(f"/console?{query}")
    assert answer.status == 200
    return answer.body.decode()


async def test_the_clients_below_the_twenty_busiest_are_one_row(
    browser: ConsoleBrowser, database_url: str, organization_id: UUID
):
    await called(database_url, organization_id, 220)

    page = await shown(browser, "by=client")

    assert page.count(f'<tr><th scope="row">{organization_id} ') == 20
    assert '2 others</th><td class="number">20</td><td class="number">0</td>' in page
    assert "Counted by client" not in page


@pytest.mark.parametrize("by", ["client", "connector"])
async def test_many_calls_are_counted_from_the_latest_on_and_the_page_says_so(
    browser: ConsoleBrowser, database_url: str, organization_id: UUID, by: str
):
    await called(database_url, organization_id, LATEST_CALLS + 1000)

    page = await shown(browser, f"by={by}")

    assert ("Counted by client: the latest 20,000 calls, since <" in page) == (by == "client")
    assert ("There are no calls by connector, or too many" in page) == (by == "connector")
