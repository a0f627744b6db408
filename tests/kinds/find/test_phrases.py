"""Nearly every phrase of a spec finds its operation, if the search is limited to the kind."""

import pytest

from gateway.kinds.find.entries import entries_of
from tests.harness.catalog import shipped_catalog
from tests.kinds.find.evaluation import shipped_index

CATALOG = shipped_catalog()
#: the share of a kind's phrases whose operation may be missing among the first five
MISSING = 0.05
#: the searches for all fifteen thousand phrases take minutes
EVERY = 5


@pytest.mark.parametrize("kind", [kind.name for kind in CATALOG])
def test_a_phrase_finds_its_operation_among_five(kind):
    phrases = [
        (entry.name, phrase)
        for entry in entries_of(CATALOG)
        if entry.kind.name == kind and entry.action
        for phrase in entry.action.phrases
    ]
    asked = phrases[::EVERY]

    not_found = [(name, phrase) for name, phrase in asked if name not in _found(phrase, kind)]

    assert len(not_found) <= MISSING * len(asked), not_found


def _found(phrase, kind):
    found = shipped_index().search(phrase, kind=kind, limit=5)
    return [match.entry.name for match in (found.data or found.closest)]
