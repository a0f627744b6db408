"""What a notice is and what it is about, as the spec of its kind describes it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from gateway.kinds.members import MetaPath
from gateway.kinds.spec import HEADER_PATH, NoticeSpec
from gateway.upstream.responses import value_at


@dataclass(frozen=True, slots=True)
class Notice:
    """A request of an application, as its bytes came; `headers` are found in any case."""

    method: str
    #: the URL that the application has
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def document(self) -> Any:
        """The JSON of the body; None for anything else."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def text_at(self, path: MetaPath) -> str:
        """The text or number in a header (`$header.name`) or at a place of the body; empty where there is none."""
        if path[:1] == (HEADER_PATH,):
            return self.headers.get(".".join(path[1:]), "")
        value = value_at(self.document(), path) if path else None
        return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def entities_of(spec: NoticeSpec, notice: Notice) -> list[str]:
    """The entities that the notice is about, in the order of their names; a body without JSON is one change."""
    changes = value_at(notice.document(), spec.changes)
    return sorted(
        {
            entity
            for change in (changes if isinstance(changes, list) else [changes])
            for entity in _entities_of_type(spec, value_at(change, spec.type))
        }
    )


def _entities_of_type(spec: NoticeSpec, change_type: Any) -> tuple[str, ...]:
    text = change_type if isinstance(change_type, str) else ""
    rules = (rule for rule in spec.rules if any(fnmatchcase(text, pattern) for pattern in rule.types))
    rule = next(rules, None)
    return () if rule is None else rule.entities
