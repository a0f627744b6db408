"""Cron expressions in time zones: checks them, and computes their times. Pure.

Times that daylight saving time skips or repeats are handled as by Debian's cron: if the expression names the hour and
the minute, a skipped time runs immediately after the change, and a repeated time runs the first time. An expression
whose minute or hour begins with `*` follows real time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from cronsim import CronSim, CronSimError

from gateway.errors import FieldError, InvalidParams
from gateway.kinds.suggestions import did_you_mean

#: the shorthands of crontab(5)
_SHORTHANDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = 5
#: the time zone of the machine, which is not a name of the IANA database
_OF_MACHINE = "localtime"
_HELP = "a cron expression has five fields: minute hour day-of-month month day-of-week, such as '30 6 * * 1-5'"
#: the moment from which the first time of an expression is computed, to check it
_TRIED_AT = datetime(2024, 1, 1, tzinfo=UTC)


class Cron(msgspec.Struct, frozen=True):
    """An expression and the name of its time zone; create it with `parsed`."""

    expression: str
    timezone: str

    def times_after(self, moment: datetime) -> Iterator[datetime]:
        """The times after that moment, in UTC."""
        local = moment.astimezone(_zone(self.timezone))
        for time in CronSim(_SHORTHANDS.get(self.expression, self.expression), local):
            in_utc = time.astimezone(UTC)
            # Within a repeated hour, CronSim may return a time of its first pass again.
            if in_utc > moment:
                yield in_utc

    def next_after(self, moment: datetime) -> datetime:
        """The first time after that moment, in UTC."""
        return next(self.times_after(moment))

    def next_times(self, moment: datetime, count: int) -> list[datetime]:
        """The first times after that moment, in UTC."""
        return list(islice(self.times_after(moment), count))


def parsed(expression: str, timezone: str) -> Cron:
    """The expression in the time zone; raises InvalidParams with all faults."""
    faults = [*_faults_of_expression(expression), *_faults_of_timezone(timezone)]
    if faults:
        raise InvalidParams(faults=faults)
    return Cron(" ".join(expression.split()), timezone)


def _faults_of_expression(expression: str) -> Iterator[FieldError]:
    known = " ".join(expression.split())
    if known.startswith("@"):
        if known not in _SHORTHANDS:
            yield _fault("cron", f"cron is {expression!r}; {did_you_mean(known, _SHORTHANDS)}")
        return
    if len(known.split()) != _FIELDS:
        yield _fault("cron", f"cron is {expression!r}; {_HELP}")
        return
    try:
        next(CronSim(known, _TRIED_AT))
    except CronSimError as error:
        yield _fault("cron", f"cron is {expression!r}: {str(error).replace('Bad', 'invalid')}; {_HELP}")
    except StopIteration:
        yield _fault("cron", f"cron is {expression!r}, a date that does not exist; change the day or the month")


def _faults_of_timezone(timezone: str) -> Iterator[FieldError]:
    if timezone not in _timezones():
        hint = did_you_mean(timezone, _timezones()) if len(timezone) > 2 else ""
        hint = hint if hint.startswith("did") else "send a name of the IANA database, such as Europe/Berlin"
        yield _fault("timezone", f"timezone is {timezone!r}, which is unknown; {hint}")


@lru_cache(maxsize=1)
def _timezones() -> frozenset[str]:
    return frozenset(available_timezones()) - {_OF_MACHINE}


@lru_cache(maxsize=512)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _fault(field: str, message: str) -> FieldError:
    return FieldError(f"/{field}", field, "invalid", message)
