"""Parses Server-Sent Events (WHATWG HTML §9.2)."""

from collections.abc import Iterable
from typing import Any

from gateway.contract.jobs import JobEvent
from gateway.foundation import payloads


class EventReader:
    """Parses the chunks of a stream into events; a broken stream resumes after `last_id`."""

    def __init__(self) -> None:
        self.last_id = "0"
        self._name = "message"
        self._data: list[str] = []
        self._buffer = b""

    def restart(self) -> None:
        """Discard the incomplete event of a broken connection."""
        self._name, self._data, self._buffer = "message", [], b""

    def feed(self, chunk: bytes) -> Iterable[JobEvent]:
        """The events that this chunk completes."""
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode())
            if event is not None:
                yield event

    def _line(self, line: str) -> JobEvent | None:
        if not line:
            return self._complete()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "event":
                self._name = value
            case "data":
                self._data.append(value)
            case "id":
                self.last_id = value
        return None

    def _complete(self) -> JobEvent | None:
        name, data = self._name, self._data
        self._name, self._data = "message", []
        return JobEvent(name, payloads.typed("\n".join(data).encode(), dict[str, Any]), self.last_id) if data else None
