"""Decodes JSON of applications: everything that RFC 8259 allows, also where msgspec and PostgreSQL are stricter.

Half a surrogate pair (`"\\ud83d"`) is read as U+FFFD, a number that no double holds as `null` with a line in the log.
A byte order mark is skipped. Values that are passed on unread keep their bytes. msgspec decodes first; the slow way is
for what it refuses, in texts of up to 4 MiB.
"""

import json
import logging
import math
import re
from collections.abc import Callable
from functools import lru_cache
from secrets import token_hex
from typing import Any, TypeVar

import msgspec

from gateway.errors import UpstreamInvalidResponse

log = logging.getLogger(__name__)

#: JSON text
Text = bytes | msgspec.Raw

Model = TypeVar("Model")

#: the byte order mark of UTF-8, which parsers may skip (RFC 8259 §8.1)
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
REPLACEMENT = "\ufffd"
_DECODE_VALUE = msgspec.json.Decoder().decode
_DECODE_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DECODE_ITEMS = msgspec.json.Decoder(list[msgspec.Raw]).decode
_DECODE_RAW = msgspec.json.Decoder(msgspec.Raw).decode
_STRICTER = (msgspec.MsgspecError, UnicodeDecodeError)
#: escapes of a text: of a backslash, of a pair of surrogates, and of half a pair
_ESCAPES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u([dD][89a-fA-F][0-9a-fA-F]{2})"
)
#: bytes and escapes of a text that is decoded the slow way, so that it holds the event loop for a moment only
_MAX_TOLERANT, _MAX_ESCAPES = 4 << 20, 50_000
#: objects and commas of a list that is divided into its items
_MAX_OBJECTS, _MAX_COMMAS = 600_000, 4_000_000
#: objects and arrays, or commas, of a text that is decoded as a whole, which takes a third of a second then
_MAX_CONTAINERS = 1_500_000
#: members, with those of inner objects, of an object whose members are all looked at
_MAX_MEMBERS = 300_000
#: maximum numbers in a text that are as small or large as doubles can be: msgspec takes up to 13 µs for one
MAX_EXTREME_NUMBERS = 5_000
_EXPONENT = rb"[eE][-+]?0*(?:2[89]|3[0-9])[0-9]"
_EXTREME_NUMBER = re.compile(rb"[\[,:\s]-?[0-9][0-9.]*+" + _EXPONENT)
#: found faster, and also within words
_LARGE_EXPONENT = re.compile(_EXPONENT)
#: bytes of a text that is read in a moment, whatever its numbers
_FEW_BYTES = 4 << 10
#: bytes that are looked at together: Python's lock is held meanwhile, also in a thread
_WINDOW = 256 << 10
_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
#: stands for the `\u` of half a pair; no application can know it
_HALF = f"half {token_hex(16)} ".encode()


def utf8(text: bytes) -> bytes:
    """The text without a byte order mark; raises UpstreamInvalidResponse if it is not UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise _not_json() from error
    return text.removeprefix(BYTE_ORDER_MARK)


def storable(text: str) -> str:
    """The text with U+FFFD for what PostgreSQL cannot store: NUL and half a surrogate pair."""
    return _NOT_STORABLE.sub(REPLACEMENT, text)


def has_many_extreme_numbers(text: Text) -> bool:
    """Whether a JSON text may have so many numbers with exponents beyond 280 that decoding it takes long.

    The decoder holds Python's lock, so that a thread does not help.
    """
    if len(text) <= _FEW_BYTES:
        return False
    content = memoryview(text)
    return _count(_LARGE_EXPONENT, content) > MAX_EXTREME_NUMBERS < _count(_EXTREME_NUMBER, content)


def _count(pattern: re.Pattern[bytes], content: memoryview) -> int:
    """How often the pattern is found, window by window, until it is found too often."""
    found = 0
    for start in range(0, len(content), _WINDOW):
        found += len(pattern.findall(content, start, start + _WINDOW))
        if found > MAX_EXTREME_NUMBERS:
            break
    return found


def require_ordinary_numbers(text: Text) -> None:
    """Raise UpstreamInvalidResponse as `value` does: for lists, whose records are decoded one by one."""
    if has_many_extreme_numbers(text):
        raise UpstreamInvalidResponse(
            f"the application's answer has more than {MAX_EXTREME_NUMBERS:,} numbers with exponents beyond 280"
        )


def _require_fast(text: Text) -> None:
    """Raise UpstreamInvalidResponse for a text that holds Python's lock for long while it is decoded as a whole."""
    require_ordinary_numbers(text)
    if len(text) > _MAX_TOLERANT:
        content = bytes(text)
        containers = content.count(b"{") + content.count(b"[")
        if containers > _MAX_CONTAINERS or content.count(b",") > _MAX_COMMAS:
            raise UpstreamInvalidResponse("the application's answer has too many values; ask for less")


