"""The time of day as PostgreSQL has it, whatever the machine's own clock says."""

import time

import pytest

from gateway.foundation.aio.clock import Clock, offset_within, steady


@pytest.mark.parametrize(
    ("offset", "low", "high", "expected"),
    [
        (100.0, 99.0, 101.0, 100.0),  # a reading that says nothing else
        (100.0, 60.0, 140.0, 100.0),  # nor does one that took long
        (100.0, 100.0, 100.0, 100.0),
        (100.0, 100.2, 100.4, 100.2),  # behind
        (100.0, 99.5, 99.8, 99.8),  # ahead
        (3700.0, 99.9, 100.0, 100.0),  # an hour ahead
        (-3500.0, 99.9, 100.0, 99.9),  # an hour behind
    ],
)
def test_a_reading_moves_the_clock_no_further_than_it_says(offset, low, high, expected):
    assert offset_within(offset, low, high) == expected


def test_a_clock_that_was_set_continues_from_there():
    clock, requested_at = Clock(), steady()

    clock.set_by(1_000_000.0, requested_at)

    assert 1_000_000.0 <= clock.unix_time() < 1_000_010.0
    assert clock.now().isoformat().startswith("1970-01-12T13:46:")


def test_a_clock_that_was_not_set_is_the_machines():
    assert abs(Clock().unix_time() - time.time()) < 1
