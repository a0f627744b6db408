"""The letter marks of applications."""

from itertools import combinations

import pytest

from gateway.web.pages.marks import contrast, letters, mark_of
from tests.harness.catalog import shipped_catalog


@pytest.mark.parametrize(
    ("name", "mark"),
    [
        ("Zendesk", "Ze"),
        ("HubSpot", "HS"),
        ("incident.io", "In"),
        ("Parcel tracking", "PT"),
        ("my-own", "MO"),
        ("TikTok Marketing", "TM"),
        ("", "?"),
    ],
)
def test_an_application_has_a_mark_of_two_letters(name: str, mark: str):
    assert letters(name) == mark


def _distance(one: str, other: str) -> int:
    """How far the colours are from each other, in the component in which they differ most."""
    return max(abs(int(one[place : place + 2], 16) - int(other[place : place + 2], 16)) for place in (1, 3, 5))


def test_no_two_applications_look_alike_and_all_can_be_read():
    marks = {kind.spec.application: mark_of(kind.spec.application) for kind in shipped_catalog()}

    alike = [
        (one, other)
        for one, other in combinations(marks, 2)
        if marks[one].letters == marks[other].letters and _distance(marks[one].color, marks[other].color) < 80
    ]
    assert len(marks) >= 56
    assert alike == []
    assert {name: each for name, each in marks.items() if contrast(each.ink, each.color) < 4.5} == {}


def test_every_application_that_is_shipped_has_a_colour_of_its_brand():
    of_others = {mark_of(f"Own {number}").color for number in range(50)}

    assert len(of_others) == 8
    assert [kind.name for kind in shipped_catalog() if mark_of(kind.spec.application).color in of_others] == []