def value(text: Text) -> Any:
    """The value that a JSON text holds; raises UpstreamInvalidResponse."""
    _require_fast(text)
    try:
        return _DECODE_VALUE(text)
    except _STRICTER:
        return _tolerant(_value, text)
    except RecursionError as error:
        raise _too_deep() from error


def typed(text: Text, model: type[Model]) -> Model:
    """The value that a JSON text holds, as the model; raises msgspec.MsgspecError where it does not fit."""
    if has_many_extreme_numbers(text):
        raise msgspec.DecodeError("too many numbers with exponents beyond 280")
    try:
        return msgspec.json.decode(text, type=model)
    except (*_STRICTER, RecursionError):
        try:
            found = value(text)
        except UpstreamInvalidResponse as error:
            raise msgspec.DecodeError(error.detail) from error
        return msgspec.json.decode(msgspec.json.encode(found), type=model)


def members(text: Text) -> dict[str, msgspec.Raw]:
    """The members of a JSON object, unread; raises UpstreamInvalidResponse, also where it is no object."""
    try:
        return _DECODE_MEMBERS(text)
    except _STRICTER:
        found = _tolerant(lambda marked: _DECODE_MEMBERS(marked), text)
        return {_without_halves(name): _restored(raw) for name, raw in found.items()}
    except RecursionError as error:
        raise _too_deep() from error


def members_of(text: Text, names: tuple[str, ...]) -> dict[str, msgspec.Raw]:
    """Those of these members that a JSON object has, unread: others cost no memory; raises as `members` does."""
    try:
        found = _decoder_of(names).decode(text)
    except _STRICTER:
        return {name: raw for name, raw in members(text).items() if name in names}
    except RecursionError as error:
        raise _too_deep() from error
    raws = ((name, getattr(found, f"member_{number}")) for number, name in enumerate(names))
    return {name: raw for name, raw in raws if raw is not msgspec.UNSET}


def few_members(text: Text) -> dict[str, msgspec.Raw]:
    """The members of a large JSON object whose names are not known; raises as `members` does, and for very many."""
    if bytes(text).count(b'":') > _MAX_MEMBERS:
        raise UpstreamInvalidResponse("the application's answer has too many members; ask for less")
    return members(text)


@lru_cache(maxsize=1024)
def _decoder_of(names: tuple[str, ...]) -> msgspec.json.Decoder[msgspec.Struct]:
    fields = {f"member_{number}": name for number, name in enumerate(names)}
    unset: list[tuple[str, Any, Any]] = [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in fields]
    return msgspec.json.Decoder(msgspec.defstruct("Members", unset, rename=fields))


def editable(text: Text) -> Any:
    """The value to be changed and encoded again: numbers that no double holds keep their bytes."""
    _require_fast(text)
    try:
        return _DECODE_VALUE(text)
    except _STRICTER:
        return _tolerant(_editable, text)
    except RecursionError as error:
        raise _too_deep() from error


def record(text: Text) -> dict[str, Any]:
    """The JSON object that a text holds; raises UpstreamInvalidResponse, also for any other value."""
    found = value(text)
    if not isinstance(found, dict):
        raise UpstreamInvalidResponse("a record of the application's answer is not an object")
    return found


