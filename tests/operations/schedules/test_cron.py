"""Cron expressions: the times that they name, also where clocks are changed, and what is refused."""

from datetime import UTC, datetime

import pytest

from gateway.errors import InvalidParams
from gateway.operations.schedules.cron import parsed

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "timezone", "after", "times"),
    [
        ("30 6 * * 1-5", "UTC", "2026-01-02T07:00", ["2026-01-05T06:30", "2026-01-06T06:30"]),
        ("30 6 * * 1-5", BERLIN, "2026-01-02T07:00", ["2026-01-05T05:30", "2026-01-06T05:30"]),
        ("@daily", "America/New_York", "2026-07-01T00:00", ["2026-07-01T04:00", "2026-07-02T04:00"]),
        ("0 0 L * *", "UTC", "2026-01-01T00:00", ["2026-01-31T00:00", "2026-02-28T00:00"]),
        ("0  12 * * MON", "UTC", "2026-01-01T00:00", ["2026-01-05T12:00", "2026-01-12T12:00"]),
        # 02:30 is left out on 29 March: the run follows at 03:00 summer time
        ("30 2 * * *", BERLIN, "2026-03-28T12:00", ["2026-03-29T01:00", "2026-03-30T00:30"]),
        # 02:30 comes twice on 25 October: the run is the first of them
        ("30 2 * * *", BERLIN, "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        # between the two 02:30: the next run is that of the next day
        ("30 2 * * *", BERLIN, "2026-10-25T01:15", ["2026-10-26T01:30", "2026-10-27T01:30"]),
        # every half hour follows real time
        ("*/30 * * * *", BERLIN, "2026-10-25T00:00", ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30"]),
        ("*/30 * * * *", BERLIN, "2026-03-29T00:00", ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]),
    ],
)
def test_an_expression_names_these_times(expression, timezone, after, times):
    cron = parsed(expression, timezone)

    assert cron.next_times(utc(after), len(times)) == [utc(time) for time in times]


@pytest.mark.parametrize(
    ("expression", "timezone", "messages"),
    [
        ("61 * * * *", "UTC", ["cron is '61 * * * *': invalid minute; a cron expression has five fields"]),
        ("* * *", "UTC", ["cron is '* * *'; a cron expression has five fields"]),
        ("0 0 * * * *", "UTC", ["cron is '0 0 * * * *'; a cron expression has five fields"]),
        ("0 0 30 2 *", "UTC", ["invalid day-of-month"]),
        ("@dayly", "UTC", ["did you mean @daily?"]),
        ("", "UTC", ["cron is ''"]),
        ("0 0 * * *", "Europe/Berln", ["timezone is 'Europe/Berln', which is unknown; did you mean Europe/Berlin?"]),
        ("0 0 * * *", "../../etc/passwd", ["send a name of the IANA database"]),
        ("0 0 * * *", "localtime", ["timezone is 'localtime', which is unknown"]),
        ("every day", "Mars", ["cron is 'every day'", "timezone is 'Mars'"]),
    ],
)
def test_what_is_no_expression_or_no_time_zone_is_refused_by_name(expression, timezone, messages):
    with pytest.raises(InvalidParams) as refused:
        parsed(expression, timezone)

    for message, fault in zip(messages, refused.value.faults, strict=True):
        assert message in fault.message
