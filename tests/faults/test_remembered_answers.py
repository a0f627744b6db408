"""One round of each strike; `make faults` has more."""

from tests.faults.remembered_answers import STRIKES, remembered_answers


async def test_no_remembered_answer_outlives_a_write_whatever_is_struck_meanwhile():
    report = await remembered_answers(rounds=1)

    assert report.is_clean, report.table()
    assert set(report.strikes) == set(STRIKES)
    assert report.answers.total() > 0
