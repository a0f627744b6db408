"""A form with a file, which is read while it is received (RFC 7578)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import BadHttpMessage

from gateway.errors import BodyTooLarge, MalformedRequest
from gateway.web.console.session import read_console_form, require_csrf

#: maximum fields before the file
_MAX_FIELDS = 20
#: bytes that are read at once
_CHUNK = 64 << 10
#: lines outside parts, which are the boundaries in a form of a browser, and headers of a part
_MAX_LINES = 100


@dataclass(frozen=True, slots=True)
class UploadForm:
    """The fields before the file, and the bytes of the file, which are read once; none without a file."""

    fields: dict[str, str]
    file: AsyncIterator[bytes] | None


class _Parts(MultipartReader):
    """The parts of a form. Text around them is not read: its lines would hold the event loop."""

    _lines = 0

    async def _readline(self) -> bytes:
        self._lines += 1
        if self._lines > _MAX_LINES:
            raise ValueError("too many lines outside the parts")
        return await super()._readline()


async def read_upload_form(request: web.Request) -> UploadForm:
    """The form, whose first field is `csrf` and whose last one is the file; a form without a file may be URL-encoded.

    Raises ForeignForm before anything else is read, MalformedRequest and BodyTooLarge.
    """
    if request.content_type == "application/x-www-form-urlencoded":
        return UploadForm(await read_console_form(request), None)
    if request.content_type != "multipart/form-data":
        raise MalformedRequest("the body must be multipart/form-data or application/x-www-form-urlencoded")
    fields: dict[str, str] = {}
    room = request.client_max_size
    with _translated():
        reader = _Parts(request.headers, request.content, max_headers=_MAX_LINES)
        while (part := await reader.next()) is not None:
            if not isinstance(part, BodyPartReader) or part.name is None or len(fields) > _MAX_FIELDS:
                raise MalformedRequest(f"the form must have named fields, at most {_MAX_FIELDS}")
            if part.filename is not None:
                _require_first(request, fields)
                return UploadForm(fields, _chunks(part) if part.filename else None)
            if part.name in fields:
                raise MalformedRequest("the form has a field twice; send it once")
            content = await _content(part, room)
            room -= len(content)
            fields[part.name] = content.decode()
            _require_first(request, fields)
    _require_first(request, fields)
    return UploadForm(fields, None)


def _require_first(request: web.Request, fields: dict[str, str]) -> None:
    if len(fields) < 2:
        require_csrf(request, fields.get("csrf", ""))


async def _content(part: BodyPartReader, most: int) -> bytearray:
    """The bytes of a field; raises BodyTooLarge."""
    content = bytearray()
    while chunk := await part.read_chunk(_CHUNK):
        content += chunk
        if len(content) > most:
            raise BodyTooLarge("the fields of the form are too large; choose a file instead")
    return content


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    with _translated():
        while chunk := await part.read_chunk(_CHUNK):
            yield chunk


@contextmanager
def _translated() -> Iterator[None]:
    """Translate what the reader of aiohttp raises for an invalid form."""
    try:
        yield
    except (ValueError, AssertionError, RuntimeError, BadHttpMessage) as error:
        raise MalformedRequest("the body is not a form as browsers send it; send it again") from error