def items(text: Text) -> list[msgspec.Raw]:
    """The items of a JSON array, unread; raises UpstreamInvalidResponse, also where it is no array, or too long."""
    if len(text) > _MAX_TOLERANT:
        _require_few_items(bytes(text))
    try:
        return _DECODE_ITEMS(text)
    except _STRICTER:
        return [_restored(raw) for raw in _tolerant(lambda marked: _DECODE_ITEMS(marked), text)]
    except RecursionError as error:
        raise _too_deep() from error


def _require_few_items(text: bytes) -> None:
    if text.count(b"{") > _MAX_OBJECTS or text.count(b",") > _MAX_COMMAS:
        raise UpstreamInvalidResponse("the application's answer has too many small records; ask for less")


def whole(text: Text) -> msgspec.Raw:
    """The JSON text, unread but checked; raises UpstreamInvalidResponse."""
    try:
        return _DECODE_RAW(text)
    except _STRICTER:
        return _restored(_tolerant(lambda marked: _DECODE_RAW(marked), text))
    except RecursionError as error:
        raise _too_deep() from error


def on_one_line(text: Text) -> bytes:
    """The JSON text without line breaks; raises UpstreamInvalidResponse."""
    content = bytes(text)
    if b"\n" not in content and b"\r" not in content:
        return content
    try:
        return msgspec.json.format(content, indent=-1)
    except _STRICTER:
        formatted = _tolerant(lambda marked: msgspec.json.format(marked, indent=-1), content)
        return bytes(_restored(msgspec.Raw(formatted)))
    except RecursionError as error:
        raise _too_deep() from error


def is_plain(text: Text) -> bool:
    """Whether decoding and encoding changes nothing in the value."""
    try:
        _DECODE_VALUE(text)
    except (*_STRICTER, RecursionError):
        return False
    return True


def _tolerant(decode: Callable[[bytes], Any], text: Text) -> Any:
    """The result of `decode` for the text without byte order mark, in which `_HALF` stands for the `\\u` of halves."""
    content = bytes(text)
    try:
        without_mark = content.removeprefix(BYTE_ORDER_MARK)
        escapes = without_mark.count(b"\\")
        is_large = len(without_mark) > _MAX_TOLERANT
        if escapes > _MAX_ESCAPES or (is_large and (escapes or without_mark is content)):
            raise _not_json()
        return decode(_ESCAPES.sub(_marked, without_mark) if escapes else without_mark)
    except RecursionError as error:
        raise _too_deep() from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise _not_json() from error


def _marked(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else _HALF + escape[1]


def _restored(raw: msgspec.Raw) -> msgspec.Raw:
    return msgspec.Raw(bytes(raw).replace(_HALF, b"\\u"))


def _value(marked: bytes) -> Any:
    unread: list[str] = []
    found = _read(marked, unread.append)
    if unread:
        words = "numbers of an application's answer that no double holds are read as null"
        log.warning(words, extra={"count": len(unread)})
    return found


def _editable(marked: bytes) -> Any:
    return _read(marked, lambda number: msgspec.Raw(number.encode()))


def _read(marked: bytes, beyond: Callable[[str], Any]) -> Any:
    """The value with U+FFFD for halves, and with what `beyond` returns for numbers that no double holds."""

    def number(text: str) -> Any:
        double = float(text)
        if not math.isfinite(double):
            return beyond(text)
        return int(text) if text.removeprefix("-").isdigit() else double

    text = re.sub(_HALF + rb".{4}", REPLACEMENT.encode(), marked)
    try:
        return _DECODE_VALUE(text)
    except (
        msgspec.ValidationError
    ):  # of a number that is out of range: calling `number` for each takes ten times longer
        return json.loads(text.decode(), parse_float=number, parse_int=number, parse_constant=_refused)


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _without_halves(name: str) -> str:
    return re.sub(_HALF.decode() + ".{4}", REPLACEMENT, name)


def _not_json() -> UpstreamInvalidResponse:
    return UpstreamInvalidResponse("the application's answer is not valid JSON")


def _too_deep() -> UpstreamInvalidResponse:
    return UpstreamInvalidResponse("the application's answer is nested too deeply")
