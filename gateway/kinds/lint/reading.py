"""Reads a spec as far as possible: all loading errors, and the rest of the spec for the checks that follow.

A member that cannot be read is left out and the rest is read again, so that one error does not hide others. A
reference to a member that was left out is not an error.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import Repr
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.kinds.editor_schema import members_at
from gateway.kinds.sources import LintError, SpecError, entity_files, lint_error, read_yaml
from gateway.kinds.spec import ConnectorSpec
from gateway.kinds.suggestions import did_you_mean, nearest

Place = tuple[str, ...]

#: maximum times that a spec is read again without the members that could not be read
_ROUNDS = 20
#: stand-ins for required members, so that the rest is checked
_STAND_INS: dict[str, Any] = {
    "kind": "unnamed",
    "title": "untitled",
    "description": "missing",
    "server": "https://example.com",
    "hosts": ["example.com"],
    "authentication": {},
    "credentials": {},
}
#: the members that a connector.yaml must have
_OF_CONNECTOR = tuple(name for name in _STAND_INS if name != "credentials")
_UNKNOWN = "is not a known member"
_EFFECT = "is missing; say what running it twice would do: read, idempotent or write"
#: parts of messages about errors that a left-out member may cause
_OF_ABSENCE = ("no request's path begins with", "connector.yaml defines no paging", "there is no #/$defs/")
#: shows the beginning of a value, however deep or long it is
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = 100
#: the correction, by the type of pydantic's error
_EXPECTED = {
    "string": "text; put it between quotes",
    "int": "a whole number, such as 10",
    "float": "a number, such as 1.5",
    "bool": "true or false",
    "date": "a day, such as 2027-04-30",
    "dict": "a mapping, such as `name: value`",
    "model": "a mapping, such as `name: value`",
    "tuple": "a list, such as [a, b]",
}


@dataclass(slots=True)
class SpecReading:
    """The parts of a folder that could be read."""

    #: None if the rest is not a valid spec
    spec: ConnectorSpec | None
    errors: list[LintError]
    #: places that were left out or got a stand-in
    left_out: set[Place] = field(default_factory=set)
    #: members that were written under a misspelt name, with that place
    renamed: dict[Place, Place] = field(default_factory=dict)

    def is_certain(self, place: Place, message: str) -> bool:
        """Whether an error is one of the files, and not perhaps a consequence of members that were left out."""
        if not self.left_out:
            return True
        names = {each[-1] for each in self.left_out if len(each) > 1}
        is_of_absence = message.endswith("remove it") or any(words in message for words in _OF_ABSENCE)
        is_near = not place or any(place[: len(each)] == each for each in self.left_out)
        return not (is_of_absence or is_near or names & set(re.findall(r"[\w-]+", message)))


def read_leniently(folder: Path) -> SpecReading:
    """The spec in a folder as far as it can be read."""
    reading = SpecReading(None, [])
    document = _document(folder, reading)
    for _ in range(_ROUNDS):
        try:
            reading.spec = ConnectorSpec.model_validate(document)
        except ValidationError as error:
            earlier = set(reading.left_out)
            # A misspelt member is renamed before anything is found missing.
            details = sorted(error.errors(), key=_is_missing)
            guessed = dict(reading.renamed)
            for place in {_place(each) for each in details if not _is_missing(each)} & guessed.keys():
                _withdraw_guess(folder, guessed[place], reading)
            repaired = [_repair(document, each, reading) for each in details]
            found = [
                lint_error(folder, _place(each), message_of(each))
                for each in details
                if _place(each) not in (earlier | reading.renamed.keys() if _is_missing(each) else guessed)
            ]
            reading.errors += [each for each in found if each not in reading.errors]
            if not all(repaired):
                return reading
        else:
            return reading
    return reading


def _withdraw_guess(folder: Path, written: Place, reading: SpecReading) -> None:
    """Name all members in the error of a misspelt one: its value shows that the nearest name was not meant."""
    place = lint_error(folder, written, "")
    for number, error in enumerate(reading.errors):
        if (error.path, error.line) == (place.path, place.line) and error.message.startswith(place.message):
            reading.errors[number] = lint_error(
                folder, written, f"{_UNKNOWN}; known: {', '.join(sorted(members_at(written[:-1])))}"
            )


def _document(folder: Path, reading: SpecReading) -> dict[str, Any]:
    """The files as one document, without those that cannot be read."""
    documents: dict[str, dict[str, Any]] = {}
    for path in [folder / "connector.yaml", *entity_files(folder)]:
        try:
            documents[path.stem] = read_yaml(path)
        except SpecError as error:
            reading.errors += error.errors
            is_whole = path.stem == "connector"
            reading.left_out |= {(name,) for name in _OF_CONNECTOR} if is_whole else {("entities", path.stem)}
    return {**documents.pop("connector", {}), "entities": documents}


def _is_missing(details: ErrorDetails) -> bool:
    return details["type"] == "missing"


def _place(details: ErrorDetails) -> Place:
    """The path of a member, without the parts that pydantic adds for keys and for the choices of a union."""
    place = [str(part) for part in details["loc"] if part != "[key]"]
    if place and re.fullmatch(r"str|int|(dict|tuple|list|literal|function-\w+)\[.*\]", place[-1]):
        place.pop()
    return tuple(place)


def message_of(details: ErrorDetails) -> str:
    """The fault of a member and its correction, in the linter's words."""
    place, type_, context = _place(details), details["type"], details.get("ctx", {})
    shown = _SHOWN.repr(details["input"])
    match type_:
        case "missing":
            return _EFFECT if place[-1] == "effect" else "is missing; add it"
        case "extra_forbidden":
            return f"{_UNKNOWN}; {did_you_mean(place[-1], members_at(place[:-1]))}"
        case "literal_error" | "enum":
            return f"is {shown}; write {context['expected']}"
        case "string_pattern_mismatch":
            return f"{shown} is not a name; write lower-case letters, digits and `{_separator(place)}`"
        case "string_too_short" | "string_too_long" | "greater_than_equal" | "less_than_equal" | "greater_than":
            return f"is {shown}; {details['msg'].removeprefix('Input ').removeprefix('String ')}"
        case "value_error":
            return details["msg"].removeprefix("Value error, ")
    expected = next((words for name, words in _EXPECTED.items() if type_.startswith(name)), None)
    return f"is {shown:.60}; write {expected}" if expected else details["msg"]


