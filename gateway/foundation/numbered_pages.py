"""Reads a list by page numbers or offsets while its records move: each page overlaps the one before. Pure.

If a record leaves the pages that were read, all others move one place to the front, and the next page would lack one.
Each request therefore begins with the last record that was read. If its page does not begin with a known record, the
page before is read again, and later pages overlap by more. A record that moves to the front of the list is found
there after the last page.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

#: members by which applications tell records apart, the best first
_IDENTIFIERS = ("id", "key", "gid", "iid", "sha", "name")
#: the smallest page that is requested, as a share of a full one; the size is chosen so that a page begins where it must
_SMALLEST = 0.8
#: pages that are read again because records moved, in a row and in all, and pages of the front after the last one
_MAX_BACK, _MAX_DETOURS, _MAX_FRONT = 3, 100, 3
_SAME = "the application returned the same page again in place of the next one"
_MOVED = "records moved while the list was read, so that some may be missing; read it again, or ask for less"


class Numbering(NamedTuple):
    """The params that select a page."""

    #: the number of the page, or of its first record
    param: str
    #: the number of records on a page
    size: str
    counts_records: bool

    @classmethod
    def of(cls, *, style: str, param: str | None, size: str | None, order: object) -> "Numbering | None":
        """From the paging of a list; None if no record can be skipped, or if pages have no numbers or sizes."""
        is_numbered = style in ("page", "offset") or (style == "link" and param == "page")
        if order != "unknown" or not is_numbered or not param or not size:
            return None
        return cls(param, size, counts_records=style == "offset")


class Place(Struct, frozen=True, kw_only=True):
    """How far a list was read; as JSON, a job continues from it."""

    #: the params of the first page
    params: dict[str, Any]
    #: `front`: after the last page; `plain`: pages do not overlap
    phase: Literal["reading", "front", "plain"] = "reading"
    #: the value of `param` for the first page, and whether the application has it as text
    first: int = 0
    is_text: bool = False
    #: records on a full page; 0 before the first page
    size: int = 0
    #: records of the list before the first unread one, and how many of them the next page repeats
    position: int = 0
    overlap: int = 1
    #: identifiers of the first page, of the last records that were new, and of the last records before `position`
    front: list[str] = []
    recent: list[str] = []
    tail: list[str] = []
    #: pages that were read again, in a row and in all, and pages of the front after the last page
    back: int = 0
    detours: int = 0
    at_front: int = 0


class PageStep(NamedTuple):
    """What follows from a page."""

    #: the indexes of the records that were not read before
    new: Sequence[int]
    #: the params of the next page; None after the last
    following: Mapping[str, Any] | None
    #: why records are or may be missing
    incomplete: str | None
    place: Place


class _Page(NamedTuple):
    """A page: the params that requested it, the identifiers of its records, the page it names as the next."""

    asked: Mapping[str, Any]
    names: Sequence[str]
    following: Mapping[str, Any] | None
    incomplete: str | None


def identifier(record: Any) -> str:
    """What tells a record apart from the others of its list; also after a change, if the record has such a member."""
    member = _member_of(record, _IDENTIFIERS)
    return repr(record) if member is None else member


def are_identified(records: Sequence[Any]) -> bool:
    """Whether each record, or part of one, has a member that no other record of its list shares; names may be equal."""
    return all(_member_of(record, _IDENTIFIERS[:-1]) is not None for record in records)


def _member_of(record: Any, names: Sequence[str]) -> str | None:
    """The first of the members that the record has."""
    if isinstance(record, dict):
        for name in names:
            if isinstance(value := record.get(name), str | int):
                return str(value)
    return None


def step(
    numbering: Numbering,
    place: Place,
    asked: Mapping[str, Any],
    names: Sequence[str],
    *,
    following: Mapping[str, Any] | None,
    incomplete: str | None,
) -> PageStep:
    """What follows from the page that `asked` requested, with the next page and the reason that it states itself."""
    page = _Page(asked, names, following, incomplete)
    if not place.size:
        place = _begun(numbering, place, page)
    start, size = _start(numbering, place, asked), _size(numbering, place, asked)
    is_same = len(names) >= size > place.position - start and place.tail[-len(names) :] == list(names)
    if is_same or len(set(names)) < len(names):
        place = replace(place, phase="plain", front=[], recent=[], tail=[])
        return PageStep(range(len(names)), following, incomplete or (_SAME if is_same else None), place)
    known = {*place.front, *place.recent}
    new = [index for index, name in enumerate(names) if name not in known]
    match place.phase:
        case "plain":
            return PageStep(new, following, incomplete, place)
        case "front":
            return _at_front(place, page, new)
    is_continuous = not names or start <= 0 or start >= place.position or names[0] in place.tail
    recent = [*place.recent, *(names[index] for index in new)][-2 * _MAX_BACK * place.size :]
    overlaps, place = start < place.position, replace(place, recent=recent, front=place.front or list(names))
    if not is_continuous and place.back < _MAX_BACK and place.detours < _MAX_DETOURS:
        overlap = min(2 * place.overlap, max(place.size // 2, 1))
        place = replace(place, position=start, back=place.back + 1, detours=place.detours + 1, overlap=overlap)
        return PageStep(new, _from(numbering, place, start - place.size), incomplete, place)
    tail = [*place.tail, *names][-(_MAX_BACK + 1) * place.size :]
    place = replace(place, position=start + len(names), back=0, tail=tail)
    found = _after(numbering, place, page, new, overlaps=overlaps)
    return found if is_continuous else found._replace(incomplete=found.incomplete or _MOVED)


def _begun(numbering: Numbering, place: Place, page: _Page) -> Place:
    """The place with what the first page shows; `plain` if it does not show how its list is numbered."""
    number = None if page.following is None else _number(page.following.get(numbering.param))
    size = len(page.names)
    asked_size = _number(page.asked.get(numbering.size)) or size
    # Pages that are mostly empty are no measure of how the application counts them.
    if number is None or not size or (5 * size < asked_size and not numbering.counts_records):
        return replace(place, phase="plain")
    size = min(size, asked_size)
    first = number - (len(page.names) if numbering.counts_records else 1)
    asked = page.asked.get(numbering.param)
    is_text = isinstance((page.following or {})[numbering.param], str)
    if first not in (0, 1) or asked not in (None, first, str(first)):
        return replace(place, phase="plain")
    return replace(place, first=first, size=size, is_text=is_text)


def _after(numbering: Numbering, place: Place, page: _Page, new: Sequence[int], *, overlaps: bool) -> PageStep:
    """What follows a page that continues what was read.

    A page that is not full is followed by the one it names, because only that one can show the end.
    """
    size, start = _size(numbering, place, page.asked), _start(numbering, place, page.asked)
    if page.following is not None:
        following = _from(numbering, place, place.position - place.overlap)
        is_short = overlaps and len(page.names) < size
        is_plain = is_short or _start(numbering, place, following) <= start
        return PageStep(new, page.following if is_plain else following, page.incomplete, place)
    if page.incomplete is None:
        is_only = place.position <= len(page.names)
        return PageStep(new, None if is_only else place.params, None, replace(place, phase="front"))
    if numbering.counts_records or size == place.size:
        return PageStep(new, None, page.incomplete, place)
    # Smaller pages reach the application's last page sooner than full ones.
    full = _request(numbering, place, place.position // place.size, place.size)
    return PageStep(new, full, None, replace(place, phase="plain"))


def _at_front(place: Place, page: _Page, new: Sequence[int]) -> PageStep:
    """Records in front of those of the first page are new; behind them are those that were read."""
    front = set(place.front)
    last = max((index for index, name in enumerate(page.names) if name in front), default=None)
    if last is not None or page.following is None:
        return PageStep([each for each in new if last is None or each < last], None, page.incomplete, place)
    place = replace(place, at_front=place.at_front + 1)
    if place.at_front == _MAX_FRONT:
        return PageStep(new, None, page.incomplete or _MOVED, place)
    return PageStep(new, page.following, page.incomplete, place)


def _from(numbering: Numbering, place: Place, start: int) -> Mapping[str, Any]:
    """The request whose page begins at a record of the list, or a few before it, as page numbers allow."""
    start = max(start, 0)
    if numbering.counts_records:
        return _request(numbering, place, start, place.size)
    sizes = range(place.size, max(int(place.size * _SMALLEST), 1) - 1, -1)
    size = min(sizes, key=lambda each: start % each + place.size - each)
    return _request(numbering, place, start // size, size)


def _request(numbering: Numbering, place: Place, number: int, size: int) -> Mapping[str, Any]:
    value = place.first + number
    sized = {} if numbering.counts_records else {numbering.size: size}
    return {**place.params, numbering.param: str(value) if place.is_text else value, **sized}


def _size(numbering: Numbering, place: Place, asked: Mapping[str, Any]) -> int:
    """The records that a full page has; an application may return fewer than were asked for."""
    return min(_number(asked.get(numbering.size)) or place.size, place.size)


def _start(numbering: Numbering, place: Place, asked: Mapping[str, Any]) -> int:
    """The records before a page."""
    number = _number(asked.get(numbering.param))
    if number is None:
        return 0
    return (number - place.first) * (1 if numbering.counts_records else _size(numbering, place, asked))


def _number(value: Any) -> int | None:
    """A whole number, also as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else None
