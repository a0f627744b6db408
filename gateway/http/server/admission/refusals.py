"""How many requests were refused lately, and when their senders may come again. Pure."""

from gateway.telemetry.loop_lag import INTERVAL

_SAMPLES_PER_SECOND = round(1 / INTERVAL)
#: refusals in a second that never count as a rush
FEW_REFUSALS = 100
#: refusals as a fraction of the admitted requests from which on they are a rush
_RUSH_SHARE = 0.1
#: refusals as a fraction of the admitted requests that the process can afford: three of them take as long as a call
_AFFORDABLE_SHARE = 0.5
#: longest Retry-After, in seconds
_MAX_RETRY_AFTER = 10


class Refusals:
    """Whether there is a rush, and the Retry-After of refused requests in seconds.

    A refusal takes time as well: if too many requests arrive, their Retry-After grows until the rest of the capacity is
    enough for the admitted ones.
    """

    def __init__(self) -> None:
        self.retry_after = 1
        #: whether many requests were refused in the last second, compared with the admitted ones
        self.is_rush = False
        #: counts of the current second
        self._samples, self._refused, self._admitted = 0, 0, 0
        self._few = float(FEW_REFUSALS)

    def add(self) -> None:
        self._refused += 1

    @property
    def are_many(self) -> bool:
        """Whether the refusals of this second take more time than the process can afford."""
        return self._refused > self._few

    def observe(self, admitted: int) -> None:
        """Add a sample: requests admitted since the last one."""
        self._samples += 1
        self._admitted += admitted
        if self._samples < _SAMPLES_PER_SECOND:
            return
        self._few = max(FEW_REFUSALS, self._admitted * _AFFORDABLE_SHARE)
        self.is_rush = self._refused > max(FEW_REFUSALS, self._admitted * _RUSH_SHARE)
        if self._refused > self._few:
            self.retry_after = min(self.retry_after + 1, _MAX_RETRY_AFTER)
        elif self._refused < self._few / 2:
            self.retry_after = max(self.retry_after - 1, 1)
        self._samples, self._refused, self._admitted = 0, 0, 0
