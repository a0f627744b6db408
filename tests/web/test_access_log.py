"""The access log has its own switch, and a share of the successful requests."""

import logging
from collections import Counter

import pytest

from tests.harness.in_process import front_end


@pytest.mark.parametrize(
    ("settings", "least", "most", "refused"),
    [
        ({}, 60, 60, 3),
        ({"access_log": False}, 0, 0, 0),
        ({"access_log_share": 0}, 0, 0, 3),
        ({"access_log_share": 0.5}, 5, 55, 3),
    ],
)
async def test_the_access_log_has_its_share_of_successful_requests_and_all_others(
    tmp_path, database_url, redis_url, caplog, settings, least, most, refused
):
    caplog.set_level(logging.INFO, logger="gateway.access")
    async with front_end(tmp_path, database_url, redis_url, **settings) as front, front.api() as api:
        caplog.clear()
        for _ in range(60):
            await api.get("/api/v1/jobs?limit=1")
        for _ in range(3):
            await api.get("/api/v1/no-such-path")

    logged = Counter(record.status for record in caplog.records if record.name == "gateway.access")
    assert least <= logged[200] <= most
    assert logged[404] == refused
