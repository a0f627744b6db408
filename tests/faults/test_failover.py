"""A short failover; `make faults` runs the long ones."""

import pytest

from tests.faults.failover import Loss, failover

pytestmark = pytest.mark.processes


async def test_a_primary_that_falls_silent_is_replaced_by_its_standby_without_a_lost_or_doubled_job():
    report = await failover(Loss.SILENT, 100)

    assert report.is_clean, report.table()
    assert (report.accepted, report.ends.total()) == (100, 100)
