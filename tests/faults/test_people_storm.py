"""A storm of people: nobody's call, record or event is another's."""

from tests.faults.people import people_storm


async def test_a_storm_of_people_mixes_nobodys_accounts_records_and_events():
    report = await people_storm(people=6, calls=120, faults=2)

    assert report.is_clean, report.table()
    assert report.counts["accounts called"] > 6 * 4
    assert report.counts["events delivered"] > 0
    assert report.ended["agent"]["succeeded"] > 5
    assert report.ended["trespass"]["succeeded"] > 5