def _separator(place: Sequence[str]) -> str:
    return "-" if place == ("kind",) else "_"


def _repair(document: dict[str, Any], details: ErrorDetails, reading: SpecReading) -> bool:
    """Repair or leave out the member of an error; returns False if the whole spec would be left out."""
    place = _place(details)
    if not place:
        return False
    parent, place = _mapping_at(document, place)
    name = place[-1]
    if _is_missing(details):
        return _fill(document, parent, place, reading)
    if details["type"] == "extra_forbidden":
        known = members_at(place[:-1])
        meant = nearest(name, known)
        if meant is not None and meant not in parent:
            parent[meant] = parent.pop(name, None)
            reading.renamed[(*place[:-1], meant)] = place
            return True
    parent.pop(name, None)
    reading.left_out.add(place)
    return True


def _fill(document: dict[str, Any], parent: dict[str, Any], place: Place, reading: SpecReading) -> bool:
    """Add a stand-in for a missing member, else leave out the mapping that lacks it; returns as `_repair` does."""
    name = place[-1]
    if name in parent:
        return True
    if name in _STAND_INS:
        parent[name] = _STAND_INS[name]
        reading.left_out.add(place)
    elif name == "effect":
        parent[name] = "read" if str(parent.get("request", "GET")).startswith("GET") else "write"
        reading.left_out.add(place)
    elif len(place) > 1:
        outer, above = _mapping_at(document, place[:-1])
        outer.pop(above[-1], None)
        reading.left_out |= {above, place}
    return len(place) > 1 or name in parent


def _mapping_at(document: dict[str, Any], place: Place) -> tuple[dict[str, Any], Place]:
    """The mapping that holds a place, and that place; for a place within a list, the place of the list."""
    node: Any = document
    for depth, part in enumerate(place[:-1]):
        inner = node.get(part)
        if not isinstance(inner, dict):
            return node, place[: depth + 1]
        node = inner
    return node, place


def errors_of(folder: Path, error: ValidationError) -> Iterator[LintError]:
    """The errors of loading a spec, by file and line."""
    return (lint_error(folder, _place(details), message_of(details)) for details in error.errors())
