"""A storm over metered calls: usage, the audit log and the application have the same calls."""

from tests.faults.metering import metering_storm


async def test_a_storm_over_calls_leaves_usage_as_the_application_received_them():
    report = await metering_storm(calls=40, faults=3)

    assert report.is_clean, report.table()
    assert report.ended["calls in usage"]["succeeded"] > 20
