"""Reads policies in Cedar: statements with their annotations, and every fault with its place. Pure."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import Any

import cedarpy

from gateway.access.policy.narrowing import alike_in_lists, narrowed, work_of
from gateway.access.policy.paths import faulty_path, paths_of
from gateway.errors import MAX_FAULTS, FieldError, InvalidPolicy
from gateway.kinds.suggestions import nearest

#: annotations that a statement may have
_APPROVALS = ("approval", "requireApproval")
_OF_APPROVALS = ("approvers", "expires", "reason")
ANNOTATIONS = ("id", "advice", *_APPROVALS, *_OF_APPROVALS, "redact")
#: maximum characters of a policy, of the text of an annotation, and maximum statements of a policy
MAX_TEXT, _MAX_ANNOTATION, MAX_STATEMENTS = 64 << 10, 500, 200
#: maximum characters of a pattern of `like`, with each of which every character of a text may be compared
_MAX_PATTERN = 200
#: maximum levels of an expression: the brackets around a place, the operators and conditions before it in each of them,
#: and the members that lead to it. The parser needs a part of the stack for each, and a full stack ends the process
_MAX_LEVELS = 200
#: maximum comparisons of a check, of which a processor makes about 500,000 a second
_MAX_WORK = 1_200_000
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
#: tokens after which what follows in the bracket is a level deeper, and those after which a new value begins
_DEEPER = frozenset({"&&", "||", "+", "-", "*", "!", "if", "else"})
_NEXT = frozenset({"==", "!=", "<", ">", "<=", ">=", "then", "has", "like", "is", "in", ":"})
_TOKEN = re.compile(r'//[^\n\r]*|\s+|"(?:\\.|[^"\\])*"?|[A-Za-z_]\w*|\d+|::|==|!=|<=|>=|&&|\|\||.', re.DOTALL)
_QUOTED = re.compile(r"`([^`]*)`")
_UNFINISHED = "unexpected end of input"
#: errors whose token the parser reads before any other fault of the text
_SYNTAX = ("unexpected token", "invalid token")
_DURATION = re.compile(r"[1-9]\d{0,4}[mhd]")
_APPROVERS = re.compile(r'(?:Group|Client|Person)::"[^"]+"(?:\s*,\s*[1-9])?')
_UNKNOWN_ACTION = re.compile(r'unrecognized action `Action::"(.*)"`')
_UNKNOWN_TYPE = re.compile(r"unrecognized entity type `(.*?)`")
_UNKNOWN_OF_TYPE = re.compile(r"attribute `(.*?)` on entity type `(.*?)` not found")
_UNKNOWN_OF_CONTEXT = re.compile(r'attribute `(.*?)` in context for Action::"(.*)" not found')
#: unknown names of a policy for which the nearest known name is searched, and how alike it must be: a search among all
#: operations takes half a second
_MAX_HINTS, _LIKENESS = 5, 0.7
#: says the same as another error of the statement
_REPEATS = "unable to find an applicable action"


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class _ActionList:
    """A list of nothing but actions, `[Action::"a", Action::"b"]`, between two offsets of the text."""

    start: int
    end: int
    names: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStatement:
    """One permit or forbid of a policy."""

    #: its `@id`, else the policy's name
    label: str
    is_forbid: bool
    annotations: Mapping[str, str]
    #: the statement in Cedar's JSON format
    document: Mapping[str, Any] = field(repr=False)
    #: characters of the document
    size: int

    @property
    def approval(self) -> str | None:
        """Why a person must approve what the statement decides; None if nobody must."""
        return next((self.annotations[name] for name in _APPROVALS if name in self.annotations), None)

    @property
    def redacted(self) -> tuple[str, ...]:
        """The paths of the members that answers leave out."""
        return paths_of(self.annotations.get("redact", ""))


def statements_of(name: str, cedar: str) -> list[PolicyStatement]:
    """The statements of a stored policy, in their order; raises InvalidPolicy."""
    return _statements(name, json.loads(_parsed(cedar)))


def _statements(name: str, parsed: Mapping[str, Any]) -> list[PolicyStatement]:
    documents = parsed["staticPolicies"]
    ordered = sorted(documents.items(), key=lambda item: int(item[0].removeprefix("policy")))
    return [_statement(name, document) for _, document in ordered]


def checked(name: str, cedar: str, schema: "Schema") -> list[PolicyStatement]:
    """The statements of a policy; raises InvalidPolicy with all faults of syntax, schema and annotations."""
    text = PolicyText(cedar)
    if len(cedar) > MAX_TEXT:
        raise text.refusal([(0, f"the policy has {len(cedar):,} characters; at most {MAX_TEXT:,} are allowed")])
    if text.statements > MAX_STATEMENTS:
        raise text.refusal([(0, f"the policy has more than {MAX_STATEMENTS} statements; split it")])
    parsed = json.loads(_parsed(cedar))
    if parsed["templates"]:
        raise text.refusal([(text.find(["?"]), "templates are not supported; name the principal or the resource")])
    found = _statements(name, parsed)
    if not found:
        raise text.refusal([(0, "the policy has no statement; write at least one permit or forbid")])
    shortened, part = reduced(text, found, schema.document)
    if work_of(part, [each.document for each in statements_of(name, shortened)]) > _MAX_WORK:
        raise text.refusal([(0, "the policy compares too many actions; write effects, kinds or several policies")])
    every = chain(
        _pattern_faults(text), _schema_faults(shortened, text, schema, _handle(part)), _annotation_faults(found, text)
    )
    faults = list(islice(every, MAX_FAULTS))
    if faults:
        raise text.refusal(faults)
    return found


def reduced(
    text: "PolicyText", found: Sequence[PolicyStatement], document: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any]]:
    """The text and the part of the schema it is checked against, which have the same faults as both whole ones."""
    lists, documents = list(text.lists_of_actions()), [each.document for each in found]
    alike = alike_in_lists(document, documents, [each.names for each in lists])
    return text.without(alike, lists), narrowed(document, documents, alike)


@dataclass(frozen=True)
class Schema:
    """The schema that policies are checked against, in Cedar's JSON format, and parsed."""

    document: Mapping[str, Any]
    handle: cedarpy.Schema

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Schema":
        """Parse a schema; it takes a second, so this runs in a thread."""
        return cls(document, _handle(document))

    @property
    def actions(self) -> Mapping[str, Any]:
        actions: Mapping[str, Any] = self.document[""]["actions"]
        return actions

    def hint(self, error: str) -> str:
        """The end of a message about an unknown name: the nearest known one."""
        name, known = next(self._unknown(error), ("", ()))
        suggestion = nearest(name, known, _LIKENESS)
        if suggestion is not None:
            return f"; did you mean {suggestion}?"
        return f"; known: {', '.join(sorted(known)[:20])}" if known else ""

    def _unknown(self, error: str) -> Iterator[tuple[str, Iterable[str]]]:
        types = self.document[""]["entityTypes"]
        if match := _UNKNOWN_ACTION.search(error):
            yield match[1], self.actions
        elif match := _UNKNOWN_TYPE.search(error):
            yield match[1], (*types, "Action")
        elif match := _UNKNOWN_OF_TYPE.search(error):
            yield match[1], types.get(match[2], {}).get("shape", {}).get("attributes", ())
        elif (match := _UNKNOWN_OF_CONTEXT.search(error)) and match[2] in self.actions:
            *path, name = match[1].split(".")
            record = self.actions[match[2]]["appliesTo"]["context"]
            for step in path:
                record = record["attributes"].get(step, {"attributes": {}})
            yield name, record.get("attributes", ())


