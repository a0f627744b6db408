"""Found by processes of a test by their PYTHONPATH: their machine's clock is off by what a file says, in seconds."""

import datetime
import os
import time
from pathlib import Path

_FILE = Path(os.environ["CLOCK_SHIFT"])
_real_time, _real_datetime = time.time, datetime.datetime


def _shift() -> float:
    return float(_FILE.read_text())


class _ShiftedKind(type(_real_datetime)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real_datetime)


class _Shifted(_real_datetime, metaclass=_ShiftedKind):
    __slots__ = ()

    def __new__(cls, *args: object, **kwargs: object) -> datetime.datetime:  # type: ignore[misc]
        return _real_datetime(*args, **kwargs)  # type: ignore[arg-type]  # msgspec encodes no subclass

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return _real_datetime.now(tz) + datetime.timedelta(seconds=_shift())

    @classmethod
    def fromtimestamp(cls, timestamp: float, tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return _real_datetime.fromtimestamp(timestamp, tz)

    @classmethod
    def utcnow(cls) -> datetime.datetime:
        return cls.now(datetime.UTC).replace(tzinfo=None)


time.time = lambda: _real_time() + _shift()
time.time_ns = lambda: int(time.time() * 1e9)
datetime.datetime = _Shifted  # type: ignore[misc]
