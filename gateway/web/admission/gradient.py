"""An adaptive limit of the requests in progress, like the Gradient limits of Netflix's concurrency-limits. Pure.

While a busy process makes requests wait longer than they may, the limit is multiplied by the gradient: the allowed wait
over the measured wait. While they wait less, the limit grows by up to 5 % a sample. A process that is not busy has no
limit. Waits are measured twenty times a second: by the cycle time of the event loop, and by Little's law from the
number of requests that wait for anything but an application.
"""

from collections import deque
from dataclasses import dataclass
from math import ceil, inf
from statistics import median

from gateway.foundation.telemetry.loop_lag import INTERVAL

#: lowest limit: this many requests keep a process busy without long waits
_MIN_LIMIT = 32
#: lowest limit while other processes start and stop: their requests come here, and they use the same processors
_MIN_LIMIT_IN_RESTART = 256
#: seconds from the notification that a process starts or stops until its successor works
_RESTART = 15.0
#: samples in a row with too long cycles after which a burst counts as an overload
_BURST_SAMPLES = 8
#: samples in a row with too long waits after which they count as an overload; their median is the current excess
_RECENT_SAMPLES = 3
#: seconds that a cycle of the event loop may always take
_CYCLE = 0.006
#: fraction of a request's time that a cycle may take: some ten cycles are half of a request
_CYCLE_SHARE = 0.05
#: seconds that a request may always wait in this process; it may wait longer if applications take longer
_WAIT = 0.06
#: the same while many requests are refused: a longer queue would not get more done
_WAIT_IN_RUSH = 0.01
#: wait, as a multiple of the allowed wait, that counts as an overload at the first sample
_IMMEDIATE_EXCESS = 4
#: weight of a sample in averages over about the last second
_WEIGHT = INTERVAL
#: lowest gradient: the limit is at most halved by a sample
_MIN_GRADIENT = 0.5
#: largest growth of the limit by a sample
_GROWTH = 0.05
#: fraction of the limit; after a second with fewer requests in progress the limit is lifted
_LIFTED_BELOW = 0.5
_SAMPLES_PER_SECOND = round(1 / INTERVAL)


class RequestTime:
    """The average time of requests over about the last second, in seconds.

    By Little's law: the number of requests in progress over the number that end in a second.
    """

    def __init__(self) -> None:
        self._waiting, self._calling, self._rate = 0, 0.0, 0.0
        self._last = 0

    def observe(self, in_progress: int, calling: int, admitted: int) -> None:
        """Add a sample: requests in progress, those of them that wait for applications, and those admitted since."""
        ended = admitted - (in_progress - self._last)
        self._last = in_progress
        self._waiting = max(0, in_progress - calling)
        self._calling += (min(in_progress, calling) - self._calling) * _WEIGHT
        self._rate += (ended / INTERVAL - self._rate) * _WEIGHT

    @property
    def waiting(self) -> float:
        """Time that a request waits in this process, by the number of requests that wait now."""
        return self._waiting / self._rate if self._rate > 0 else 0.0

    @property
    def calling(self) -> float:
        """Time in which a request waits for an application."""
        return self._calling / self._rate if self._rate > 0 else inf


@dataclass(frozen=True, slots=True)
class _Sample:
    """The measured values over the allowed ones, in a busy process; above 1 is too long."""

    wait: float
    cycle: float


class GradientLimit:
    """The number of requests that may be in progress; infinite while the process is not overloaded.

    The allowed wait depends on the time that a request takes: next to an application that answers in a second, a tenth
    of a second is little; next to a fast one it is an overload.
    """

    def __init__(self, max_load: float, *, warm_up: int = 0) -> None:
        self._max_load = max_load
        #: samples to skip: the work of a starting process is not an overload
        self._warm_up = warm_up
        self._samples: deque[_Sample] = deque(maxlen=_BURST_SAMPLES)
        self._time = RequestTime()
        #: samples in a row of a busy process; from `_RECENT_SAMPLES` on the requests in progress may double per sample
        self._busy_samples = 0
        self._limit = inf
        #: samples in a row in which the limit was not needed
        self._spare_samples = 0
        #: samples until a restart of another process counts as done
        self._restart_samples = 0
        #: a request is admitted while fewer are in progress
        self.max_in_progress = inf

    def expect_restart(self) -> None:
        """Raise the limit for the requests of another process that starts or stops, until it is replaced."""
        self._restart_samples = round(_RESTART / INTERVAL)
        self.max_in_progress = max(self.max_in_progress, _MIN_LIMIT_IN_RESTART)

    def observe(
        self, busy: float, cycle: float, in_progress: int, admitted: int, calling: int = 0, *, is_rush: bool = False
    ) -> None:
        """Add a sample: the busy fraction of the process's time and the seconds of a cycle of its event loop.

        Of the requests in progress, `calling` wait for applications; `admitted` were admitted since the last sample. In
        a rush, many more are refused.
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
        elif self._is_overloaded():
            self._limit = max(_MIN_LIMIT, in_progress * _MIN_GRADIENT)
        self.max_in_progress = (
            min(self._limit, 2 * max(_MIN_LIMIT, in_progress)) if self._busy_samples >= _RECENT_SAMPLES else self._limit
        )
        if self._restart_samples:
            self.max_in_progress = max(self.max_in_progress, _MIN_LIMIT_IN_RESTART)

    def _sample(self, cycle: float, is_rush: bool) -> _Sample:
        waiting, calling = self._time.waiting, self._time.calling
        allowed_wait = max(_WAIT_IN_RUSH if is_rush else _WAIT, calling)
        return _Sample(waiting / allowed_wait, cycle / max(_CYCLE, _CYCLE_SHARE * (waiting + calling)))

    def _is_overloaded(self) -> bool:
        samples = list(self._samples)
        if len(samples) < _RECENT_SAMPLES:
            return False
        return (
            samples[-1].wait > _IMMEDIATE_EXCESS
            or all(each.wait > 1 for each in samples[-_RECENT_SAMPLES:])
            or (len(samples) == _BURST_SAMPLES and all(each.cycle > 1 for each in samples))
        )

    def _adjust(self, in_progress: int) -> None:
        excess = median(max(each.wait, each.cycle) for each in list(self._samples)[-_RECENT_SAMPLES:])
        is_spare = excess <= 1 and in_progress < self._limit * _LIFTED_BELOW
        self._spare_samples = self._spare_samples + 1 if is_spare else 0
        if self._spare_samples >= _SAMPLES_PER_SECOND:
            self._limit = inf
            self._samples.clear()
        elif excess <= 1:
            self._limit *= 1 + _GROWTH * (1 - excess)
        elif in_progress <= ceil(self._limit):  # otherwise the last reduction has not taken effect yet
            self._limit = max(_MIN_LIMIT, in_progress * max(_MIN_GRADIENT, 1 / excess))
