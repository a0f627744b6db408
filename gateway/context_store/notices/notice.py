"""Verifies notices and finds their subjects, as the spec of the kind describes them. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from gateway.errors import UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.kinds.members import JsonPath, MetaPath, value_at
from gateway.kinds.notices import NoticeSpec
from gateway.kinds.paging import HEADER_PATH

#: characters of a record's id
_MAX_ID = 200
#: records of an entity in one notice; a notice of more is about the entity as a whole
MAX_RECORDS = 200


class NoticedChange(NamedTuple):
    """A change that an application reports."""

    entity: str
    #: empty if the notice names no record
    record_id: str = ""


@dataclass(frozen=True)
class Notice:
    """The request of an application, undecoded; names of `headers` are case-insensitive."""

    method: str
    #: the URL that the application has requested
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    @cached_property
    def document(self) -> Any:
        """The JSON of the body; None for anything else."""
        try:
            return payloads.value(self.body)
        except UpstreamInvalidResponse:
            return None

    def text_at(self, path: MetaPath) -> str:
        """The text or number in a header (`$header.name`) or at a path of the body; empty if there is none."""
        if path[:1] == (HEADER_PATH,):
            return self.headers.get(".".join(path[1:]), "")
        return _text(value_at(self.document, path) if path else None)


def changes_of(spec: NoticeSpec, notice: Notice) -> list[NoticedChange]:
    """The changes of the notice, sorted and without duplicates; a body that is not JSON is one change."""
    found = value_at(notice.document, spec.changes)
    changes = found if isinstance(found, list) else [found]
    is_in_header = spec.type[:1] == (HEADER_PATH,)
    types = (notice.text_at(spec.type) if is_in_header else value_at(change, spec.type) for change in changes)
    found_ids = defaultdict[str, set[str]](set)
    for change, type_ in zip(changes, types, strict=True):
        for entity, record_id in _changes(spec, change, type_):
            found_ids[entity].add(record_id)
    return sorted(
        NoticedChange(entity, record_id)
        for entity, ids in found_ids.items()
        for record_id in (ids if len(ids) <= MAX_RECORDS else {""})
    )


def _changes(spec: NoticeSpec, change: Any, change_type: Any) -> Iterator[NoticedChange]:
    text = change_type if isinstance(change_type, str) else ""
    rules = (rule for rule in spec.rules if any(fnmatchcase(text, pattern) for pattern in rule.types))
    rule = next(rules, None)
    if rule is not None:
        record_id = _id_at(change, rule.record_id)
        yield from (NoticedChange(entity, record_id) for entity in rule.entities)


def _id_at(change: Any, path: JsonPath) -> str:
    text = _text(value_at(change, path) if path else None)
    return text if len(text) <= _MAX_ID and "\x00" not in text else ""


def _text(value: Any) -> str:
    """A text or a number as text; empty for any other value."""
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
