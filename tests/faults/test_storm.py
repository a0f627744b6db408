"""The short storm; `make faults` runs the long one."""

from tests.faults.storm import storm


async def test_a_storm_of_kills_loses_doubles_and_invents_nothing():
    report = await storm(jobs=120, kills=6)

    assert report.is_clean, report.table()
    assert report.accepted == 120
    assert sum(report.states.values()) == 120
