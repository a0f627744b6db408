"""A list by page numbers or offsets is read whole, although its records move meanwhile."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from gateway.foundation.numbered_pages import Numbering, Place, identifier, step

PAGES = Numbering("page", "size", counts_records=False)
OFFSETS = Numbering("offset", "size", counts_records=True)
NUMBERINGS = pytest.mark.parametrize("numbering", [PAGES, OFFSETS], ids=["pages", "offsets"])


@dataclass
class Application:
    """A list of numbers whose end is an empty page, a page that is not full, or a total."""

    numbering: Numbering
    records: list[int]
    ends: str = "empty"
    largest: int = 100
    max_pages: int | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)

    def page(self, asked: dict[str, Any]) -> tuple[list[int], dict[str, Any] | None, str | None]:
        self.requests.append(asked)
        size = min(asked.get("size", 10), self.largest)
        first = 0 if self.numbering.counts_records else 1
        number = asked.get(self.numbering.param, first)
        start = number if self.numbering.counts_records else (number - 1) * size
        found = self.records[start : start + size]
        is_last = {"empty": not found, "short": len(found) < size, "total": start + size >= len(self.records)}
        if is_last[self.ends]:
            return found, None, None
        if self.max_pages is not None and number >= self.max_pages:
            return found, None, "the application serves no further pages"
        following = start + len(found) if self.numbering.counts_records else number + 1
        return found, {**asked, self.numbering.param: following}, None


def read(
    application: Application, between: Callable[[int, list[int]], None] = lambda number, records: None, **params: int
) -> tuple[list[int], str | None]:
    """The records and what was said of missing ones; `between` changes the list after each page."""
    place, following, incomplete, found = Place(params=params), params, None, []
    while following is not None:
        assert len(application.requests) < 2000
        asked = dict(following)
        records, named, reason = application.page(asked)
        names = [str(record) for record in records]
        result = step(application.numbering, place, asked, names, following=named, incomplete=reason)
        found += [records[index] for index in result.new]
        # The place survives a restart of the job that reads the list.
        place = msgspec.convert(msgspec.to_builtins(result.place), Place)
        following, incomplete = result.following, incomplete or result.incomplete
        between(len(application.requests), application.records)
    return found, incomplete


@NUMBERINGS
@pytest.mark.parametrize("ends", ["empty", "short", "total"])
@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 95, 100])
@pytest.mark.parametrize("params", [{}, {"size": 10}, {"size": 1}, {"size": 40}, {"size": 150}], ids=str)
def test_a_list_that_does_not_move_is_read_once_in_its_order(numbering, ends, count, params):
    application = Application(numbering, list(range(count)), ends)

    assert read(application, **params) == (list(range(count)), None)


@NUMBERINGS
@pytest.mark.parametrize("largest", [1, 7, 30])
def test_an_application_with_smaller_pages_than_requested_is_read_whole(numbering, largest):
    assert read(Application(numbering, list(range(100)), largest=largest), size=50) == (list(range(100)), None)


def remove_first(number: int, records: list[int]) -> None:
    if number == 1:
        del records[0]


def update_first(number: int, records: list[int]) -> None:
    if number % 2:
        records.append(records.pop(0))


def remove_one_after_each_page(number: int, records: list[int]) -> None:
    if number < 30:
        del records[0]


def remove_a_page(number: int, records: list[int]) -> None:
    if number == 3:
        del records[:10]


def insert_in_front(number: int, records: list[int]) -> None:
    if number < 30:
        records.insert(0, -number)


def move_unread_to_front(number: int, records: list[int]) -> None:
    if number == 2:
        records.insert(0, records.pop(80))


@NUMBERINGS
@pytest.mark.parametrize(
    "change",
    [remove_first, update_first, remove_one_after_each_page, remove_a_page, insert_in_front, move_unread_to_front],
)
def test_records_that_stay_are_read_although_others_move(numbering, change):
    application = Application(numbering, list(range(100)))

    found, incomplete = read(application, change, size=20)

    assert incomplete is None
    assert {each for each in application.records if each >= 0} <= set(found)


@NUMBERINGS
@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_lost_silently_whatever_leaves_and_comes(numbering, seed):
    chance, inserted = random.Random(seed), itertools.count(1000)

    def between(number: int, records: list[int]) -> None:
        for _ in range(chance.randrange(4)):
            if records:
                del records[chance.randrange(len(records))]
            records.insert(0, next(inserted))
            if chance.random() < 0.3:
                records.append(records.pop(0))

    application = Application(numbering, list(range(300)))
    found, incomplete = read(application, between, size=25)

    assert incomplete is not None or {each for each in application.records if each < 300} <= set(found)


@NUMBERINGS
def test_a_list_that_loses_many_pages_at_once_is_said_to_be_incomplete(numbering):
    def between(number: int, records: list[int]) -> None:
        if number == 10:
            del records[:150]

    found, incomplete = read(Application(numbering, list(range(500))), between, size=20)

    assert set(range(150, 500)) - set(found)
    assert incomplete is not None
    assert "records moved" in incomplete


@pytest.mark.parametrize(
    ("numbering", "size", "most"), [(PAGES, 20, 72), (PAGES, 100, 60), (OFFSETS, 20, 55), (OFFSETS, 100, 53)]
)
def test_overlapping_costs_few_requests(numbering, size, most):
    application = Application(numbering, list(range(50 * size)))

    read(application, size=size)

    assert len(application.requests) <= most


def test_smaller_pages_do_not_reach_the_last_page_of_the_application_sooner():
    application = Application(PAGES, list(range(400)), "total", max_pages=20)

    assert read(application, size=20) == (list(range(400)), None)


@pytest.mark.parametrize("params", [{"page": 4, "size": 10}, {"page": 2}])
def test_a_list_that_is_not_read_from_its_first_page_is_read_as_the_application_says(params):
    application = Application(PAGES, list(range(100)), "total")

    read(application, **params)

    assert [each["page"] for each in application.requests] == list(range(params["page"], 11))


@NUMBERINGS
def test_records_that_cannot_be_told_apart_are_all_read(numbering):
    application = Application(numbering, [1] * 35)

    assert read(application, size=10) == ([1] * 35, None)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"name": "a", "id": 7}, "7"),
        ({"id": None, "key": "K-1"}, "K-1"),
        ({"subject": "x"}, "{'subject': 'x'}"),
        ("text", "'text'"),
    ],
)
def test_a_record_is_told_apart_by_its_identifier_or_as_a_whole(record, name):
    assert identifier(record) == name


@pytest.mark.parametrize(
    ("style", "param", "size", "order", "is_numbered"),
    [
        ("page", "page", "per_page", "unknown", True),
        ("offset", "startAt", "maxResults", "unknown", True),
        ("link", "page", "per_page", "unknown", True),
        ("link", "page_info", "limit", "unknown", False),
        ("cursor", "cursor", "limit", "unknown", False),
        ("page", "page", "per_page", "stable", False),
        ("page", "page", None, "unknown", False),
    ],
)
def test_lists_with_numbers_sizes_and_an_unknown_order_are_read_with_overlap(style, param, size, order, is_numbered):
    assert (Numbering.of(style=style, param=param, size=size, order=order) is not None) is is_numbered
