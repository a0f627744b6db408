"""The headers of a file, each made safe, and the conditions (RFC 9110 §13) that they are compared with.

No other header of the application is passed on.
"""

import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, unquote_to_bytes

from multidict import CIMultiDict

from gateway.errors import UpstreamInvalidResponse

#: a file name's bytes in UTF-8; the common limit of file systems
LONGEST_NAME = 255
#: the characters of a longer name that are read: its first ones, and its last ones with the ending
_FIRST, _LAST = 900, 100
DEFAULT_TYPE = "application/octet-stream"

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED = r'"(?:[^"\\\x00-\x1f\x7f]|\\[^\x00-\x1f\x7f])*"'
_PARAMETER = re.compile(rf";[ \t]*({_WORD})[ \t]*=[ \t]*({_WORD}|{_QUOTED})")
_MEDIA_TYPE = re.compile(rf"{_WORD}/{_WORD}(?:[ \t]*;[ \t]*{_WORD}=(?:{_WORD}|{_QUOTED}))*", re.ASCII)
_CODINGS = re.compile(rf"{_WORD}(?:[ \t]*,[ \t]*{_WORD})*", re.ASCII)
#: RFC 9110 §8.8.3
_ENTITY_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
#: media types and names of files that are gzip files (RFC 6713)
_GZIP_TYPES = frozenset({"application/gzip", "application/x-gzip", "application/x-tar-gz", "application/x-gtar"})
_GZIP_NAME = re.compile(r"\.t?gz(?:[\"']|$)")
_HTTP_DATE = re.compile(
    r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT"
)  # RFC 9110 §5.6.7
# Control and format characters (the latter can turn a name round to hide its ending), lone surrogates, line separators.
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_UNSAFE_IN_NAMES = re.compile(r'["*:<>?|\ufffd]')


def representation_headers(upstream: Mapping[str, str]) -> dict[str, str]:
    """The file's own headers (type, entity tag, date, name, coding), from header names in any case."""
    upstream = CIMultiDict(upstream)
    coding = upstream.get("Content-Encoding", "").strip()
    headers = {
        "Content-Type": media_type(upstream.get("Content-Type")),
        "ETag": _entity_tag(upstream.get("ETag")),
        "Last-Modified": _date(upstream.get("Last-Modified")),
        "Content-Disposition": content_disposition(upstream.get("Content-Disposition")),
        # The gateway requests `identity`. If the bytes are encoded all the same, clients need this header to decode.
        "Content-Encoding": coding if coding.lower() != "identity" and _CODINGS.fullmatch(coding) else None,
    }
    return {name: value for name, value in headers.items() if value is not None}


def as_stored(file_headers: dict[str, str]) -> dict[str, str]:
    """The headers of a file whose record states the size of the bytes as they are sent.

    The gzip coding of a file that is a gzip file is the file itself: a client that decodes it would have another file.
    """
    is_gzip = file_headers["Content-Type"].lower() in _GZIP_TYPES or _GZIP_NAME.search(
        file_headers.get("Content-Disposition", "").lower()
    )
    return {name: value for name, value in file_headers.items() if name != "Content-Encoding" or not is_gzip}


def if_range_matches(if_range: str | None, file_headers: Mapping[str, str]) -> bool:
    """Whether a range may be given (§13.1.5): no condition, the same strong tag, or exactly the same date."""
    if if_range is None:
        return True
    validator = if_range.strip(" \t")
    if validator.startswith(('"', "W/")):
        return (
            validator == file_headers.get("ETag")
            and validator.startswith('"')
            and _ENTITY_TAG.fullmatch(validator) is not None
        )
    return bool(validator) and validator == file_headers.get("Last-Modified")


def is_not_modified(if_none_match: str | None, etag: str | None) -> bool:
    """Whether 304 is the answer (§13.1.2): the tag is among those the client has, weakly compared; `*` is any file."""
    if if_none_match is None:
        return False
    if if_none_match.strip(" \t") == "*":
        return True
    client_tags = {tag.removeprefix("W/") for tag in _ENTITY_TAG.findall(if_none_match)}
    return etag is not None and etag.removeprefix("W/") in client_tags


def media_type(value: str | None) -> str:
    """The media type as given if it is well formed, otherwise that of unknown bytes."""
    text = (value or "").strip()
    return text if text.isascii() and _MEDIA_TYPE.fullmatch(text) else DEFAULT_TYPE


def content_disposition(value: str | None) -> str | None:
    """The disposition (RFC 6266) with a safe file name: `inline` if it says so, else `attachment`; None for none."""
    if value is None:
        return None
    kind = "inline" if value.partition(";")[0].strip().lower() == "inline" else "attachment"
    name = safe_name(_stated_name(value))
    if not name:
        return kind
    # Some clients decode percent signs in the plain form, so it never holds one (RFC 6266 appendix D).
    ascii_name = name.encode("ascii", "replace").decode("ascii").replace("?", "_").replace("%", "_")
    extended = f"; filename*=UTF-8''{quote(name, safe='')}" if ascii_name != name else ""
    return f'{kind}; filename="{ascii_name}"{extended}'


def safe_name(name: str) -> str:
    """The last part of a path without characters that could fool a shell, a file system or a reader; may be empty."""
    last = re.split(r"[/\\]", name)[-1]
    if len(last) > _FIRST + _LAST:  # to normalize combining characters takes the square of their number
        last = last[:_FIRST] + last[-_LAST:]
    text = unicodedata.normalize("NFC", last)
    visible = "".join(character for character in text if unicodedata.category(character) not in _INVISIBLE)
    return _shortened(_UNSAFE_IN_NAMES.sub("_", visible).strip(". ~"))


def is_multipart(headers: Mapping[str, str]) -> bool:
    """Whether a body is `multipart/byteranges`: parts of a file, each with its own headers."""
    return headers.get("Content-Type", "").lower().startswith("multipart/byteranges")


def content_length(headers: Mapping[str, str]) -> int | None:
    """The Content-Length of the application's response; raises UpstreamInvalidResponse if it is not a number."""
    text = headers.get("Content-Length")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise UpstreamInvalidResponse("the application's Content-Length is not a number")
    return int(text)


def _stated_name(disposition: str) -> str:
    parameters = {name.lower(): value for name, value in _PARAMETER.findall(disposition)}
    charset, _, rest = parameters.get("filename*", "").partition("'")
    if charset.lower() in ("utf-8", "iso-8859-1") and "'" in rest:
        return unquote_to_bytes(rest.partition("'")[2]).decode(charset, "replace")
    quoted = parameters.get("filename", "")
    return re.sub(r"\\(.)", r"\1", quoted[1:-1]) if quoted.startswith('"') else quoted


def _shortened(name: str) -> str:
    stem, dot, extension = name.rpartition(".")
    if not stem or len(extension.encode()) > 32:
        stem, dot, extension = name, "", ""
    room = LONGEST_NAME - len(f"{dot}{extension}".encode())
    return stem.encode()[:room].decode("utf-8", "ignore") + dot + extension


def _entity_tag(value: str | None) -> str | None:
    return value if value is not None and _ENTITY_TAG.fullmatch(value) else None


def _date(value: str | None) -> str | None:
    return value if value is not None and _HTTP_DATE.fullmatch(value) else None