def _handle(document: Mapping[str, Any]) -> cedarpy.Schema:
    return cedarpy.Schema.from_json_str(json.dumps(document), release_gil=True)


class PolicyText:
    """The text of a policy, with the places of its tokens and statements."""

    def __init__(self, cedar: str) -> None:
        self._cedar = cedar
        tokens = [_Word(match[0], match.start()) for match in _TOKEN.finditer(cedar)]
        self.tokens = [token for token in tokens if not token.text.isspace() and not token.text.startswith("//")]
        #: index of the first token of each statement, and of the end
        ends = [index + 1 for index, token in enumerate(self.tokens) if token.text == ";"]
        self._statements = [0, *ends]

    @property
    def statements(self) -> int:
        return len(self._statements) - 1

    def within(self, index: int) -> Sequence[_Word]:
        """The tokens of a statement."""
        bounds = [*self._statements, len(self.tokens)]
        return self.tokens[bounds[index] : bounds[index + 1]] if index + 1 < len(bounds) else self.tokens

    def find(self, names: Iterable[str], tokens: Sequence[_Word] | None = None) -> int:
        """The offset of the first token that is one of the names; else of the first token."""
        tokens = self.tokens if tokens is None else tokens
        wanted = set(names)
        found = next((token.start for token in tokens if token.text in wanted), None)
        return found if found is not None else tokens[0].start if tokens else 0

    def lists_of_actions(self) -> Iterator[_ActionList]:
        """The lists of nothing but actions, whose names have no escapes."""
        for index, token in enumerate(self.tokens):
            if token.text == "[":
                names, end = self._actions_from(index + 1)
                if names and end < len(self.tokens) and self.tokens[end].text == "]":
                    yield _ActionList(token.start, self.tokens[end].start + 1, names)

    def _actions_from(self, index: int) -> tuple[list[str], int]:
        """The names of actions that begin at a token, and the index of the token after them."""
        names: list[str] = []
        while [each.text for each in self.tokens[index : index + 2]] == ["Action", "::"]:
            name = self.tokens[index + 2].text
            if "\\" in name:
                break
            names.append(name[1:-1])
            index += 3
            if self.tokens[index].text == ",":
                index += 1
        return names, index

    def without(self, names: Collection[str], lists: Iterable[_ActionList]) -> str:
        """The text without these names in these lists."""
        if not names:
            return self._cedar
        parts, end = [], 0
        for each in lists:
            kept = ", ".join(f'Action::"{name}"' for name in each.names if name not in names)
            parts += [self._cedar[end : each.start], f"[{kept}]"]
            end = each.end
        return "".join([*parts, self._cedar[end:]])

    def too_deep(self) -> int | None:
        """The offset of the first token with too many levels around it; None if there is none."""
        outer: list[tuple[int, int]] = []
        #: the levels outside of the bracket, the operators in it, and the members of the value
        outside = operators = members = 0
        for token in self.tokens:
            if token.text in _OPENING:
                outer.append((operators, members))
                outside, operators, members = outside + operators + members + 1, 0, 0
            elif token.text in _CLOSING and outer:
                operators, members = outer.pop()
                outside -= operators + members + 1
            elif token.text == ".":
                members += 1
            elif token.text in _DEEPER:
                operators, members = operators + 1, 0
            elif token.text in _NEXT:
                members = 0
            elif token.text in (",", ";"):
                operators = members = 0
            if outside + operators + members > _MAX_LEVELS:
                return token.start
        return None

    def refusal(self, faults: Iterable[tuple[int, str]]) -> InvalidPolicy:
        """The error with these faults, each at an offset."""
        placed = [(*self._place(offset), message) for offset, message in faults]
        line, column, _ = placed[0]
        return InvalidPolicy(
            faults=[
                FieldError("/cedar", "cedar", "invalid_policy", f"line {at}, column {character}: {message}")
                for at, character, message in placed
            ],
            extra={"line": line, "column": column},
        )

    def _place(self, offset: int) -> tuple[int, int]:
        before = self._cedar[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def _parsed(cedar: str) -> str:
    text = PolicyText(cedar)
    deep = text.too_deep()
    if deep is not None:
        message = f"the expression has more than {_MAX_LEVELS} levels; write a set, or several statements"
        raise text.refusal([(deep, message)])
    try:
        return cedarpy.policies_to_json_str(cedar)
    except ValueError as error:
        raise text.refusal([(_syntax_offset(text, cedar, str(error)), str(error))]) from error


def _syntax_offset(text: PolicyText, cedar: str, error: str) -> int:
    """Where the text stops to be the beginning of a policy; the parser does not say it."""
    if error.startswith(_UNFINISHED):
        return len(cedar.rstrip())
    if not error.startswith(_SYNTAX):
        named = [*_QUOTED.findall(error), error.rpartition(" ")[2].strip("'@")]
        return text.find([name for name in named if name] + error.split("'")[1:2])
    first, last = 0, len(text.tokens) - 1
    while first < last:
        middle = (first + last) // 2
        token = text.tokens[middle]
        if _is_refused(cedar[: token.start + len(token.text)]):
            last = middle
        else:
            first = middle + 1
    # The parser may notice the token only with the next one.
    named = _QUOTED.findall(error)
    near = [token.start for token in text.tokens[: first + 1] if not named or token.text == named[0]]
    return near[-1] if near else 0


def _is_refused(beginning: str) -> bool:
    """Whether no text with this beginning is a policy."""
    try:
        cedarpy.policies_to_json_str(beginning)
    except ValueError as error:
        return str(error).startswith(_SYNTAX)
    return False


def _schema_faults(cedar: str, text: PolicyText, schema: Schema, handle: cedarpy.Schema) -> Iterator[tuple[int, str]]:
    """What does not fit the schema: each fault once, though Cedar finds it for every action."""
    seen: set[tuple[str, ...]] = set()
    result = cedarpy.validate_policies(cedar, handle, release_gil=True)
    errors = [(each.policy_id, each.error) for each in result.errors]
    told = {policy for policy, error in errors if _REPEATS not in error}
    for policy, error in errors:
        message = error.removeprefix(f"for policy `{policy}`, ")
        key = (policy, *([_shown(_QUOTED.findall(message)[0])] if _QUOTED.search(message) else [message]))
        if key in seen or (_REPEATS in error and policy in told):
            continue
        seen.add(key)
        tokens = text.within(int(policy.removeprefix("policy") or 0))
        hint = schema.hint(message) if len(seen) <= _MAX_HINTS else ""
        yield text.find(_spellings(_QUOTED.findall(message)), tokens), message + hint


def _shown(quoted: str) -> str:
    return quoted.rpartition(".")[2]


def _spellings(quoted: Iterable[str]) -> Iterator[str]:
    """How a name of an error may stand in the text: `params.status` as `status` or `"status"`."""
    for name in quoted:
        entity = re.search(r'::(".*")$', name)
        if entity is not None:
            yield entity[1]
        else:
            yield from (_shown(name), f'"{_shown(name)}"')


def _statement(name: str, document: Mapping[str, Any]) -> PolicyStatement:
    annotations = {key: value or "" for key, value in document.get("annotations", {}).items()}
    return PolicyStatement(
        label=annotations.get("id") or name,
        is_forbid=document["effect"] == "forbid",
        annotations=annotations,
        document=document,
        size=len(json.dumps(document)),
    )


def _pattern_faults(text: PolicyText) -> Iterator[tuple[int, str]]:
    for word, pattern in pairwise(text.tokens):
        size = len(pattern.text) - len('""')
        if word.text == "like" and pattern.text.startswith('"') and size > _MAX_PATTERN:
            yield (
                pattern.start,
                f"the pattern of `like` has {size:,} characters as it is written; at most {_MAX_PATTERN} are allowed",
            )


def _annotation_faults(found: Sequence[PolicyStatement], text: PolicyText) -> Iterator[tuple[int, str]]:
    labels: set[str] = set()
    for index, statement in enumerate(found):
        tokens = text.within(index)
        for name, value in statement.annotations.items():
            message = _annotation_fault(statement, name, value)
            if name == "id" and value in labels:
                message = f"the id {value!r} is that of an earlier statement"
            if message is not None:
                yield text.find([name], tokens), f"@{name}: {message}"
        labels.add(statement.annotations.get("id", ""))


def _annotation_fault(statement: PolicyStatement, name: str, value: str) -> str | None:
    """What is wrong with an annotation of a statement."""
    if name not in ANNOTATIONS:
        suggestion = nearest(name, ANNOTATIONS)
        return f"unknown annotation; {f'did you mean @{suggestion}?' if suggestion else f'known: {_KNOWN}'}"
    if not value.strip() or len(value) > _MAX_ANNOTATION:
        return f"needs a text of 1 to {_MAX_ANNOTATION} characters"
    if "\0" in value or (name == "id" and not value.isprintable()):
        return f"{value!r} has a character that cannot be shown"
    if name in _OF_APPROVALS and statement.approval is None:
        return "needs @approval beside it"
    check = _CHECKS.get(name)
    return None if check is None else check(statement, value)


def _redact_fault(statement: PolicyStatement, value: str) -> str | None:
    if statement.is_forbid:
        return "only a permit redacts; a forbid denies the whole call"
    return faulty_path(value)


def _approval_fault(statement: PolicyStatement, value: str) -> str | None:
    both = all(name in statement.annotations for name in _APPROVALS)
    return "use @approval or @requireApproval, not both" if both else None


_CHECKS: Mapping[str, Callable[[PolicyStatement, str], str | None]] = {
    "redact": _redact_fault,
    "requireApproval": _approval_fault,
    "approvers": lambda _, value: (
        None if _APPROVERS.fullmatch(value.strip()) else 'is an entity and a number, such as Group::"leads", 2'
    ),
    "expires": lambda _, value: None if _DURATION.fullmatch(value) else "is a duration, such as 30m, 4h or 2d",
}
_KNOWN = ", ".join(f"@{name}" for name in ANNOTATIONS)
