"""The latest requests that the sandbox received, and counters, for tests and demos."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: maximum calls in the journal
_CALLS = 1000
#: maximum bytes of a stored body
_BODY_BYTES = 20_000


@dataclass(slots=True, kw_only=True)
class ReceivedRequest:
    """One received call, and the status of its response; 0 until there is one."""

    kind: str | None
    entities: tuple[str, ...]
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    at: float
    status: int = 0

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "body": self.body.decode(errors="replace")}


class CallJournal:
    """The latest calls, and counters of all calls."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.calls: deque[ReceivedRequest] = deque(maxlen=_CALLS)
        self.by_kind: Counter[str] = Counter()
        self.by_status: Counter[int] = Counter()
        self.bytes_sent = 0
        self.open_downloads = 0

    def received(self, call: ReceivedRequest) -> None:
        call.body = call.body[:_BODY_BYTES]
        self.calls.append(call)
        self.by_kind[call.kind or "none"] += 1

    def answered(self, call: ReceivedRequest, status: int) -> None:
        call.status = status
        self.by_status[status] += 1

    def counters(self) -> dict[str, Any]:
        return {
            "requests": sum(self.by_kind.values()),
            "by_kind": dict(self.by_kind),
            "by_status": {str(status): count for status, count in sorted(self.by_status.items())},
            "bytes_sent": self.bytes_sent,
            "open_downloads": self.open_downloads,
        }
