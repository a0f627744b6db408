"""A storm over calls that wait for approvals: exactly the approved ones are made, each once."""

from tests.faults.approvals import approval_storm


async def test_a_storm_over_approvals_makes_exactly_the_approved_calls_once():
    report = await approval_storm(approvals=30, faults=3)

    assert report.is_clean, report.table()
    assert sum(report.ended["approved"].values()) + sum(report.ended["denied"].values()) == 30
