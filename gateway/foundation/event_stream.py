"""Parses streams of server-sent events (WHATWG HTML §9.2), however they are cut into chunks. Pure."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gateway.foundation.payloads import BYTE_ORDER_MARK

_LINE_END = re.compile(rb"\r\n|\r|\n")


class StreamedEvent(NamedTuple):
    """An event with data."""

    name: str
    data: bytes


class EventStream:
    """The parser of one stream; `last_id` is the id of the last complete event, for a stream that resumes after it."""

    __slots__ = ("_after_return", "_data", "_id", "_is_first", "_line", "_name", "last_id")

    def __init__(self, last_id: str = "") -> None:
        self.last_id = self._id = last_id
        self.restart()

    def restart(self) -> None:
        """Discard the incomplete event of a broken connection."""
        self._line = bytearray()
        self._name, self._data, self._id = "message", list[bytes](), self.last_id
        self._after_return = False
        self._is_first = True

    def feed(self, chunk: bytes) -> Iterator[StreamedEvent]:
        """The events that this chunk completes."""
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_return = chunk.endswith(b"\r")
        *lines, rest = _LINE_END.split(chunk)
        if lines:
            lines[0], self._line = bytes(self._line + lines[0]), bytearray()
        for line in lines:
            event = self._ended(line)
            if event is not None:
                yield event
        self._line += rest

    def _ended(self, line: bytes) -> StreamedEvent | None:
        """The event that ends with this line."""
        if self._is_first:
            line, self._is_first = line.removeprefix(BYTE_ORDER_MARK), False
        if line:
            self._take(line)
            return None
        name, data, self.last_id = self._name, self._data, self._id
        self._name, self._data = "message", []
        return StreamedEvent(name, b"\n".join(data)) if data else None

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                self._data.append(value)
            case b"event":
                self._name = value.decode(errors="replace")
            case b"id":
                self._id = value.decode(errors="replace")
