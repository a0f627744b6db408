"""Connections with bounds for the bytes before the body of a response: its head and interim responses."""

from typing import Any

from aiohttp import StreamReader
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError

#: maximum bytes from the request to the end of the response's head, with interim responses
MAX_HEAD = 128 << 10
#: maximum interim responses (RFC 9110 §15.2) of one request
MAX_INTERIM = 20
#: bytes that are parsed before the limits are checked again
_STEP = 8 << 10


class BoundedResponses(ResponseHandler):
    """Aborts a connection that exceeds the limits, or on which a response arrives without a request.

    aiohttp parses and keeps any number of them.
    """

    def __init__(self, loop: Any) -> None:
        super().__init__(loop=loop)
        self._is_head_due = False
        self._bytes = 0
        self._interim = 0

    def set_response_params(self, **params: Any) -> None:
        """Expect a response; aiohttp calls this before it sends each request."""
        self._is_head_due, self._bytes, self._interim = True, 0, 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Parse the data, in small steps until the head of the response is complete."""
        while self._is_head_due and len(data) > _STEP:
            self._head_received(data[:_STEP])
            data = data[_STEP:]
        if self._is_head_due:
            self._head_received(data)
        elif self._exception is None:
            super().data_received(data)

    def _head_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if self._is_head_due and self._bytes > MAX_HEAD:
            self._refuse("the head of the response is too large")

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Pass on a parsed head."""
        if self._exception is not None:
            return
        code = data[0].code
        if not self._is_head_due:
            self._refuse("a response arrived without a request")
            return
        if 100 <= code < 200 and code != 101:
            self._interim += 1
            if self._interim > MAX_INTERIM:
                self._refuse("too many interim responses")
                return
        else:
            self._is_head_due = False
        super().feed_data(data, size)

    def _refuse(self, reason: str) -> None:
        self._is_head_due = False
        self.set_exception(HttpProcessingError(message=reason))
        if self.transport is not None:
            self.transport.abort()
