"""Field selection: the fields of a response, redaction, and truncation of long texts. Without any of them nothing is
parsed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import asdict, replace

from gateway.contract.kinds import Effect
from gateway.errors import MAX_FAULTS, FieldError, GatewayError, InvalidParams, UpstreamInvalidResponse
from gateway.foundation import payloads
from gateway.foundation.aio.turns import in_thread, mapped
from gateway.kinds.suggestions import Suggestions
from gateway.upstream.responses import NULL, OperationResult

#: characters of a text that are kept when a caller asks for truncation
_MAX_CHARACTERS = 1000
#: levels of a record below which texts are not truncated
_DEPTH = 100
_TRUNCATED = "… [truncated]"
#: bytes of a record beyond which the selection is applied in a thread
_LARGE = 64 << 10
#: bytes of a list beyond which its records are found and joined in a thread
_LARGE_LIST = 1 << 20
#: the step `*` of a path that is redacted: every member of a level
_EVERY = object()
#: names of members with the tree of the names below each; None if a path ends at the member
_Tree: TypeAlias = "dict[object, _Tree | None]"
_KEPT: _Tree = {}


class FieldSelection(msgspec.Struct, frozen=True):
    """The fields, the truncation and the number of records that a caller asks for, and what policies redact."""

    select_fields: Sequence[str] | None = None
    exclude_fields: Sequence[str] | None = None
    skip_truncation: bool = True
    #: maximum records of a list that the application does not page
    limit: int | None = None
    #: paths of members that the policies redact: from the record on, through arrays; `*` is one level
    redact: Sequence[str] = ()

    def as_document(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}

    def redacting(self, paths: Sequence[str]) -> "FieldSelection":
        """The selection with these paths redacted too."""
        return replace(self, redact=tuple(sorted({*self.redact, *paths}))) if paths else self


#: every record, with every field and whole texts
EVERYTHING = FieldSelection()


def ensure_declared(
    selection: FieldSelection, subject: str, fields: Collection[str], example: Mapping[str, Any] | None = None
) -> None:
    """Raise InvalidParams for fields that no record has; of a nested field only the first name is checked.

    `fields` may be empty: nothing is declared. `example` is a valid call.
    """
    if fields:
        faults = chain(
            _unknown(selection.select_fields, "select_fields", subject, fields),
            _unknown(selection.exclude_fields, "exclude_fields", subject, fields),
        )
        first = list(islice(faults, MAX_FAULTS))
        if first:
            raise InvalidParams(faults=first, extra={"example": example} if example else None)


def _unknown(paths: Sequence[str] | None, member: str, subject: str, fields: Collection[str]) -> Iterator[FieldError]:
    suggestions = Suggestions()
    for index, path in enumerate(paths or ()):
        name = path.partition(".")[0]
        if name not in fields:
            message = f"{subject}: {member} names {path!r}; {suggestions.did_you_mean(name, fields)}"
            yield FieldError(f"/{member}/{index}", f"{member}[{index}]", "unknown", message)


async def selected(answer: OperationResult, selection: FieldSelection) -> OperationResult:
    """The result with the selection applied; unchanged if it selects everything."""
    if selection == EVERYTHING:
        return answer
    redacted = tuple(sorted({*answer.redacted, *selection.redact}))
    if not answer.is_list:
        (record,) = await selected_records([answer.result], selection)
        return replace(answer, result=record, redacted=redacted)
    is_large = len(memoryview(answer.result)) > _LARGE_LIST
    found = await in_thread(attrgetter("records"), answer) if is_large else answer.records
    records = await selected_records(found[: selection.limit], selection)
    result = await in_thread(_array, records) if is_large else _array(records)
    return replace(answer, result=result, redacted=redacted)


async def selected_of(effect: Effect, answer: OperationResult, selection: FieldSelection) -> OperationResult:
    """The result of a call with the selection applied; for a read raises UpstreamInvalidResponse.

    A write has been done: if its result cannot be read, nothing of it is returned, because policies may redact it.
    """
    try:
        return await selected(answer, selection)
    except UpstreamInvalidResponse as error:
        return without_result(effect, answer, error, selection.redact)


def without_result(
    effect: Effect, answer: OperationResult, error: GatewayError, redact: Sequence[str] = ()
) -> OperationResult:
    """The answer of a write that was carried out and whose result cannot be read: a warning in place of the result.

    Raises the error of a read.
    """
    if effect is Effect.READ:
        raise error
    return OperationResult(
        result=NULL,
        redacted=tuple(sorted({*answer.redacted, *redact})),
        warning=withheld_words(error, answer.warning),
    )


def withheld_words(error: GatewayError, warning: str | None = None) -> str:
    """The warning in place of a result that cannot be read, after an earlier one."""
    fault = f"the result is withheld, because it cannot be read: {error.detail}"
    words = f"{fault}; the call was carried out, do not repeat it for that"
    return words if warning is None else f"{warning}; {words}"


def _array(records: Sequence[msgspec.Raw]) -> msgspec.Raw:
    return msgspec.Raw(b"[%b]" % b",".join(records))


async def selected_records(records: Sequence[msgspec.Raw], selection: FieldSelection) -> Sequence[msgspec.Raw]:
    """The records with the selection applied; unchanged if it selects everything."""
    if not (selection.select_fields or selection.exclude_fields or selection.redact) and selection.skip_truncation:
        return records
    select = selector(selection)

    def selected_from(record: msgspec.Raw) -> msgspec.Raw:
        try:
            return msgspec.Raw(msgspec.json.encode(select(payloads.editable(record))))
        except RecursionError as error:
            raise UpstreamInvalidResponse("the application's answer is nested too deeply") from error

    return await mapped(selected_from, records, lambda record: len(memoryview(record)) > _LARGE)


def selector(selection: FieldSelection) -> Callable[[Any], Any]:
    """The function that applies the selection to one record."""
    steps: list[Callable[[Any], Any]] = []
    if selection.redact:
        steps.append(partial(_without, _with_wildcards(_tree(selection.redact, _EVERY))))
    if selection.select_fields:
        steps.append(partial(_only, _tree(selection.select_fields)))
    if selection.exclude_fields:
        steps.append(partial(_without, _tree(selection.exclude_fields)))
    if not selection.skip_truncation:
        steps.append(_truncated)

    def select(record: Any) -> Any:
        for step in steps:
            record = step(record)
        return record

    return select


def _tree(paths: Iterable[str], every: object = "*") -> _Tree:
    """The paths grouped by their names, so that a record is passed once for all of them; `every` is the key of `*`."""
    root: _Tree = {}
    for path in paths:
        *outer, last = [every if name == "*" else name for name in path.split(".")]
        tree: _Tree | None = root
        for name in outer:
            tree = None if tree is None else tree.setdefault(name, {})
        if tree is not None:
            tree[last] = None
    return root


def _with_wildcards(tree: _Tree) -> _Tree:
    """The tree in which the names beside a `*` have the names below the `*` too."""
    every = tree.get(_EVERY, _KEPT)
    return {name: _merged(deeper, every) for name, deeper in tree.items()}


def _merged(tree: "_Tree | None", other: "_Tree | None") -> "_Tree | None":
    if tree is None or other is None:
        return None
    names = dict.fromkeys((*tree, *other))
    return _with_wildcards({name: _merged(tree.get(name, _KEPT), other.get(name, _KEPT)) for name in names})


def _only(tree: _Tree, record: Any) -> Any:
    """Only the members at the paths of a tree; a path goes through every item of an array."""
    if isinstance(record, list):
        return [_only(tree, item) for item in record]
    if not isinstance(record, dict):
        return record
    return {
        name: record[name] if deeper is None else _only(deeper, record[name])
        for name, deeper in tree.items()
        if name in record
    }


def _without(tree: _Tree, record: Any) -> Any:
    """All members but those at the paths of a tree; a path goes through every item of an array."""
    if isinstance(record, list):
        return [_without(tree, item) for item in record]
    if not isinstance(record, dict):
        return record
    left = {}
    for name, value in record.items():
        deeper = tree.get(name, tree.get(_EVERY, _KEPT))
        if deeper is not None:
            left[name] = _without(deeper, value) if deeper else value
    return left


def _truncated(value: Any, depth: int = _DEPTH) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _MAX_CHARACTERS else value[:_MAX_CHARACTERS] + _TRUNCATED
    if isinstance(value, list) and depth:
        return [_truncated(item, depth - 1) for item in value]
    if isinstance(value, dict) and depth:
        return {name: _truncated(member, depth - 1) for name, member in value.items()}
    return value
