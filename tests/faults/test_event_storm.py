"""A small storm of changes; `python -m tests.faults.event_storm` makes large ones."""

import pytest

from tests.faults.event_storm import storm


@pytest.mark.processes
async def test_every_change_is_delivered_in_order_though_workers_are_killed_and_receivers_fail():
    outcome = await storm(changes=1000, kills=1)

    assert outcome.is_clean, outcome
    assert outcome.deliveries.answers[500]
