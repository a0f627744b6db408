"""The short storm; `make faults` runs the long ones."""

import pytest

from tests.faults.report import percentile
from tests.faults.storm import storm


async def test_a_storm_of_faults_loses_doubles_and_invents_nothing():
    report = await storm(jobs=120, faults=8)

    assert report.is_clean, report.table()
    assert report.accepted == 120
    assert sum(report.states.values()) == 120


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([], 0.5, 0.0),
        ([3.0], 0.99, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 0.5, 2.0),
        ([float(n) for n in range(200)], 0.99, 197.0),
    ],
)
def test_percentiles(values: list[float], share: float, expected: float):
    assert percentile(values, share) == expected
