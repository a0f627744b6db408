"""A small storm of notices; `python -m tests.faults.notice_storm` makes large ones."""

import pytest

from tests.faults.notice_storm import notices


@pytest.mark.processes
async def test_lost_and_doubled_notices_cost_time_and_no_change():
    outcome = await notices(changes=200, kills=1, interval=5)

    assert outcome.is_clean, outcome
