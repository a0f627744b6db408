"""How many requests a process may have in progress, and when those that are refused may come again. Pure."""

from collections import deque
from dataclasses import dataclass
from math import ceil, inf
from statistics import median

from gateway.telemetry.loop_lag import INTERVAL

#: requests in progress that are never too many: they keep a process busy without making each other wait for long
_FEW = 32
#: the same while processes beside it start and stop: it takes their requests, and they take its processors
_FEW_IN_RESTART = 256
#: seconds from the notification that a process starts or stops until its successor works
_RESTART = 15.0
#: samples, all of them of a process whose cycles are too long, that make an overload of a burst
_SAMPLES = 8
#: of those, the ones that make an overload where too much waits, and whose median tells how it is now
_RECENT = 3
#: seconds of a cycle of the event loop that are never too long, and what else it may be of the time that a request is
#: in progress: some ten cycles are half of it
_SHORT_CYCLE, _CYCLE_SHARE = 0.006, 0.05
#: seconds that a request may always wait here, besides as long as it waits for applications; the same where many are
#: refused anyway, so that a longer queue would not get more done; and how many times as long is an overload at once
_SHORT_WAIT, _SHORT_WAIT_IN_RUSH, _FLOOD = 0.06, 0.01, 4
#: of the averages over the last second, what one sample counts
_WEIGHT = INTERVAL
#: how the number moves: at most halved at a time, a few more with each sample, and the part of it in progress that
#: shows, for a second, that the rush is over
_MIN_FACTOR, _MORE, _EASE = 0.5, 0.05, 0.5
_SAMPLES_A_SECOND = round(1 / INTERVAL)
#: refusals in a second that are always few; the part of what is let in from which on they are a rush; and the part that
#: they may be at most, as some three of them take as long as a call
FEW_REFUSALS, _RUSH_SHARE, _REFUSED_SHARE = 100, 0.1, 0.5
#: seconds after which the senders of refused requests may come again, at most
_MAX_RETRY_AFTER = 10


class RequestTime:
    """How long requests are in progress, by Little's law: as many as there are, over as many as end in a second.

    In seconds, on average over about the last second.
    """

    def __init__(self) -> None:
        self._here, self._calling, self._rate = 0, 0.0, 0.0
        self._last = 0

    def observe(self, in_progress: int, calling: int, admitted: int) -> None:
        """A sample: so many are in progress, of which so many wait for applications; `admitted` since the last one."""
        ended = admitted - (in_progress - self._last)
        self._last = in_progress
        self._here = max(0, in_progress - calling)
        self._calling += (min(in_progress, calling) - self._calling) * _WEIGHT
        self._rate += (ended / INTERVAL - self._rate) * _WEIGHT

    @property
    def here(self) -> float:
        """In our own hands, by those that are there now."""
        return self._here / self._rate if self._rate > 0 else 0.0

    @property
    def calling(self) -> float:
        """Waiting for applications."""
        return self._calling / self._rate if self._rate > 0 else inf


@dataclass(frozen=True, slots=True)
class _Sample:
    """Of a busy process: how long requests wait in our own hands, and how long a cycle takes, as parts of how long they
    may; more than 1 is too long.
    """

    here: float
    cycle: float


