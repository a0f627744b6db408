"""Several parts of one file in one answer: multipart/byteranges (RFC 9110 §14.6)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from secrets import token_hex

from gateway.upstream.http_ranges.ranges import Slice, content_range


@dataclass(frozen=True, slots=True)
class Multipart:
    """The framing around several slices of a file of known size."""

    slices: Sequence[Slice]
    size: int
    content_type: str
    #: random, so that no file can hold it
    boundary: str = field(default_factory=lambda: token_hex(16))

    @property
    def header(self) -> str:
        """The Content-Type of the whole answer."""
        return f"multipart/byteranges; boundary={self.boundary}"

    @property
    def length(self) -> int:
        """The Content-Length of the whole answer, framing included."""
        return sum(segment.length if isinstance(segment, Slice) else len(segment) for segment in self.body())

    def body(self) -> Iterator[bytes | Slice]:
        """The body in order: framing as bytes, and slices of the file."""
        for index, part in enumerate(self.slices):
            yield self._head(part, lead="\r\n" if index else "")
            yield part
        yield f"\r\n--{self.boundary}--\r\n".encode("ascii")

    def _head(self, part: Slice, lead: str) -> bytes:
        return (
            f"{lead}--{self.boundary}\r\n"
            f"Content-Type: {self.content_type}\r\n"
            f"Content-Range: {content_range(part.start, part.end, self.size)}\r\n\r\n"
        ).encode("latin-1")
