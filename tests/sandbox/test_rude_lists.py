"""Lists of every kind stay true when the application is rude; `make faults` plays every behaviour for every list."""

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import pytest

from gateway.contract.kinds import PagingStyle
from gateway.kinds.catalog import Operation
from gateway.sandbox.rude import Behaviour
from tests.harness.catalog import shipped_catalog
from tests.harness.rude import identifier, list_faults, lists_of, names_of, numbering_of, played, read

_UNKNOWN = PagingStyle.UNKNOWN
#: the number of behaviours that each list is tested with; lists take turns
_BEHAVIOURS = 5
KINDS = {kind.name: kind for kind in shipped_catalog()}
NUMBERED = {name: kind for name, kind in KINDS.items() if any(map(numbering_of, lists_of(kind)))}


def may_prove_its_end(operation: Operation, records: Sequence[Any]) -> bool:
    """Whether a response may show that a list of unknown pages is whole (specs/README.md)."""
    paging = operation.paging
    assert paging is not None
    if paging.max_records is not None and len(records) >= paging.max_records and paging.total is None:
        return False
    says_end = (paging.max_records, paging.next, paging.total, paging.has_more, paging.end)
    return not records or any(says_end)


@pytest.mark.parametrize(("turn", "kind"), list(enumerate(KINDS.values())), ids=KINDS)
async def test_a_rude_list_is_whole_or_says_what_is_missing(subtests, turn, kind):
    behaviours = islice(cycle(Behaviour), turn, None)
    async with played(kind, 0.2) as application:
        for operation in lists_of(kind):
            await application.reset()
            polite = await read(application.connector(), operation)
            is_unknown = operation.paging is not None and operation.paging.style is _UNKNOWN
            assert is_unknown or polite.error is None
            # A list of unknown pages says that records may be missing, unless its end can be proved.
            assert not is_unknown or polite.error is not None or may_prove_its_end(operation, polite.records)
            for behaviour in islice(behaviours, _BEHAVIOURS):
                with subtests.test(f"{operation} {behaviour.value}"):
                    assert not await list_faults(application, operation, polite.records, behaviour)


@pytest.mark.parametrize("kind", NUMBERED.values(), ids=NUMBERED)
async def test_a_list_with_page_numbers_has_the_records_that_stay_while_others_move(subtests, kind):
    async with played(kind) as application:
        for operation in lists_of(kind):
            numbering = numbering_of(operation)
            if numbering is None:
                continue
            with subtests.test(str(operation)):
                await application.reset()
                before = await read(application.connector(), operation, {numbering.size: 20})
                await application.become(Behaviour.MOVING_RECORDS)
                moving = await read(application.connector(), operation, {numbering.size: 20})
                await application.become()
                after = await read(application.connector(), operation, {numbering.size: 20})
                assert (before.error, moving.error, after.error) == (None, None, None)

                member = identifier(before.records)
                stayed = names_of(before.records, member) & names_of(after.records, member)
                assert stayed <= names_of(moving.records, member)
