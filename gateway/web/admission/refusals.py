"""Counts refused requests, and computes the Retry-After for their senders. Pure."""

from gateway.foundation.telemetry.loop_lag import INTERVAL

SAMPLES_PER_SECOND = round(1 / INTERVAL)
#: maximum refusals per second that never count as a rush
NEGLIGIBLE_REFUSALS = 100
#: refusals, as a fraction of the admitted requests, above which they count as a rush
_RUSH_SHARE = 0.1
#: refusals, as a fraction of the admitted requests, that the process can afford: three take as long as a call
_AFFORDABLE_SHARE = 0.5
#: longest Retry-After, in seconds
_MAX_RETRY_AFTER = 10


class Refusals:
    """Counts refusals by second: whether there is a rush, and the Retry-After of refused requests in seconds.

    A refusal takes time too: if too many requests arrive, the Retry-After grows until the process has enough time for
    the admitted ones.
    """

    def __init__(self) -> None:
        self.retry_after = 1
        #: whether many requests were refused in the last second, compared with the admitted ones
        self.is_rush = False
        #: counts of the current second
        self._samples, self._refused, self._admitted = 0, 0, 0
        self._affordable = float(NEGLIGIBLE_REFUSALS)

    def add(self) -> None:
        self._refused += 1

    @property
    def are_too_many(self) -> bool:
        """Whether the refusals of this second take more time than the process can afford."""
        return self._refused > self._affordable

    def observe(self, admitted: int) -> None:
        """Add a sample: requests admitted since the last one."""
        self._samples += 1
        self._admitted += admitted
        if self._samples < SAMPLES_PER_SECOND:
            return
        self._affordable = max(NEGLIGIBLE_REFUSALS, self._admitted * _AFFORDABLE_SHARE)
        self.is_rush = self._refused > max(NEGLIGIBLE_REFUSALS, self._admitted * _RUSH_SHARE)
        if self._refused > self._affordable:
            self.retry_after = min(self.retry_after + 1, _MAX_RETRY_AFTER)
        elif self._refused < self._affordable / 2:
            self.retry_after = max(self.retry_after - 1, 1)
        self._samples, self._refused, self._admitted = 0, 0, 0