class Overload:
    """How many requests may be in progress: judged by how long they wait for each other, and found by feeling for it.

    What waits is seen at the cycles of the event loop and, by Little's law, at the number that waits for anything but
    an application. How long is too long goes by the time that a request takes: next to an application that answers in
    a second a tenth of it is little, next to a fast one it is an overload.
    """

    def __init__(self, max_load: float, *, warm_up: int = 0) -> None:
        self._max_load = max_load
        #: samples that do not count yet: what a process has to do at its start is no overload
        self._warm_up = warm_up
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES)
        self._time = RequestTime()
        #: samples in a row of a busy process, which takes at most twice what it has until the next sample
        self._busy_samples = 0
        #: as it was found by trying, be it for longer than until the next sample
        self._limit = inf
        self._easy_samples = 0
        #: samples until processes that start or stop nearby count as done with it
        self._restart_samples = 0
        #: the requests that may be in progress: one more is let in where there are fewer
        self.max_in_progress = inf

    def expect_restart(self) -> None:
        """A process starts or stops: until it is replaced, a queue that it causes is not taken for an overload."""
        self._restart_samples = round(_RESTART / INTERVAL)
        self.max_in_progress = max(self.max_in_progress, _FEW_IN_RESTART)

    def observe(
        self, busy: float, cycle: float, in_progress: int, admitted: int, calling: int = 0, *, is_rush: bool = False
    ) -> None:
        """A sample of the process: the busy share of its time, and the seconds of a cycle of its event loop.

        Of the requests in progress, `calling` wait for applications, and `admitted` came since the last sample; in a
        rush many more are refused.
        """
        if self._max_load >= 1:
            return
        self._time.observe(in_progress, calling, admitted)
        self._restart_samples = max(0, self._restart_samples - 1)
        if self._warm_up:
            self._warm_up -= 1
            return
        is_busy = busy >= self._max_load
        self._busy_samples = self._busy_samples + 1 if is_busy else 0
        self._samples.append(self._sample(cycle, is_rush) if is_busy else _Sample(0.0, 0.0))
        if self._limit < inf:
            self._adjust(in_progress)
        elif self._has_begun():
            self._limit = max(_FEW, in_progress * _MIN_FACTOR)
        self.max_in_progress = (
            min(self._limit, 2 * max(_FEW, in_progress)) if self._busy_samples >= _RECENT else self._limit
        )
        if self._restart_samples:
            self.max_in_progress = max(self.max_in_progress, _FEW_IN_RESTART)

    def _sample(self, cycle: float, is_rush: bool) -> "_Sample":
        here, calling = self._time.here, self._time.calling
        short = _SHORT_WAIT_IN_RUSH if is_rush else _SHORT_WAIT
        return _Sample(here / max(short, calling), cycle / max(_SHORT_CYCLE, _CYCLE_SHARE * (here + calling)))

    def _has_begun(self) -> bool:
        samples = list(self._samples)
        if len(samples) < _RECENT:
            return False
        return (
            samples[-1].here > _FLOOD
            or all(each.here > 1 for each in samples[-_RECENT:])
            or (len(samples) == _SAMPLES and all(each.cycle > 1 for each in samples))
        )

    def _adjust(self, in_progress: int) -> None:
        excess = self._excess()
        self._easy_samples = self._easy_samples + 1 if excess <= 1 and in_progress < self._limit * _EASE else 0
        if self._easy_samples >= _SAMPLES_A_SECOND:
            self._limit = inf
            self._samples.clear()
        elif excess <= 1:
            self._limit *= 1 + _MORE * (1 - excess)
        elif in_progress <= ceil(self._limit):  # until then the last lowering has not had its effect
            self._limit = self._lowered(in_progress)

    def _excess(self) -> float:
        return median(max(each.here, each.cycle) for each in list(self._samples)[-_RECENT:])

    def _lowered(self, in_progress: int) -> float:
        return max(_FEW, in_progress * max(_MIN_FACTOR, 1 / self._excess()))


class Refusals:
    """Whether there is a rush, and after how many seconds the senders of refused requests are to come again.

    A refusal takes time as well: if too many requests arrive, their Retry-After grows until the rest of the capacity is
    enough for the admitted ones.
    """

    def __init__(self) -> None:
        self.retry_after = 1
        #: whether many were refused in the last second, beside those who were let in
        self.is_rush = False
        #: about a second, as far as it has passed
        self._samples, self._refused, self._admitted = 0, 0, 0
        self._few = float(FEW_REFUSALS)

    def add(self) -> None:
        self._refused += 1

    @property
    def are_many(self) -> bool:
        """Whether those of this second take the time of others."""
        return self._refused > self._few

    def observe(self, admitted: int) -> None:
        """A sample of the process, which let so many in since the last one."""
        self._samples += 1
        self._admitted += admitted
        if self._samples < _SAMPLES_A_SECOND:
            return
        self._few = max(FEW_REFUSALS, self._admitted * _REFUSED_SHARE)
        self.is_rush = self._refused > max(FEW_REFUSALS, self._admitted * _RUSH_SHARE)
        if self._refused > self._few:
            self.retry_after = min(self.retry_after + 1, _MAX_RETRY_AFTER)
        elif self._refused < self._few / 2:
            self.retry_after = max(self.retry_after - 1, 1)
        self._samples, self._refused, self._admitted = 0, 0, 0
