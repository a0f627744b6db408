"""A short move of an organization under load; `make faults` runs the long one."""

import pytest

from tests.faults.move import move_storm

pytestmark = pytest.mark.processes


async def test_an_organization_moves_under_load_without_a_lost_or_doubled_write():
    report = await move_storm(writes=100, queued=150)

    assert report.is_clean, report.table()
